// Lives: when each memory was made, shortened and forgotten, and what it was at any pass.
import type { ResponseOf } from "ebbtide-client";

export type MapPage = ResponseOf<"getMap">;
export type History = ResponseOf<"getHistory">;

/** What will happen if nothing is mentioned again. Passes are counted from `pass_number`, the finished ones at that time. */
export interface Forecast {
  pass_number: number;
  passes: number;
  shortened: { id: readonly number[]; after: readonly number[]; length: readonly number[] };
  forgotten: { id: readonly number[]; after: readonly number[] };
}

/** A pass that never comes. */
export const NEVER = 2 ** 31 - 1;

/** What a life is at a pass: one of these, or 1 to WHOLE - 1 by how much is left of it. */
export const UNBORN = 0;
export const WHOLE = 8;
export const FORGOTTEN = 9;

/** Lives by id, as columns. Changes of length are those from `first[i]` up to `first[i + 1]`, by pass. */
export interface Lives {
  id: Int32Array;
  /** Finished passes when it was made. */
  born: Int32Array;
  /** The pass in which it was forgotten, or NEVER. */
  ended: Int32Array;
  original: Int32Array;
  importance: Float32Array;
  isStatement: Uint8Array;
  first: Int32Array;
  pass: Int32Array;
  length: Int32Array;
  /** Finished passes now. */
  passes: number;
  /** Before this pass the history is not known. */
  firstPass: number;
}

/** The kind of the nodes that are names. */
export const ENTITY = "entity";
const [NAME, MEMORY, STATEMENT] = [0, 1, 2];
const STATEMENT_KINDS = new Set(["fact", "event", "relation", "opinion", "preference", "task", "reflection"]);

/**
 * Put the living nodes and their history together, and what a forecast says of the passes that have not happened.
 *
 * Entities have no place in time and are left out; so is what was deleted.
 */
export function livesOf(map: MapPage, history: History, forecast?: Forecast): Lives {
  const { born, shortened, forgotten } = history;
  const { nodes } = map;
  // Arrays by id: ids are dense, and a hash table for each of 100 000 memories would take a fifth of a second.
  const size = map.next_node;
  const [bornAt, endedAt, original] = [new Int32Array(size).fill(-1), new Int32Array(size).fill(NEVER), new Int32Array(size)];
  const left = new Int32Array(size).fill(-1);
  const importance = new Float32Array(size);
  const kind = new Uint8Array(size);
  born.id.forEach((id, row) => {
    bornAt[id] = born.after[row] as number;
    original[id] = born.length[row] as number;
  });
  forgotten.id.forEach((id, row) => {
    if (bornAt[id] === -1) bornAt[id] = history.first_pass;
    endedAt[id] = forgotten.pass_number[row] as number;
  });
  const kinds = map.kinds.map((name) => (name === ENTITY ? NAME : STATEMENT_KINDS.has(name) ? STATEMENT : MEMORY));
  nodes.id.forEach((id, row) => {
    const found = kinds[nodes.kind[row] as number] as number;
    if (found === NAME) return;
    if (bornAt[id] === -1) bornAt[id] = history.first_pass;
    kind[id] = found;
    endedAt[id] = NEVER;
    original[id] = nodes.original_length[row] as number;
    left[id] = nodes.length[row] as number;
    importance[id] = nodes.importance[row] as number;
  });
  for (const id of history.erased.id) bornAt[id] = -1;
  const id = Int32Array.from(bornAt.keys()).filter((one) => bornAt[one] !== -1 && (left[one] !== -1 || endedAt[one] !== NEVER));
  forecast?.forgotten.id.forEach((one, row) => {
    if (left[one] !== -1) endedAt[one] = passOf(forecast, forecast.forgotten.after[row] as number, map.pass_number);
  });
  const of = (column: Int32Array): Int32Array => id.map((one) => column[one] as number);
  return {
    id,
    born: of(bornAt),
    ended: of(endedAt),
    original: of(original),
    importance: Float32Array.from(id, (one) => importance[one] as number),
    isStatement: Uint8Array.from(id, (one) => Number(kind[one] === STATEMENT)),
    ...changesOf(id, left, original, shortened, map.pass_number, forecast),
    passes: map.pass_number,
    firstPass: history.complete ? 0 : history.first_pass,
  };
}

// What a forecast that was made some passes ago says of a pass that is over has not happened, so it may come next.
function passOf(forecast: Forecast, after: number, now: number): number {
  return Math.max(now + 1, forecast.pass_number + after);
}

