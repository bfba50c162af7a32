// The memory of an agent as a spiral, a slider through its passes, and the life of the chosen memory.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { RememberCommand } from "../parts/copy";
import { Empty, Shown, useLoad } from "../parts/load";
import { MOST_LABELS, Spiral } from "../parts/spiral";
import { Tour } from "../parts/tour";
import { watch } from "../live";
import { readHistory, readMap, Texts, numberOf } from "../reading";
import { go, pathOf, place } from "../router";
import { client, may } from "../session";
import { ENTITY, focusAt, type History, horizonOf, levelsAt, lifeOf, type Lives, livesOf, type MapPage, NEVER, pastOf, UNBORN } from "../shore/life";
import { tideFrame, wholeFrame } from "../shore/spiral";
import { visible } from "../text";
import { words } from "../words";
import { ForecastNote, useForecast } from "./forecast";
import { Life } from "./life";
import { useLinks } from "./memory_links";
import { MemoryTable } from "./memory_table";

// The picture comes first. No event is lost, because those after the picture are read.
const WATCH_MS = 200;
const RELOAD_MS = 400;
// A large memory is read less often: the pause is this many times as long as the reading.
const PAUSES = 4;
const FRAME_MS = 40;
const PLAY_MS = 6_000;
const TYPING_MS = 300;
const MOST_FOUND = 500;
// Other signals rank every memory, also those without the words.
const NOT_WORDS = ["neighbours", "semantic", "window", "speaker", "dates", "conversation", "graph", "naming", "pagerank", "weight", "learned"] as const;
// Shares of the slider that have room for its label, or for a number, and for the label of the present.
const BESIDE = 0.14;
const NUMBER = 0.08;

interface State {
  map: MapPage;
  history: History;
  lives: Lives;
}

