// What the user chose for the view. It is kept in the browser; keys never are, unless the user asks for it.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";

function stored<T extends string>(name: string, allowed: readonly T[], otherwise: T) {
  const found = read(name);
  const value = signal<T>(allowed.find((one) => one === found) ?? otherwise);
  let known = value.value;
  effect(() => {
    if (value.value === known) return;
    known = value.value;
    try {
      localStorage.setItem(`ebbtide.${name}`, known);
    } catch {
      // A browser may refuse storage; then the choice lasts as long as the page.
    }
  });
  return value;
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(`ebbtide.${name}`);
  } catch {
    return null;
  }
}

export const theme = stored<Theme>("theme", ["system", "light", "dark"], "system");
export const language = stored<Language>("language", ["en", "zh"], navigator.language.startsWith("zh") ? "zh" : "en");

/** Whether dark colours are shown now. */
export const isDark = signal(false);

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function apply(): void {
  isDark.value = theme.value === "dark" || (theme.value === "system" && systemIsDark.matches);
  document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
}

effect(apply);
systemIsDark.addEventListener("change", apply);
effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
});
