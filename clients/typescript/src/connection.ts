// The connection to a daemon: addresses, headers, timeouts and retries around `fetch`.
import { connectionError, ConnectionFailed, EbbtideError, fields, fitting, InvalidRequest, isObject, mayPass, refusal } from "./errors.js";

const DEFAULT_URL = "http://127.0.0.1:8420";
const LONG_TIMEOUT_MS = 3_600_000;
// A longer timer would end at once.
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const OPTIONS = ["baseUrl", "apiKey", "fetch", "timeoutMs", "retries", "headers"];

/** How often and how long to retry. `{ attempts: 1 }` never retries. */
export interface Retries {
  /** Attempts in total, including the first one. Default 4. */
  attempts?: number;
  /** Pause before the second attempt; it doubles before each further one. Default 200. */
  firstPauseMs?: number;
  /** Upper limit of a pause. If `Retry-After` asks for more, the error is thrown. Default 10 000. */
  longestPauseMs?: number;
  /** No attempt starts later than this after the first one started. Default 60 000. */
  totalMs?: number;
}

export interface EbbtideOptions {
  /** Address of the daemon. Default: the environment variable EBBTIDE_URL, else http://127.0.0.1:8420. */
  baseUrl?: string;
  /** Sent as a bearer token; `""` sends none. Default: the environment variable EBBTIDE_API_KEY. */
  apiKey?: string;
  /** A replacement of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** How long a response may take. Time that an operation asks the daemon to wait is added. Default 60 000. */
  timeoutMs?: number;
  retries?: Retries;
  /** Headers of every request. */
  headers?: Record<string, string>;
}

/** Options of one call. */
export interface CallOptions {
  /** Aborts the call, its pauses included. The call then throws the reason of the signal. */
  signal?: AbortSignal;
}

/** A request, and how its response is read. */
export interface Call {
  query?: object;
  body?: unknown;
  /** Whether it may be repeated. Reads are. */
  safe?: boolean;
  /** How long the request asks the daemon to wait. */
  waitsMs?: number | null | undefined;
  /** Whether the daemon may need up to an hour, as with a large agent. */
  long?: boolean;
  /** Media type of the response, if it is not JSON. */
  accept?: string;
  /** Media type of a body that is sent as it is. */
  contentType?: string;
  /** A status above 299 that is a result. */
  alsoGood?: number;
}

export class Connection {
  readonly timeoutMs: number;
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof globalThis.fetch;
  readonly #retries: Required<Retries>;

