import { beforeAll, describe, expect, it } from "vitest";
import { type Colours, draw, hubPlaces, type Picture } from "../src/shore/draw";
import { FORGOTTEN, UNBORN, WHOLE } from "../src/shore/life";
import { wholeFrame } from "../src/shore/spiral";

const names = ["whole", "shortened", "forgotten", "focus", "chosen", "incoming", "outgoing", "text", "quiet", "ground"];
const COLOURS = Object.fromEntries(names.map((name) => [name, name])) as unknown as Colours;
const SIZE = { width: 800, height: 600, ratio: 1 };

/** A canvas that records the curves drawn on it, with colour and width, and the texts with their places and colours. */
function recorded() {
  const curves: { colour: string; width: number }[] = [];
  const texts: string[] = [];
  const labels: { text: string; x: number; y: number; colour: string }[] = [];
  let isCurve = false;
  const context: Record<string, unknown> = {
    measureText: (text: string) => ({ width: 8 * text.length }),
    fillText: (text: string, x: number, y: number) => {
      texts.push(text);
      labels.push({ text, x, y, colour: String(context["fillStyle"]) });
    },
    beginPath: () => (isCurve = false),
    quadraticCurveTo: () => (isCurve = true),
    stroke: (path?: unknown) => path === undefined && isCurve && curves.push({ colour: String(context["strokeStyle"]), width: Number(context["lineWidth"]) }),
  };
  for (const name of ["setTransform", "clearRect", "arc", "rect", "moveTo", "fill", "setLineDash", "strokeText"]) context[name] = () => undefined;
  return { context: context as unknown as CanvasRenderingContext2D, curves, texts, labels };
}

function picture(some: Partial<Picture>): Picture {
  return {
    frame: wholeFrame(5), levels: Uint8Array.from([WHOLE, WHOLE, FORGOTTEN, UNBORN, WHOLE]), isStatement: new Uint8Array(5), focus: new Set(), faded: undefined,
    chosen: -1, hovered: -1, chords: [], hubs: [], labels: new Map(), isNow: true, core: "", ...some,
  };
}

describe("the picture", () => {
  beforeAll(() => {
    (globalThis as { Path2D?: unknown }).Path2D = class {
      arc() {}
      moveTo() {}
      rect() {}
      lineTo() {}
      closePath() {}
    };
  });

  it("draws links of a memory that is not chosen, by direction and strength", () => {
    const { context, curves } = recorded();
    const chords = [{ from: 1, life: 0, strength: 1, isIncoming: true }, { from: 1, life: 2, strength: 0.2, isIncoming: false }];
    draw(context, SIZE, { zoom: 1, x: 0, y: 0 }, picture({ hovered: 1, chords }), COLOURS);
    expect(curves).toEqual([{ colour: "incoming", width: 3.5 }, { colour: "outgoing", width: 1.5 }]);
  });

  it("draws no link to a memory that is not made yet", () => {
    const { context, curves } = recorded();
    const chords = [{ from: 1, life: 3, strength: 1, isIncoming: true }, { from: 3, life: 1, strength: 1, isIncoming: true }];
    draw(context, SIZE, { zoom: 1, x: 0, y: 0 }, picture({ chosen: 1, chords }), COLOURS);
    expect(curves).toEqual([]);
  });

  it("joins a chosen name, which has no dot, with the memories that mention it", () => {
    const { context, curves, texts } = recorded();
    draw(context, SIZE, { zoom: 1, x: 0, y: 0 }, picture({ hubs: [{ name: "Lisbon", lives: [1, 4] }] }), COLOURS);
    expect(texts).toEqual(["Lisbon"]);
    expect(curves).toEqual([{ colour: "quiet", width: 1.6 }, { colour: "quiet", width: 1.6 }]);
  });

  it("shortens a label that has too little room, and leaves it out where nothing would be left", () => {
    const text = "My sister Clara plays the cello";
    const drawn = [800, 390, 60].map((width) => {
      const { context, texts } = recorded();
      draw(context, { width, height: 600, ratio: 1 }, { zoom: 1, x: 0, y: 0 }, picture({ labels: new Map([[0, text]]) }), COLOURS);
      return texts;
    });
    expect(drawn[0]).toEqual([text]);
    expect(drawn[1]).toHaveLength(1);
    expect(drawn[1]?.[0]).toMatch(/^My sister .*…$/);
    expect(drawn[2]).toEqual([]);
  });

  it("writes labels quietly at another pass than now, because they are what the memories say now", () => {
    const colours = [true, false].map((isNow) => {
      const { context, labels } = recorded();
      draw(context, SIZE, { zoom: 1, x: 0, y: 0 }, picture({ labels: new Map([[0, "a cello"]]), isNow }), COLOURS);
      return labels.map((one) => one.colour);
    });
    expect(colours).toEqual([["text"], ["quiet"]]);
  });

  it("writes no label under the buttons at the upper right", () => {
    const { context, labels } = recorded();
    const size = { width: 300, height: 130, ratio: 1 };
    const all = new Map([0, 1, 2, 4].map((life) => [life, `memory number ${life}`]));
    draw(context, size, { zoom: 1, x: 0, y: 0 }, picture({ labels: all }), COLOURS);
    expect(labels.length).toBeGreaterThan(1);
    for (const { text, x, y } of labels) expect(x + 8 * text.length <= 300 - 40 || y - 9 >= 116, text).toBe(true);
  });

  it("shortens a name outside the spiral, and writes it over the dots only without any room", () => {
    const name = "grandfather's fishing boat";
    const size = { width: 390, height: 600, ratio: 1 };
    const sides = [0, 1, 2, 4].map((chosen) => {
      const { context, labels } = recorded();
      const shown = picture({ chosen, hubs: [{ name, lives: [] }] });
      draw(context, size, { zoom: 1, x: 0, y: 0 }, shown, COLOURS);
      const hub = hubPlaces(size, { zoom: 1, x: 0, y: 0 }, shown)[0]!;
      const { text, x } = labels[0]!;
      const isOuter = hub.x > 195;
      const hasRoom = Math.floor((26 * ((isOuter ? 390 - hub.x : hub.x) - 12)) / 208) - 1 >= 8;
      expect(x > hub.x === isOuter).toBe(hasRoom);
      if (hasRoom) expect(text).toMatch(/^grandfat.*…$/);
      return hasRoom;
    });
    expect(new Set(sides).size).toBe(2);
  });

  it("covers no label with another one, a name or a dot, and has room for the innermost dots", () => {
    const { context, labels } = recorded();
    const lives = [0, 1, 2, 3, 4, 5, 6, 7];
    draw(context, SIZE, { zoom: 1, x: 0, y: 0 }, picture({
      frame: wholeFrame(8), levels: new Uint8Array(8).fill(WHOLE), isStatement: new Uint8Array(8), chosen: 7,
      hubs: [{ name: "Clara", lives: [7, 1] }, { name: "Porto", lives: [7, 2] }], labels: new Map(lives.map((life) => [life, `memory number ${life}`])),
    }), COLOURS);
    const boxes = labels.map(({ text, x, y }) => ({ text, x, y, right: x + 8 * text.length }));
    for (const a of boxes) for (const b of boxes) if (a.text < b.text) expect(a.right <= b.x || b.right <= a.x || Math.abs(a.y - b.y) >= 16, `${a.text}, ${b.text}`).toBe(true);
    expect(boxes.map((one) => one.text)).toEqual(expect.arrayContaining(["Clara", "Porto", "memory number 0", "memory number 1"]));
  });
});
