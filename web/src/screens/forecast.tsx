// What will be shortened and forgotten if it is not mentioned again: read when it is needed, and shown with its limits.
import { useEffect, useRef, useState } from "preact/hooks";
import { Forbidden } from "ebbtide-client";
import { readForecast } from "../reading";
import { me, note } from "../session";
import type { Forecast } from "../shore/life";
import { words } from "../words";
import { sentenceOf } from "../words/reasons";

// A forecast takes the daemon long, so the pause before the next one is this many times as long as the last one took.
const PAUSES = 10;
const LEAST_PAUSE_MS = 1_000;

/** A forecast, or why there is none yet. */
export interface Foretold {
  forecast: Forecast | undefined;
  error: unknown;
  retry: () => void;
}

/** Read a forecast while it is needed, and read it again, after a pause, when the memory is another one: `version` says so. */
export function useForecast(agent: string, version: number, isNeeded: boolean): Foretold {
  const [found, setFound] = useState<{ version: number; forecast: Forecast } | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const [isReading, setReading] = useState(false);
  const tookMs = useRef(0);
  const latest = useRef(version);
  latest.current = version;
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const isDue = isNeeded && !isReading && error === undefined && found?.version !== version;
  useEffect(() => {
    if (!isDue) return;
    const timer = setTimeout(() => {
      const asked = latest.current;
      const begun = performance.now();
      const { signal } = stop.current;
      setReading(true);
      readForecast(agent, signal)
        .then((forecast) => setFound({ version: asked, forecast }), (problem: unknown) => {
          if (signal.aborted) return;
          note(problem);
          setError(problem);
        })
        .finally(() => {
          tookMs.current = performance.now() - begun;
          setReading(false);
        });
    }, found ? Math.max(LEAST_PAUSE_MS, PAUSES * tookMs.current) : 0);
    return () => clearTimeout(timer);
  }, [agent, isDue]);
  return { forecast: found?.forecast, error, retry: () => setError(undefined) };
}

/** What the forecast assumes and `more`, or why there is none. */
export function ForecastNote({ of, more }: { of: Foretold; more: (forecast: Forecast) => string }) {
  const t = words.value;
  if (of.error !== undefined) {
    return (
      <p class="forecast-note" role="status">
        {t.forecastNone} {whyNot(of.error)} <button type="button" class="plain" onClick={of.retry}>{t.tryAgain}</button>
      </p>
    );
  }
  if (!of.forecast) return <p class="forecast-note quiet" role="status">{t.forecastReading}</p>;
  return <p class="forecast-note quiet">{t.forecastWhy(more(of.forecast))}</p>;
}

function whyNot(error: unknown): string {
  const t = words.value;
  if (error instanceof Forbidden) return t.missingPermission(me.value?.scopes ?? []);
  const { reason = "" } = error as { reason?: string };
  return t.forecastProblems[reason as keyof typeof t.forecastProblems] ?? sentenceOf(error).sentence;
}
