// The events of an agent as they happen, and the batches that wait or failed.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Event, type ResponseOf } from "ebbtide-client";
import { watch } from "../live";
import { useAction } from "../parts/act";
import { Command, quoted, RememberCommand } from "../parts/copy";
import { Empty, Problem, Shown, useLoad } from "../parts/load";
import { Filled, NodeLink } from "../parts/said";
import { numberOf, Texts } from "../reading";
import { client, may } from "../session";
import { visible } from "../text";
import { clockOf, momentOf, words } from "../words";
import { screens } from "../words/screens";

const MOST_EVENTS = 500;
const FIRST_EVENTS = 200;
const SOON_MS = 300;
const EVERY_MS = 3_000;
const MOST_BATCHES = 50;
const PHRASE = 80;

const GROUPS = {
  made: ["NodeCreated", "EntityMade"],
  shortened: ["NodeCompressed"],
  forgotten: ["NodeForgotten", "EntityGone"],
  changed: ["NodeCorrected", "MemoryErased", "NodePinned", "NodeUnpinned", "ParametersChanged"],
  batches: ["BatchDigested", "BatchParked", "BatchRetried"],
  passes: ["PassCompleted"],
  links: ["LinkBroken", "FocusMoved"],
  statements: ["StatementClosed", "ConflictFound", "ConflictSettled", "FactPromoted", "FactDemoted", "EntitiesMerged", "EntitiesSeparated", "Consolidated"],
} as const satisfies Record<string, readonly Event["kind"][]>;
type Group = keyof typeof GROUPS;
const NAMES = Object.keys(GROUPS) as Group[];

interface Stored {
  events: Event[];
  last: number;
}

export default function Live({ agent }: { agent: string }) {
  const s = screens.value;
  const stored = useLoad((signal) => readStored(agent, signal), [agent]);
  const [turn, setTurn] = useState(0);
  const onEvents = useCallback(() => setTurn((one) => one + 1), []);
  return (
    <div class="page live">
      <h1>{s.live.title}</h1>
      <Shown of={stored}>
        {(value) => (
          <div class="found">
            <Stream key={value.last} agent={agent} stored={value} onGap={stored.reload} onEvents={onEvents} />
            <Inbox agent={agent} turn={turn} />
          </div>
        )}
      </Shown>
    </div>
  );
}

/** Return the latest stored events, oldest first. */
async function readStored(agent: string, signal: AbortSignal): Promise<Stored> {
  const { first_event: first, last_event: last } = await client.value.getMap(agent, { page_size: 1 }, { signal });
  // A restored agent has no events of the time before, and only the latest are kept.
  const after = Math.max(first - 1, last - FIRST_EVENTS);
  const events: Event[] = [];
  for await (const event of client.value.watchEvents(agent, { follow: false, after }, { signal })) events.push(event);
  return { events: events.slice(-MOST_EVENTS), last: events.at(-1)?.sequence ?? last };
}

function Stream({ agent, stored, onGap, onEvents }: { agent: string; stored: Stored; onGap: () => void; onEvents: () => void }) {
  const s = screens.value.live;
  const [events, setEvents] = useState<readonly Event[]>(stored.events);
  const [pausedAt, setPausedAt] = useState<number | undefined>(undefined);
  const [hidden, setHidden] = useState<ReadonlySet<Group>>(new Set(["links"]));
  useEffect(() => watch(agent, stored.last, {
    onEvents: (some) => {
      setEvents((old) => [...old, ...some].slice(-MOST_EVENTS));
      onEvents();
    },
    onGap,
  }), [agent, stored.last]);
  const shown = useMemo(() => {
    const kinds = new Set<string>([...hidden].flatMap((group) => GROUPS[group]));
    return events.filter((one) => !kinds.has(one.kind) && one.sequence <= (pausedAt ?? Infinity)).reverse();
  }, [events, hidden, pausedAt]);
  const texts = usePhrases(agent, shown);
  const last = events.at(-1)?.sequence ?? stored.last;
  const toggle = (group: Group) => {
    const next = new Set(hidden);
    if (!next.delete(group)) next.add(group);
    setHidden(next);
  };
  return (
    <section aria-label={s.events}>
      <div class="event-head">
        <button type="button" aria-pressed={pausedAt !== undefined} onClick={() => setPausedAt(pausedAt === undefined ? last : undefined)}>{pausedAt === undefined ? s.pause : s.resume}</button>
        <fieldset class="chips">
          <legend class="hidden">{s.kinds}</legend>
          {NAMES.map((group) => (
            <label key={group} class="chip"><input type="checkbox" checked={!hidden.has(group)} onChange={() => toggle(group)} /> {s.groups[group]}</label>
          ))}
        </fieldset>
      </div>
      {pausedAt !== undefined && <p class="badge-line" role="status">{s.paused(events.filter((one) => one.sequence > pausedAt).length)}</p>}
      {events.length === 0 ? (
        <Empty title={s.none}>
          <p>{s.noneWhy}</p>
          <RememberCommand agent={agent} hint={s.send} />
        </Empty>
      ) : shown.length === 0 ? <p class="quiet">{s.noneOfKind}</p> : (
        <ol class="events" reversed>{shown.map((one) => <Line key={one.sequence} agent={agent} event={one} phrase={phraseOf(one, texts)} />)}</ol>
      )}
      {events.length >= FIRST_EVENTS && (
        <>
          <p class="quiet small">{s.bounded(events.length)}</p>
          <Command>{`ebbtide events ${quoted(agent)}`}</Command>
        </>
      )}
    </section>
  );
}

