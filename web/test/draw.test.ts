import { beforeAll, describe, expect, it } from "vitest";
import { type Colours, draw, type Picture } from "../src/shore/draw";
import { FORGOTTEN, UNBORN, WHOLE } from "../src/shore/life";
import { wholeFrame } from "../src/shore/spiral";

const names = ["whole", "shortened", "forgotten", "focus", "chosen", "incoming", "outgoing", "text", "quiet", "ground"];
const COLOURS = Object.fromEntries(names.map((name) => [name, name])) as unknown as Colours;
const SIZE = { width: 800, height: 600, ratio: 1 };

/** A canvas that records the curves drawn on it, with colour and width, and the texts. */
function recorded() {
  const curves: { colour: string; width: number }[] = [];
  const texts: string[] = [];
  let isCurve = false;
  const context: Record<string, unknown> = {
    measureText: (text: string) => ({ width: 8 * text.length }),
    fillText: (text: string) => texts.push(text),
    beginPath: () => (isCurve = false),
    quadraticCurveTo: () => (isCurve = true),
    stroke: (path?: unknown) => path === undefined && isCurve && curves.push({ colour: String(context["strokeStyle"]), width: Number(context["lineWidth"]) }),
  };
  for (const name of ["setTransform", "clearRect", "arc", "rect", "moveTo", "fill", "setLineDash", "strokeText"]) context[name] = () => undefined;
  return { context: context as unknown as CanvasRenderingContext2D, curves, texts };
}

function picture(some: Partial<Picture>): Picture {
  return {
    frame: wholeFrame(5), levels: Uint8Array.from([WHOLE, WHOLE, FORGOTTEN, UNBORN, WHOLE]), isStatement: new Uint8Array(5), focus: new Set(), faded: undefined,
    chosen: -1, hovered: -1, chords: [], hubs: [], labels: new Map(), core: "", ...some,
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
});
