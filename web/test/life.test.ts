import { describe, expect, it } from "vitest";
import { focusAt, FORGOTTEN, type Forecast, futureOf, type History, horizonOf, lengthAt, levelAt, levelsAt, lifeOf, livesOf, type MapPage, UNBORN, WHOLE } from "../src/shore/life";

interface Planned {
  id: number;
  born: number;
  original: number;
  changes: { pass: number; length: number }[];
  ended?: number;
}

const PASSES = 40;

function random(seed: number): () => number {
  let state = seed;
  return () => ((state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31);
}

// Lives as a story: each is made, grows shorter at random, and may end.
function story(seed: number): Planned[] {
  const next = random(seed);
  return Array.from({ length: 60 }, (_, index) => {
    const born = Math.floor((index * PASSES) / 60);
    const planned: Planned = { id: 2 * index + 1, born, original: 20 + Math.floor(next() * 100), changes: [] };
    let length = planned.original;
    for (let pass = born + 1; pass <= PASSES; pass++) {
      if (next() < 0.06) {
        planned.ended = pass;
        break;
      }
      if (next() < 0.1 && length > 2) planned.changes.push({ pass, length: (length = Math.ceil(length / 2)) });
    }
    return planned;
  });
}

function pages(planned: readonly Planned[]): [MapPage, History] {
  const living = planned.filter((one) => one.ended === undefined);
  const changes = planned.flatMap((one) => one.changes.map((change) => ({ id: one.id, ...change }))).sort((a, b) => a.pass - b.pass);
  const ended = planned.filter((one) => one.ended !== undefined);
  const map = {
    pass_number: PASSES,
    last_event: 1,
    next_node: 500,
    focus: [],
    kinds: ["episode", "entity", "fact"],
    relations: [],
    next_page_token: "",
    links: { source: [], target: [], relation: [], strength: [] },
    nodes: {
      id: [2, ...living.map((one) => one.id)],
      kind: [1, ...living.map((one) => (one.id % 3 === 0 ? 2 : 0))],
      importance: [0, ...living.map(() => 0.5)],
      length: [0, ...living.map((one) => one.changes.at(-1)?.length ?? one.original)],
      original_length: [0, ...living.map((one) => one.original)],
      scans: [0, ...living.map(() => 1)],
      created_at: [0, ...living.map(() => 1)],
    },
  };
  const history = {
    first_pass: 0,
    passes: PASSES,
    complete: true,
    last_event: 1,
    next_page_token: "",
    born: { id: planned.map((one) => one.id), after: planned.map((one) => one.born), length: planned.map((one) => one.original) },
    shortened: { id: changes.map((one) => one.id), pass_number: changes.map((one) => one.pass), length: changes.map((one) => one.length) },
    forgotten: { id: ended.map((one) => one.id), pass_number: ended.map((one) => one.ended as number) },
    erased: { id: [], event: [] },
    focus: { pass_number: [0, 3, 9], offset: [0, 1, 1], id: [1, 5, 7] },
  };
  return [map as unknown as MapPage, history as unknown as History];
}

// The slow way: read the story up to a pass.
function slowly(planned: Planned, pass: number): { isBorn: boolean; isOver: boolean; length: number } {
  const past = planned.changes.filter((one) => one.pass <= pass);
  return { isBorn: planned.born <= pass, isOver: planned.ended !== undefined && planned.ended <= pass, length: past.at(-1)?.length ?? planned.original };
}

describe("lives", () => {
  it("are at every pass what their story says", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const planned = story(seed);
      const lives = livesOf(...pages(planned));
      expect([...lives.id]).toEqual(planned.map((one) => one.id));
      const levels = new Uint8Array(planned.length);
      for (let pass = 0; pass <= PASSES; pass++) {
        const counts = levelsAt(lives, pass, levels);
        const states = planned.map((one) => slowly(one, pass));
        const looks = states.map((state, life) => {
          if (!state.isBorn) return UNBORN;
          if (state.isOver) return FORGOTTEN;
          return state.length === planned[life]?.original ? WHOLE : "shortened";
        });
        expect(Array.from(levels, (level) => (level > UNBORN && level < WHOLE ? "shortened" : level))).toEqual(looks);
        expect(counts).toEqual({
          alive: looks.filter((look) => look === WHOLE || look === "shortened").length,
          shortened: looks.filter((look) => look === "shortened").length,
          forgotten: looks.filter((look) => look === FORGOTTEN).length,
        });
        expect(planned.map((_, life) => lengthAt(lives, life, pass))).toEqual(states.map((state) => state.length));
      }
    }
  });

  it("leave out names and what was erased", () => {
    const [map, history] = pages(story(1));
    const erased = history.forgotten.id[0] as number;
    const lives = livesOf(map, { ...history, erased: { id: [erased], event: [9] } });
    expect(lifeOf(lives, 2)).toBe(-1);
    expect(lifeOf(lives, erased)).toBe(-1);
    expect(lifeOf(lives, history.born.id[10] as number)).toBe(9);
  });

  it("whose birth is no longer known begin where the history does", () => {
    const [map, history] = pages(story(2));
    const none = { id: [], after: [], length: [] };
    const lives = livesOf(map, { ...history, born: none, first_pass: 12, complete: false } as unknown as History);
    const living = lifeOf(lives, map.nodes.id[1] as number);
    expect(lives.firstPass).toBe(12);
    expect(levelAt(lives, living, 11)).toBe(UNBORN);
    expect(levelAt(lives, living, 12)).not.toBe(UNBORN);
  });

  it("continue as a forecast says", () => {
    const [map, history] = pages(story(3));
    const past = livesOf(map, history);
    const [first, second] = [map.nodes.id[1] as number, map.nodes.id[2] as number];
    const forecast = { pass_number: map.pass_number, passes: 50, shortened: { id: [first], after: [5], length: [1] }, forgotten: { id: [first, second], after: [9, 4] } };
    const lives = livesOf(map, history, forecast as unknown as Forecast);
    const life = lifeOf(lives, first);
    expect(levelAt(lives, life, PASSES)).toBe(levelAt(past, life, PASSES));
    expect(lengthAt(lives, life, PASSES + 5)).toBe(1);
    expect(levelAt(lives, life, PASSES + 8)).not.toBe(FORGOTTEN);
    expect(levelAt(lives, life, PASSES + 9)).toBe(FORGOTTEN);
    expect(levelAt(lives, lifeOf(lives, second), PASSES + 4)).toBe(FORGOTTEN);
  });

  it("follow a forecast that was made some passes ago", () => {
    const [map, history] = pages(story(3));
    const [first, second] = [map.nodes.id[1] as number, map.nodes.id[2] as number];
    const gone = history.forgotten.id[0] as number;
    const none = { id: [], after: [], length: [] };
    const forecast = { pass_number: PASSES - 3, passes: 50, shortened: none, forgotten: { id: [first, second, gone], after: [9, 2, 2] } };
    const lives = livesOf(map, history, forecast);
    expect(levelAt(lives, lifeOf(lives, first), PASSES + 5)).not.toBe(FORGOTTEN);
    expect(levelAt(lives, lifeOf(lives, first), PASSES + 6)).toBe(FORGOTTEN);
    // It lives, whatever the forecast said.
    expect(levelAt(lives, lifeOf(lives, second), PASSES)).not.toBe(FORGOTTEN);
    expect(levelAt(lives, lifeOf(lives, second), PASSES + 1)).toBe(FORGOTTEN);
    const last = livesOf(map, history);
    expect(levelAt(lives, lifeOf(lives, gone), PASSES)).toBe(FORGOTTEN);
    expect(lives.ended[lifeOf(lives, gone)]).toBe(last.ended[lifeOf(last, gone)]);
  });

  it("have a future each, in passes of the agent", () => {
    const forecast = {
      pass_number: 40, passes: 50,
      shortened: { id: [7, 8, 7], after: [2, 3, 9], length: [30, 20, 10] }, forgotten: { id: [7], after: [12] },
    };
    expect(futureOf(forecast, 7, 40)).toEqual({ changes: [{ pass: 42, length: 30 }, { pass: 49, length: 10 }], ended: 52, last: 90 });
    expect(futureOf(forecast, 8, 45)).toEqual({ changes: [{ pass: 46, length: 20 }], ended: undefined, last: 90 });
  });

  it("know the focus of each pass", () => {
    const [, history] = pages(story(4));
    expect(focusAt(history, 0)).toEqual([1]);
    expect(focusAt(history, 2)).toEqual([1]);
    expect(focusAt(history, 3)).toEqual([]);
    expect(focusAt(history, 9)).toEqual([5, 7]);
  });
});

describe("how far the slider reaches beyond now", () => {
  it("is a quarter of the passes so far, within bounds, and not beyond the forecast", () => {
    expect([0, 200, 5_000].map((now) => horizonOf(now))).toEqual([20, 50, 200]);
    const none = { id: [], after: [], length: [] };
    const reached = (passes: number) => horizonOf(5_000, { pass_number: 5_000, passes, shortened: none, forgotten: none });
    expect([200, 57, 1].map(reached)).toEqual([200, 57, 1]);
  });
});
