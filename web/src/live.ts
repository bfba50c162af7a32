// The events of an agent, read once for all tabs of the browser.
//
// A browser opens at most six connections to a host over HTTP/1.1, for all tabs together, and each stream needs one.
// Therefore one tab per agent holds a lock and reads the stream, and passes the events and its state to the others.
import { signal } from "@preact/signals";
import { EbbtideError, type Event, Forbidden, Unauthenticated } from "ebbtide-client";
import { note, streams } from "./session";

const HIDDEN_MS = 30_000;
const FROM_NOW_ON = -1;
const GATHER_MS = 100;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000];

export type Lamp = "off" | "connecting" | "live";

/** Whether the stream of events is open. */
export const lamp = signal<Lamp>("off");

/** From tab to tab: an event, whether the stream is open, or the question whether it is. */
type Message = { event: Event } | { isOpen: boolean } | { asks: true };

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
  let isClosed = false;
  const send = (message: Message) => !isClosed && channel?.postMessage(message);
  let isOpenHere = false;

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
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if ("event" in data) take(data.event);
      else if ("isOpen" in data) lamp.value = data.isOpen ? "live" : "connecting";
      else if (isOpenHere) send({ isOpen: true });
    };
  }

  /** Read the stream until it ends. Returns whether it was open. */
  const read = async (signal: AbortSignal): Promise<boolean> => {
    lamp.value = "connecting";
    // The tab that reads the stream answers.
    send({ asks: true });
    let wasOpen = false;
    const onOpen = () => {
      wasOpen = isOpenHere = true;
      lamp.value = "live";
      send({ isOpen: true });
    };
    try {
      await withLock(agent, signal, async () => {
        for await (const event of streams.value.watchEvents(agent, { after: last ?? FROM_NOW_ON }, { signal, onOpen })) {
          send({ event });
          take(event);
        }
      });
    } catch (error) {
      if (stop.signal.aborted) return wasOpen;
      note(error);
      if (error instanceof Unauthenticated || error instanceof Forbidden || isReason(error, "AGENT_NOT_FOUND")) {
        stop.abort();
        lamp.value = "off";
      } else if (isReason(error, "EVENTS_GONE")) {
        // The next events are no longer kept, so the stream continues with those that are.
        last = undefined;
        watcher.onGap();
      }
    } finally {
      // A watch that is over leaves the lamp to the next one.
      if (isOpenHere) send({ isOpen: false });
      isOpenHere = false;
      if (!stop.signal.aborted) lamp.value = "connecting";
    }
    return wasOpen;
  };
  void keepReading(read, stop.signal);
  return () => {
    stop.abort();
    clearTimeout(timer);
    if (isOpenHere) send({ isOpen: false });
    isClosed = true;
    channel?.close();
    lamp.value = "off";
  };
}

async function keepReading(read: (signal: AbortSignal) => Promise<boolean>, stop: AbortSignal): Promise<void> {
  let failed = 0;
  while (!stop.aborted) {
    await visible(stop);
    if (stop.aborted) return;
    const over = new AbortController();
    const turn = AbortSignal.any([stop, hiddenForLong(AbortSignal.any([stop, over.signal]))]);
    if (await read(turn)) failed = 0;
    over.abort();
    if (turn.aborted) continue;
    const isWoken = await pause(RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] as number, stop);
    failed = isWoken ? 0 : failed + 1;
  }
}

function isReason(error: unknown, reason: string): boolean {
  return error instanceof EbbtideError && error.reason === reason;
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

// Wait, or until the browser finds the network again or someone returns to the page. Returns whether that happened.
function pause(ms: number, stop: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const woken = new AbortController();
    const end = (isWoken: boolean) => {
      clearTimeout(timer);
      woken.abort();
      resolve(isWoken);
    };
    const timer = setTimeout(end, ms, false);
    const { signal } = woken;
    for (const name of ["online", "focus"]) addEventListener(name, () => end(true), { signal });
    document.addEventListener("visibilitychange", () => !document.hidden && end(true), { signal });
    stop.addEventListener("abort", () => end(false), { signal });
  });
}
