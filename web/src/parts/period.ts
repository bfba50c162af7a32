// Periods of time as forms have them.
import type { components } from "ebbtide-client";

/** Return a period from two days as a form has them; the second one belongs to it. */
export function timeRange(from: string, until: string): components["schemas"]["TimeRange"] | undefined {
  const begin = from ? new Date(`${from}T00:00`).getTime() : undefined;
  const end = until ? dayAfter(new Date(`${until}T00:00`)) : undefined;
  if (begin === undefined && end === undefined) return undefined;
  return { ...(begin !== undefined && { begin }), ...(end !== undefined && { end }) };
}

// A day has 23 or 25 hours where the clock changes.
function dayAfter(day: Date): number {
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime();
}
