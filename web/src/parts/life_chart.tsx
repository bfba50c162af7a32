// The length of a memory and its importance by pass, as steps.
import type { Past } from "../shore/life";
import { words } from "../words";

const WIDTH = 300;
const HEIGHT = 70;

export function LifeChart({ past, importances }: { past: Past; importances: ReadonlyMap<number, number> }) {
  const t = words.value;
  const { changes, ended, born, original } = past;
  if (changes.length === 0 || original === 0) return null;
  const last = ended ?? (changes.at(-1)?.pass ?? born) + 1;
  const x = (pass: number) => (WIDTH * (pass - born)) / Math.max(1, last - born);
  const y = (share: number) => HEIGHT - 3 - (HEIGHT - 6) * Math.min(1, share);
  let line = `M0 ${y(1)}`;
  for (const one of changes) line += ` H${x(one.pass)} V${y(one.length / original)}`;
  line += ` H${WIDTH}`;
  if (ended !== undefined) line += ` V${HEIGHT}`;
  const known = changes.flatMap((one) => (importances.has(one.pass) ? [[x(one.pass), y(importances.get(one.pass) as number)] as const] : []));
  return (
    <figure class="life-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t.chart} preserveAspectRatio="none">
        <path d={`${line} V${HEIGHT} H0 Z`} class="area" />
        <path d={line} class="length" />
        {known.length > 1 && <path d={`M${known.map((point) => point.join(" ")).join(" L")}`} class="importance" />}
      </svg>
      <figcaption><span class="length">— {t.chartLength}</span>{known.length > 1 && <span class="importance"> — {t.importance}</span>}</figcaption>
    </figure>
  );
}
