// The client. Methods have the names of the operations, take the ids of their path, then the fields of the request.
import { type Call, type CallOptions, Connection, type EbbtideOptions, path, pause } from "./connection.js";
import { ConnectionFailed, EbbtideError, fields, fitting, isObject, refusal, UnexpectedAnswer } from "./errors.js";
import { serverSentEvents } from "./events.js";
import type { components, operations } from "./schema.js";

type Schemas = components["schemas"];
type Operation = keyof operations;
type Given<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>;
type Body<N extends Operation> = Given<operations[N]["requestBody"]> extends { content: { "application/json": infer B } } ? B : unknown;
type Query<N extends Operation> = WithObjects<Given<operations[N]["parameters"]["query"]>>;
// Metadata is an object here, and JSON in the URL.
type WithObjects<Q> = { [K in keyof Q]: K extends "metadata" ? Record<string, unknown> : Q[K] };
type Responses<N extends Operation> = operations[N]["responses"];
type Success<N extends Operation> = Responses<N>[keyof Responses<N> & (200 | 201 | 202)];

/** The request of an operation: the fields of its body, or of its query. */
export type RequestOf<N extends Operation> = Body<N> & Query<N>;
/** The response of an operation. */
export type ResponseOf<N extends Operation> = Success<N> extends { content: { "application/json": infer R } } ? R : never;
type Result<N extends Operation> = Promise<ResponseOf<N>>;

/** A message; the content of an attachment may be bytes instead of base64. */
export type Message = Omit<Schemas["Message"], "attachments"> & { attachments?: Attachment[] };
export type Attachment = Omit<Schemas["Attachment"], "bytes"> & { bytes: string | Uint8Array };
/** A message, or the text of a message of the user. */
export type AnyMessage = string | Message;
export type Event = Schemas["EventInfo"];
/** The content of a backup or an export. In Node, `openAsBlob` of `node:fs` opens a file without reading it whole. */
export type Content = Blob | Uint8Array | ReadableStream<Uint8Array>;

const BACKUP = "application/octet-stream";
const EXPORT = "application/x-ndjson";
// An idle daemon sends a comment every 15 s.
const LEAST_STREAM_TIMEOUT_MS = 45_000;

/** Options of `watchEvents`. */
export interface WatchOptions extends CallOptions {
  /** Called each time the daemon has opened the stream, also after a lost connection. */
  onOpen?: () => void;
}

/** A client of one daemon. It has no state but its options, so one can be shared. */
export class Ebbtide {
  readonly #connection: Connection;

  constructor(options: EbbtideOptions = {}) {
    this.#connection = new Connection(options);
  }

  // --- memory

  /**
   * Store a message or a batch of messages. When it returns, the batch is on disk and becomes memories soon after.
   *
   * One batch is one unit of the memory's time, so send what belongs together in one call. Without an
   * `idempotency_key` the client creates one: a retry never stores the batch twice.
   */
  async remember(
    agentId: string,
    messages: AnyMessage | readonly AnyMessage[],
    request: Omit<RequestOf<"remember">, "messages"> = {},
    options?: CallOptions,
  ): Result<"remember"> {
    const several = isList(messages) ? messages : [fitting("messages", messages, messages !== undefined, "a text or a message")];
    const body = { ...withKey(request), messages: several.map((one, index) => messageBody(one, `messages[${index}]`)) };
    return this.#send("POST", path`/v1/agents/${agentId}/remember`, { body, safe: true }, options);
  }

  /**
   * Return what the agent remembers, as text for a language model, strongest first.
   *
   * With a `query`, the text answers a question over everything that the agent ever received. Without one, it contains
   * the memories that the keywords and the focus bring to mind.
   */
  async recall(agentId: string, request: RequestOf<"recall"> = {}, options?: CallOptions): Result<"recall"> {
    const call = { body: request, safe: true, waitsMs: fields(request).patience_ms };
    return this.#send("POST", path`/v1/agents/${agentId}/recall`, call, options);
  }

  /** Return the text of a recall alone. */
  async recallText(agentId: string, request: RequestOf<"recall"> = {}, options?: CallOptions): Promise<string> {
    const call = { body: request, safe: true, waitsMs: fields(request).patience_ms, accept: "text/plain" };
    return this.#connection.text("POST", path`/v1/agents/${agentId}/recall`, call, options);
  }