export function Memory({ agent, node }: { agent: string; node: string | undefined }) {
  const tookMs = useRef(0);
  const state = useLoad<State>(async (signal) => {
    const begun = performance.now();
    const [map, history] = await Promise.all([readMap(agent, signal), readHistory(agent, signal)]);
    const lives = livesOf(map, history);
    tookMs.current = performance.now() - begun;
    return { map, history, lives };
  }, [agent]);
  const { reload, wait } = state;
  const lastEvent = state.value?.map.last_event;
  const hasState = lastEvent !== undefined;
  const [isStale, setStale] = useState(false);
  useEffect(() => {
    if (lastEvent === undefined) return;
    const stale = () => setStale(true);
    let stop = () => {};
    const timer = setTimeout(() => (stop = watch(agent, lastEvent, { onEvents: stale, onGap: stale })), WATCH_MS);
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [agent, hasState]);
  // A reading that is under way is not replaced, or a busy agent would never be shown.
  useEffect(() => {
    if (!isStale || wait !== "none") return;
    const timer = setTimeout(() => {
      setStale(false);
      reload();
    }, Math.max(RELOAD_MS, PAUSES * tookMs.current));
    return () => clearTimeout(timer);
  }, [isStale, wait]);
  return <Shown of={state}>{(value) => <Shore agent={agent} node={node} {...value} />}</Shown>;
}

function Shore({ agent, node, map, history, lives: past }: State & { agent: string; node: string | undefined }) {
  const t = words.value;
  const now = past.passes;
  const [chosenPass, setPass] = useState<number | undefined>(undefined);
  const isNow = chosenPass === undefined;
  const [isWhole, setWhole] = useState(false);
  const [filter, setFilter] = useState("");
  const [isTable, setTable] = useState(false);
  const count = past.id.length;

  const chosenId = node === undefined ? -1 : numberOf(node);
  const chosen = lifeOf(past, chosenId);
  const choose = useCallback((life: number) => {
    const { query } = place.value;
    go(pathOf(life < 0 ? ["a", agent] : ["a", agent, "m", `n${past.id[life]}`], { tour: query.get("tour") ?? "" }), { replace: place.value.segments[2] === "m" });
  }, [agent, past]);
  const foretold = useForecast(agent, map.last_event, (chosenPass ?? now) > now || (chosen >= 0 && past.ended[chosen] === NEVER));
  const { forecast } = foretold;
  const horizon = horizonOf(now, forecast);
  const pass = Math.min(chosenPass ?? now, now + horizon);
  const lives = useMemo(() => (forecast && pass > now ? livesOf(map, history, forecast) : past), [map, history, past, forecast, pass > now]);

  const [levels, counts] = useMemo(() => {
    const found = new Uint8Array(count);
    return [found, levelsAt(lives, pass, found)] as const;
  }, [lives, pass]);
  // In the past every life keeps its place, so that the bright rim is seen to move outward.
  const frame = useMemo(() => {
    const isTrue = isWhole || pass < now;
    return isTrue ? wholeFrame(count) : tideFrame((life) => (past.ended[life] as number) > now, count);
  }, [past, isWhole, pass < now]);
  const focus = useMemo(() => {
    // A forecast assumes that other memories will be talked about.
    const ids = pass > now ? [] : pass < now ? focusAt(history, pass) : map.focus;
    return new Set(ids.map((id) => lifeOf(past, id)).filter((life) => life >= 0));
  }, [map, history, past, pass]);

  const texts = useMemo(() => new Texts(agent), [agent, map]);
  const labels = useLabels(texts, past, levels, chosen);
  const faded = useFilter(agent, filter, past);
  const isName = useMemo(() => isEntity(map, chosenId), [map, chosenId]);
  const own = useMemo(() => (chosen >= 0 ? pastOf(past, chosen) : undefined), [past, chosen]);
  const linked = (life: number) => (life >= 0 && past.ended[life] === NEVER ? (past.id[life] as number) : -1);
  const links = useLinks(agent, isName ? chosenId : linked(chosen), linked(labels.hovered), past, map);
  const picture = useMemo(
    () => ({ frame, levels, isStatement: past.isStatement, focus, faded, chosen, chords: links.chords, hubs: links.hubs, labels: labels.shown, isNow, core: t.core(frame.squeezed) }),
    [frame, levels, past, focus, faded, chosen, links, labels.shown, isNow, t],
  );

  if (count === 0) return <NothingYet agent={agent} />;
  return (
    <div class={node === undefined ? "shore" : "shore with-panel"}>
      <h1 class="hidden">{`${t.memory}: ${visible(agent)}`}</h1>
      <section class="sea" aria-label={t.memory}>
        <div class="counts">
          <strong>{t.alive(counts.alive)}</strong>
          <span class="shortened">{t.shortened(counts.shortened)}</span>
          <span class="quiet">{t.forgotten(counts.forgotten)}</span>
          {!isNow && <button type="button" class="badge" onClick={() => setPass(undefined)}>{pass > now ? t.inPasses(pass - now) : t.asOf(pass)} · {t.returnToNow}</button>}
          <span class="grow" />
          {faded && <span class="quiet small" role="status">{t.found(faded.filter((one) => one === 0).length)}</span>}
          <input type="search" class="filter" placeholder={t.filter} aria-label={t.filterLabel} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        </div>
        <Tour agent={agent} lives={past} now={now} onPass={(one) => setPass(one === undefined || one === now ? undefined : one)} />
        <div class="stage">
          {isTable ? (
            <MemoryTable agent={agent} lives={lives} levels={levels} faded={faded} pass={pass} isNow={isNow} texts={texts} chosen={chosen} onChoose={choose} />
          ) : (
            <Spiral
              picture={picture} description={t.picture(counts.alive, counts.shortened, counts.forgotten, focus.size)}
              onChoose={choose} onHover={labels.hover} onVisible={labels.show} isWhole={isWhole} onWhole={() => setWhole((one) => !one)}
            />
          )}
        </div>
        <Legend agent={agent} hasLinks={links.chords.length > 0} hasNames={links.hubs.length > 0} isTable={isTable} onTable={() => setTable((one) => !one)} hasStatements={past.isStatement.includes(1)} />
        {counts.alive === 0 && isNow && <p class="quiet centre">{t.allForgotten}</p>}
        <Slider pass={pass} now={now} first={past.firstPass} horizon={horizon} onPass={(one) => setPass(one === now ? undefined : one)} />
        <div class="note">{pass > now && <ForecastNote of={foretold} more={() => t.forecastTexts} />}</div>
        {past.firstPass > 0 && <p class="quiet small">{t.historyCut(past.firstPass)}</p>}
      </section>
      {node !== undefined && <Life agent={agent} node={node} isName={isName} past={own} reading={map.last_event} foretold={foretold} now={now} onClose={() => choose(-1)} />}
    </div>
  );
}

function isEntity({ nodes, kinds }: MapPage, id: number): boolean {
  const row = nodes.id.indexOf(id);
  return row >= 0 && kinds[nodes.kind[row] as number] === ENTITY;
}

function NothingYet({ agent }: { agent: string }) {
  const t = words.value;
  return (
    <Empty title={t.memoryNone}>
      <RememberCommand agent={agent} hint={t.memoryNoneHint} />
      {may("write") && <p><a href={pathOf(["a", agent, "play"])}>{t.playground}</a></p>}
    </Empty>
  );
}

function Legend({ agent, hasLinks, hasNames, isTable, onTable, hasStatements }: { agent: string; hasLinks: boolean; hasNames: boolean; isTable: boolean; onTable: () => void; hasStatements: boolean }) {
  const t = words.value;
  return (
    <p class="legend">
      <span><i class="dot whole" /> {t.legend.whole}</span>
      <span><i class="dot short" /> {t.legend.shortened}</span>
      <span><i class="dot ring" /> {t.legend.forgotten}</span>
      <span><i class="dot gold" /> {t.legend.focus}</span>
      {hasStatements && <span><i class="dot diamond" /> <a href={pathOf(["a", agent, "review"])}>{t.legend.statement}</a></span>}
      {hasLinks && <span><i class="chord in" /> {t.legend.incoming}</span>}
      {hasLinks && <span><i class="chord out" /> {t.legend.outgoing}</span>}
      {hasNames && <span><i class="dot name" /> {t.legend.name}</span>}
      <span class="grow" />
      <label class="check"><input type="checkbox" checked={isTable} onChange={onTable} /> {t.table}</label>
    </p>
  );
}

function Slider({ pass, now, first, horizon, onPass }: { pass: number; now: number; first: number; horizon: number; onPass: (pass: number) => void }) {
  const t = words.value;
  const [isPlaying, setPlaying] = useState(false);
  const move = useRef(onPass);
  move.current = onPass;
  useEffect(() => {
    if (!isPlaying) return;
    const begin = pass >= now ? first : pass;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      move.current(now);
      setPlaying(false);
      return;
    }
    const begun = performance.now();
    const timer = setInterval(() => {
      const share = Math.min(1, (performance.now() - begun) / PLAY_MS);
      move.current(Math.round(begin + (now - begin) * share));
      if (share === 1) setPlaying(false);
    }, FRAME_MS);
    return () => clearInterval(timer);
  }, [isPlaying]);
  const share = (one: number) => (one - first) / Math.max(1, now + horizon - first);
  const text = pass > now ? t.inPasses(pass - now) : pass === now ? t.now : t.pass(pass);
  return (
    <div class="slider">
      <button type="button" aria-label={isPlaying ? t.stop : t.play} title={isPlaying ? t.stop : t.play} onClick={() => setPlaying((one) => !one)}>{isPlaying ? "❚❚" : "▶"}</button>
      <div class={pass > now ? "track ahead" : "track"} style={{ "--now": share(now), "--at": share(pass) }}>
        <input
          type="range" min={first} max={now + horizon} step={1} value={pass} aria-label={t.slider} aria-valuetext={text}
          onInput={(event) => { setPlaying(false); onPass(Number(event.currentTarget.value)); }}
        />
        <p aria-hidden="true">
          <span>{share(now) > BESIDE && t.pass(first)}</span>
          <span class="at-now" style={{ translate: share(now) < 1 - BESIDE ? "-50%" : "-100%" }}>{t.now}</span>
          <span title={t.forecastWhy("")}>{share(now) < 1 - BESIDE && <span class="word">{t.forecast} </span>}{share(now) < 1 - NUMBER && `+${horizon}`}</span>
        </p>
      </div>
      <output>{pass > now ? `+${pass - now}` : t.pass(pass)}</output>
      <button type="button" disabled={pass === now} onClick={() => onPass(now)}>{t.backToNow}</button>
    </div>
  );
}

