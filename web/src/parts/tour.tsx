// Four captions that show a newcomer what the picture means. They appear with ?tour=1 and end with Esc.
import { useEffect, useMemo } from "preact/hooks";
import { focused } from "./focus";
import { go, pathOf, place } from "../router";
import { type Lives, NEVER } from "../shore/life";
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
  const examples = useMemo(() => (isOn ? { shortened: mostShortened(lives), forgotten: lives.ended.findIndex((end) => end !== NEVER) } : { shortened: -1, forgotten: -1 }), [isOn, lives]);
  const exampleOf = (one: number) => (one === 3 ? examples.shortened : one === 4 ? examples.forgotten : undefined);
  const isTooEarly = (step === 2 && examples.shortened < 0) || exampleOf(step) === -1;
  const example = exampleOf(step);
  const at = (next: number) => {
    const node = exampleOf(next);
    const segments = node !== undefined && node >= 0 ? ["a", agent, "m", `n${lives.id[node]}`] : ["a", agent];
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
    // A demonstration that has just begun has no example yet.
    if (isOn && example !== undefined && example >= 0 && place.value.segments[2] !== "m") at(step);
  }, [step, example]);
  if (!isOn) return null;
  return (
    <div class="tour" role="dialog" aria-label={t.tourTitle} aria-live="polite">
      <p class="quiet small step-of">{t.tourStep(step, STEPS)}</p>
      <p>{isTooEarly ? t.tourWait : t.tour[step - 1]}</p>
      <p class="actions">
        {step > 1 && <button type="button" onClick={() => at(step - 1)}>{t.previous}</button>}
        <button type="button" class="main" ref={focused} onClick={() => at(step === STEPS ? 0 : step + 1)}>{step === STEPS ? t.tourEnd : t.tourNext}</button>
        {step < STEPS && <button type="button" class="plain" onClick={() => at(0)}>{t.tourSkip}</button>}
      </p>
    </div>
  );
}

function mostShortened(lives: Lives): number {
  let best = -1;
  let most = 0;
  for (let life = 0; life < lives.id.length; life++) {
    const changes = (lives.first[life + 1] as number) - (lives.first[life] as number);
    if (lives.ended[life] === NEVER && changes > most) {
      most = changes;
      best = life;
    }
  }
  return best;
}
