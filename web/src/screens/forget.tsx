// Forget a selection for good: choose, look first, confirm with the agent's name, keep the proof. And the audit log.
import { useEffect, useRef, useState } from "preact/hooks";
import type { RequestOf, ResponseOf } from "ebbtide-client";
import { Missing, useAction } from "../parts/act";
import { focused } from "../parts/focus";
import { Problem, Shown, useAgent, useLoad } from "../parts/load";
import { timeRange } from "../parts/period";
import { NodeLink } from "../parts/said";
import { numberOf, Texts } from "../reading";
import { place } from "../router";
import { client, may } from "../session";
import { visible } from "../text";
import { momentOf, words } from "../words";
import { screens } from "../words/screens";

type Request = RequestOf<"forgetMemories">;
type Result = ResponseOf<"forgetMemories">;
type AuditPage = ResponseOf<"listAuditRecords">;

const BY = ["topic", "conversation", "speaker", "time", "ids"] as const;
type By = (typeof BY)[number];

const RECORDS = 50;
const MOST_SHOWN = 100;
const MESSAGE_PAGE = 1_000;
const MOST_MESSAGE_PAGES = 5;
const HASH_SHOWN = 12;

export default function Forget({ agent }: { agent: string }) {
  const s = screens.value.forget;
  return (
    <Shown of={useAgent(agent)}>
      {() => (
        <div class="page forget">
          <h1>{s.title}</h1>
          <p class="quiet">{s.intro}</p>
          <Missing permission="admin" />
          {may("admin") && <Erasure key={place.value.query.get("node") ?? ""} agent={agent} />}
        </div>
      )}
    </Shown>
  );
}

interface Preview {
  request: Request;
  result: Result;
  texts: Texts;
  messages: ReadonlyMap<string, string>;
}

function Erasure({ agent }: { agent: string }) {
  const [proof, setProof] = useState<Result | undefined>(undefined);
  return (
    <>
      {proof ? <Proof agent={agent} result={proof} onAgain={() => setProof(undefined)} /> : <Steps agent={agent} onForgotten={setProof} />}
      <Audit agent={agent} newest={proof?.proof.last_record ?? 0} />
    </>
  );
}

function Steps({ agent, onForgotten }: { agent: string; onForgotten: (result: Result) => void }) {
  const [preview, setPreview] = useState<Preview | undefined>(undefined);
  const { run, error, isBusy } = useAction();
  const look = (request: Request) => run(async () => {
    setPreview(undefined);
    setPreview(await lookFirst(agent, request));
  });
  const forget = (request: Request) => run(async () => onForgotten(await client.value.forgetMemories(agent, request)));
  return (
    <>
      <Choose isBusy={isBusy} onLook={(request) => void look(request)} onEdit={() => setPreview(undefined)} />
      {error !== undefined && <Problem error={error} />}
      {preview && (
        <>
          <Affected key={JSON.stringify(preview.request)} agent={agent} preview={preview} isBusy={isBusy} onAdd={(ids) => void look(withIds(preview.request, ids))} />
          {hasAny(preview.result) && <Confirm agent={agent} isBusy={isBusy} onConfirm={() => void forget(preview.request)} />}
        </>
      )}
    </>
  );
}

function hasAny({ counts, partly }: Result): boolean {
  return counts.nodes + counts.messages + counts.records + counts.relations + counts.bytes + partly.length > 0;
}

function withIds(request: Request, ids: readonly string[]): Request {
  const { nodes, messages } = split(ids);
  return { ...request, nodes: [...(request.nodes ?? []), ...nodes], messages: [...(request.messages ?? []), ...messages] };
}

function split(ids: readonly string[]): { nodes: string[]; messages: string[] } {
  return { nodes: ids.filter((id) => id.startsWith("n")), messages: ids.filter((id) => id.startsWith("m")) };
}

