// Search: a question or words, the memories that it finds, and why each of them was found.
import { useState } from "preact/hooks";
import type { components, RequestOf, ResponseOf } from "ebbtide-client";
import { focused } from "../parts/focus";
import { Empty, Shown, useLoad } from "../parts/load";
import { ModelText } from "../parts/model_text";
import { timeRange } from "../parts/period";
import { NodeLink, Origin, Quoted } from "../parts/said";
import { numberOf, Texts } from "../reading";
import { go, pathOf, place } from "../router";
import { client } from "../session";
import { visible } from "../text";
import { dateOf, words } from "../words";
import { screens } from "../words/screens";

type Schemas = components["schemas"];
type Recalled = ResponseOf<"recall">;
type Explained = Schemas["ExplainedMemory"];

const MOST_RESULTS = 20;
const MOST_LEFT_OUT = 20;
const SPECKS = 0.0005;
const KINDS = ["episode", "fact", "event", "relation", "opinion", "preference", "task", "reflection"];
const FILTERS = ["speaker", "conversation", "from", "until", "kind", "budget"] as const;
type Filter = (typeof FILTERS)[number];
type Question = { q: string; mode: "hybrid" | "associative" } & Record<Filter, string>;

/** A result of either mode. */
interface Result {
  id: string;
  label: string;
  content: string;
  state: Schemas["RecalledMemory"]["state"];
  sources: (Schemas["SourceInfo"] & { quote?: string })[];
  nodes: string[];
  at: number | null;
  why: Explained | undefined;
}

interface Answer {
  recalled: Recalled;
  results: Result[];
  texts: Texts;
}

export default function Search({ agent }: { agent: string }) {
  const s = screens.value;
  const { query } = place.value;
  const asked = questionOf(query);
  const isAsked = asked.q !== "" || query.has("mode");
  return (
    <div class="page search">
      <h1>{s.search.title}</h1>
      <Form key={query.toString()} asked={asked} onAsk={(question) => go(pathOf(["a", agent, "search"], question))} />
      {isAsked ? <Found agent={agent} asked={asked} /> : <Empty title={s.search.startTitle}><p>{s.search.start}</p></Empty>}
    </div>
  );
}

function questionOf(query: URLSearchParams): Question {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])) as Record<Filter, string>;
  return { q: query.get("q") ?? "", mode: query.get("mode") === "associative" ? "associative" : "hybrid", ...filters };
}

function Form({ asked, onAsk }: { asked: Question; onAsk: (question: Record<string, string>) => void }) {
  const t = screens.value.search;
  const [draft, setDraft] = useState(asked);
  const isHybrid = draft.mode === "hybrid";
  const set = (name: keyof Question) => (event: { currentTarget: HTMLInputElement | HTMLSelectElement }) => setDraft({ ...draft, [name]: event.currentTarget.value });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const { mode, ...rest } = draft;
    const kept = isHybrid ? rest : { q: rest.q, from: rest.from, until: rest.until };
    onAsk({ ...kept, q: draft.q.trim(), mode: isHybrid ? "" : mode });
  };
  const text = (name: "speaker" | "conversation") => <label>{t[name]}<input type="text" value={draft[name]} onInput={set(name)} /></label>;
  const day = (name: "from" | "until") => <label>{t[name]}<input type="date" value={draft[name]} onInput={set(name)} /></label>;
  return (
    <form class="ask" role="search" onSubmit={(event) => submit(event as SubmitEvent)}>
      <div class="line">
        <input type="search" aria-label={t.question} placeholder={t.placeholder} value={draft.q} onInput={set("q")} required={isHybrid} ref={focused} />
        <select aria-label={t.mode} title={t.modesWhy[draft.mode]} value={draft.mode} onChange={set("mode")}>
          <option value="hybrid">{t.modes.hybrid}</option>
          <option value="associative">{t.modes.associative}</option>
        </select>
        <button type="submit" class="main">{t.go}</button>
      </div>
      <p class="quiet small">{t.modesWhy[draft.mode]} {!isHybrid && t.startAssociative}</p>
      <details open={FILTERS.some((name) => asked[name])}>
        <summary>{t.filters}</summary>
        <div class="fields">
          {isHybrid && text("speaker")}
          {isHybrid && text("conversation")}
          {day("from")}
          {day("until")}
          {isHybrid && (
            <label>
              {t.kind}
              <select value={draft.kind} onChange={set("kind")}>
                <option value="">{t.anyKind}</option>
                {KINDS.map((kind) => <option key={kind} value={kind}>{screens.value.kinds[kind] ?? kind}</option>)}
              </select>
            </label>
          )}
          {isHybrid && <label>{t.budget}<input type="number" min={1} value={draft.budget} onInput={set("budget")} /></label>}
        </div>
        {FILTERS.some((name) => asked[name]) && <button type="button" onClick={() => onAsk({ q: asked.q, mode: isHybrid ? "" : asked.mode })}>{t.clear}</button>}
      </details>
    </form>
  );
}

