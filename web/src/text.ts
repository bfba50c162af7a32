// Texts of people and of recalls, without the page.
const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const LETTERS_PER_TOKEN = 3;
const WIDE_TOKENS = 2;
const OTHER_TOKENS = 3;

/** Return a text in which characters that change the direction of writing are visible. */
export function visible(text: string): string {
  return text.replace(CONTROLS, (one) => `‹U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** Return an upper estimate of the tokens of a text, as the daemon counts them. */
export function tokensOf(text: string): number {
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
  const letters = (text.match(/[A-Za-z]+/g) ?? []).reduce((sum, word) => sum + Math.ceil(word.length / LETTERS_PER_TOKEN), 0);
  const wide = count(/[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]/gu) + count(/[\u00c0-\u024f]/gu);
  const other = count(/[^\x00-\x7f]/gu) - wide;
  return letters + count(/[!-@[-`{-~\n\t]/g) + Math.ceil(WIDE_TOKENS * wide + OTHER_TOKENS * other);
}
