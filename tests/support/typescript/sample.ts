// A program on the generated types. It is compiled, not run: each line guards one property of the OpenAPI document.
import createClient from "openapi-fetch";
import type { operations, paths } from "./schema.js";

const client = createClient<paths, "application/json">({ baseUrl: "http://127.0.0.1:8420" });
const anyType = createClient<paths>({ baseUrl: "http://127.0.0.1:8420" });
const agent = { params: { path: { agent_id: "ann" } } };

// Request fields with a default are optional.
const stored = await client.POST("/v1/agents/{agent_id}/remember", {
  params: { ...agent.params, header: { "Idempotency-Key": "k1", "X-Request-Id": "r1" } },
  body: { messages: [{ role: "user", content: "I moved to Lisbon in May." }] },
});
const batchId: string | undefined = stored.data?.batch_id;

// Response fields are present, but for those that are sent on request only.
const recalled = await client.POST("/v1/agents/{agent_id}/recall", { ...agent, body: {} });
const text: string | undefined = recalled.data?.text;
for (const memory of recalled.data?.memories ?? []) {
  const state: "living" | "archived" | "pending" = memory.state;
  console.log(state, memory.sources[0]?.quote);
}
// text/plain has a schema.
const either = await anyType.POST("/v1/agents/{agent_id}/recall", { ...agent, body: { query: "Where?" } });
const both: operations["recall"]["responses"][200]["content"]["application/json"] | string | undefined = either.data;

// Enumerations: a wrong value does not compile.
await client.GET("/v1/agents/{agent_id}/batches", { params: { ...agent.params, query: { state: "parked" } } });
await client.GET("/v1/agents/{agent_id}/batches", {
  // @ts-expect-error no state of this name
  params: { ...agent.params, query: { state: "lost" } },
});
// @ts-expect-error no signal of this name
await client.POST("/v1/agents/{agent_id}/recall", { ...agent, body: { query: "x", without: ["luck"] } });

// null restores a default in PATCH, and is refused in PUT.
await client.PATCH("/v1/agents/{agent_id}", { ...agent, body: { decay_rate: null, locale: "zh" } });
await client.PUT("/v1/agents/{agent_id}", { ...agent, body: { decay_rate: 0.9 } });
// @ts-expect-error null is no value here
await client.PUT("/v1/agents/{agent_id}", { ...agent, body: { decay_rate: null } });

// Errors are typed; a switch over kinds of events is checked.
const missing = await client.GET("/v1/agents/{agent_id}", agent);
const reason: string | undefined = missing.error?.error.reason;
const parameters: number | undefined = missing.data?.parameters.focus_limit;
type Event = operations["watchEvents"]["responses"][200]["content"]["text/event-stream"];
function describe(event: Event): string {
  switch (event.kind) {
    case "NodeForgotten":
      return `${event.node_id ?? ""} was forgotten`;
    default:
      return event.kind;
  }
}

// Binary bodies are blobs, JSON lines and metrics are texts.
const backup: operations["backupAgent"]["responses"][200]["content"]["application/octet-stream"] = new Blob();
await client.POST("/v1/agents/{agent_id}/restore", { ...agent, body: backup, bodySerializer: (body) => body });
const lines: operations["exportAgent"]["responses"][200]["content"]["application/x-ndjson"] = "{}\n";
const metrics = await anyType.GET("/metrics", { parseAs: "text" });

// Operation ids are the names of the RPCs.
type Named = [operations["openAgent"], operations["deleteAgent"], operations["watchEvents"], operations["getHealth"]];
type Resume = operations["watchEvents"]["parameters"]["header"];
const resume: Resume = { "Last-Event-ID": "17" };

export { batchId, text, both, reason, parameters, describe, lines, metrics, resume, type Named };
