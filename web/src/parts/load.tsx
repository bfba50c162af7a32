// Reading data, and the states that every screen has: loading, slow, failed, shown.
import { type ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Forbidden } from "ebbtide-client";
import { pathOf } from "../router";
import { client, me, note } from "../session";
import { words } from "../words";
import { sentenceOf } from "../words/reasons";

const SKELETON_MS = 150;
const SLOW_MS = 5_000;

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  wait: "none" | "short" | "skeleton" | "slow";
  reload: () => void;
}

/** Read something when the component appears and when one of `on` changes. The last value stays until the next one. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, on: readonly unknown[]): Loaded<T> {
  const [value, setValue] = useState<T | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const [wait, setWait] = useState<Loaded<T>["wait"]>("short");
  const [turn, setTurn] = useState(0);
  const shown = useRef<readonly unknown[]>(on);
  const who = client.value;
  // An ordinary effect would wait for the next frame before it sends the request.
  useLayoutEffect(() => {
    const stop = new AbortController();
    if (on.some((one, index) => one !== shown.current[index])) setValue(undefined);
    shown.current = on;
    setWait("short");
    setError(undefined);
    const timers = [setTimeout(() => setWait("skeleton"), SKELETON_MS), setTimeout(() => setWait("slow"), SLOW_MS)];
    const end = () => timers.forEach(clearTimeout);
    read(stop.signal).then(
      (found) => {
        end();
        if (stop.signal.aborted) return;
        setValue(() => found);
        setWait("none");
      },
      (problem: unknown) => {
        end();
        if (stop.signal.aborted) return;
        note(problem);
        setError(problem);
        setWait("none");
      },
    );
    return () => {
      end();
      stop.abort();
    };
  }, [...on, turn, who]);
  const reload = useCallback(() => setTurn((one) => one + 1), []);
  return { value, error, wait, reload };
}

/** Show a value, or the state of its loading. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ComponentChildren }) {
  if (of.error !== undefined) return <Problem error={of.error} onRetry={of.reload} />;
  if (of.value !== undefined) return <>{children(of.value)}</>;
  return <Waiting wait={of.wait} />;
}

/** Read whether the daemon has an agent. A key that may not read learns it from the first request that it may send. */
export function useAgent(agent: string): Loaded<true> {
  return useLoad(async (signal) => {
    await client.value.getAgent(agent, { signal }).catch((problem: unknown) => {
      if (!(problem instanceof Forbidden)) throw problem;
    });
    return true as const;
  }, [agent]);
}

/** Return whether an error says that there is no agent with this name. */
export function isNoAgent(error: unknown): boolean {
  return (error as { reason?: string } | undefined)?.reason === "AGENT_NOT_FOUND";
}

/** A skeleton after a moment, and words after a while. */
export function Waiting({ wait }: { wait: Loaded<unknown>["wait"] }) {
  if (wait !== "skeleton" && wait !== "slow") return null;
  return (
    <div class="skeleton" role="status">
      <span /> <span /> <span />
      <p>{wait === "slow" ? words.value.takesLong : words.value.loading}</p>
    </div>
  );
}

/** An error: what happened, its reason, the id of the request, and where the reasons are explained. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const t = words.value;
  const { reason = "", message = "", requestId = "" } = (error ?? {}) as { reason?: string; message?: string; requestId?: string };
  const { sentence, isTranslated } = sentenceOf(error);
  const missing = error instanceof Forbidden ? t.missingPermission(me.value?.scopes ?? []) : "";
  // Which requests create an agent is of use to those who write programs only.
  const isMissing = isNoAgent(error);
  const details = (
    <>
      {isTranslated ? <p class="said" lang="en">{message}</p> : <p class="said">{sentence}</p>}
      <p class="quiet">
        {reason && <code>{reason}</code>}
        {requestId && <> · {t.requestId} <code>{requestId}</code></>}
        {reason && <> · {t.explained}</>}
      </p>
    </>
  );
  return (
    <div class="problem" role="alert">
      <h2>{t.problemTitles[reason as keyof typeof t.problemTitles] ?? t.problem}</h2>
      {missing && <p>{missing}</p>}
      {isMissing || isTranslated ? (
        <>
          <p>{isMissing ? t.noAgentHint : sentence}</p>
          {isMissing && <p><a href={pathOf([])}>{t.noAgentList}</a></p>}
          <details class="quiet"><summary>{t.details}</summary>{details}</details>
        </>
      ) : details}
      {onRetry && <button type="button" onClick={onRetry}>{t.tryAgain}</button>}
    </div>
  );
}

/** What to do where there is nothing yet. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
