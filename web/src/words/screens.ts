// The texts of the screens that load when they are opened, in the chosen language.
import { computed } from "@preact/signals";
import { language } from "../settings";
import { en, type ScreenWords } from "./screens_en";
import { zh } from "./screens_zh";

export const screens = computed<ScreenWords>(() => (language.value === "zh" ? zh : en));
