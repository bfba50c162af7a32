import { describe, expect, it } from "vitest";
import { angleOf, placeAt, radiusOf, tideFrame, wholeFrame } from "../src/shore/spiral";

const point = (place: number): [number, number] => [radiusOf(place) * Math.cos(angleOf(place)), radiusOf(place) * Math.sin(angleOf(place))];

describe("the spiral", () => {
  it("finds every place by its point", () => {
    const places = Array.from({ length: 5_000 }, (_, place) => place);
    expect(places.map((place) => placeAt(...point(place), 5_000, 0.5))).toEqual(places);
  });

  it("finds the nearest place to any point, as a scan does", () => {
    const count = 400;
    const points = Array.from({ length: count }, (_, place) => point(place));
    for (let turn = 0; turn < 500; turn++) {
      const x = ((turn * 7919) % 2_600) / 100 - 13;
      const y = ((turn * 104_729) % 2_600) / 100 - 13;
      const distances = points.map(([px, py]) => Math.hypot(px - x, py - y));
      const least = Math.min(...distances);
      const found = placeAt(x, y, count, 0.6);
      if (least > 0.6) expect(found).toBe(-1);
      else expect(distances[found]).toBeCloseTo(least, 6);
    }
  });

  it("keeps neighbours about one dot apart", () => {
    for (let place = 10; place < 300; place++) {
      const [x, y] = point(place);
      const [nextX, nextY] = point(place + 1);
      expect(Math.hypot(nextX - x, nextY - y)).toBeGreaterThan(0.9);
      expect(Math.hypot(nextX - x, nextY - y)).toBeLessThan(1.1);
    }
  });
});

describe("the frame", () => {
  it("keeps every life in its place where nothing is squeezed", () => {
    expect([...wholeFrame(3).placeOf]).toEqual([0, 1, 2]);
    const frame = tideFrame(() => true, 500);
    expect(frame.squeezed).toBe(0);
    expect([...frame.lifeAt]).toEqual([...wholeFrame(500).lifeAt]);
  });

  it("squeezes the turns without a living memory, and counts them", () => {
    const isAlive = (life: number) => life >= 900;
    const frame = tideFrame(isAlive, 1_000);
    expect(frame.squeezed).toBeGreaterThan(800);
    expect(frame.squeezed + frame.lifeAt.length - frame.core).toBe(1_000);
    for (let life = 900; life < 1_000; life++) {
      const place = frame.placeOf[life] as number;
      expect(place).toBeGreaterThanOrEqual(frame.core);
      expect(frame.lifeAt[place]).toBe(life);
    }
  });

  it("keeps the turn of an old memory that lives", () => {
    const frame = tideFrame((life) => life === 40 || life >= 900, 1_000);
    expect(frame.placeOf[40]).toBeGreaterThanOrEqual(frame.core);
    expect(frame.placeOf[500]).toBe(-1);
  });

  it("squeezes all turns when everything is forgotten", () => {
    expect(tideFrame(() => false, 1_000).squeezed).toBe(1_000);
  });
});
