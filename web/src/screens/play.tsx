// A playground: talk to an agent, see what becomes a memory, and what a recall would give to a model.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Message, ResponseOf } from "ebbtide-client";
import { Missing, useAction } from "../parts/act";
import { focused } from "../parts/focus";
import { Empty, isNoAgent, Problem, useAgent } from "../parts/load";
import { ModelText } from "../parts/model_text";
import { NodeLink } from "../parts/said";
import { numberOf, Texts } from "../reading";
import { pathOf } from "../router";
import { client, may, note } from "../session";
import { visible } from "../text";
import { words } from "../words";
import { screens } from "../words/screens";

type Batch = ResponseOf<"getBatch">;

const CONVERSATION = "playground";
const EVERY_MS = 700;
const PASSES = 10;

interface Turn {
  message: Message;
  /** Undefined while it is gathered. */
  batch: string | undefined;
}

export default function Play({ agent }: { agent: string }) {
  const s = screens.value.play;
  return (
    <div class="page play">
      <h1>{s.title}</h1>
      <div class="found">
        {may("write") ? <Talk agent={agent} /> : <div><Missing permission="write" /></div>}
        <aside>
          {may("read") ? <Ask agent={agent} /> : <Missing permission="read" />}
          {may("admin") && <Passes agent={agent} />}
        </aside>
      </div>
    </div>
  );
}

function Talk({ agent }: { agent: string }) {
  const s = screens.value.play;
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [text, setText] = useState("");
  const [role, setRole] = useState<"user" | "assistant">("user");
  const [speaker, setSpeaker] = useState(s.speakerDefault);
  const [isEach, setEach] = useState(true);
  const { run, error, isBusy } = useAction();
  const batches = useBatches(agent, turns);
  const isNew = isNoAgent(useAgent(agent).error);
  const gathered = turns.filter((one) => one.batch === undefined);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => end.current?.scrollTo?.({ top: end.current.scrollHeight }), [turns.length]);

  const send = (some: readonly Message[]) => run(async () => {
    const { batch_id } = await client.value.remember(agent, some, { conversation_id: CONVERSATION });
    setTurns((old) => [...old.filter((one) => one.batch !== undefined), ...some.map((message) => ({ message, batch: batch_id }))]);
  });
  const say = async () => {
    const content = text.trim();
    if (!content) return;
    const message: Message = { role, content, timestamp: Date.now(), ...(role === "user" && speaker.trim() && { speaker: speaker.trim() }) };
    if (isEach) {
      if (await send([...gathered.map((one) => one.message), message])) setText("");
    } else {
      setTurns([...turns, { message, batch: undefined }]);
      setText("");
    }
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void say();
  };
  return (
    <section class="talk">
      <div class="turns" ref={end} tabIndex={0} aria-live="polite" aria-label={s.title}>
        {turns.length === 0 && (isNew ? (
          <Empty title={words.value.problemTitles.AGENT_NOT_FOUND}>
            <p>{s.creates}</p>
            <p><a href={pathOf([])}>{words.value.noAgentList}</a></p>
          </Empty>
        ) : <Empty title={s.none}><p>{s.noneWhy}</p></Empty>)}
        {turns.map((turn, index) => (
          <div key={index} class={`turn ${turn.message.role}`}>
            <p class="said">{turn.message.speaker && <b>{visible(turn.message.speaker)}: </b>}{visible(String(turn.message.content))}</p>
            {turn.batch === undefined ? <p class="quiet small">{s.gathered}</p> : turns[index + 1]?.batch !== turn.batch && <State agent={agent} id={turn.batch} batch={batches.found.get(turn.batch)} texts={batches.texts} />}
          </div>
        ))}
      </div>
      {error !== undefined && <Problem error={error} />}
      <form onSubmit={(event) => { event.preventDefault(); void say(); }}>
        <textarea rows={2} value={text} aria-label={s.say} placeholder={s.sayPlaceholder} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKey} ref={focused} />
        <div class="line">
          <select aria-label={s.role} value={role} onChange={(event) => setRole(event.currentTarget.value as "user" | "assistant")}>
            <option value="user">{words.value.roles["user"]}</option>
            <option value="assistant">{words.value.roles["assistant"]}</option>
          </select>
          {role === "user" && <input type="text" class="speaker" aria-label={s.speaker} placeholder={s.speaker} value={speaker} onInput={(event) => setSpeaker(event.currentTarget.value)} />}
          <label class="check" title={s.eachWhy}><input type="checkbox" checked={isEach} onChange={() => setEach(!isEach)} /> {s.each}</label>
          <span class="grow" />
          <button type="submit" class={isEach ? "main" : ""} disabled={isBusy || !text.trim()}>{isEach ? s.remember : s.gather}</button>
          {gathered.length > 0 && <button type="button" class="main" disabled={isBusy} onClick={() => void send(gathered.map((one) => one.message))}>{s.rememberAll(gathered.length)}</button>}
        </div>
        <p class="quiet small">{s.eachWhy}</p>
      </form>
    </section>
  );
}

