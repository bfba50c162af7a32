// One life: what is left of a memory, what was said, what became of it, and what it is linked with.
import { useEffect, useRef, useState } from "preact/hooks";
import { type EbbtideError } from "ebbtide-client";
import { later } from "../parts/later";
import { Problem, Shown, useLoad } from "../parts/load";
import { LifeChart } from "../parts/life_chart";
import { MAP_PAGE, type NodeDetail as Node, numberOf, readDetails } from "../reading";
import { pathOf } from "../router";
import { client, may, note } from "../session";
import { ENTITY, type Future, futureOf, type Past } from "../shore/life";
import { visible } from "../text";
import { dateOf, words } from "../words";
import { ForecastNote, type Foretold } from "./forecast";

const Neighbourhood = later(() => import("./neighbourhood"));

const MOST_LINKED = 100;

interface Props {
  agent: string;
  node: string;
  /** Whether the node is a name, which has no life. */
  isName: boolean;
  /** What is known of its life; undefined if nothing is. */
  past: Past | undefined;
  /** Changes when the memory may have changed. */
  reading: number;
  foretold: Foretold;
  /** Finished passes now. */
  now: number;
  onClose: () => void;
}

export function Life({ agent, node, isName, past, reading, foretold, now, onClose }: Props) {
  const t = words.value;
  const isForgotten = past?.ended !== undefined;
  const wasKnown = past !== undefined;
  const life = useLoad<Found>(
    // A forgotten memory is not there to be read; what is known of it is its life.
    (signal) => (isForgotten ? Promise.resolve({}) : readLife(agent, node, wasKnown, signal)),
    [agent, node, isForgotten],
  );
  const { reload } = life;
  const future = foretold.forecast && life.value?.living?.pinned === "none" ? futureOf(foretold.forecast, numberOf(node), now) : undefined;
  const ended = past?.ended ?? life.value?.ended;
  const read = useRef(reading);
  useEffect(() => {
    if (read.current !== reading) reload();
    read.current = reading;
  }, [reading]);
  return (
    <aside class="panel" aria-label={t.oneLife(node)}>
      <div class="panel-head">
        <h2>{isName ? t.oneName : t.oneLife(node)}</h2>
        <button type="button" class="plain" aria-label={t.close} title={t.close} onClick={onClose}>✕</button>
      </div>
      {ended !== undefined && <Gone agent={agent} node={node} pass={ended} />}
      {ended === undefined && (
        <Shown of={life}>
          {({ living }) =>
            living ? (
              <>
                <Living agent={agent} node={living} foretold={foretold} future={future} now={now} onChange={reload} />
                {past && <Changes past={past} node={living} now={now} future={future} />}
                <Links agent={agent} node={living} />
                {!isName && (
                  <Fold title={t.neighbourhood}>
                    <Neighbourhood agent={agent} node={living} />
                  </Fold>
                )}
              </>
            ) : <Erased />
          }
        </Shown>
      )}
      {past && ended !== undefined && <Changes past={{ ...past, ended }} node={undefined} now={now} future={undefined} />}
    </aside>
  );
}

/** A memory, or the pass in which it was forgotten; neither if it is erased. */
interface Found {
  living?: Node;
  ended?: number;
}

async function readLife(agent: string, node: string, wasKnown: boolean, signal: AbortSignal): Promise<Found> {
  if (!/^n[1-9]\d{0,14}$/.test(node)) return {};
  const [living] = await readDetails(agent, [node], signal);
  if (living) return { living };
  if (!wasKnown) return {};
  // It was forgotten or erased after the picture was read.
  const { forgotten } = await client.value.getNodeHistory(agent, node, { signal });
  return forgotten ? { ended: forgotten.pass_number } : {};
}

// Links to a forgotten memory: what they come from still knows that there was something.
async function whoPointsAt(agent: string, node: string, signal: AbortSignal) {
  const gone = numberOf(node);
  const sources = new Set<number>();
  let token = "";
  do {
    const { links, next_page_token } = await client.value.getMap(agent, { links: "all", page_size: MAP_PAGE, ...(token && { page_token: token }) }, { signal });
    links.target.forEach((target, row) => target === gone && sources.add(links.source[row] as number));
    token = next_page_token;
  } while (token && sources.size < MOST_LINKED);
  const ids = [...sources].slice(0, MOST_LINKED).map((one) => `n${one}`);
  if (ids.length === 0) return [];
  const { nodes } = await client.value.listNodes(agent, { ids }, { signal });
  const rank = (one: { kind: string }) => Number(one.kind !== ENTITY);
  return nodes.sort((a, b) => rank(a) - rank(b));
}