  constructor(options: EbbtideOptions) {
    checkOptions(options);
    this.#base = String(options.baseUrl ?? environment("EBBTIDE_URL") ?? DEFAULT_URL).replace(/\/+$/, "");
    if (!/^https?:\/\/[^/]/.test(this.#base)) throw new TypeError(`baseUrl must be like ${DEFAULT_URL}`);
    const key = String(options.apiKey ?? environment("EBBTIDE_API_KEY") ?? "").trim();
    // Checked here because the error of fetch would quote the key.
    if (!/^[!-~]*$/.test(key)) throw new TypeError("apiKey contains a character that no API key has");
    this.#headers = { ...options.headers, ...(key && { Authorization: `Bearer ${key}` }) };
    checkHeaders(this.#headers);
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.timeoutMs = options.timeoutMs ?? 60_000;
    const { attempts = 4, firstPauseMs = 200, longestPauseMs = 10_000, totalMs = 60_000 } = options.retries ?? {};
    if (!(attempts >= 1 && Math.min(firstPauseMs, longestPauseMs, totalMs) >= 0 && this.timeoutMs > 0)) {
      throw new TypeError("attempts must be at least 1, timeoutMs above 0, and no pause may be negative");
    }
    this.#retries = { attempts, firstPauseMs, longestPauseMs, totalMs };
  }

  /** Send a call and return the JSON of its response with the status. */
  async json(method: string, path: string, given: Call, options: CallOptions = {}): Promise<{ status: number; value: unknown }> {
    const call = encoded(given);
    return this.#repeat(method, call, options, async (deadline) => {
      const { status, headers, text } = await this.#text(method, path, call, deadline);
      const value = parsed(text);
      if (!isGood(status, call) || !isObject(value)) throw refusal(value, status, headers);
      return { status, value };
    });
  }

  /** Send a call and return the text of its response. */
  async text(method: string, path: string, given: Call, options: CallOptions = {}): Promise<string> {
    const call = encoded(given);
    return this.#repeat(method, call, options, async (deadline) => {
      const { status, headers, text } = await this.#text(method, path, call, deadline);
      if (!isGood(status, call) || !isOfType(headers, call)) throw refusal(parsed(text), status, headers);
      return text;
    });
  }

  /** Send a call and return the pieces of its response. Each may take as long as the timeout. */
  async pieces(method: string, path: string, given: Call, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const call = encoded(given);
    return this.#repeat(method, call, options, async (deadline) => {
      const response = await this.#response(method, path, call, deadline);
      if (!isGood(response.status, call) || !isOfType(response.headers, call) || response.body === null) {
        throw refusal(parsed(await deadline.reading(this.#base, () => response.text())), response.status, response.headers);
      }
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const base = this.#base;
      return new ReadableStream<Uint8Array>({
        async pull(controller) {
          try {
            const { done, value } = await deadline.reading(base, () => reader.read());
            if (done) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            controller.error(error);
          }
        },
        async cancel(reason) {
          await reader.cancel(reason);
        },
      });
    });
  }

  /** Return the attempts of a call, which is repeated while that is safe and may help. */
  attempts(isSafe: boolean): Attempts {
    return new Attempts(isSafe, this.#retries);
  }

  async #repeat<T>(method: string, call: Call, options: CallOptions, send: (deadline: Timeout) => Promise<T>): Promise<T> {
    const attempts = this.attempts(call.safe ?? method === "GET");
    const limit = call.long ? Math.max(this.timeoutMs, LONG_TIMEOUT_MS) : this.timeoutMs;
    for (;;) {
      try {
        return await send(new Timeout(limit + Math.max(0, call.waitsMs ?? 0), options.signal));
      } catch (error) {
        const pauseMs = error instanceof EbbtideError ? attempts.pauseMs(error) : undefined;
        if (pauseMs === undefined) throw error;
        await pause(pauseMs, options.signal);
      }
    }
  }

  async #text(method: string, path: string, call: Call, deadline: Timeout) {
    return deadline.reading(this.#base, async () => {
      const response = await this.#open(method, path, call, deadline.signal);
      return { status: response.status, headers: response.headers, text: await response.text() };
    });
  }

  async #response(method: string, path: string, call: Call, deadline: Timeout): Promise<Response> {
    return deadline.reading(this.#base, () => this.#open(method, path, call, deadline.signal));
  }

  #open(method: string, path: string, call: Call, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...this.#headers, Accept: call.accept ?? "application/json" };
    const init: RequestInit & { duplex?: "half" } = { method, headers, signal, redirect: "manual" };
    if (call.contentType !== undefined) {
      headers["Content-Type"] = call.contentType;
      init.body = call.body as BodyInit;
      init.duplex = "half";
    }
    return this.#fetch(`${this.#base}${path}${queryText(call.query)}`, init);
  }
}

/** The attempts of one call. */
export class Attempts {
  #failed = 0;
  readonly #startedMs = Date.now();

  constructor(
    readonly isSafe: boolean,
    readonly retries: Required<Retries>,
  ) {}

