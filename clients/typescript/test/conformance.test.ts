// The cases of clients/conformance against a real daemon.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as client from "ebbtide-client";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
interface Step {
  call: string;
  args: Json[];
  options?: { [name: string]: Json };
  expect?: Json;
  error?: { class: string; reason: string; fields?: string[] };
  save?: { [name: string]: string };
}
type Methods = Record<string, (...args: unknown[]) => unknown>;
interface Case {
  name: string;
  steps: Step[];
}

const folder = process.env["CONFORMANCE_CASES"]!;
const memory = new client.Ebbtide({ baseUrl: process.env["EBBTIDE_TEST_URL"]! });

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  for (const [number, one] of (JSON.parse(readFileSync(join(folder, file), "utf8")) as Case[]).entries()) {
    test(`${file}: ${one.name}`, () => run(one, `ts-${file}-${number}`));
  }
}

async function run(one: Case, agent: string): Promise<void> {
  const names: { [name: string]: Json } = { agent, other: `${agent}-other` };
  for (const [index, step] of one.steps.entries()) {
    const place = `step ${index + 1}: ${step.call}`;
    let result: Json;
    try {
      result = await call(step, names);
    } catch (error) {
      if (!(error instanceof client.EbbtideError) || step.error === undefined) throw error;
      const family = client[step.error.class as "EbbtideError"];
      assert.equal(error.constructor, family, place);
      assert.equal(error.reason, step.error.reason, place);
      if (step.error.fields) assert.deepEqual(error.violations.map((v) => v.field), step.error.fields, place);
      continue;
    }
    assert.equal(step.error, undefined, `${place}: no error`);
    if (step.expect !== undefined) check(result, filled(step.expect, names), place);
    for (const [name, path] of Object.entries(step.save ?? {})) names[name] = part(result, path);
  }
}

async function call(step: Omit<Step, "save">, names: { [name: string]: Json }, target = memory): Promise<Json> {
  const args = step.args.map((one) => filled(one, names));
  if (step.options) args.push(filled(step.options, names));
  const result = (target as unknown as Methods)[step.call]!(...args);
  if (!isIterable(result)) return (await result) as Json;
  const items: Json[] = [];
  for await (const one of result) items.push(one);
  return items;
}

function isIterable(value: unknown): value is AsyncIterable<Json> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function filled(value: Json, names: { [name: string]: Json }): Json {
  if (typeof value === "string" && value.startsWith("$")) return names[value.slice(1)]!;
  if (Array.isArray(value)) return value.map((one) => filled(one, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, names)]));
}

function part(value: Json, path: string): Json {
  const found = path.split(".").reduce((inner, name) => (inner as { [name: string]: Json })[name]!, value);
  assert.notEqual(found, undefined, `no ${path} in ${JSON.stringify(value)}`);
  return found;
}

function check(found: Json | undefined, expected: Json, place: string): void {
  const seen = `${place}: ${JSON.stringify(found)}`;
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(found) && found.length === expected.length, seen);
    expected.forEach((one, index) => check(found[index], one, `${place}.${index}`));
  } else if (expected === null || typeof expected !== "object") {
    assert.equal(found, expected, seen);
  } else if (typeof expected["$contains"] === "string") {
    assert.ok(typeof found === "string" && found.includes(expected["$contains"]), seen);
  } else if ("$length" in expected) {
    assert.equal((found as Json[]).length, expected["$length"], seen);
  } else if ("$type" in expected) {
    assert.equal(typeof found, expected["$type"], seen);
  } else {
    for (const [name, one] of Object.entries(expected)) {
      check((found as { [name: string]: Json })[name], one, `${place}.${name}`);
    }
  }
}

// What each operation sends to a daemon that is busy.
interface Sent extends Omit<Step, "expect" | "error" | "save"> {
  method: string;
  path: string;
  query?: { [name: string]: Json };
  body?: Json;
  repeats: boolean;
}

const BUSY = { error: { code: 503, status: "UNAVAILABLE", reason: "SERVER_BUSY", message: "busy", metadata: {} } };

test("requests are those of the shared cases, and only what is safe is repeated", async () => {
  const rows = JSON.parse(readFileSync(join(folder, "requests", "requests.json"), "utf8")) as Sent[];
  assert.ok(rows.length > 60);
  for (const row of rows) {
    const place = `${row.call} ${JSON.stringify(row.args)}`;
    const requests: { url: URL; init: RequestInit }[] = [];
    const fetch = async (input: unknown, init?: RequestInit) => {
      requests.push({ url: new URL(String(input)), init: init! });
      return Response.json(BUSY, { status: 503 });
    };
    const busy = new client.Ebbtide({ baseUrl: "http://daemon", fetch, retries: { attempts: 2, firstPauseMs: 0 } });
    await assert.rejects(call(row, {}, busy), client.Unavailable, place);
    const { url, init } = requests[0]!;
    assert.deepEqual([init.method, url.pathname], [row.method, row.path], place);
    const { query = {} } = row;
    const found = [...url.searchParams].map(([name, text]) => [name, typeof query[name] === "object" ? JSON.parse(text) : text]);
    assert.deepEqual(Object.fromEntries(found), query, place);
    if (row.body !== undefined) check(JSON.parse(String(init.body)), row.body, place);
    assert.equal(requests.length, row.repeats ? 2 : 1, place);
    assert.equal(requests.at(-1)!.init.body, init.body, place);
  }
});
