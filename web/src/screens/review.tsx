// Review what the agent knows: contradictions, names that may be one, statements and their history, and past decisions.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ResponseOf } from "ebbtide-client";
import { type Action, useAction } from "../parts/act";
import { Command, quoted } from "../parts/copy";
import { focused } from "../parts/focus";
import { Empty, type Loaded, Problem, Shown, useLoad } from "../parts/load";
import { Filled, NodeLink } from "../parts/said";
import { useTokens } from "../parts/tokens";
import { numberOf, STATEMENT_STATES, Texts } from "../reading";
import { client, may } from "../session";
import { visible } from "../text";
import { dateOf, words } from "../words";
import { screens } from "../words/screens";

type Statement = ResponseOf<"listStatements">["statements"][number];
type Proposal = ResponseOf<"listMerges">["proposals"][number];
type Ruling = ResponseOf<"listRulings">["rulings"][number];

const PAGE = 50;

interface Shared {
  agent: string;
  action: Action;
  /** Run a request and read everything again. */
  decide: (request: () => Promise<unknown>) => Promise<boolean>;
  turn: number;
}

export default function Review({ agent }: { agent: string }) {
  const s = screens.value.review;
  const action = useAction();
  const [turn, setTurn] = useState(0);
  const decide = async (request: () => Promise<unknown>) => {
    const isDone = await action.run(request);
    if (isDone) setTurn((one) => one + 1);
    return isDone;
  };
  const shared = { agent, action, decide, turn };
  const any = useLoad((signal) => client.value.listStatements(agent, { page_size: 1, states: [...STATEMENT_STATES] }, { signal }), [agent, turn > 0]);
  return (
    <div class="page review">
      <h1>{s.title}</h1>
      {action.error !== undefined && <Problem error={action.error} />}
      <Shown of={any}>
        {({ statements }) => statements.length === 0 ? <NoStatements {...shared} /> : (
          <>
            <Conflicts {...shared} />
            <Merges {...shared} />
            <Statements {...shared} />
            <Rulings {...shared} />
          </>
        )}
      </Shown>
    </div>
  );
}

function NoStatements({ agent, decide }: Shared) {
  const t = words.value;
  const s = screens.value.review;
  const info = useLoad((signal) => client.value.getAgent(agent, { signal }), [agent]);
  const isOff = info.value?.parameters.extraction === "off";
  return (
    <Empty title={s.none}>
      <p>{s.noneWhy}</p>
      {isOff && <p>{s.noneOff}</p>}
      {isOff && may("admin") && <p><button type="button" onClick={() => void decide(() => client.value.updateAgent(agent, { extraction: "rules" }))}>{s.turnOn}</button></p>}
      {may("write") && <p>{s.storeOne}</p>}
      {may("write") && <Command>{`ebbtide statements add --agent ${quoted(agent)} ${t.locale === "en" ? "Ann residence Lisbon" : "林月 residence 青岛"}`}</Command>}
    </Empty>
  );
}

function Conflicts({ agent, action, decide, turn }: Shared) {
  const s = screens.value.review;
  const pages = useTokens();
  const list = useLoad((signal) => client.value.listConflicts(agent, { page_size: PAGE, ...pages.request }, { signal }), [agent, pages.token, turn]);
  const keep = (kept: Statement, dropped: Statement) => decide(() => client.value.resolveConflict(agent, { keep: kept.id, drop: dropped.id }));
  return (
    <section class="step">
      <h2>{s.sections.conflicts}</h2>
      <Shown of={list}>
        {({ conflicts, next_page_token }) => (
          <>
            <p class="quiet small">{conflicts.length === 0 ? s.conflictsNone : s.conflictsHint}</p>
            {conflicts.map(({ first, second }) => (
              <div class="pair" key={`${first.id}/${second.id}`}>
                {[[first, second] as const, [second, first] as const].map(([one, other]) => (
                  <article key={one.id}>
                    <Claim agent={agent} statement={one} />
                    {may("write") && <button type="button" disabled={action.isBusy} onClick={() => void keep(one, other)}>{s.keep}</button>}
                  </article>
                ))}
              </div>
            ))}
            {pages.buttons(next_page_token)}
          </>
        )}
      </Shown>
    </section>
  );
}

interface Decision {
  id: string;
  text: ComponentChildren;
  /** What can be decided, and the request that does it. */
  choices: readonly (readonly [title: string, request: () => Promise<unknown>])[];
}