  /** Return the pause before the next attempt, or undefined if there is none. */
  pauseMs(error: EbbtideError): number | undefined {
    const { attempts, firstPauseMs, longestPauseMs, totalMs } = this.retries;
    this.#failed += 1;
    if (!this.isSafe || !mayPass(error) || this.#failed >= attempts) return undefined;
    // Jitter: otherwise many clients of one daemon would all return at the same time.
    const backoff = Math.min(firstPauseMs * 2 ** (this.#failed - 1), longestPauseMs) * (0.5 + Math.random() / 2);
    const asked = error.retryAfterMs ?? 0;
    const chosen = Math.max(backoff, asked);
    return asked > longestPauseMs || Date.now() - this.#startedMs + chosen > totalMs ? undefined : chosen;
  }
}

// Limits how long each part of a response may take.
class Timeout {
  readonly #limitMs: number;
  readonly #own = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly signal: AbortSignal;

  constructor(limitMs: number, caller: AbortSignal | undefined) {
    this.#limitMs = limitMs;
    this.#caller = caller;
    this.signal = caller === undefined ? this.#own.signal : AbortSignal.any([caller, this.#own.signal]);
  }

  async reading<T>(place: string, read: () => Promise<T>): Promise<T> {
    this.#caller?.throwIfAborted();
    const timer = setTimeout(() => this.#own.abort(), Math.min(this.#limitMs, LONGEST_TIMER_MS));
    try {
      return await read();
    } catch (error) {
      this.#caller?.throwIfAborted();
      if (this.#own.signal.aborted) {
        throw new ConnectionFailed(`no response from ${place} in time`, { reason: "NO_ANSWER_IN_TIME", cause: error });
      }
      throw error instanceof EbbtideError ? error : connectionError(error, place);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Wait, unless the signal is aborted, whose reason is thrown. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
  signal?.throwIfAborted();
}

/** Tag of a path: escapes its ids. The first one is the agent's. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return parts.reduce((whole, part, index) => whole + segment(index === 1 ? "agent_id" : "id", ids[index - 1]) + part);
}

function segment(field: string, id: string | undefined): string {
  const text = fitting(field, id, typeof id === "string", "a string") ?? "";
  // An empty segment, or one that URLs resolve as a folder, would make the path that of another operation.
  const isWhole = text !== "" && text !== "." && text !== ".." && !/\p{Cs}/u.test(text);
  if (isWhole) return encodeURIComponent(text);
  const description = text === "" ? "empty" : "cannot be part of a URL";
  throw new InvalidRequest(`${field}: ${description}`, {
    reason: field === "agent_id" ? "INVALID_AGENT_ID" : "INVALID_VALUE",
    violations: [{ field, description }],
  });
}

// Before the request is sent: fetch would report a mistake of the caller as a lost connection.
function encoded(call: Call): Call {
  if ("query" in call) fields(call.query);
  if (call.contentType === undefined && "body" in call) fields(call.body);
  try {
    queryText(call.query);
    if (call.contentType !== undefined || !("body" in call)) return call;
    return { ...call, contentType: "application/json", body: JSON.stringify(call.body) };
  } catch (cause) {
    throw new InvalidRequest(`the request cannot be written as JSON: ${String(cause)}`, { reason: "INVALID_JSON", cause });
  }
}

function checkOptions(options: object): void {
  if (!isObject(options)) throw new TypeError(`pass the options as an object, such as { baseUrl: "${DEFAULT_URL}" }`);
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new TypeError(`there is no option ${unknown}; allowed: ${OPTIONS.join(", ")}`);
  if (!isObject(options["retries"] ?? {})) throw new TypeError("retries must be an object, such as { attempts: 4 }");
}

function checkHeaders(headers: Record<string, string>): void {
  try {
    new Headers(headers);
  } catch {
    // The error of Headers would quote the value.
    throw new TypeError("headers contains a name or a value that HTTP does not allow");
  }
}

function queryText(query: object = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) {
      if (value.length > 0) given.set(name, value.join(","));
    } else {
      given.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
  }
  return given.size > 0 ? `?${given}` : "";
}

function isGood(status: number, call: Call): boolean {
  return (status >= 200 && status < 300) || status === call.alsoGood;
}

function isOfType(headers: Headers, call: Call): boolean {
  return call.accept === "*/*" || (headers.get("content-type") ?? "").startsWith(call.accept ?? "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