function Found({ agent, asked }: { agent: string; asked: Question }) {
  const s = screens.value;
  const t = s.search;
  const answer = useLoad((signal) => ask(agent, asked, signal), [agent, JSON.stringify(asked)]);
  return (
    <Shown of={answer}>
      {({ recalled, results, texts }) => (
        <div class="found">
          <section aria-label={t.title} aria-live="polite">
            {results.length === 0 ? <Nothing agent={agent} hasFilters={FILTERS.some((name) => asked[name])} /> : <p class="quiet small">{t.results(results.length)}</p>}
            <ol class="results">{results.map((one) => <Hit key={one.id} agent={agent} result={one} best={results[0]?.why} texts={texts} />)}</ol>
          </section>
          <aside>
            <h2>{s.modelText}</h2>
            <ModelText text={recalled.text} />
            {recalled.explanation && <How agent={agent} explanation={recalled.explanation} texts={texts} />}
            {recalled.pending_batches > 0 && <p class="quiet small">{t.pending(recalled.pending_batches)}</p>}
            {recalled.unembedded_messages > 0 && <p class="quiet small">{t.unembedded(recalled.unembedded_messages)}</p>}
          </aside>
        </div>
      )}
    </Shown>
  );
}

async function ask(agent: string, asked: Question, signal: AbortSignal): Promise<Answer> {
  const isHybrid = asked.mode === "hybrid";
  const period = timeRange(asked.from, asked.until);
  const common: RequestOf<"recall"> = { explain: true, ...(period && { time_range: period }) };
  const request: RequestOf<"recall"> = isHybrid
    ? {
        ...common,
        query: asked.q,
        citations: true,
        ...(asked.speaker && { speakers: [asked.speaker] }),
        ...(asked.conversation && { sources: [asked.conversation] }),
        ...(asked.kind && { kinds: [asked.kind] }),
        ...(asked.budget && { token_budget: Number(asked.budget), key_sentences: true }),
      }
    : { ...common, mode: "associative", keywords: asked.q.split(/[\s,，、;；?？!！.。]+/).filter(Boolean), max_results: MOST_RESULTS };
  const recalled = await client.value.recall(agent, request, { signal });
  const explained = recalled.explanation?.memories ?? [];
  const texts = new Texts(agent);
  const wanted = explained.filter((one) => one.dropped || !isHybrid).slice(0, MOST_RESULTS + MOST_LEFT_OUT).flatMap((one) => [one.id, ...one.path.map((step) => step.id)]);
  await texts.read([...new Set(wanted.filter(isNode).map(numberOf))], signal);
  return { recalled, texts, results: isHybrid ? cited(recalled, explained) : reached(explained, texts) };
}

function cited(recalled: Recalled, explained: readonly Explained[]): Result[] {
  return (recalled.memories ?? []).map((one) => ({
    ...one,
    label: "",
    nodes: one.node_ids,
    at: one.created_at,
    why: explained.find((other) => other.id === one.id),
  }));
}

