// The client with a scripted `fetch`: requests, retries, timeouts, errors, and streams that break off.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { inspect } from "node:util";
import { ConnectionFailed, Ebbtide, type EbbtideOptions, EbbtideError, Exhausted, InvalidRequest, UnexpectedAnswer, Unavailable } from "ebbtide-client";

type Reply = Response | Error | ((request: Request) => Response | Promise<Response>);
const SWIFT = { firstPauseMs: 1 };
const STORED = { batch_id: "b1", agent_id: "ann", accepted_at: 1, message_count: 1 };

function scripted(replies: Reply[], options: EbbtideOptions = {}) {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    requests.push(request);
    const reply = replies.length > 1 ? replies.shift()! : replies[0]!;
    if (reply instanceof Error) throw reply;
    return typeof reply === "function" ? reply(request) : reply.clone();
  };
  return { memory: new Ebbtide({ baseUrl: "http://daemon:1/base/", fetch, retries: SWIFT, ...options }), requests };
}

function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });
}

function problem(status: number, name: string, reason: string, headers: Record<string, string> = {}): Response {
  return json({ error: { code: status, status: name, reason, message: "no", metadata: {}, field_violations: [] } }, status, headers);
}

const BUSY = problem(503, "UNAVAILABLE", "SERVER_BUSY");
const LOST = new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });
const REFUSED = new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });

const bodyOf = (request: Request) => request.json() as Promise<any>;

async function thrown(call: Promise<unknown>): Promise<EbbtideError> {
  const error = await call.then(() => undefined, (one: unknown) => one);
  assert.ok(error instanceof EbbtideError, String(error));
  return error;
}

test("a retried remember has the same key, and every client makes its own", async () => {
  const { memory, requests } = scripted([BUSY.clone(), LOST, json(STORED, 202)]);
  assert.equal((await memory.remember("ann", ["Hello.", { role: "assistant", content: "Hi." }])).batch_id, "b1");
  const bodies = await Promise.all(requests.map(bodyOf));
  assert.equal(bodies.length, 3);
  assert.deepEqual(bodies[0].messages, [{ role: "user", content: "Hello." }, { role: "assistant", content: "Hi." }]);
  assert.match(bodies[0].idempotency_key, /^[0-9a-f]{32}$/);
  assert.deepEqual(bodies[2], bodies[0]);
  await memory.remember("ann", "Hello.");
  assert.notEqual((await bodyOf(requests[3]!)).idempotency_key, bodies[0].idempotency_key);
});

test("only calls that are safe to repeat are repeated", async () => {
  const statement = { subject: "Ann", topic: "residence" };
  const safe: ((memory: Ebbtide) => Promise<unknown>)[] = [
    (memory) => memory.getNode("ann", "n1"),
    (memory) => memory.recall("ann", { query: "x" }),
    (memory) => memory.flush("ann"),
    (memory) => memory.createNode("ann", { content: "x" }),
    (memory) => memory.createStatement("ann", { ...statement, idempotency_key: "k" }),
    (memory) => memory.forgetMemories("ann", { nodes: ["n1"], dry_run: true }),
    (memory) => memory.getStats("ann"),
  ];
  const unsafe: typeof safe = [
    (memory) => memory.deleteAgent("ann"),
    (memory) => memory.createStatement("ann", statement),
    (memory) => memory.forgetMemories("ann", { nodes: ["n1"] }),
    (memory) => memory.getStats("ann", { epsilon: 1 }),
    (memory) => memory.callTool("ann", "remember", {}),
  ];
  for (const [calls, count] of [[safe, 4], [unsafe, 1]] as const) {
    for (const call of calls) {
      const { memory, requests } = scripted([BUSY]);
      assert.ok((await thrown(call(memory))) instanceof Unavailable);
      assert.equal(requests.length, count, String(call));
    }
  }
});

