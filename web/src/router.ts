// The address in the browser is the place in the view: /ui/a/{agent}/{screen}?q=…
import { computed, signal } from "@preact/signals";

const BASE = "/ui/";

export interface Place {
  /** Decoded segments after /ui/. */
  segments: readonly string[];
  query: URLSearchParams;
}

const address = signal(location.pathname + location.search);

/** Where the view is. */
export const place = computed<Place>(() => {
  const url = new URL(address.value, location.origin);
  const rest = url.pathname.startsWith(BASE) ? url.pathname.slice(BASE.length) : "";
  return { segments: rest.split("/").filter(Boolean).map(decoded), query: url.searchParams };
});

addEventListener("popstate", () => {
  address.value = location.pathname + location.search;
});

/** Return the path of a screen of the view. Segments are escaped. */
export function pathOf(segments: readonly string[], query: Record<string, string> = {}): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return BASE + segments.map(encodeURIComponent).join("/") + (text && `?${text}`);
}

/** Go to a path of the view. `replace` does not add an entry to the browser's history. */
export function go(path: string, { replace = false } = {}): void {
  if (path === address.value) return;
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  address.value = path;
}

/** Follow a link of the view without loading the page again. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element).closest("a");
  const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || link.target || link.origin !== location.origin || !link.pathname.startsWith(BASE)) return;
  if (link.hasAttribute("download")) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