// The changes of length of all lives, one life after the other. Events come in the order of passes, and forecasts after them.
function changesOf(id: Int32Array, left: Int32Array, original: Int32Array, shortened: History["shortened"], now: number, forecast: Forecast | undefined) {
  const size = left.length;
  const rows = new Int32Array(size);
  for (const one of shortened.id) rows[one]!++;
  // What was shortened before the history begins has its present length from the beginning.
  const hasLost = (one: number) => rows[one] === 0 && (left[one] as number) >= 0 && (left[one] as number) < (original[one] as number);
  const lost = id.filter(hasLost);
  for (const one of lost) rows[one]!++;
  for (const one of forecast?.shortened.id ?? []) rows[one]!++;
  const first = new Int32Array(id.length + 1);
  const next = new Int32Array(size).fill(-1);
  id.forEach((one, life) => {
    next[one] = first[life] as number;
    first[life + 1] = (first[life] as number) + (rows[one] as number);
  });
  const pass = new Int32Array(first[id.length] as number);
  const length = new Int32Array(pass.length);
  const add = (one: number, at: number, to: number) => {
    const row = next[one] as number;
    if (row < 0) return;
    pass[row] = at;
    length[row] = to;
    next[one] = row + 1;
  };
  for (const one of lost) add(one, 0, left[one] as number);
  shortened.id.forEach((one, row) => add(one, shortened.pass_number[row] as number, shortened.length[row] as number));
  forecast?.shortened.id.forEach((one, row) => add(one, passOf(forecast, forecast.shortened.after[row] as number, now), forecast.shortened.length[row] as number));
  return { first, pass, length };
}

/** Return the length of a life at a pass. */
export function lengthAt(lives: Lives, life: number, pass: number): number {
  let length = lives.original[life] as number;
  for (let row = lives.first[life] as number; row < (lives.first[life + 1] as number) && (lives.pass[row] as number) <= pass; row++) {
    length = lives.length[row] as number;
  }
  return length;
}

/** Return what a life is at a pass. */
export function levelAt(lives: Lives, life: number, pass: number): number {
  if ((lives.born[life] as number) > pass) return UNBORN;
  if ((lives.ended[life] as number) <= pass) return FORGOTTEN;
  const original = lives.original[life] as number;
  const length = lengthAt(lives, life, pass);
  if (original === 0 || length >= original) return WHOLE;
  return Math.max(1, Math.min(WHOLE - 1, Math.ceil((length / original) * (WHOLE - 1))));
}

/** Write what every life is at a pass into `levels`, and return the counts. */
export function levelsAt(lives: Lives, pass: number, levels: Uint8Array): { alive: number; shortened: number; forgotten: number } {
  let alive = 0;
  let shortened = 0;
  let forgotten = 0;
  for (let life = 0; life < levels.length; life++) {
    const level = levelAt(lives, life, pass);
    levels[life] = level;
    if (level === FORGOTTEN) forgotten++;
    else if (level !== UNBORN) {
      alive++;
      if (level !== WHOLE) shortened++;
    }
  }
  return { alive, shortened, forgotten };
}

/** One life. `ended` is the pass in which it was forgotten. */
export interface Past {
  born: number;
  original: number;
  changes: readonly { pass: number; length: number }[];
  ended: number | undefined;
}

/** Return what happened to a life so far, without what a forecast says. */
export function pastOf(lives: Lives, life: number): Past {
  const rows = Array.from({ length: (lives.first[life + 1] as number) - (lives.first[life] as number) }, (_, index) => (lives.first[life] as number) + index);
  const changes = rows.map((row) => ({ pass: lives.pass[row] as number, length: lives.length[row] as number })).filter((one) => one.pass <= lives.passes);
  const ended = lives.ended[life] as number;
  return { born: lives.born[life] as number, original: lives.original[life] as number, changes, ended: ended <= lives.passes ? ended : undefined };
}

/** What will become of one life. Passes are those of the agent. */
export interface Future {
  changes: readonly { pass: number; length: number }[];
  /** The pass that will forget it; undefined if none of the forecast does. */
  ended: number | undefined;
  /** The last pass of the forecast. */
  last: number;
}

/** Return what a forecast says of one memory. */
export function futureOf(forecast: Forecast, id: number, now: number): Future {
  const { forgotten, shortened } = forecast;
  const end = forgotten.id.indexOf(id);
  const pass = (after: number | undefined) => passOf(forecast, after as number, now);
  return {
    changes: shortened.id.flatMap((one, row) => (one === id ? [{ pass: pass(shortened.after[row]), length: shortened.length[row] as number }] : [])),
    ended: end < 0 ? undefined : pass(forgotten.after[end]),
    last: pass(forecast.passes),
  };
}

/** Return the ids in focus at a pass, from the rows of a history. */
export function focusAt(history: History, pass: number): readonly number[] {
  const { focus } = history;
  let row = -1;
  while (row + 1 < focus.pass_number.length && (focus.pass_number[row + 1] as number) <= pass) row++;
  if (row < 0) return [];
  return focus.id.slice(focus.offset[row], focus.offset[row + 1] ?? focus.id.length);
}

/** Return the place of an id among the lives, or -1. */
export function lifeOf(lives: Lives, id: number): number {
  let low = 0;
  let high = lives.id.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const found = lives.id[middle] as number;
    if (found === id) return middle;
    if (found < id) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

const FEWEST_PASSES = 20;
const MOST_PASSES = 200;
const SHARE = 1 / 4;

/** Return how many passes from now the slider reaches: few in a young memory, whose past would have no room otherwise. */
export function horizonOf(now: number, forecast?: Forecast): number {
  const most = forecast?.passes ?? MOST_PASSES;
  return Math.min(most, Math.max(FEWEST_PASSES, Math.round(now * SHARE)));
}