async function lookFirst(agent: string, request: Request): Promise<Preview> {
  const result = await client.value.forgetMemories(agent, { ...request, dry_run: true });
  const shown = [...result.nodes.slice(0, MOST_SHOWN), ...result.also_found_in.slice(0, MOST_SHOWN)];
  const texts = new Texts(agent);
  await texts.read(split(shown).nodes.map(numberOf), new AbortController().signal);
  const wanted = [...result.messages.slice(0, MOST_SHOWN), ...result.partly.slice(0, MOST_SHOWN), ...split(shown).messages];
  return { request, result, texts, messages: await readMessages(agent, new Set(wanted)) };
}

// Messages are listed in the order of arrival only, so those of a large agent beyond the first pages are shown by id.
async function readMessages(agent: string, wanted: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  let token = "";
  for (let page = 0; page < MOST_MESSAGE_PAGES && found.size < wanted.size; page++) {
    const { messages, next_page_token } = await client.value.listMessages(agent, { page_size: MESSAGE_PAGE, ...(token && { page_token: token }) });
    for (const one of messages) if (wanted.has(one.id)) found.set(one.id, one.content ?? words.value.wordsDeleted);
    token = next_page_token;
    if (!token) break;
  }
  return found;
}

function Choose({ isBusy, onLook, onEdit }: { isBusy: boolean; onLook: (request: Request) => void; onEdit: () => void }) {
  const s = screens.value.forget;
  const node = place.value.query.get("node") ?? "";
  const [by, setBy] = useState<By>(node ? "ids" : "topic");
  const [value, setValue] = useState(node);
  const [from, setFrom] = useState("");
  const [until, setUntil] = useState("");
  const ids = value.split(/[\s,，、]+/).filter(Boolean);
  const isBad = by === "ids" && ids.some((id) => !/^[nm]\d+$/.test(id));
  const request = (): Request => {
    const text = value.trim();
    if (by === "ids") return split(ids);
    if (by === "time") return { time_range: timeRange(from, until) ?? null };
    return by === "topic" ? { topic: text } : by === "conversation" ? { conversations: [text] } : { speakers: [text] };
  };
  const isEmpty = by === "time" ? !from && !until : !value.trim();
  const choose = (one: By) => {
    setBy(one);
    setValue("");
    onEdit();
  };
  const edit = (set: (text: string) => void) => (event: { currentTarget: HTMLInputElement }) => {
    set(event.currentTarget.value);
    onEdit();
  };
  return (
    <section class="step">
      <h2>{s.choose}</h2>
      <form onSubmit={(event) => { event.preventDefault(); if (!isEmpty && !isBad) onLook(request()); }}>
        <fieldset class="chips">
          <legend class="hidden">{s.choose}</legend>
          {BY.map((one) => (
            <label key={one} class="chip"><input type="radio" name="by" checked={by === one} onChange={() => choose(one)} /> {s.by[one]}</label>
          ))}
        </fieldset>
        <p class="quiet small" id="forget-hint">{s.hints[by]}</p>
        {by === "time" ? (
          <div class="fields">
            <label>{s.from}<input type="date" value={from} onInput={edit(setFrom)} /></label>
            <label>{s.until}<input type="date" value={until} onInput={edit(setUntil)} /></label>
          </div>
        ) : (
          <input type="text" class="wide" aria-label={s.by[by]} aria-describedby="forget-hint" value={value} onInput={edit(setValue)} ref={focused} />
        )}
        {isBad && <p class="bad small" role="alert">{s.badIds}</p>}
        <p class="line"><button type="submit" class="main" disabled={isBusy || isEmpty || isBad}>{s.look}</button> <span class="quiet small">{s.lookHint}</span></p>
      </form>
    </section>
  );
}