function Fold({ title, children }: { title: string; children: preact.ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}

function Gone({ agent, node, pass }: { agent: string; node: string; pass: number }) {
  const t = words.value;
  const known = useLoad((signal) => whoPointsAt(agent, node, signal), [agent, node]);
  return (
    <div class="gone">
      <h3>{t.goneTitle}</h3>
      <p>{t.goneText(pass)}</p>
      {known.value !== undefined && known.value.length > 0 && (
        <>
          <p>{t.stillKnown}</p>
          <ul>
            {known.value.map((one) => <li key={one.id}><a class="said" href={pathOf(["a", agent, "m", one.id])}>{visible(one.phrase || one.content)}</a></li>)}
          </ul>
        </>
      )}
      <p class="quiet">{t.goneHint}</p>
    </div>
  );
}

function Erased() {
  const t = words.value;
  return (
    <div class="gone">
      <h3>{t.erasedTitle}</h3>
      <p class="quiet">{t.erasedText}</p>
    </div>
  );
}

interface LivingProps {
  agent: string;
  node: Node;
  foretold: Foretold;
  future: Future | undefined;
  now: number;
  onChange: () => void;
}

function Living({ agent, node, foretold, future, now, onChange }: LivingProps) {
  const t = words.value;
  if (node.kind === "entity") return <blockquote class="present said">{visible(node.phrase)}</blockquote>;
  return (
    <>
      <section>
        <h3>{t.present}</h3>
        <blockquote class="present said">{node.label && <b>{visible(node.label)}</b>}{visible(node.content)}</blockquote>
        <p class="bar-of" title={t.keptOf([...node.content].length, node.original_length)}>
          <meter min={0} max={Math.max(1, node.original_length)} value={[...node.content].length} aria-label={t.keptOf([...node.content].length, node.original_length)} />
          <span>{t.keptOf([...node.content].length, node.original_length)}</span>
        </p>
        <p class="bar-of" title={t.importanceWhy}>
          <meter min={0} max={1} value={Math.min(1, node.importance)} aria-label={t.importance} />
          <span>{t.importance} {node.importance.toFixed(2)}</span>
        </p>
        {node.in_focus && <p class="in-focus">{t.focusWhy}</p>}
        {node.pinned !== "none" && <p>{t.pinned}</p>}
        {node.pinned === "none" && <Foreseen foretold={foretold} future={future} now={now} />}
        {may("write") && <Actions agent={agent} node={node} onChange={onChange} />}
      </section>
      <section>
        <h3>{t.source}</h3>
        {node.first_content === null ? <p class="quiet">{t.wordsDeleted}</p> : <blockquote class="said">{visible(node.first_content)}</blockquote>}
        <ul class="sources">
          {node.sources.map((one) => (
            <li key={`${one.batch_id}/${one.message_index}/${one.offset}`}>{visible(t.saidBy(one.speaker || (t.roles[one.role] ?? one.role), one.conversation_id, dateOf(one.timestamp ?? node.created_at)))}</li>
          ))}
        </ul>
      </section>
    </>
  );
}

/** When the memory will be shortened and forgotten. */
function Foreseen({ foretold, future, now }: { foretold: Foretold; future: Future | undefined; now: number }) {
  const t = words.value;
  const cut = future?.changes[0];
  return (
    <div class="future">
      {cut && <p>{t.willShorten(cut.pass - now, cut.length)}</p>}
      {future && <p>{future.ended === undefined ? t.willStay(future.last - now) : t.willForget(future.ended - now)}</p>}
      <ForecastNote of={foretold} more={(forecast) => t.forecastReach(forecast.passes)} />
    </div>
  );
}

function Actions({ agent, node, onChange }: { agent: string; node: Node; onChange: () => void }) {
  const t = words.value;
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [error, setError] = useState<EbbtideError | undefined>(undefined);
  const act = async (action: () => Promise<unknown>) => {
    setError(undefined);
    try {
      await action();
      setDraft(undefined);
      onChange();
    } catch (problem) {
      note(problem);
      setError(problem as EbbtideError);
    }
  };
  const pin = () => (node.pinned === "none" ? client.value.pinNode(agent, node.id) : client.value.unpinNode(agent, node.id));
  return (
    <div class="actions">
      {draft === undefined ? (
        <>
          <button type="button" onClick={() => setDraft(node.content)}>{t.correct}</button>
          <button type="button" onClick={() => void act(pin)}>{node.pinned === "none" ? t.pin : t.unpin}</button>
          {may("admin") && <a class="button" href={pathOf(["a", agent, "forget"], { node: node.id })}>{t.forget}…</a>}
        </>
      ) : (
        <form onSubmit={(event) => { event.preventDefault(); void act(() => client.value.updateNode(agent, node.id, { content: draft })); }}>
          <textarea rows={3} value={draft} aria-label={t.correct} onInput={(event) => setDraft(event.currentTarget.value)} />
          <button type="submit" class="main">{t.save}</button> <button type="button" onClick={() => setDraft(undefined)}>{t.cancel}</button>
        </form>
      )}
      {error && <Problem error={error} />}
    </div>
  );
}

function Changes({ past, node, now, future }: { past: Past; node: Node | undefined; now: number; future: Future | undefined }) {
  const t = words.value;
  const importances = new Map(node?.rewrites.map((one) => [one.pass_number, one.importance]));
  return (
    <section>
      <h3>{t.life}</h3>
      <LifeChart past={past} importances={importances} now={now} future={future} />
      <ol class="changes">
        <li>{t.made(past.born)}</li>
        {past.changes.map((one, index) => {
          const importance = importances.get(one.pass);
          return (
            <li key={one.pass}>
              <b>{t.pass(one.pass)}</b> {t.shortening(past.changes[index - 1]?.length ?? past.original, one.length)}
              {importance !== undefined && <span class="quiet one-line"> · {t.importanceThen(importance)}</span>}
            </li>
          );
        })}
        {past.ended !== undefined && <li>{t.forgottenAt(past.ended)}</li>}
      </ol>
    </section>
  );
}

function Links({ agent, node }: { agent: string; node: Node }) {
  const t = words.value;
  const names = new Set(node.entities.map((one) => one.id));
  const incoming = node.links_in.map((one) => ({ ...one, id: one.source })).filter((one) => !names.has(one.id));
  const outgoing = node.links_out.map((one) => ({ ...one, id: one.target })).filter((one) => !names.has(one.id));
  const ids = [...new Set([...incoming, ...outgoing].map((one) => one.id))].slice(0, MOST_LINKED);
  const others = useLoad((signal) => (ids.length === 0 ? Promise.resolve(undefined) : client.value.listNodes(agent, { ids }, { signal })), [agent, ids.join()]);
  const phrases = new Map(others.value?.nodes.map((one) => [one.id, one.phrase || one.content]));
  const list = (title: string, links: readonly { id: string; strength: number; relation: string }[], why?: string) =>
    links.length > 0 && (
      <details open={node.kind === "entity"}>
        <summary title={why}>{title}</summary>
        <ul>
          {links.map((one) => (
            <li key={`${one.id}/${one.relation}`}>
              <a class="said" href={pathOf(["a", agent, "m", one.id])}>{visible(phrases.get(one.id) ?? one.id)}</a>{" "}
              <span class="quiet">{visible(t.relations[one.relation] ?? one.relation)} {one.strength.toFixed(2)}</span>
            </li>
          ))}
        </ul>
      </details>
    );
  const isName = node.kind === "entity";
  return (
    <section class="links">
      {node.entities.length > 0 && (
        <p>
          <span class="quiet">{t.names}: </span>
          {node.entities.map((one) => <a key={one.id} class="tag said" href={pathOf(["a", agent, "m", one.id])}>{visible(one.name)}</a>)}
        </p>
      )}
      {isName ? list(t.mentionedIn(incoming.length), incoming) : list(t.linksIn(incoming.length), incoming)}
      {!isName && list(t.linksOut(outgoing.length), outgoing)}
      {list(t.knewOnce(node.dangling.length), node.dangling.map((one) => ({ ...one, id: one.target })), t.knewOnceWhy)}
    </section>
  );
}
