// The length of a memory and its importance by pass, as steps; what a forecast says of it follows in dashes.
import type { Future, Past } from "../shore/life";
import { words } from "../words";

const WIDTH = 300;
const HEIGHT = 70;

interface Props {
  past: Past;
  importances: ReadonlyMap<number, number>;
  /** Finished passes now. */
  now: number;
  future: Future | undefined;
}

export function LifeChart({ past, importances, now, future }: Props) {
  const t = words.value;
  const { born, original } = past;
  const coming = future?.changes ?? [];
  const changes = [...past.changes, ...coming];
  const ended = past.ended ?? future?.ended;
  if (original === 0 || (changes.length === 0 && ended === undefined)) return null;
  const last = ended ?? Math.max(now, (changes.at(-1)?.pass ?? now) + 1);
  const end = WIDTH - 1;
  const x = (pass: number) => (end * (pass - born)) / Math.max(1, last - born);
  const y = (share: number) => HEIGHT - 3 - (HEIGHT - 6) * Math.min(1, share);
  const steps = (some: Past["changes"]) => some.map((one) => ` H${x(one.pass)} V${y(one.length / original)}`).join("");
  const line = `M0 ${y(1)}${steps(past.changes)} H${x(past.ended ?? Math.min(now, last))}${past.ended === undefined ? "" : ` V${HEIGHT}`}`;
  const left = (past.changes.at(-1)?.length ?? original) / original;
  const dashes = `M${x(now)} ${y(left)}${steps(coming)} H${end}${ended === undefined ? "" : ` V${HEIGHT}`}`;
  const known = past.changes.flatMap((one) => (importances.has(one.pass) ? [[x(one.pass), y(importances.get(one.pass) as number)] as const] : []));
  const hasFuture = future !== undefined && last > now;
  return (
    <figure class="life-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t.chart} preserveAspectRatio="none">
        <path d={`${line} V${HEIGHT} H0 Z`} class="area" />
        <path d={line} class="length" />
        {hasFuture && <path d={dashes} class="length dashed" />}
        {known.length > 1 && <path d={`M${known.map((point) => point.join(" ")).join(" L")}`} class="importance" />}
      </svg>
      <figcaption>
        <span class="length">— {t.chartLength}</span>
        {hasFuture && <span class="length"> ┄ {t.forecast}</span>}
        {known.length > 1 && <span class="importance"> — {t.importance.toLowerCase()}</span>}
      </figcaption>
    </figure>
  );
}