  /** Return the memories that answer a question as a list, best first. */
  async search(agentId: string, request: RequestOf<"search">, options?: CallOptions): Result<"search"> {
    const call = { body: request, safe: true, waitsMs: fields(request).patience_ms };
    return this.#send("POST", path`/v1/agents/${agentId}/search`, call, options);
  }

  /** Wait until all accepted batches are digested, or until the timeout; the fields say what is left. */
  async flush(agentId: string, request: RequestOf<"flush"> = {}, options?: CallOptions): Result<"flush"> {
    const call = { body: request, safe: true, waitsMs: fields(request).timeout_ms ?? 30_000 };
    return this.#send("POST", path`/v1/agents/${agentId}/flush`, call, options);
  }

  // --- operations

  /** Create the agent, or return it if it exists with the same parameters. Throws Conflict if they differ. */
  async openAgent(
    agentId: string,
    request: RequestOf<"openAgent"> = {},
    options?: CallOptions,
  ): Promise<{ agent: ResponseOf<"openAgent">; is_new: boolean }> {
    const { status, value } = await this.#connection.json("PUT", path`/v1/agents/${agentId}`, { body: request }, options);
    return { agent: value as ResponseOf<"openAgent">, is_new: status === 201 };
  }

  /** Return how much the agent has stored. Each call with `epsilon` spends that much of its privacy budget. */
  async getStats(agentId: string, request: RequestOf<"getStats"> = {}, options?: CallOptions): Result<"getStats"> {
    const call = { query: request, safe: fields(request).epsilon === undefined };
    return this.#send("GET", path`/v1/agents/${agentId}/stats`, call, options);
  }

  /** Create one memory from a text, at once and without a language model. A retry never creates it twice. */
  async createNode(agentId: string, request: RequestOf<"createNode">, options?: CallOptions): Result<"createNode"> {
    return this.#send("POST", path`/v1/agents/${agentId}/nodes`, { body: withKey(request), safe: true }, options);
  }

  /** Store a statement, which is durable and searchable at once. With an idempotency key it is safe to repeat. */
  async createStatement(agentId: string, request: RequestOf<"createStatement">, options?: CallOptions): Result<"createStatement"> {
    const call = { body: request, safe: Boolean(fields(request).idempotency_key) };
    return this.#send("POST", path`/v1/agents/${agentId}/statements`, call, options);
  }

  /** Delete a selection for good, including its bytes on disk. `dry_run` returns what would be deleted. */
  async forgetMemories(agentId: string, request: RequestOf<"forgetMemories">, options?: CallOptions): Result<"forgetMemories"> {
    const call = { body: request, safe: fields(request).dry_run === true, long: true };
    return this.#send("POST", path`/v1/agents/${agentId}/forget`, call, options);
  }

  /** Return the content of an attachment, by the id of its message (`m1`) and its position there, from 0. */
  async getAttachment(agentId: string, message: string, index: number, options?: CallOptions): Promise<Uint8Array> {
    const place = path`/v1/agents/${agentId}/messages/${message}/attachments/${String(index)}`;
    const pieces = await this.#connection.pieces("GET", place, { accept: "*/*" }, options);
    return new Uint8Array(await new Response(pieces).arrayBuffer());
  }

  /** Return whether requests are accepted, and what is wrong. `unavailable` is a result, not an error. */
  async getReadiness(options?: CallOptions): Result<"getReadiness"> {
    return this.#send("GET", "/readyz", { alsoGood: 503 }, options);
  }

  /** Return all metrics in the text format of Prometheus. */
  async getMetrics(options?: CallOptions): Promise<string> {
    return this.#connection.text("GET", "/metrics", { accept: "text/plain" }, options);
  }

  /** Change parameters of an agent. `null` restores the daemon's default. */
  async updateAgent(agentId: string, request: RequestOf<"updateAgent"> = {}, options?: CallOptions): Result<"updateAgent"> {
    return this.#send("PATCH", path`/v1/agents/${agentId}`, { body: request }, options);
  }

  /** Return the agent: parameters, counts, focus, waiting batches and owed passes. */
  async getAgent(agentId: string, options?: CallOptions): Result<"getAgent"> {
    return this.#send("GET", path`/v1/agents/${agentId}`, {}, options);
  }