// An associative recall cites nothing, but its memories are alive.
function reached(explained: readonly Explained[], texts: Texts): Result[] {
  return explained.flatMap((why) => {
    const node = texts.get(numberOf(why.id));
    return node ? [{ id: node.id, label: node.label, content: node.content, state: "living" as const, sources: node.sources, nodes: [node.id], at: node.created_at, why }] : [];
  });
}

function isNode(id: string): boolean {
  return id.startsWith("n");
}

function Nothing({ agent, hasFilters }: { agent: string; hasFilters: boolean }) {
  const t = screens.value.search;
  const info = useLoad((signal) => client.value.getAgent(agent, { signal }), [agent]);
  return (
    <Shown of={info}>
      {({ counts, pending_batches }) => (
        <Empty title={t.none}>
          {counts.messages + pending_batches === 0 ? (
            <>
              <p>{t.noneEmpty}</p>
              <p><a href={pathOf(["a", agent, "play"])}>{words.value.playground}</a></p>
            </>
          ) : (
            <p>{hasFilters ? t.noneFiltered : t.noneWhy}</p>
          )}
        </Empty>
      )}
    </Shown>
  );
}

function Hit({ agent, result, best, texts }: { agent: string; result: Result; best: Explained | undefined; texts: Texts }) {
  const s = screens.value;
  const t = s.search;
  const { why } = result;
  const [first, ...others] = result.sources;
  // A memory that was not shortened is its own quote.
  const isQuote = first !== undefined && (first.quote === undefined || (first.quote !== "" && result.content.startsWith(first.quote)));
  return (
    <li class={`hit ${result.state}`}>
      <div class="hit-head">
        <p class="said content">{result.label && <b>{visible(result.label)}</b>}{visible(result.content)}</p>
        <span class={`state ${result.state}`} title={s.statesWhy[result.state]}>{s.states[result.state]}</span>
      </div>
      {result.state !== "living" && <p class="quiet small">{s.statesWhy[result.state]}</p>}
      {isQuote ? <p class="quiet small"><Origin source={first} at={result.at} /></p> : first ? <Quoted source={first} at={result.at} /> : <p class="quiet small">{dateOf(result.at)}</p>}
      {others.length > 0 && (
        <details>
          <summary>{t.sources(result.sources.length)}</summary>
          {others.map((one) => <Quoted key={`${one.batch_id}/${one.message_index}/${one.offset}`} source={one} at={result.at} />)}
        </details>
      )}
      <details open={why !== undefined && why === best}>
        <summary>{t.why}{why && <span class="quiet"> · {why.path.length > 0 ? t.strength : t.score} {why.score.toFixed(2)}</span>}</summary>
        {why && (why.path.length > 0 ? <Path agent={agent} why={why} texts={texts} /> : <Shares why={why} most={largest(best ?? why)} />)}
        {why?.shortened && <p class="quiet small">{t.shortenedToKey}</p>}
      </details>
      {result.nodes.length > 0 && (
        <p class="small">{t.life}: {result.nodes.map((id) => <span key={id} class="tag"><NodeLink agent={agent} id={id} /></span>)}</p>
      )}
    </li>
  );
}

function largest(why: Explained): number {
  return Math.max(...why.signals.map((one) => Math.abs(one.score)), SPECKS);
}

