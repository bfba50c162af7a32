// Four captions that show a newcomer what the picture means. They appear with ?tour=1 and end with Esc.
import { useEffect, useMemo, useState } from "preact/hooks";
import { focused } from "./focus";
import { MAP_PAGE, readDetails } from "../reading";
import { go, pathOf, place } from "../router";
import { client } from "../session";
import { ENTITY, type Lives, NEVER } from "../shore/life";
import { visible } from "../text";
import { words } from "../words";

interface Props {
  agent: string;
  lives: Lives;
  now: number;
  onPass: (pass: number | undefined) => void;
}

const STEPS = 4;
const SWEEP_MS = 6_000;
const FRAME_MS = 40;

export function Tour({ agent, lives, now, onPass }: Props) {
  const t = words.value;
  const step = Number(place.value.query.get("tour") ?? 0);
  const isOn = step >= 1 && step <= STEPS;
  const shortened = useMemo(() => (isOn ? mostShortened(lives) : undefined), [isOn, lives]);
  const forgotten = useMemo(() => (isOn ? idOf(lives, lives.ended.findIndex((end) => end !== NEVER)) : undefined), [isOn, lives]);
  const [known, setKnown] = useState<Known | undefined>(undefined);
  // It is read during the third step, for the fourth one, and again while no name points at what is forgotten.
  const isKnownNeeded = step >= 3 && forgotten !== undefined && known === undefined;
  useEffect(() => {
    if (!isKnownNeeded) return;
    const stop = new AbortController();
    readKnown(agent, stop.signal).then((found) => found && setKnown(found), () => undefined);
    return () => stop.abort();
  }, [agent, isKnownNeeded, lives]);
  const exampleOf = (one: number) => (one === 3 ? shortened : one === 4 ? (known?.id ?? forgotten) : undefined);
  const isTooEarly = ((step === 2 || step === 3) && shortened === undefined) || (step === 4 && forgotten === undefined);
  const example = exampleOf(step);
  const at = (next: number) => {
    const id = exampleOf(next);
    const segments = id === undefined ? ["a", agent] : ["a", agent, "m", `n${id}`];
    go(pathOf(segments, next >= 1 && next <= STEPS ? { tour: String(next) } : {}), { replace: true });
  };
  useEffect(() => {
    if (!isOn) return;
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && at(0);
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  useEffect(() => {
    if (step === 3 || step === 4) return onPass(undefined);
    if (step !== 2 || isTooEarly) return;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return onPass(undefined);
    const begun = performance.now();
    const timer = setInterval(() => {
      const share = Math.min(1, (performance.now() - begun) / SWEEP_MS);
      onPass(Math.round(lives.firstPass + (now - lives.firstPass) * share));
      if (share === 1) clearInterval(timer);
    }, FRAME_MS);
    return () => clearInterval(timer);
  }, [step, isTooEarly]);
  useEffect(() => {
    // A demonstration that has just begun has no example yet, and the first forgotten memory may not be the best one.
    if (isOn && example !== undefined && (step === 4 || place.value.segments[2] !== "m")) at(step);
  }, [step, example]);
  if (!isOn) return null;
  return (
    <div class="tour" role="dialog" aria-label={t.tourTitle} aria-live="polite">
      <p class="quiet small step-of">{t.tourStep(step, STEPS)}</p>
      <div>
        <p>{!isTooEarly ? t.tour[step - 1] : step === 4 ? t.tourNoneForgotten : t.tourWait}</p>
        {step === 4 && known && <p class="said">{t.tourRecall(visible(known.name))} <q>{visible(known.text)}</q></p>}
      </div>
      <p class="actions">
        {step > 1 && <button type="button" onClick={() => at(step - 1)}>{t.tourPrevious}</button>}
        <button type="button" class="main" ref={focused} onClick={() => at(step === STEPS ? 0 : step + 1)}>{step === STEPS ? t.tourEnd : t.tourNext}</button>
        {step < STEPS && <button type="button" class="plain" onClick={() => at(0)}>{t.tourSkip}</button>}
      </p>
    </div>
  );
}

function idOf(lives: Lives, life: number): number | undefined {
  return life < 0 ? undefined : lives.id[life];
}

/** A forgotten memory, a name that still points at it, and what a recall of the name says. */
interface Known {
  id: number;
  name: string;
  text: string;
}

async function readKnown(agent: string, signal: AbortSignal): Promise<Known | undefined> {
  const { nodes, kinds, links } = await client.value.getMap(agent, { links: "all", page_size: MAP_PAGE }, { signal });
  const living = new Map(nodes.id.map((id, row) => [id, kinds[nodes.kind[row] as number]]));
  const rows = [...links.target.keys()].filter((row) => living.get(links.source[row] as number) === ENTITY);
  const isBroken = (row: number) => !living.has(links.target[row] as number);
  // Of a name without any living memory, a recall says nothing else.
  const inUse = new Set(rows.filter((row) => !isBroken(row)).map((row) => links.source[row]));
  const broken = rows.filter(isBroken);
  const row = broken.find((one) => !inUse.has(links.source[one] as number)) ?? broken[0];
  if (row === undefined) return undefined;
  const [name] = await readDetails(agent, [`n${links.source[row]}`], signal);
  if (!name) return undefined;
  const { phrase } = name;
  const text = await client.value.recallText(agent, { keywords: [phrase], max_results: 1 }, { signal });
  return { id: links.target[row] as number, name: phrase, text };
}

function mostShortened(lives: Lives): number | undefined {
  let best = -1;
  let most = 0;
  for (let life = 0; life < lives.id.length; life++) {
    const changes = (lives.first[life + 1] as number) - (lives.first[life] as number);
    if (lives.ended[life] === NEVER && changes > most) {
      most = changes;
      best = life;
    }
  }
  return idOf(lives, best);
}