function Affected({ agent, preview, isBusy, onAdd }: { agent: string; preview: Preview; isBusy: boolean; onAdd: (ids: readonly string[]) => void }) {
  const s = screens.value.forget;
  const { result, texts, messages } = preview;
  const { counts } = result;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const textOf = (id: string) => visible((id.startsWith("n") ? texts.get(numberOf(id))?.content : messages.get(id)) ?? "");
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const list = (title: string, ids: readonly string[], count = ids.length) => ids.length > 0 && (
    <>
      <h3>{title} ({count})</h3>
      <ul class="affected">{ids.slice(0, MOST_SHOWN).map((id) => <li key={id}><NodeLink agent={agent} id={id} /> <span class="said">{textOf(id)}</span></li>)}</ul>
      {count > MOST_SHOWN && <p class="quiet small">{s.more(count - MOST_SHOWN)}</p>}
    </>
  );
  const { also_found_in: also, also_found_count: alsoCount } = result;
  return (
    <section class="step">
      <h2 ref={heading} tabIndex={-1}>{s.found}</h2>
      {hasAny(result) ? (
        <p class="counted">
          {s.counts(counts.nodes, counts.messages, counts.bytes)}
          {counts.records > 0 && ` · ${s.records(counts.records)}`}
          {counts.relations > 0 && ` · ${s.relations(counts.relations)}`}
        </p>
      ) : <p>{s.nothing}</p>}
      {list(s.nodes, result.nodes, counts.nodes)}
      {list(s.messages, result.messages, counts.messages)}
      {list(s.partly, result.partly)}
      {result.records.length > 0 && <ul class="affected">{result.records.map((one) => <li key={JSON.stringify(one)}><code>{visible([...one.namespace, one.key].join(" / "))}</code></li>)}</ul>}
      {also.length > 0 && (
        <fieldset class="also">
          <legend><h3>{s.also} ({alsoCount})</h3></legend>
          <p class="quiet small">{s.alsoHint}</p>
          {also.slice(0, MOST_SHOWN).map((id) => (
            <label key={id} class="check"><input type="checkbox" checked={chosen.has(id)} onChange={() => toggle(id)} /> <code>{id}</code> <span class="said">{textOf(id)}</span></label>
          ))}
          {alsoCount > MOST_SHOWN && <p class="quiet small">{s.more(alsoCount - MOST_SHOWN)}</p>}
          {chosen.size > 0 && <button type="button" disabled={isBusy} onClick={() => onAdd([...chosen])}>{s.alsoAdd(chosen.size)}</button>}
        </fieldset>
      )}
    </section>
  );
}

function Confirm({ agent, isBusy, onConfirm }: { agent: string; isBusy: boolean; onConfirm: () => void }) {
  const s = screens.value.forget;
  const [typed, setTyped] = useState("");
  return (
    <section class="step">
      <h2>{s.confirm}</h2>
      <form onSubmit={(event) => { event.preventDefault(); if (typed === agent) onConfirm(); }}>
        <label class="said">{s.type(visible(agent))}<input type="text" autocomplete="off" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></label>
        <button type="submit" class="danger" disabled={isBusy || typed !== agent}>{isBusy ? s.deleting : s.permanently}</button>
      </form>
    </section>
  );
}

function Proof({ agent, result, onAgain }: { agent: string; result: Result; onAgain: () => void }) {
  const s = screens.value.forget;
  const { counts, proof } = result;
  const save = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify({ agent_id: agent, ...result }, null, 2)], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `ebbtide-proof-${proof.last_record}.json`;
    link.click();
    URL.revokeObjectURL(url);
  };
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  if (proof.first_record === 0) {
    return <section class="step"><p>{s.doneNothing}</p><button type="button" onClick={onAgain}>{s.again}</button></section>;
  }
  return (
    <section class="step">
      <h2 ref={heading} tabIndex={-1}>{s.done}</h2>
      <p class="counted">{s.doneCounts(counts.nodes, counts.messages, counts.bytes)}</p>
      <p>{result.compacted ? s.compacted : s.notCompacted}</p>
      <dl class="how">
        <dt>{s.proof.records}</dt><dd>{proof.first_record === proof.last_record ? proof.first_record : `${proof.first_record}–${proof.last_record}`}</dd>
        <dt>{s.proof.hash}</dt><dd><code>{proof.record_hash}</code></dd>
        <dt>{s.proof.hmacs}</dt><dd>{words.value.number(proof.hmac_count)}</dd>
      </dl>
      <p class="line"><button type="button" class="main" onClick={save}>{s.save}</button> <button type="button" onClick={onAgain}>{s.again}</button></p>
    </section>
  );
}