  /** Delete the agent with everything it contains. Irreversible. */
  async deleteAgent(agentId: string, options?: CallOptions): Result<"deleteAgent"> {
    return this.#send("DELETE", path`/v1/agents/${agentId}`, {}, options);
  }

  /** Return a page of agents. No agent is opened. */
  async listAgents(request: RequestOf<"listAgents"> = {}, options?: CallOptions): Result<"listAgents"> {
    return this.#send("GET", "/v1/agents", { query: request }, options);
  }

  /** Write everything to disk and close the agent until the next request for it. */
  async closeAgent(agentId: string, options?: CallOptions): Result<"closeAgent"> {
    return this.#send("POST", path`/v1/agents/${agentId}/close`, {}, options);
  }

  /** Remove everything that an agent has stored, and keep its id and its parameters. Irreversible. */
  async clearAgent(agentId: string, options?: CallOptions): Result<"clearAgent"> {
    return this.#send("POST", path`/v1/agents/${agentId}/clear`, { long: true }, options);
  }

  /** Return a page of batches by number, all or those of one state. */
  async listBatches(agentId: string, request: RequestOf<"listBatches"> = {}, options?: CallOptions): Result<"listBatches"> {
    return this.#send("GET", path`/v1/agents/${agentId}/batches`, { query: request }, options);
  }

  /** Return the state of a batch. */
  async getBatch(agentId: string, batchId: string, options?: CallOptions): Result<"getBatch"> {
    return this.#send("GET", path`/v1/agents/${agentId}/batches/${batchId}`, {}, options);
  }

  /** Return a parked batch to the inbox. */
  async retryBatch(agentId: string, batchId: string, options?: CallOptions): Result<"retryBatch"> {
    return this.#send("POST", path`/v1/agents/${agentId}/batches/${batchId}/retry`, {}, options);
  }

  /** Schedule compression passes in addition to those that batches cause. */
  async compress(agentId: string, request: RequestOf<"compress"> = {}, options?: CallOptions): Result<"compress"> {
    return this.#send("POST", path`/v1/agents/${agentId}/compress`, { body: request }, options);
  }

  /** Return the memories and the entities in focus, newest first. */
  async getFocus(agentId: string, options?: CallOptions): Result<"getFocus"> {
    return this.#send("GET", path`/v1/agents/${agentId}/focus`, {}, options);
  }

  /** Move a memory or an entity to the front of the focus. Returns the focus. */
  async focusNode(agentId: string, nodeId: string, options?: CallOptions): Result<"focusNode"> {
    return this.#send("PUT", path`/v1/agents/${agentId}/focus/${nodeId}`, {}, options);
  }

  /** Remove a memory or an entity from the focus. Returns the focus. */
  async unfocusNode(agentId: string, nodeId: string, options?: CallOptions): Result<"unfocusNode"> {
    return this.#send("DELETE", path`/v1/agents/${agentId}/focus/${nodeId}`, {}, options);
  }

  /** Return a page of entities by id: names, and how many memories of each live and are forgotten. */
  async listEntities(agentId: string, request: RequestOf<"listEntities"> = {}, options?: CallOptions): Result<"listEntities"> {
    return this.#send("GET", path`/v1/agents/${agentId}/entities`, { query: request }, options);
  }

  /** Return a page of stored messages: all, or those that were stored with each of these values of `metadata`. */
  async listMessages(agentId: string, request: RequestOf<"listMessages"> = {}, options?: CallOptions): Result<"listMessages"> {
    return this.#send("GET", path`/v1/agents/${agentId}/messages`, { query: request }, options);
  }

  /** Return a page of nodes by id: living memories, or the given kinds; with `metadata`, those of such messages.
   * With `ids`, at most 100, return these nodes in this order, without those that do not exist. */
  async listNodes(agentId: string, request: RequestOf<"listNodes"> = {}, options?: CallOptions): Result<"listNodes"> {
    return this.#send("GET", path`/v1/agents/${agentId}/nodes`, { query: request }, options);
  }

