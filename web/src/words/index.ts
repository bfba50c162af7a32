// The texts of the view in the chosen language, and numbers and times as people write them there.
import { computed } from "@preact/signals";
import { language } from "../settings";
import { en, type Words } from "./en";
import { zh } from "./zh";

export type { Words };

export const words = computed<Words>(() => (language.value === "zh" ? zh : en));

const dates = computed(() => new Intl.DateTimeFormat(words.value.locale, { dateStyle: "medium" }));
const moments = computed(() => new Intl.DateTimeFormat(words.value.locale, { dateStyle: "medium", timeStyle: "short" }));
const clock = computed(() => new Intl.DateTimeFormat(words.value.locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }));

/** Return a date, from ms since the epoch. */
export const dateOf = (ms: number | null | undefined) => (ms ? dates.value.format(ms) : "");
/** Return a date with the time of day. */
export const momentOf = (ms: number | null | undefined) => (ms ? moments.value.format(ms) : "");
/** Return the time of day. */
export const clockOf = (ms: number) => clock.value.format(ms);
