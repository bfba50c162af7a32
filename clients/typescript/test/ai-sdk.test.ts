// The middleware with the real AI SDK and its mock of a model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, isStepCount, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, MockLanguageModelV4 } from "ai/test";
import { ConnectionFailed, Ebbtide } from "ebbtide-client";
import { ebbtideMiddleware, type MemoryOptions } from "ebbtide-client/ai-sdk";
import { z } from "zod";

const client = new Ebbtide({ baseUrl: process.env["EBBTIDE_TEST_URL"]! });
const offline = new Ebbtide({
  retries: { attempts: 1 },
  fetch: async () => {
    throw new TypeError("fetch failed");
  },
});
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Part = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

function says(text: string) {
  const stop = { unified: "stop", raw: "stop" } as const;
  return { content: [{ type: "text" as const, text }], finishReason: stop, usage, warnings: [] };
}

function streams(...texts: string[]): { stream: ReadableStream<Part> } {
  const parts: Part[] = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    ...texts.map((delta): Part => ({ type: "text-delta", id: "1", delta })),
    { type: "text-end", id: "1" },
    { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
  ];
  return { stream: ReadableStream.from(parts) };
}

function remembering(model: MockLanguageModelV4 | MockLanguageModelV3, options: Omit<MemoryOptions, "client"> & { client?: Ebbtide }) {
  const onError = (error: unknown) => assert.fail(String(error));
  return wrapLanguageModel({ model, middleware: ebbtideMiddleware({ client, onError, timeoutMs: 60_000, ...options }) });
}

async function stored(agent: string): Promise<[string, string | null][]> {
  return (await client.listMessages(agent)).messages.map((one) => [one.role, one.content]);
}

test("memories come first in the prompt, and a finished turn is remembered", async () => {
  await client.remember("sdk", "I moved to Lisbon in May.");
  await client.flush("sdk");
  const mock = new MockLanguageModelV4({ doGenerate: says("You moved to Lisbon.") });
  const model = remembering(mock, { agent: "sdk", conversation_id: "c1" });
  const { text } = await generateText({ model, system: "You are a friend.", prompt: "Where did I move to?" });
  assert.equal(text, "You moved to Lisbon.");
  const [first, second, third] = mock.doGenerateCalls[0]!.prompt;
  assert.ok(first?.role === "system" && /^What you remember.*\n\[Memory\] .*Lisbon in May\./.test(first.content), JSON.stringify(first));
  assert.ok(second?.role === "system" && second.content === "You are a friend.");
  assert.equal(third?.role, "user");
  assert.deepEqual((await stored("sdk")).slice(1), [["user", "Where did I move to?"], ["assistant", "You moved to Lisbon."]]);
  assert.equal((await client.getBatch("sdk", "b2")).conversation_id, "c1");
});

test("a model of the previous version of the SDK works too", async () => {
  const mock = new MockLanguageModelV3({ doGenerate: says("Hello!") });
  await generateText({ model: remembering(mock, { agent: "sdk-v3" }), prompt: "Hi." });
  assert.deepEqual(await stored("sdk-v3"), [["user", "Hi."], ["assistant", "Hello!"]]);
});

test("without memories the prompt is unchanged", async () => {
  const mock = new MockLanguageModelV4({ doGenerate: says("Hello!") });
  await generateText({ model: remembering(mock, { agent: "sdk-new", remembers: false }), prompt: "Hi." });
  assert.deepEqual(mock.doGenerateCalls[0]!.prompt.map((one) => one.role), ["user"]);
  assert.deepEqual((await client.listAgents({ page_size: 100 })).agents.filter((one) => one.agent_id === "sdk-new"), []);
});

test("a streamed turn is remembered when it is finished", async () => {
  const mock = new MockLanguageModelV4({ doStream: streams("You like ", "rain.") });
  const result = streamText({ model: remembering(mock, { agent: "sdk-stream" }), prompt: "I like rain." });
  let text = "";
  for await (const piece of result.textStream) text += piece;
  assert.equal(text, "You like rain.");
  assert.deepEqual(await stored("sdk-stream"), [["user", "I like rain."], ["assistant", "You like rain."]]);
});

test("a turn with calls of tools is remembered once, with its last text", async () => {
  const calling: Generated = {
    content: [{ type: "text", text: "Let me see." }, { type: "tool-call", toolCallId: "t1", toolName: "weather", input: "{}" }],
    finishReason: { unified: "tool-calls", raw: "tool_calls" },
    usage,
    warnings: [],
  };
  const mock = new MockLanguageModelV4({ doGenerate: [calling, says("It rains.")] });
  const weather = tool({ description: "The weather", inputSchema: z.object({}), execute: async () => "rain" });
  const model = remembering(mock, { agent: "sdk-tools" });
  await generateText({ model, tools: { weather }, stopWhen: isStepCount(3), prompt: "Does it rain?" });
  assert.equal(mock.doGenerateCalls.length, 2);
  assert.deepEqual(await stored("sdk-tools"), [["user", "Does it rain?"], ["assistant", "It rains."]]);
});

test("a fault of the memory breaks no chat, and a fault of the model stores nothing", async () => {
  const errors: unknown[] = [];
  const options = { agent: "sdk-off", client: offline, onError: (error: unknown) => errors.push(error) };
  const mock = new MockLanguageModelV4({ doGenerate: says("Hello!"), doStream: streams("Hello!") });
  assert.equal((await generateText({ model: remembering(mock, options), prompt: "Hi." })).text, "Hello!");
  assert.equal(await streamText({ model: remembering(mock, options), prompt: "Hi." }).text, "Hello!");
  assert.equal(errors.length, 4);
  assert.ok(errors.every((error) => error instanceof ConnectionFailed));
  const broken = new MockLanguageModelV4({
    doGenerate: async () => {
      throw new Error("no model");
    },
  });
  await assert.rejects(generateText({ model: remembering(broken, { agent: "sdk-broken" }), prompt: "Hi.", maxRetries: 0 }), { message: "no model" });
  await assert.rejects(stored("sdk-broken"), { reason: "AGENT_NOT_FOUND" });
});

test("a slow memory delays the model no longer than the timeout", async () => {
  const never: typeof fetch = (_, init) =>
    new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason)));
  const errors: unknown[] = [];
  const slow = { agent: "sdk-slow", client: new Ebbtide({ fetch: never }), timeoutMs: 20, onError: (error: unknown) => errors.push(error) };
  const mock = new MockLanguageModelV4({ doGenerate: says("Hello!") });
  assert.equal((await generateText({ model: remembering(mock, slow), prompt: "Hi." })).text, "Hello!");
  assert.equal(errors.length, 2);
});

test("a message longer than the daemon takes is asked by its end and sent in parts", async () => {
  const bodies: any[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    bodies.push(await new Request(input, init).json());
    return Response.json({ text: "" });
  };
  const prompt = `${"x".repeat(99_999)}🌧 I moved to Lisbon.`;
  const mock = new MockLanguageModelV4({ doGenerate: says("Oh!") });
  await generateText({ model: remembering(mock, { agent: "sdk-long", client: new Ebbtide({ fetch }) }), prompt });
  const [recall, remember] = bodies;
  assert.match(recall.query, /^x+🌧 I moved to Lisbon\.$/u);
  assert.equal(Array.from(recall.query).length, 2000);
  assert.deepEqual(remember.messages, [
    { role: "user", content: `${"x".repeat(99_999)}🌧` },
    { role: "user", content: " I moved to Lisbon." },
    { role: "assistant", content: "Oh!" },
  ]);
});