  /** Return one node with its links. The reason of NotFound says whether it was forgotten. */
  async getNode(agentId: string, nodeId: string, options?: CallOptions): Result<"getNode"> {
    return this.#send("GET", path`/v1/agents/${agentId}/nodes/${nodeId}`, {}, options);
  }

  /** Correct the content or the keywords of a memory. Without keywords, those of the new content are used. */
  async updateNode(agentId: string, nodeId: string, request: RequestOf<"updateNode">, options?: CallOptions): Result<"updateNode"> {
    return this.#send("PATCH", path`/v1/agents/${agentId}/nodes/${nodeId}`, { body: request }, options);
  }

  /** Delete a memory with its links and its source, or what no memory has of a message (`m1`). Irreversible. */
  async deleteNode(agentId: string, nodeId: string, options?: CallOptions): Result<"deleteNode"> {
    return this.#send("DELETE", path`/v1/agents/${agentId}/nodes/${nodeId}`, {}, options);
  }

  /** Return a page of links by source. */
  async listLinks(agentId: string, request: RequestOf<"listLinks"> = {}, options?: CallOptions): Result<"listLinks"> {
    return this.#send("GET", path`/v1/agents/${agentId}/links`, { query: request }, options);
  }

  /** Return living nodes as columns of numbers, for a picture of the whole memory; with `links: "all"`, their links. */
  async getMap(agentId: string, request: RequestOf<"getMap"> = {}, options?: CallOptions): Result<"getMap"> {
    return this.#send("GET", path`/v1/agents/${agentId}/map`, { query: request }, options);
  }

  /** Return when memories were made, shortened and forgotten, as columns of numbers. */
  async getHistory(
    agentId: string,
    request: RequestOf<"getHistory"> = {},
    options?: CallOptions,
  ): Result<"getHistory"> {
    return this.#send("GET", path`/v1/agents/${agentId}/history`, { query: request }, options);
  }

  /** Return what the next passes will shorten and forget, if nothing is mentioned again and the parameters stay. */
  async forecast(agentId: string, request: RequestOf<"forecast"> = {}, options?: CallOptions): Result<"forecast"> {
    return this.#send("POST", path`/v1/agents/${agentId}/forecast`, { body: request, safe: true }, options);
  }

  /** Return the life of a memory or statement, also of a forgotten one. */
  async getNodeHistory(agentId: string, nodeId: string, options?: CallOptions): Result<"getNodeHistory"> {
    return this.#send("GET", path`/v1/agents/${agentId}/nodes/${nodeId}/history`, {}, options);
  }

  /** Create a link between two living nodes, or set its strength. */
  async createLink(agentId: string, request: RequestOf<"createLink">, options?: CallOptions): Result<"createLink"> {
    return this.#send("POST", path`/v1/agents/${agentId}/links`, { body: request }, options);
  }

  /** Pin a memory: it is neither shortened nor forgotten until it is unpinned. */
  async pinNode(agentId: string, nodeId: string, options?: CallOptions): Result<"pinNode"> {
    return this.#send("PUT", path`/v1/agents/${agentId}/nodes/${nodeId}/pin`, { safe: true }, options);
  }

  /** Unpin a memory. Its links with entities decay from now on. */
  async unpinNode(agentId: string, nodeId: string, options?: CallOptions): Result<"unpinNode"> {
    return this.#send("DELETE", path`/v1/agents/${agentId}/nodes/${nodeId}/pin`, { safe: true }, options);
  }

  /** Delete up to 1000 memories (`n1`), or messages as search returns them (`m1`). Irreversible. */
  async deleteNodes(agentId: string, request: RequestOf<"deleteNodes">, options?: CallOptions): Result<"deleteNodes"> {
    return this.#send("POST", path`/v1/agents/${agentId}/nodes/delete`, { body: request }, options);
  }

  /** Return a page of an agent's audit log: actor, action, time, counts. */
  async listAuditRecords(agentId: string, request: RequestOf<"listAuditRecords"> = {}, options?: CallOptions): Result<"listAuditRecords"> {
    return this.#send("GET", path`/v1/agents/${agentId}/audit`, { query: request }, options);
  }

  /** Check that an agent's audit log is intact, and whether the given texts were deleted there. */
  async verifyAudit(agentId: string, request: RequestOf<"verifyAudit"> = {}, options?: CallOptions): Result<"verifyAudit"> {
    return this.#send("POST", path`/v1/agents/${agentId}/audit/verify`, { body: request, safe: true, long: true }, options);
  }

