// The events of an agent, read once for all tabs of the browser.
//
// A browser opens at most six connections to a host over HTTP/1.1, for all tabs together, and each stream needs one.
// Therefore one tab per agent holds a lock and reads the stream, and passes the events to the others.
import { signal } from "@preact/signals";
import { type Event, NotFound, Unauthenticated } from "ebbtide-client";
import { client, note } from "./session";

const HIDDEN_MS = 30_000;
const FROM_NOW_ON = -1;
const GATHER_MS = 100;
const RETRY_MS = [1_000, 2_000, 5_000, 15_000, 30_000];

export type Lamp = "off" | "connecting" | "live";

/** Whether events arrive now. */
export const lamp = signal<Lamp>("off");

export interface Watcher {
  /** Events in order, some at a time. */
  onEvents(events: readonly Event[]): void;
  /** Some events are missing: read the state again. */
  onGap(): void;
}

/** Watch an agent's events after a number, until the returned function is called. */
export function watch(agent: string, after: number, watcher: Watcher): () => void {
  let last: number | undefined = after;
  let waiting: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = new AbortController();
  const channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(`ebbtide.events.${agent}`);

  const deliver = () => {
    timer = undefined;
    const events = waiting;
    waiting = [];
    if (events.length > 0) watcher.onEvents(events);
  };
  const take = (event: Event) => {
    if (last !== undefined && event.sequence <= last) return;
    const hasGap = last !== undefined && event.sequence > last + 1;
    if (hasGap) {
      last = event.sequence;
      watcher.onGap();
      return;
    }
    last = event.sequence;
    waiting.push(event);
    timer ??= setTimeout(deliver, GATHER_MS);
  };
  if (channel) {
    channel.onmessage = (message: MessageEvent<Event>) => {
      lamp.value = "live";
      take(message.data);
    };
  }

  const read = async (signal: AbortSignal) => {
    for await (const event of client.value.watchEvents(agent, { after: last ?? FROM_NOW_ON }, { signal })) {
      lamp.value = "live";
      channel?.postMessage(event);
      take(event);
    }
  };
  void keepReading(agent, read, stop.signal, () => {
    // The next events are no longer kept, so the stream continues with those that are.
    last = undefined;
    watcher.onGap();
  });
  return () => {
    stop.abort();
    clearTimeout(timer);
    channel?.close();
    lamp.value = "off";
  };
}

async function keepReading(agent: string, read: (signal: AbortSignal) => Promise<void>, stop: AbortSignal, onGap: () => void): Promise<void> {
  let failed = 0;
  while (!stop.aborted) {
    await visible(stop);
    if (stop.aborted) return;
    const begun = Date.now();
    const turn = AbortSignal.any([stop, hiddenForLong(stop)]);
    lamp.value = lamp.value === "live" ? "live" : "connecting";
    // A stream that is quiet sends nothing for long, so a connection that stands counts as live.
    const standing = setTimeout(() => (lamp.value = "live"), 1_500);
    try {
      await withLock(agent, turn, () => read(turn));
    } catch (error) {
      clearTimeout(standing);
      if (stop.aborted) return;
      note(error);
      if (error instanceof Unauthenticated || error instanceof NotFound) {
        lamp.value = "off";
        return;
      }
      if ((error as { reason?: string }).reason === "EVENTS_GONE") onGap();
    }
    clearTimeout(standing);
    if (turn.aborted) continue;
    lamp.value = "connecting";
    failed = Date.now() - begun > 60_000 ? 0 : failed + 1;
    await delay(RETRY_MS[Math.min(failed, RETRY_MS.length) - 1] ?? 1_000, stop);
  }
}

// Locks exist on secure origins only, such as 127.0.0.1 and https.
async function withLock(agent: string, signal: AbortSignal, action: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return action();
  await navigator.locks.request(`ebbtide.events.${agent}`, { signal }, action);
}

function visible(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !stop.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    stop.addEventListener("abort", look, { once: true });
    look();
  });
}

function hiddenForLong(stop: AbortSignal): AbortSignal {
  const hidden = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => hidden.abort(), HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  const end = () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
  stop.addEventListener("abort", end, { once: true });
  hidden.signal.addEventListener("abort", end, { once: true });
  return hidden.signal;
}

function delay(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stop.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