// One bar for each signal that contributes, all of one answer at the same scale.
function Shares({ why, most }: { why: Explained; most: number }) {
  const t = screens.value.search;
  const shares = why.signals.filter((one) => Math.abs(one.score) > SPECKS).sort((a, b) => b.score - a.score);
  if (shares.length === 0) return <p class="quiet small">{t.noShares}</p>;
  return (
    <table class="shares">
      <tbody>
        {shares.map((one) => (
          <tr key={one.signal}>
            <th scope="row">{t.signals[one.signal] ?? one.signal}</th>
            <td><i class={one.score < 0 ? "negative" : ""} style={{ width: `${Math.min(100, (100 * Math.abs(one.score)) / most)}%` }} /></td>
            <td class="number">{one.score.toFixed(2)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Path({ agent, why, texts }: { agent: string; why: Explained; texts: Texts }) {
  const t = screens.value.search;
  return (
    <>
      {why.matched_keywords.length > 0 && <p class="small">{t.matched}: {why.matched_keywords.map((one) => <span key={one} class="tag said">{visible(one)}</span>)}</p>}
      {why.path.length === 1 ? <p class="quiet small">{t.itself}</p> : (
        <ol class="path" aria-label={t.path}>
          {why.path.map((step, index) => (
            <li key={`${step.id}/${index}`}>
              {index > 0 && <span class="relation said">{visible(step.relation) || "→"}</span>}
              <span class="said"><NodeLink agent={agent} id={step.id}>{visible(step.name || texts.get(numberOf(step.id))?.phrase || step.id)}</NodeLink></span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function How({ agent, explanation, texts }: { agent: string; explanation: Schemas["Explanation"]; texts: Texts }) {
  const t = screens.value.search;
  const isHybrid = explanation.starts.length === 0;
  const dropped = explanation.memories.filter((one) => one.dropped);
  const list = (title: string, values: readonly string[]) =>
    values.length > 0 && <><dt>{title}</dt><dd>{values.map((one) => <span key={one} class="tag said">{visible(one)}</span>)}</dd></>;
  return (
    <>
      <h2>{t.how}</h2>
      <dl class="how">
        {list(t.lookedFor, explanation.looked_for.split(/\s+/).filter(Boolean))}
        {list(t.phrases, explanation.phrases)}
        {list(t.speakers, explanation.speakers)}
        {list(t.times, explanation.times.map((one) => `${one.words}: ${dateOf(one.begin)} – ${dateOf(one.end - 1)}`))}
        {explanation.archive && <><dt>{t.archive}</dt><dd>{t.archives[explanation.archive] ?? explanation.archive}</dd></>}
        {!isHybrid && (
          <>
            <dt>{t.starts}</dt>
            <dd>
              {explanation.starts.map((one) => (
                <span key={one.id} class="tag said"><NodeLink agent={agent} id={one.id}>{visible(one.name || one.id)}</NodeLink> <span class="quiet">{visible(one.keyword) || t.startFocus}</span></span>
              ))}
            </dd>
          </>
        )}
        {isHybrid && (
          <>
            <dt>{t.off}</dt>
            <dd>
              {explanation.signals_off.length === 0 ? t.offAll : (
                <ul>{explanation.signals_off.map((one) => <li key={one.signal}>{t.signals[one.signal] ?? one.signal}: <span class="quiet">{reasonOf(one.why)}</span></li>)}</ul>
              )}
            </dd>
            <dt>{t.left}</dt>
            <dd>{dropped.length === 0 ? t.leftNone : <LeftOut agent={agent} dropped={dropped} texts={texts} />}</dd>
          </>
        )}
      </dl>
    </>
  );
}

// The daemon may add an error after a colon, which is for the log.
function reasonOf(why: string): string {
  return screens.value.search.reasons[why.split(": ")[0] ?? ""] ?? why;
}

function LeftOut({ agent, dropped, texts }: { agent: string; dropped: readonly Explained[]; texts: Texts }) {
  const t = screens.value.search;
  const reasons = [...new Set(dropped.map((one) => one.dropped))];
  return (
    <>
      {reasons.map((reason) => {
        const some = dropped.filter((one) => one.dropped === reason);
        return (
          <details key={reason}>
            <summary>{some.length} {t.leftWhy[reason] ?? reason}</summary>
            <ul>
              {some.slice(0, MOST_LEFT_OUT).map((one) => (
                <li key={one.id}><NodeLink agent={agent} id={one.id} /> <span class="said quiet">{visible(isNode(one.id) ? (texts.get(numberOf(one.id))?.phrase ?? "") : "")}</span></li>
              ))}
            </ul>
            {some.length > MOST_LEFT_OUT && <p class="quiet small">{t.also(some.length - MOST_LEFT_OUT)}</p>}
          </details>
        );
      })}
    </>
  );
}