// Of a broken link both ends matter, so neither is described.
function phraseOf(event: Event, texts: Texts): string {
  if (!event.node_id || event.target_id) return "";
  const node = texts.get(numberOf(event.node_id));
  return node ? node.phrase || node.content.slice(0, PHRASE) : "";
}

function Line({ agent, event, phrase }: { agent: string; event: Event; phrase: string }) {
  const s = screens.value.live;
  const link = (id: string | null) => id && <NodeLink agent={agent} id={id} />;
  const places = { node: link(event.node_id ?? event.message_id), target: link(event.target_id), batch: <code>{event.batch_id}</code> };
  return (
    <li class={NAMES.find((group) => (GROUPS[group] as readonly string[]).includes(event.kind)) ?? ""}>
      <time dateTime={new Date(event.happened_at).toISOString()} title={momentOf(event.happened_at)}>{clockOf(event.happened_at)}</time>
      <span>
        {/* Later versions may add kinds. */}
        <Filled places={places}>{s.kind[event.kind]?.(event) ?? `${event.kind} {node}`}</Filled>
        {phrase && <span class="said quiet"> {visible(phrase)}</span>}
      </span>
    </li>
  );
}

// Events contain no content. The phrases of what is still alive make the list readable.
function usePhrases(agent: string, events: readonly Event[]): Texts {
  const texts = useMemo(() => new Texts(agent), [agent]);
  const [, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const ids = [...new Set(events.map((one) => one.node_id).filter((id) => id !== null))].map(numberOf);
    texts.read(ids, stop.signal).then((hasNew) => hasNew && setTurn((one) => one + 1), () => undefined);
    return () => stop.abort();
  }, [texts, events]);
  return texts;
}

type Batch = ResponseOf<"listBatches">["batches"][number];

function Inbox({ agent, turn }: { agent: string; turn: number }) {
  const s = screens.value.live;
  const state = useLoad(async (signal) => {
    const batches = (name: Batch["state"]) => client.value.listBatches(agent, { state: name, page_size: MOST_BATCHES }, { signal });
    const [info, waiting, digesting, parked] = await Promise.all([client.value.getAgent(agent, { signal }), batches("waiting"), batches("digesting"), batches("parked")]);
    return { info, waiting: waiting.batches, digesting: digesting.batches, parked: parked.batches };
  }, [agent]);
  const { reload } = state;
  useEffect(() => {
    const timer = setTimeout(reload, SOON_MS);
    return () => clearTimeout(timer);
  }, [turn]);
  // The acceptance of a batch is not an event.
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <aside>
      <h2>{s.inbox}</h2>
      <Shown of={state}>
        {({ info, waiting, digesting, parked }) => (
          <>
            {waiting.length + digesting.length + parked.length === 0 && <p class="quiet">{s.inboxEmpty}</p>}
            <Batches title={s.digesting} batches={digesting} agent={agent} onChange={reload} />
            <Batches title={s.waiting} batches={waiting} agent={agent} onChange={reload} />
            <Batches title={s.parked} batches={parked} agent={agent} onChange={reload} />
            <h2>{s.passes}</h2>
            <dl class="figures">
              <div><dt>{s.owed}</dt><dd>{words.value.number(info.owed_passes)}</dd></div>
              <div><dt>{s.finished}</dt><dd>{words.value.number(info.finished_passes)}</dd></div>
            </dl>
          </>
        )}
      </Shown>
    </aside>
  );
}

function Batches({ title, batches, agent, onChange }: { title: string; batches: readonly Batch[]; agent: string; onChange: () => void }) {
  const s = screens.value.live;
  const { run, error, isBusy } = useAction();
  const busy = useRef("");
  const retry = async (id: string) => {
    busy.current = id;
    if (await run(() => client.value.retryBatch(agent, id))) onChange();
  };
  if (batches.length === 0) return null;
  return (
    <section>
      <h3>{title} ({batches.length})</h3>
      <ul class="inbox">
        {batches.map((one) => (
          <li key={one.batch_id} class={one.state}>
            <span>{s.batch(one.batch_id, one.message_count)} {one.conversation_id && <bdi class="quiet">{visible(one.conversation_id)}</bdi>}</span>
            {one.state === "parked" && may("write") && <button type="button" disabled={isBusy} onClick={() => void retry(one.batch_id)}>{s.retry}</button>}
            {one.attempts > 0 && <p class="quiet small">{s.attempts(one.attempts)}{one.not_before ? ` · ${s.retriesAt(clockOf(one.not_before))}` : ""}</p>}
            {one.last_error && <p class="said bad small">{visible(one.last_error)}</p>}
          </li>
        ))}
      </ul>
      {batches.length === MOST_BATCHES && <p class="quiet small">{s.more(MOST_BATCHES)}</p>}
      {error !== undefined && <Problem error={error} />}
    </section>
  );
}