  /** Return a page of the log of deleted agents, or of the records of one agent. */
  async listErasedAgents(request: RequestOf<"listErasedAgents"> = {}, options?: CallOptions): Result<"listErasedAgents"> {
    return this.#send("GET", "/v1/erased-agents", { query: request }, options);
  }

  /** Check that the log of deleted agents is intact, and whether they, or one of them, had the given texts. */
  async verifyErasedAgents(request: RequestOf<"verifyErasedAgents"> = {}, options?: CallOptions): Result<"verifyErasedAgents"> {
    return this.#send("POST", "/v1/erased-agents/verify", { body: request, safe: true, long: true }, options);
  }

  /** Return a page of statements by id: the current ones, or those in the given states. */
  async listStatements(agentId: string, request: RequestOf<"listStatements"> = {}, options?: CallOptions): Result<"listStatements"> {
    return this.#send("GET", path`/v1/agents/${agentId}/statements`, { query: request }, options);
  }

  /** Return a statement with the words that support it. */
  async getStatement(agentId: string, nodeId: string, request: RequestOf<"getStatement"> = {}, options?: CallOptions): Result<"getStatement"> {
    return this.#send("GET", path`/v1/agents/${agentId}/statements/${nodeId}`, { query: request }, options);
  }

  /** Correct a statement. The old one stays in the history. */
  async correctStatement(agentId: string, nodeId: string, request: RequestOf<"correctStatement"> = {}, options?: CallOptions): Result<"correctStatement"> {
    return this.#send("PATCH", path`/v1/agents/${agentId}/statements/${nodeId}`, { body: request }, options);
  }

  /** Return all versions of the topic of a statement. */
  async getStatementHistory(agentId: string, nodeId: string, request: RequestOf<"getStatementHistory"> = {}, options?: CallOptions): Result<"getStatementHistory"> {
    return this.#send("GET", path`/v1/agents/${agentId}/statements/${nodeId}/history`, { query: request }, options);
  }

  /** Retract a statement, which was never true. */
  async retractStatement(agentId: string, nodeId: string, request: RequestOf<"retractStatement"> = {}, options?: CallOptions): Result<"retractStatement"> {
    return this.#send("POST", path`/v1/agents/${agentId}/statements/${nodeId}/retract`, { body: request }, options);
  }

  /** Return statements that answer a question, best first. */
  async searchStatements(agentId: string, request: RequestOf<"searchStatements">, options?: CallOptions): Result<"searchStatements"> {
    return this.#send("POST", path`/v1/agents/${agentId}/statements/search`, { body: request, safe: true }, options);
  }

  /** Return the paths of links from a node to its causes, the strongest first. */
  async getCauses(agentId: string, nodeId: string, request: RequestOf<"getCauses"> = {}, options?: CallOptions): Result<"getCauses"> {
    return this.#send("GET", path`/v1/agents/${agentId}/nodes/${nodeId}/why`, { query: request }, options);
  }

  /** Set the strength of the links between a memory or a statement and its entities. */
  async setImportance(agentId: string, nodeId: string, request: RequestOf<"setImportance">, options?: CallOptions): Result<"setImportance"> {
    return this.#send("PUT", path`/v1/agents/${agentId}/nodes/${nodeId}/importance`, { body: request, safe: true }, options);
  }

  /** Return what is known about a person or a thing, by topic; without `entity` about the user. */
  async getProfile(agentId: string, request: RequestOf<"getProfile"> = {}, options?: CallOptions): Result<"getProfile"> {
    return this.#send("GET", path`/v1/agents/${agentId}/profile`, { query: request }, options);
  }

  /** Return a page of pairs of statements that contradict each other. */
  async listConflicts(agentId: string, request: RequestOf<"listConflicts"> = {}, options?: CallOptions): Result<"listConflicts"> {
    return this.#send("GET", path`/v1/agents/${agentId}/conflicts`, { query: request }, options);
  }

  /** Settle a conflict in favour of one statement. */
  async resolveConflict(agentId: string, request: RequestOf<"resolveConflict">, options?: CallOptions): Result<"resolveConflict"> {
    return this.#send("POST", path`/v1/agents/${agentId}/conflicts/resolve`, { body: request }, options);
  }

