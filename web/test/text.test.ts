import { describe, expect, it } from "vitest";
import { timeRange } from "../src/parts/period";
import { tokensOf, visible } from "../src/text";

describe("an estimate of tokens", () => {
  // What `ebbtide.language.tokens.estimate` returns for the same texts.
  it.each([
    ["", 0],
    ["I moved to Lisbon in May.", 9],
    ["[Memory] Ann: é 2026-05-04\n---\n", 23],
    ["我五月搬到了青岛，住在海边。", 28],
    ["👩\u200d👩\u200d👧\u200d👦 Zürich ₤5", 30],
    ["a-b_c!? 12:30", 12],
  ])("is that of the daemon for %j", (text, tokens) => expect(tokensOf(text)).toBe(tokens));
});

describe("a visible text", () => {
  it("has no character left that changes the direction", () => {
    expect(visible("a\u202Eb\u2069c\u200F")).toBe("a‹U+202E›b‹U+2069›c‹U+200F›");
  });

  it("keeps every other character, also of scripts from right to left", () => {
    const text = "שלום <b>林月</b> 👩\u200d👧";
    expect(visible(text)).toBe(text);
  });
});

describe("a period of two days", () => {
  it("includes the second day and not the one after", () => {
    const range = timeRange("2026-05-03", "2026-05-04");
    expect(range).toEqual({ begin: new Date(2026, 4, 3).getTime(), end: new Date(2026, 4, 5).getTime() });
  });

  it("may be open on one side, and is none without a day", () => {
    expect(timeRange("", "2026-05-04")).toEqual({ end: new Date(2026, 4, 5).getTime() });
    expect(timeRange("2026-05-03", "")).toEqual({ begin: new Date(2026, 4, 3).getTime() });
    expect(timeRange("", "")).toBeUndefined();
  });
});
