// The same memories as a table, for keyboards and screen readers.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Pages } from "../parts/pages";
import type { Texts } from "../reading";
import { pathOf } from "../router";
import { FORGOTTEN, lengthAt, type Lives, UNBORN, WHOLE } from "../shore/life";
import { visible } from "../text";
import { words } from "../words";

const ROWS = 50;

type Order = "id" | "length" | "importance";

interface Props {
  agent: string;
  lives: Lives;
  levels: Uint8Array;
  /** Lives that a filter excludes; undefined without one. */
  faded: Uint8Array | undefined;
  pass: number;
  isNow: boolean;
  texts: Texts;
  chosen: number;
  onChoose: (life: number) => void;
}

export function MemoryTable({ agent, lives, levels, faded, pass, isNow, texts, chosen, onChoose }: Props) {
  const t = words.value;
  const [wanted, setPage] = useState(0);
  const [order, setOrder] = useState<Order>("id");
  const [, setTurn] = useState(0);
  const rows = useMemo(() => sorted(lives, levels, pass, order).filter((life) => faded?.[life] !== 1), [lives, levels, faded, pass, order]);
  // A memory has fewer rows in its past than now.
  const page = Math.min(wanted, Math.max(0, Math.ceil(rows.length / ROWS) - 1));
  const shown = rows.slice(page * ROWS, (page + 1) * ROWS);
  useEffect(() => {
    const stop = new AbortController();
    const ids = shown.filter((life) => (lives.ended[life] as number) > lives.passes).map((life) => lives.id[life] as number);
    texts.read(ids, stop.signal).then((hasNew) => hasNew && setTurn((one) => one + 1), () => undefined);
    return () => stop.abort();
  }, [texts, rows, page]);
  const head = (name: Order, title: string) => (
    <th scope="col" class={name === "id" ? "" : "number"} aria-sort={order === name ? "descending" : "none"}>
      <button type="button" class="plain" onClick={() => { setOrder(name); setPage(0); }}>{title}{order === name ? " ↓" : ""}</button>
    </th>
  );
  return (
    <div class="table">
      <table>
        <caption class="hidden">{t.table}</caption>
        <thead>
          <tr>
            {head("id", t.columns.id)}
            <th scope="col">{isNow ? t.columns.content : t.columns.contentNow}</th>
            <th scope="col">{t.columns.state}</th>
            {head("length", t.columns.length)}
            {head("importance", t.columns.importance)}
            <th scope="col" class="number">{t.columns.born}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((life) => {
            const id = lives.id[life] as number;
            const node = texts.get(id);
            const level = levels[life] as number;
            return (
              <tr key={id} class={life === chosen ? "chosen" : ""} onClick={() => onChoose(life)}>
                <th scope="row"><a href={pathOf(["a", agent, "m", `n${id}`])}>n{id}</a></th>
                <td class={isNow ? "said" : "said quiet"}>{visible(node?.content ?? "")}</td>
                <td class="one-line">{level === FORGOTTEN ? t.legend.forgotten : level === WHOLE ? t.legend.whole : t.legend.shortened}</td>
                <td class="number">{level === FORGOTTEN ? "" : t.kept(lengthAt(lives, life, pass), lives.original[life] as number)}</td>
                <td class="number">{level === FORGOTTEN || !isNow ? "" : (lives.importance[life] as number).toFixed(2)}</td>
                <td class="number">{t.pass(lives.born[life] as number)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <Pages page={page} size={ROWS} count={rows.length} onPage={setPage} />
    </div>
  );
}

function sorted(lives: Lives, levels: Uint8Array, pass: number, order: Order): number[] {
  const rows: number[] = [];
  levels.forEach((level, life) => level !== UNBORN && rows.push(life));
  const value = (life: number): number => {
    if (order === "id") return lives.id[life] as number;
    if (levels[life] === FORGOTTEN) return -1;
    return order === "length" ? lengthAt(lives, life, pass) : (lives.importance[life] as number);
  };
  return rows.sort((a, b) => value(b) - value(a));
}