  /** Treat two entities as one in every answer. */
  async mergeEntities(agentId: string, request: RequestOf<"mergeEntities">, options?: CallOptions): Result<"mergeEntities"> {
    return this.#send("POST", path`/v1/agents/${agentId}/merges`, { body: request }, options);
  }

  /** Return a page of names that may mean one person or thing. */
  async listMerges(agentId: string, request: RequestOf<"listMerges"> = {}, options?: CallOptions): Result<"listMerges"> {
    return this.#send("GET", path`/v1/agents/${agentId}/merges`, { query: request }, options);
  }

  /** Reject a proposal: the two names are not proposed again. */
  async rejectMerge(agentId: string, request: RequestOf<"rejectMerge">, options?: CallOptions): Result<"rejectMerge"> {
    return this.#send("POST", path`/v1/agents/${agentId}/merges/reject`, { body: request }, options);
  }

  /** Pin or unpin a statement, or vote on it. */
  async giveFeedback(agentId: string, request: RequestOf<"giveFeedback">, options?: CallOptions): Result<"giveFeedback"> {
    return this.#send("POST", path`/v1/agents/${agentId}/feedback`, { body: request }, options);
  }

  /** Return a page of the rulings in effect. */
  async listRulings(agentId: string, request: RequestOf<"listRulings"> = {}, options?: CallOptions): Result<"listRulings"> {
    return this.#send("GET", path`/v1/agents/${agentId}/rulings`, { query: request }, options);
  }

  /** Undo a ruling: a merge, a settled conflict, a correction, a retraction, a pin or a vote. */
  async undoRuling(agentId: string, rulingId: string, options?: CallOptions): Result<"undoRuling"> {
    return this.#send("DELETE", path`/v1/agents/${agentId}/rulings/${rulingId}`, {}, options);
  }

  /** Consolidate the statements now, or only return what that would change. */
  async consolidate(agentId: string, request: RequestOf<"consolidate"> = {}, options?: CallOptions): Result<"consolidate"> {
    return this.#send("POST", path`/v1/agents/${agentId}/consolidate`, { body: request }, options);
  }

  /** Read and write records in one transaction: all writes happen, in order, or none. Reads see the state before it. */
  async batchRecords(agentId: string, request: RequestOf<"batchRecords">, options?: CallOptions): Result<"batchRecords"> {
    const { ops } = fields(request);
    const safe = Array.isArray(ops) && ops.every((one) => one?.op !== "put" && one?.op !== "delete" && one?.refresh_ttl !== true);
    return this.#send("POST", path`/v1/agents/${agentId}/records/batch`, { body: request, safe }, options);
  }

  /** Return the declarations of the tools that a language model may call. */
  async listTools(request: RequestOf<"listTools"> = {}, options?: CallOptions): Result<"listTools"> {
    return this.#send("GET", "/v1/tools", { query: request }, options);
  }

  /** Return instructions on the tools, with examples, for the system prompt of a language model. */
  async getToolPrompt(request: RequestOf<"getToolPrompt"> = {}, options?: CallOptions): Result<"getToolPrompt"> {
    return this.#send("GET", "/v1/tools/prompt", { query: request }, options);
  }

  /** Perform the call of a tool as a language model sent it. Its arguments are read leniently. */
  async callTool(agentId: string, name: string, request: RequestOf<"callTool"> = {}, options?: CallOptions): Result<"callTool"> {
    return this.#send("POST", path`/v1/agents/${agentId}/tools/${name}`, { body: request, long: true }, options);
  }

  /** Return what the API key may do: its scopes, and the agents that it reaches. */
  async getMe(options?: CallOptions): Result<"getMe"> {
    return this.#send("GET", "/v1/me", {}, options);
  }

  /** Return which language model is in use, whether it answers, and how its replies parse. */
  async getModel(options?: CallOptions): Result<"getModel"> {
    return this.#send("GET", "/v1/model", {}, options);
  }

  /** Return which agents compress now and which wait. */
  async getScheduler(options?: CallOptions): Result<"getScheduler"> {
    return this.#send("GET", "/v1/scheduler", {}, options);
  }