function State({ agent, id, batch, texts }: { agent: string; id: string; batch: Batch | undefined; texts: Texts }) {
  const s = screens.value;
  if (!batch || batch.state === "waiting") return <p class="quiet small"><code>{id}</code> {s.play.accepted}</p>;
  if (batch.state === "digesting") return <p class="quiet small"><code>{id}</code> {s.live.digesting}…</p>;
  if (batch.state === "parked") return <p class="bad small"><code>{id}</code> {s.play.parked}: <span class="said">{visible(batch.last_error)}</span></p>;
  return (
    <p class="small">
      <span class="quiet"><code>{id}</code> {s.play.became(batch.node_ids.length)}</span>{" "}
      {batch.node_ids.map((node) => <span key={node} class="tag said"><i class="dot whole" /><NodeLink agent={agent} id={node}>{visible(texts.get(numberOf(node))?.phrase || node)}</NodeLink></span>)}
    </p>
  );
}

// The states of the batches, until each is digested or parked.
function useBatches(agent: string, turns: readonly Turn[]) {
  const [found, setFound] = useState<ReadonlyMap<string, Batch>>(new Map());
  const texts = useMemo(() => new Texts(agent), [agent]);
  const open = [...new Set(turns.flatMap((one) => one.batch ?? []))].filter((id) => !["digested", "parked"].includes(found.get(id)?.state ?? ""));
  useEffect(() => {
    if (open.length === 0) return;
    const stop = new AbortController();
    const look = async () => {
      const batches = await Promise.all(open.map((id) => client.value.getBatch(agent, id, { signal: stop.signal })));
      await texts.read(batches.flatMap((one) => one.node_ids).map(numberOf), stop.signal);
      setFound((old) => new Map([...old, ...batches.map((one) => [one.batch_id, one] as const)]));
    };
    const timer = setInterval(() => void look().catch((error: unknown) => !stop.signal.aborted && note(error)), EVERY_MS);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [agent, open.join()]);
  return { found, texts };
}

function Ask({ agent }: { agent: string }) {
  const s = screens.value;
  const [query, setQuery] = useState("");
  const [text, setText] = useState<string | undefined>(undefined);
  const { run, error, isBusy } = useAction();
  const submit = () => run(async () => setText(await client.value.recallText(agent, { query: query.trim() })));
  return (
    <section>
      <h2>{s.play.askTitle}</h2>
      <form class="line" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <input type="search" required aria-label={s.play.askLabel} placeholder={s.play.askPlaceholder} value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        <button type="submit" disabled={isBusy}>{s.play.ask}</button>
      </form>
      <div aria-live="polite">
        {error !== undefined ? <Problem error={error} /> : text === undefined ? <p class="quiet small">{s.play.askNone}</p> : <ModelText text={text} />}
      </div>
    </section>
  );
}

function Passes({ agent }: { agent: string }) {
  const s = screens.value.play;
  const [owed, setOwed] = useState(0);
  const [alive, setAlive] = useState<{ before: number; after: number } | undefined>(undefined);
  const { run, error, isBusy } = useAction();
  const stop = useMemo(() => new AbortController(), [agent]);
  useEffect(() => () => stop.abort(), [stop]);
  const compress = () => run(async () => {
    const options = { signal: stop.signal };
    const before = (await client.value.getAgent(agent, options)).counts.nodes;
    await client.value.compress(agent, { passes: PASSES }, options);
    for (;;) {
      const { owed_passes, counts } = await client.value.getAgent(agent, options);
      setOwed(owed_passes);
      setAlive({ before, after: counts.nodes });
      if (owed_passes === 0) return;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  });
  return (
    <section>
      <h2>{s.passesTitle}</h2>
      <p class="quiet small">{s.passesWhy}</p>
      <button type="button" disabled={isBusy} onClick={() => void compress()}>{s.run(PASSES)}</button>
      <p role="status">{isBusy ? s.running(owed) : alive && s.ran(alive.before, alive.after)}</p>
      {error !== undefined && !stop.signal.aborted && <Problem error={error} />}
    </section>
  );
}