test("permanent errors are not retried, and Retry-After decides", async () => {
  const bad = scripted([problem(400, "INVALID_ARGUMENT", "INVALID_DEPTH", { "X-Request-Id": "r7" })]);
  const error = await thrown(bad.memory.recall("ann"));
  assert.ok(error instanceof InvalidRequest);
  assert.deepEqual([error.name, error.reason, error.httpStatus, error.requestId], ["InvalidRequest", "INVALID_DEPTH", 400, "r7"]);
  assert.equal(bad.requests.length, 1);
  const later = scripted([problem(429, "RESOURCE_EXHAUSTED", "RATE_LIMITED", { "Retry-After": "11" })]);
  const limited = await thrown(later.memory.recall("ann"));
  assert.ok(limited instanceof Exhausted);
  assert.equal(limited.retryAfterMs, 11_000);
  assert.equal(later.requests.length, 1);
  const late = scripted([BUSY], { retries: { firstPauseMs: 100, totalMs: 10 } });
  await thrown(late.memory.recall("ann"));
  assert.equal(late.requests.length, 1);
});

test("an unknown status of a newer daemon falls into the family of the HTTP status", async () => {
  const { memory } = scripted([problem(429, "NEWER", "NEW_LIMIT")], { retries: { attempts: 1 } });
  assert.ok((await thrown(memory.recall("ann"))) instanceof Exhausted);
});

test("a proxy's error, a web page and a redirect are no responses of a daemon", async () => {
  const proxy = scripted([new Response("<html>", { status: 502 })], { retries: { attempts: 1 } });
  assert.equal((await thrown(proxy.memory.getHealth())).reason, "FROM_A_PROXY");
  for (const reply of [new Response("<html>"), json([1]), new Response(null, { status: 302, headers: { Location: "http://other/" } })]) {
    const { memory, requests } = scripted([reply]);
    assert.ok((await thrown(memory.getHealth())) instanceof UnexpectedAnswer);
    assert.equal(requests.length, 1);
    assert.equal(requests[0]!.redirect, "manual");
  }
});

test("a failed connection says whether the daemon may have acted", async () => {
  for (const [cause, reason, maybeSent] of [[REFUSED, "NOT_CONNECTED", false], [LOST, "CONNECTION_LOST", true]] as const) {
    const { memory, requests } = scripted([cause]);
    const error = await thrown(memory.deleteAgent("ann"));
    assert.ok(error instanceof ConnectionFailed);
    assert.deepEqual([error.reason, error.maybeSent, requests.length], [reason, maybeSent, 1]);
  }
  const untrusted = new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "SELF_SIGNED_CERT_IN_CHAIN" }) });
  const { memory, requests } = scripted([untrusted]);
  assert.equal((await thrown(memory.getHealth())).reason, "CERTIFICATE_NOT_TRUSTED");
  assert.equal(requests.length, 1);
});

function never(request: Request): Promise<Response> {
  return new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
}

test("a daemon that is silent for longer than the timeout is an error, and the time to wait is added", async () => {
  const { memory } = scripted([never], { timeoutMs: 20, retries: { attempts: 1 } });
  assert.equal((await thrown(memory.getHealth())).reason, "NO_ANSWER_IN_TIME");
  const startedMs = Date.now();
  assert.equal((await thrown(memory.flush("ann", { timeout_ms: 100 }))).reason, "NO_ANSWER_IN_TIME");
  assert.ok(Date.now() - startedMs >= 110);
});