  /** Return whether the process is alive. This says nothing about its work. */
  async getHealth(options?: CallOptions): Result<"getHealth"> {
    return this.#send("GET", "/healthz", {}, options);
  }

  // --- pages

  /** Iterate over all pages of `listAgents`. */
  everyAgent(request: RequestOf<"listAgents"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listAgents(one, options), (page) => page.agents);
  }

  /** Iterate over all pages of `listBatches`. */
  everyBatch(agentId: string, request: RequestOf<"listBatches"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listBatches(agentId, one, options), (page) => page.batches);
  }

  /** Iterate over all pages of `listMessages`. */
  everyMessage(agentId: string, request: RequestOf<"listMessages"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listMessages(agentId, one, options), (page) => page.messages);
  }

  /** Iterate over all pages of `listNodes`. */
  everyNode(agentId: string, request: RequestOf<"listNodes"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listNodes(agentId, one, options), (page) => page.nodes);
  }

  /** Iterate over all pages of `listEntities`. */
  everyEntity(agentId: string, request: RequestOf<"listEntities"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listEntities(agentId, one, options), (page) => page.entities);
  }

  /** Iterate over all pages of `listLinks`. */
  everyLink(agentId: string, request: RequestOf<"listLinks"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listLinks(agentId, one, options), (page) => page.links);
  }

  /** Iterate over all pages of `listStatements`. */
  everyStatement(agentId: string, request: RequestOf<"listStatements"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listStatements(agentId, one, options), (page) => page.statements);
  }

  /** Iterate over all pages of `listConflicts`. */
  everyConflict(agentId: string, request: RequestOf<"listConflicts"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listConflicts(agentId, one, options), (page) => page.conflicts);
  }

  /** Iterate over all pages of `listMerges`. */
  everyMerge(agentId: string, request: RequestOf<"listMerges"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listMerges(agentId, one, options), (page) => page.proposals);
  }

  /** Iterate over all pages of `listRulings`. */
  everyRuling(agentId: string, request: RequestOf<"listRulings"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listRulings(agentId, one, options), (page) => page.rulings);
  }

  /** Iterate over all pages of `listAuditRecords`. */
  everyAuditRecord(agentId: string, request: RequestOf<"listAuditRecords"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listAuditRecords(agentId, one, options), (page) => page.records);
  }

  /** Iterate over all pages of `listErasedAgents`. */
  everyErasedAgent(request: RequestOf<"listErasedAgents"> = {}, options?: CallOptions) {
    return items(request, (one) => this.listErasedAgents(one, options), (page) => page.records);
  }

  // --- files

  /** Return the agent as one file for `restoreAgent`, piece by piece. */
  async backupAgent(agentId: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>> {
    return this.#connection.pieces("GET", path`/v1/agents/${agentId}/backup`, { accept: BACKUP, long: true }, options);
  }

  /** Return the agent as JSON lines, for people and programs, piece by piece. */
  async exportAgent(agentId: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>> {
    return this.#connection.pieces("GET", path`/v1/agents/${agentId}/export`, { accept: EXPORT, long: true }, options);
  }

  /** Restore an agent from a backup or an export. A failed restore changes nothing. Restore only what you trust. */
  async restoreAgent(agentId: string, content: Content, request: RequestOf<"restoreAgent"> = {}, options?: CallOptions): Result<"restoreAgent"> {
    return this.#upload(agentId, content, BACKUP, request, options);
  }

  /** Restore an agent from an export, as `restoreAgent` does. A backup is refused. */
  async importAgent(agentId: string, content: Content, request: RequestOf<"restoreAgent"> = {}, options?: CallOptions): Result<"restoreAgent"> {
    return this.#upload(agentId, content, EXPORT, request, options);
  }

  // --- events

  /**
   * Iterate over the events of an agent after a number, without end unless `follow` is false.
   *
   * Without `after` the stream begins with the oldest stored event, with -1 with the next one. A lost connection is
   * resumed where it broke off. Throws NotFound (EVENTS_GONE) if events in between are no longer stored.
   */
  async *watchEvents(agentId: string, request: RequestOf<"watchEvents"> = {}, options: WatchOptions = {}): AsyncGenerator<Event, void, undefined> {
    const place = path`/v1/agents/${agentId}/events`;
    const query = { ...fields(request) };
    let attempts = this.#connection.attempts(true);
    for (;;) {
      let lost: EbbtideError | undefined;
      try {
        const waitsMs = Math.max(0, LEAST_STREAM_TIMEOUT_MS - this.#connection.timeoutMs);
        // The attempts of this loop are the only ones: a stream that broke off counts as a failed call.
        const call = { query, accept: "text/event-stream", waitsMs, safe: false };
        const pieces = await this.#connection.pieces("GET", place, call, options);
        options.onOpen?.();
        for await (const { name, data } of serverSentEvents(pieces)) {
          if (name === "StreamEnded") throw ended(data);
          const event = eventOf(data);
          query.after = event.sequence;
          attempts = this.#connection.attempts(true);
          yield event;
        }
        if (request.follow === false) return;
      } catch (error) {
        if (!(error instanceof EbbtideError)) throw error;
        lost = error;
      }
      lost ??= new ConnectionFailed("the stream of events ended", { reason: "CONNECTION_LOST" });
      const pauseMs = attempts.pauseMs(lost);
      if (pauseMs === undefined) throw lost;
      await pause(pauseMs, options.signal);
    }
  }

  async #send<T>(method: string, place: string, call: Call, options?: CallOptions): Promise<T> {
    return (await this.#connection.json(method, place, call, options)).value as T;
  }

  #upload(agentId: string, body: Content, contentType: string, query: object, options?: CallOptions): Result<"restoreAgent"> {
    const call = { body, contentType, query, long: true };
    return this.#send("POST", path`/v1/agents/${agentId}/restore`, call, options);
  }
}

async function* items<R extends { page_token?: string }, P extends { next_page_token: string }, T>(
  request: R,
  page: (request: R) => Promise<P>,
  pick: (page: P) => readonly T[],
): AsyncGenerator<Awaited<T>, void, undefined> {
  let token = fields(request).page_token ?? "";
  do {
    const found = await page({ ...request, page_token: token });
    if (!Array.isArray(pick(found)) || typeof found.next_page_token !== "string") {
      throw new UnexpectedAnswer("a page cannot be read", { reason: "UNREADABLE_ANSWER" });
    }
    yield* pick(found);
    token = found.next_page_token;
  } while (token !== "");
}

function eventOf(data: string): Event {
  try {
    const event = JSON.parse(data) as Event;
    if (typeof event.sequence === "number") return event;
  } catch {
    // The error below says it.
  }
  throw new UnexpectedAnswer("an event cannot be read", { reason: "UNREADABLE_ANSWER" });
}

function ended(data: string): EbbtideError {
  try {
    const answer = JSON.parse(data) as Schemas["ErrorBody"];
    return refusal(answer, answer.error.code, new Headers());
  } catch {
    return new UnexpectedAnswer("the end of the stream cannot be read", { reason: "UNREADABLE_ANSWER" });
  }
}

function withKey<R extends { idempotency_key?: string | null }>(request: R): R {
  return { ...fields(request), idempotency_key: request.idempotency_key ?? newKey() };
}

// Browsers offer `crypto.randomUUID` on secure pages only.
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isList(messages: AnyMessage | readonly AnyMessage[]): messages is readonly AnyMessage[] {
  return Array.isArray(messages);
}

function messageBody(message: AnyMessage, place: string): Schemas["Message"] {
  if (typeof message === "string") return { role: "user", content: message };
  const { attachments, ...rest } = fitting(place, message, isObject(message), "a text or a message");
  if (attachments === undefined) return rest;
  fitting(`${place}.attachments`, attachments, Array.isArray(attachments), "a list");
  return { ...rest, attachments: attachments.map((one, index) => attachmentBody(one, `${place}.attachments[${index}]`)) };
}

function attachmentBody(attachment: Attachment, place: string): Schemas["Attachment"] {
  const { bytes } = fitting(place, attachment, isObject(attachment), "an attachment");
  fitting(`${place}.bytes`, bytes, typeof bytes === "string" || ArrayBuffer.isView(bytes), "base64 or a Uint8Array");
  return { ...attachment, bytes: typeof bytes === "string" ? bytes : base64(bytes) };
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let start = 0; start < bytes.length; start += 8192) text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  return btoa(text);
}
