// A part of the view that loads when it is opened.
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { ConnectionFailed } from "ebbtide-client";
import { Problem, useLoad, Waiting } from "./load";

const EVERY_MS = 2_000;

/** Return a component whose module loads with its first use. Where that fails, it says so, as for any other data. */
export function later<P extends object>(read: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  return (props: P) => {
    const { value: Part, error, wait } = useLoad(() => read().then((found) => found.default, lost), []);
    useReturn(error !== undefined);
    if (error !== undefined) return <Problem error={error} onRetry={reload} />;
    return Part ? <Part {...props} /> : <Waiting wait={wait} />;
  };
}

function lost(problem: unknown): never {
  throw new ConnectionFailed(String(problem), { reason: "CONNECTION_LOST" });
}

// A browser does not ask again for a module that it failed to load, so the page loads again.
function reload(): void {
  location.reload();
}

// Load the page again when the daemon answers after it did not. A file that is missing for good does not load it for ever.
function useReturn(isLost: boolean): void {
  useEffect(() => {
    if (!isLost) return;
    const stop = new AbortController();
    let wasAway = false;
    const ask = () => fetch("/healthz", { signal: stop.signal }).then(({ ok }) => ok, () => false).then((isThere) => {
      if (isThere && wasAway && !stop.signal.aborted) reload();
      wasAway ||= !isThere;
    });
    void ask();
    const timer = setInterval(() => void ask(), EVERY_MS);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [isLost]);
}