test("a signal aborts a request and the pause before a retry, with its own reason", async () => {
  const waiting = scripted([never]);
  await assert.rejects(waiting.memory.recall("ann", {}, { signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
  assert.equal(waiting.requests.length, 1);
  const controller = new AbortController();
  const pausing = scripted([
    () => {
      setTimeout(() => controller.abort(new Error("enough")), 5);
      return BUSY.clone();
    },
  ], { retries: { firstPauseMs: 60_000, longestPauseMs: 60_000, totalMs: 600_000 } });
  await assert.rejects(pausing.memory.recall("ann", {}, { signal: controller.signal }), { message: "enough" });
  assert.equal(pausing.requests.length, 1);
});

test("paths, queries and headers are encoded", async () => {
  const { memory, requests } = scripted([json({ nodes: [], next_page_token: "" })], { apiKey: "ebb_secret\n" });
  await memory.listNodes("林/月", { kinds: ["a", "b"], metadata: { a: 1 }, page_size: 2 });
  const url = new URL(requests[0]!.url);
  assert.equal(url.pathname, `/base/v1/agents/${encodeURIComponent("林/月")}/nodes`);
  assert.deepEqual(Object.fromEntries(url.searchParams), { kinds: "a,b", metadata: '{"a":1}', page_size: "2" });
  assert.equal(requests[0]!.headers.get("Authorization"), "Bearer ebb_secret");
  for (const id of ["", ".", "..", "\ud800"]) {
    const sent = requests.length;
    await assert.rejects(async () => memory.getAgent(id), InvalidRequest);
    assert.equal(requests.length, sent);
  }
});

test("a wrong argument of a caller without types is an InvalidRequest, and nothing is sent", async () => {
  const attached = (attachment: unknown) => ["ann", [{ role: "user", content: "Look!", attachments: [attachment] }]];
  const rows: [string, unknown[], string, string][] = [
    ["getAgent", [], "agent_id", "MISSING_FIELD"],
    ["getAgent", [5], "agent_id", "WRONG_TYPE"],
    ["getAgent", [null], "agent_id", "WRONG_TYPE"],
    ["getNode", ["ann"], "id", "MISSING_FIELD"],
    ["remember", ["ann"], "messages", "MISSING_FIELD"],
    ["remember", ["ann", ["Hello.", 5]], "messages[1]", "WRONG_TYPE"],
    ["remember", ["ann", "Hello.", "c1"], "request", "WRONG_TYPE"],
    ["remember", attached(null), "messages[0].attachments[0]", "WRONG_TYPE"],
    ["remember", attached({ mime: "image/png", bytes: [1, 2] }), "messages[0].attachments[0].bytes", "WRONG_TYPE"],
    ["recall", ["ann", "Where?"], "request", "WRONG_TYPE"],
    ["recall", ["ann", null], "request", "WRONG_TYPE"],
    ["search", ["ann"], "request", "MISSING_FIELD"],
    ["updateNode", ["ann", "n1"], "request", "MISSING_FIELD"],
    ["listNodes", ["ann", "allergy"], "request", "WRONG_TYPE"],
    ["batchRecords", ["ann"], "request", "MISSING_FIELD"],
    ["recall", ["ann", { max_results: 5n }], "", "INVALID_JSON"],
    ["listNodes", ["ann", { metadata: { count: 5n } }], "", "INVALID_JSON"],
  ];
  const { memory, requests } = scripted([json({})]);
  const methods = memory as unknown as Record<string, (...args: unknown[]) => any>;
  for (const [name, args, field, reason] of rows) {
    const error = await thrown(methods[name]!(...args));
    assert.ok(error instanceof InvalidRequest, name);
    assert.deepEqual([error.reason, error.violations[0]?.field ?? ""], [reason, field], `${name}: ${error.message}`);
  }
  await assert.rejects(methods["everyNode"]!("ann", null).next(), InvalidRequest);
  await assert.rejects(methods["watchEvents"]!().next(), InvalidRequest);
  assert.equal(requests.length, 0);
});

test("the constructor refuses options that it does not know", () => {
  const create = Ebbtide as unknown as new (options: unknown) => Ebbtide;
  for (const options of ["http://daemon:1", { url: "http://daemon:1" }, { retries: 3 }, { headers: { a: "b\nc" } }]) {
    assert.throws(() => new create(options), TypeError);
  }
});

test("a timeout longer than timers allow is none", async () => {
  const { memory } = scripted([async () => (await new Promise((resolve) => setTimeout(resolve, 20)), json({ status: "ok" }))], { timeoutMs: Infinity });
  assert.equal((await memory.getHealth()).status, "ok");
});

test("a page without a list or a token is no response of a daemon", async () => {
  for (const page of [{ nodes: [] }, { next_page_token: "" }]) {
    const { memory, requests } = scripted([json(page)]);
    assert.ok((await thrown(memory.everyNode("ann").next())) instanceof UnexpectedAnswer);
    assert.equal(requests.length, 1);
  }
});

test("a CommonJS program loads the package too", () => {
  assert.equal(createRequire(import.meta.url)("ebbtide-client").Ebbtide, Ebbtide);
});

test("no text of the client contains the key, and a key with a line break is refused without quoting it", () => {
  assert.doesNotMatch(inspect(new Ebbtide({ apiKey: "ebb_secret" }), { depth: 9, showHidden: true }), /ebb_secret/);
  assert.throws(() => new Ebbtide({ apiKey: "ebb_se\ncret" }), (error: Error) => !error.message.includes("cret"));
  assert.throws(() => new Ebbtide({ baseUrl: "daemon:8420" }), TypeError);
  assert.throws(() => new Ebbtide({ retries: { attempts: 0 } }), TypeError);
});

test("bytes of an attachment are sent in base64", async () => {
  const { memory, requests } = scripted([json(STORED, 202)]);
  const bytes = Uint8Array.from({ length: 20_000 }, (_, index) => index % 256);
  await memory.remember("ann", { role: "user", content: "Look!", attachments: [{ mime: "image/png", bytes, caption: "A dog." }] });
  const [sent] = (await bodyOf(requests[0]!)).messages[0].attachments;
  assert.deepEqual(new Uint8Array(Buffer.from(sent.bytes, "base64")), bytes);
});

function stream(...pieces: (string | Uint8Array)[]): Response {
  const queue = [...pieces];
  const body = new ReadableStream({
    pull(controller) {
      const piece = queue.shift();
      if (piece === undefined) controller.error(LOST);
      else controller.enqueue(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

test("a stream of events that breaks off is resumed after its last event", async () => {
  const bytes = new TextEncoder().encode('event: NodeForgotten\r\ndata: {"sequence":2,\r\ndata: "batch_id":"青岛"}\r\n\r\n: idle\n\n');
  const first = [": hello\n\n", 'event: NodeCreated\ndata: {"sequence":1}\n\n', ...Array.from(bytes, (_, index) => bytes.slice(index, index + 1))];
  const end = 'event: StreamEnded\ndata: {"error":{"code":404,"status":"NOT_FOUND","reason":"EVENTS_GONE","message":"gone","metadata":{}}}\n\n';
  const { memory, requests } = scripted([() => stream(...first, 'data: {"sequence":'), BUSY, () => stream(end)]);
  const seen: [number, unknown][] = [];
  const opened: number[] = [];
  const error = await thrown(
    (async () => {
      const onOpen = () => opened.push(seen.length);
      for await (const event of memory.watchEvents("ann", { after: 0 }, { onOpen })) seen.push([event.sequence, event.batch_id]);
    })(),
  );
  assert.deepEqual(opened, [0, 2], "the stream was open twice, and a refused request in between is not one");
  assert.deepEqual(seen, [[1, undefined], [2, "青岛"]]);
  assert.equal(error.reason, "EVENTS_GONE");
  assert.deepEqual(requests.map((one) => new URL(one.url).searchParams.get("after")), ["0", "2", "2"]);
});

test("leaving the loop over events closes the connection", async () => {
  let isClosed = false;
  const body = () =>
    new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: {"sequence":1}\n\n')),
      cancel: () => {
        isClosed = true;
      },
    });
  const { memory } = scripted([() => new Response(body(), { headers: { "Content-Type": "text/event-stream" } })]);
  for await (const event of memory.watchEvents("ann")) {
    assert.equal(event.sequence, 1);
    break;
  }
  assert.ok(isClosed);
});
