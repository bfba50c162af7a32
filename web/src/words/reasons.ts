// What an error means, in the language of the view. The daemon's messages are English; Chinese sentences for its reasons
// load when the view is Chinese, before an error needs them.
import { effect, signal } from "@preact/signals";
import { language } from "../settings";

// After the first picture. If the daemon stops later, its sentence is there.
const LATER_MS = 2_000;

type Sentences = Readonly<Record<string, string>>;

const chinese = signal<Sentences | undefined>(undefined);

function load(): void {
  import("./reasons_zh").then((found) => (chinese.value = found.reasons), () => undefined);
}

effect(() => {
  if (language.value === "zh") setTimeout(load, LATER_MS);
});

/** Return an error in words. `isTranslated`: the message of the daemon says more, in English. */
export function sentenceOf(error: unknown): { sentence: string; isTranslated: boolean } {
  const { reason = "", message = String(error) } = (error ?? {}) as { reason?: string; message?: string };
  if (language.value !== "zh") return { sentence: message, isTranslated: false };
  if (!chinese.value) load();
  const sentence = chinese.value?.[reason];
  return sentence === undefined ? { sentence: message, isTranslated: false } : { sentence, isTranslated: true };
}