/** A list of one line each, with buttons for those who may decide. */
function Decisions<T extends { next_page_token: string }>({ title, none, some = "", list, pages, linesOf, action, decide }: Shared & {
  title: string;
  none: string;
  some?: string;
  list: Loaded<T>;
  pages: ReturnType<typeof useTokens>;
  linesOf: (page: T) => readonly Decision[];
}) {
  return (
    <section class="step">
      <h2>{title}</h2>
      <Shown of={list}>
        {(page) => {
          const lines = linesOf(page);
          const hint = lines.length === 0 ? none : some;
          return (
            <>
              {hint && <p class="quiet small">{hint}</p>}
              <ul class="rows">
                {lines.map((one) => (
                  <li key={one.id}>
                    <span class="grow">{one.text}</span>
                    {may("write") && one.choices.map(([name, request]) => <button key={name} type="button" disabled={action.isBusy} onClick={() => void decide(request)}>{name}</button>)}
                  </li>
                ))}
              </ul>
              {pages.buttons(page.next_page_token)}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

function Merges(shared: Shared) {
  const { agent, turn } = shared;
  const s = screens.value.review;
  const pages = useTokens();
  const list = useLoad((signal) => client.value.listMerges(agent, { page_size: PAGE, ...pages.request }, { signal }), [agent, pages.token, turn]);
  const lineOf = (one: Proposal): Decision => {
    const pair = { entity: one.first_id, other: one.second_id };
    return {
      id: `${one.first_id}/${one.second_id}`,
      text: (
        <>
          <bdi><NodeLink agent={agent} id={one.first_id}>{visible(one.first)}</NodeLink></bdi> ↔ <bdi><NodeLink agent={agent} id={one.second_id}>{visible(one.second)}</NodeLink></bdi>
          <span class="quiet small"> · {s.mergeWhy[one.why] ?? one.why}{one.similarity > 0 && ` ${one.similarity.toFixed(2)}`}</span>
        </>
      ),
      choices: [[s.merge, () => client.value.mergeEntities(agent, pair)], [s.apart, () => client.value.rejectMerge(agent, pair)]],
    };
  };
  return <Decisions {...shared} title={s.sections.merges} none={s.mergesNone} some={s.mergesHint} list={list} pages={pages} linesOf={({ proposals }) => proposals.map(lineOf)} />;
}

function Statements(shared: Shared) {
  const { agent, turn } = shared;
  const s = screens.value.review;
  const pages = useTokens();
  const [draft, setDraft] = useState({ subject: "", topic: "" });
  const [filter, setFilter] = useState(draft);
  const [hasPast, setPast] = useState(false);
  const request = { page_size: PAGE, ...pages.request, ...(filter.subject && { subject: filter.subject }), ...(filter.topic && { topic: filter.topic }), ...(hasPast && { states: [...STATEMENT_STATES] }) };
  const list = useLoad((signal) => client.value.listStatements(agent, request, { signal }), [agent, pages.token, filter, hasPast, turn]);
  const apply = (event: Event) => {
    event.preventDefault();
    pages.reset();
    setFilter({ subject: draft.subject.trim(), topic: draft.topic.trim() });
  };
  return (
    <section class="step">
      <h2>{s.sections.statements}</h2>
      <form class="line" onSubmit={apply}>
        <input type="search" aria-label={s.filterSubject} placeholder={s.filterSubject} value={draft.subject} onInput={(event) => setDraft({ ...draft, subject: event.currentTarget.value })} />
        <input type="search" aria-label={s.filterTopic} placeholder={s.filterTopic} value={draft.topic} onInput={(event) => setDraft({ ...draft, topic: event.currentTarget.value })} />
        <button type="submit">{screens.value.search.go}</button>
        <label class="check"><input type="checkbox" checked={hasPast} onChange={() => { pages.reset(); setPast(!hasPast); }} /> {s.past}</label>
      </form>
      <Shown of={list}>
        {({ statements, next_page_token }) => (
          <>
            {statements.length === 0 && <p class="quiet">{s.filterNone}</p>}
            <ul class="statements">{statements.map((one) => <li key={one.id}><Row {...shared} statement={one} /></li>)}</ul>
            {pages.buttons(next_page_token)}
          </>
        )}
      </Shown>
    </section>
  );
}

/** Subject, topic and value, when it is true, and the words that support it. */
function Claim({ agent, statement: one }: { agent: string; statement: Statement }) {
  const s = screens.value.review;
  const when = [s.since(dateOf(one.since)), one.until === null ? "" : s.until(dateOf(one.until))].filter(Boolean).join(" ");
  return (
    <>
      <p class="claim">
        <span class="said">
          <NodeLink agent={agent} id={one.subject_id}>{visible(one.subject)}</NodeLink> <span class="quiet">{visible(one.slot)}:</span> {one.negated && <b>{s.not} </b>}
          <b>{visible(one.object)}</b>
        </span>
        <span class={`state ${one.state}`}>{s.state[one.state] ?? one.state}</span>
        {one.pinned && <span class="state">{s.pinned}</span>}
      </p>
      <p class="quiet small">
        <NodeLink agent={agent} id={one.id} /> · {screens.value.kinds[one.kind] ?? one.kind} · {when} · {s.confidence(one.confidence)} · {s.author(one.author)}
      </p>
      {one.quotes.map((quote) => (
        <figure class="quoted" key={`${quote.batch_id}/${quote.message_index}/${quote.offset}`}>
          {quote.text ? <blockquote class="said">{visible(quote.text)}</blockquote> : <p class="quiet">{s.quoteExpired}</p>}
          <figcaption>{[words.value.roles[quote.role] ?? quote.role, dateOf(quote.said_at)].join(" · ")}</figcaption>
        </figure>
      ))}
    </>
  );
}

const isOpenState = (state: string) => ["current", "contested", "planned"].includes(state);

function Row({ agent, action, decide, turn, statement: one }: Shared & { statement: Statement }) {
  const s = screens.value.review;
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [hasHistory, setHistory] = useState(false);
  const feedback = (kind: "pin" | "unpin" | "upvote" | "downvote") => void decide(() => client.value.giveFeedback(agent, { node_id: one.id, action: kind }));
  const correct = async () => {
    if (await decide(() => client.value.correctStatement(agent, one.id, { object: draft ?? "" }))) setDraft(undefined);
  };
  const button = (title: string, run: () => void, why?: string) => <button type="button" disabled={action.isBusy} title={why} onClick={run}>{title}</button>;
  return (
    <article>
      <Claim agent={agent} statement={one} />
      <p class="line tools">
        <button type="button" aria-expanded={hasHistory} onClick={() => setHistory(!hasHistory)}>{s.history}</button>
        {may("write") && isOpenState(one.state) && draft === undefined && (
          <>
            {button(s.correct, () => setDraft(one.object))}
            {button(s.retract, () => void decide(() => client.value.retractStatement(agent, one.id)), s.retractWhy)}
            {one.pinned ? button(s.unpin, () => feedback("unpin")) : button(s.pin, () => feedback("pin"))}
            {button(`▲ ${s.up}`, () => feedback("upvote"))}
            {button(`▼ ${s.down}`, () => feedback("downvote"))}
          </>
        )}
      </p>
      {draft !== undefined && (
        <form class="line" onSubmit={(event) => { event.preventDefault(); void correct(); }}>
          <input type="text" aria-label={s.correctLabel} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} ref={focused} />
          <button type="submit" class="main" disabled={action.isBusy || !draft.trim() || draft === one.object}>{s.save}</button>
          <button type="button" onClick={() => setDraft(undefined)}>{s.cancel}</button>
        </form>
      )}
      {hasHistory && <History agent={agent} id={one.id} turn={turn} />}
    </article>
  );
}

function History({ agent, id, turn }: { agent: string; id: string; turn: number }) {
  const history = useLoad((signal) => client.value.getStatementHistory(agent, id, {}, { signal }), [agent, id, turn]);
  return (
    <Shown of={history}>
      {({ statements }) => <ol class="history">{statements.map((one) => <li key={one.id}><Claim agent={agent} statement={one} /></li>)}</ol>}
    </Shown>
  );
}

function Rulings(shared: Shared) {
  const { agent, turn } = shared;
  const s = screens.value.review;
  const pages = useTokens();
  const list = useLoad(async (signal) => {
    const page = await client.value.listRulings(agent, { page_size: PAGE, ...pages.request }, { signal });
    const texts = new Texts(agent);
    await texts.read([...new Set(page.rulings.flatMap((one) => [one.target, one.other]).filter(Boolean).map(numberOf))], signal);
    return { ...page, texts };
  }, [agent, pages.token, turn]);
  const said = (one: Ruling, texts: Texts) => {
    const link = (id: string) => <span class="said"><NodeLink agent={agent} id={id}>{visible((id && texts.get(numberOf(id))?.phrase) || id)}</NodeLink></span>;
    return <Filled places={{ target: link(one.target), other: link(one.other) }}>{s.ruling[one.kind] ?? `${one.kind} {target} {other}`}</Filled>;
  };
  const lineOf = (one: Ruling, texts: Texts): Decision => ({
    id: one.id,
    text: (
      <>
        {said(one, texts)} {one.kind === "vote" && (one.value > 0 ? "▲" : "▼")}
        <span class="quiet small"> · {dateOf(one.known_at)}{one.author !== "-" && ` · ${s.author(one.author)}`}{one.reason && <> · <span class="said">{visible(one.reason)}</span></>}</span>
      </>
    ),
    choices: [[s.undo, () => client.value.undoRuling(agent, one.id)]],
  });
  return <Decisions {...shared} title={s.sections.rulings} none={s.rulingsNone} list={list} pages={pages} linesOf={({ rulings, texts }) => rulings.map((one) => lineOf(one, texts))} />;
}