function Audit({ agent, newest }: { agent: string; newest: number }) {
  const s = screens.value.forget;
  return (
    <section class="step">
      <h2>{s.auditTitle}</h2>
      <p class="quiet small">{s.auditHint}</p>
      <Log key={newest} agent={agent} />
      <Verify agent={agent} />
    </section>
  );
}

function Log({ agent }: { agent: string }) {
  const s = screens.value.forget;
  // The tokens of the pages up to the present one. The page stays until the next one is there.
  const tokens = useRef<readonly string[]>([]);
  const log = useLoad(async (signal) => {
    const token = tokens.current.at(-1);
    return client.value.listAuditRecords(agent, { newest_first: true, page_size: RECORDS, ...(token && { page_token: token }) }, { signal });
  }, [agent]);
  const turn = (to: readonly string[]) => {
    tokens.current = to;
    log.reload();
  };
  return (
    <Shown of={log}>
      {({ records, next_page_token: next }) => (
        <>
          {records.length === 0 ? <p class="quiet">{s.auditNone}</p> : <Records records={records} />}
          {(tokens.current.length > 0 || next) && (
            <p class="pages">
              <button type="button" disabled={tokens.current.length === 0} onClick={() => turn([])}>{s.newest}</button>
              <button type="button" disabled={tokens.current.length === 0} onClick={() => turn(tokens.current.slice(0, -1))}>{s.newer}</button>
              <button type="button" disabled={!next} onClick={() => turn([...tokens.current, next])}>{s.older}</button>
            </p>
          )}
        </>
      )}
    </Shown>
  );
}

function Records({ records }: { records: AuditPage["records"] }) {
  const s = screens.value.forget;
  const { columns } = s;
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">{columns.number}</th><th scope="col">{columns.at}</th><th scope="col">{columns.action}</th>
            <th scope="col">{columns.details}</th><th scope="col" class="number" title={s.proofsHint}>{columns.proofs}</th><th scope="col">{columns.actor}</th>
          </tr>
        </thead>
        <tbody>
          {records.map((one) => (
            <tr key={one.number}>
              <th scope="row" class="number"><span title={one.record_hash}>{one.number}</span></th>
              <td class="one-line">{momentOf(one.at)}</td>
              <td class="one-line">{s.actions[one.action] ?? one.action}</td>
              <td><code class="said">{visible(detailed(one.details))}</code></td>
              <td class="number">{one.proof_count || ""}</td>
              <td><code title={one.record_hash}>{one.actor}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function detailed(details: Record<string, unknown>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== 0 && value !== "" && JSON.stringify(value) !== "{}" && JSON.stringify(value) !== "[]")
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("  ");
}

function Verify({ agent }: { agent: string }) {
  const s = screens.value.forget;
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ texts: readonly string[]; verdict: ResponseOf<"verifyAudit"> } | undefined>(undefined);
  const { run, error, isBusy } = useAction();
  const submit = () => run(async () => {
    const texts = text.split("\n").map((one) => one.trim()).filter(Boolean);
    setFound({ texts, verdict: await client.value.verifyAudit(agent, { texts }) });
  });
  return (
    <form onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <h3>{s.verifyTitle}</h3>
      <label>{s.verifyHint}<textarea rows={2} aria-label={s.verifyLabel} value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      <button type="submit" disabled={isBusy}>{s.verify}</button>
      <div role="status">
        {found && (
          <>
            <p class={found.verdict.intact ? "good" : "bad"}>{found.verdict.intact ? s.intact(found.verdict.records) : s.broken(found.verdict.broken_record, found.verdict.problem)} {found.verdict.record_hash && <code title={found.verdict.record_hash}>{found.verdict.record_hash.slice(0, HASH_SHOWN)}…</code>}</p>
            <ul class="affected">
              {found.texts.map((one, index) => {
                const verdict = found.verdict.texts[index];
                return <li key={index}><span class="said">{visible(one)}</span>: <b class={verdict?.erased ? "good" : ""}>{verdict?.erased ? s.erased(verdict.record) : s.notErased}</b></li>;
              })}
            </ul>
          </>
        )}
      </div>
      {error !== undefined && <Problem error={error} />}
    </form>
  );
}