// Phrases beside the dots: of the memory under the pointer, of the chosen one, and of all in sight if these are few.
function useLabels(texts: Texts, lives: Lives, levels: Uint8Array, chosen: number) {
  const [hovered, setHovered] = useState(-1);
  const [inSight, setInSight] = useState<readonly number[]>([]);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const wanted = [hovered, chosen, ...inSight].filter((life) => life >= 0 && life < levels.length && levels[life] !== UNBORN);
    const ids = [...new Set(wanted)].map((life) => lives.id[life] as number);
    if (ids.length === 0) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      texts.read(ids, stop.signal).then((hasNew) => hasNew && setTurn((one) => one + 1), () => undefined);
    }, 60);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [texts, hovered, chosen, inSight]);
  const shown = useMemo(() => {
    const labels = new Map<number, string>();
    for (const life of [...inSight, hovered, chosen]) {
      const found = life < 0 ? undefined : texts.get(lives.id[life] as number);
      if (found && levels[life] !== UNBORN) labels.set(life, visible(found.phrase || found.content.slice(0, 40)));
    }
    return labels;
  }, [texts, lives, levels, inSight, hovered, chosen, turn]);
  const show = useCallback((seen: readonly number[]) => setInSight((old) => (old.length === 0 && seen.length === 0 ? old : seen.slice(0, MOST_LABELS))), []);
  return { shown, show, hovered, hover: setHovered };
}

// Memories without the words are faded.
function useFilter(agent: string, filter: string, lives: Lives): Uint8Array | undefined {
  const [ids, setIds] = useState<ReadonlySet<number> | undefined>(undefined);
  useEffect(() => {
    const query = filter.trim();
    if (!query) return setIds(undefined);
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const request = { query, mode: "hybrid" as const, max_results: MOST_FOUND, patience_ms: 0, citations: true, explain: true, without: [...NOT_WORDS] };
      client.value.recall(agent, request, { signal: stop.signal }).then(
        ({ memories = [], explanation }) => {
          // Those that are left out as near copies, or as not relevant enough to answer a question, have the words too.
          const found = explanation?.memories ?? [];
          setIds(new Set([...found, ...memories].flatMap((one) => ["node_ids" in one ? one.node_ids : one.id].flat()).filter((id) => id.startsWith("n")).map(numberOf)));
        },
        () => undefined,
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [agent, filter]);
  return useMemo(() => ids && Uint8Array.from(lives.id, (id) => Number(!ids.has(id))), [ids, lives]);
}
