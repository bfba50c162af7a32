// Memory for the AI SDK: a middleware that recalls before each call of a model, and remembers each finished turn.
import type { LanguageModelMiddleware } from "ai";
import type { Ebbtide, RequestOf } from "./client.js";

type CallOptions = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];

const HEADING = "What you remember from earlier conversations:\n";
// Limits of the daemon. A long message usually asks at its end.
const MAX_QUERY_CHARS = 2_000;
const MESSAGE_OF_MOST_CHARS = /[^]{1,100000}/gu;
const UNFINISHED = ["tool-calls", "error", "interrupted"];

export interface MemoryOptions {
  client: Ebbtide;
  /** Id of the agent whose memory it is. */
  agent: string;
  conversation_id?: string;
  /** Options of the recall, such as `token_budget`. */
  recall?: Omit<RequestOf<"recall">, "query">;
  /** Text before the memories. */
  heading?: string;
  /** Whether finished turns are remembered. Default true. */
  remembers?: boolean;
  /** How long a recall, or the storing of a turn, may delay the model. Default 3000. */
  timeoutMs?: number;
  /** Receives the errors of the memory, which never fail a call of the model. By default they are warnings. */
  onError?: (error: unknown) => void;
}

/**
 * Return a middleware for `wrapLanguageModel`.
 *
 * What the agent remembers about the last message of the user comes first in the prompt, as a system message. A turn is
 * remembered when the model has finished it: that message, and the text of the response.
 */
export function ebbtideMiddleware(options: MemoryOptions): LanguageModelMiddleware {
  const { client, agent, heading = HEADING, remembers = true, timeoutMs = 3000 } = options;
  const onError = options.onError ?? ((error: unknown) => console.warn(`Ebbtide: ${String(error)}`));

  async function recalled(params: CallOptions): Promise<string> {
    const query = lastWords(params);
    if (query === "") return "";
    try {
      const signals = [AbortSignal.timeout(timeoutMs), ...(params.abortSignal ? [params.abortSignal] : [])];
      const request = { ...options.recall, query: Array.from(query).slice(-MAX_QUERY_CHARS).join("") };
      return (await client.recall(agent, request, { signal: AbortSignal.any(signals) })).text ?? "";
    } catch (error) {
      if (!params.abortSignal?.aborted) onError(error);
      return "";
    }
  }

  async function remember(params: CallOptions, answer: string, finishReason: unknown): Promise<void> {
    const question = lastWords(params);
    if (!remembers || question === "" || UNFINISHED.includes(nameOf(finishReason))) return;
    const messages = [...parts("user", question), ...parts("assistant", answer)];
    const request = options.conversation_id === undefined ? {} : { conversation_id: options.conversation_id };
    try {
      await client.remember(agent, messages, request, { signal: AbortSignal.timeout(timeoutMs) });
    } catch (error) {
      onError(error);
    }
  }

  return {
    async transformParams({ params }) {
      const text = await recalled(params);
      if (text === "") return params;
      return { ...params, prompt: [{ role: "system", content: heading + text }, ...params.prompt] };
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      const text = result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      await remember(params, text, result.finishReason);
      return result;
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      let text = "";
      let finishReason: unknown = "interrupted";
      type Part = typeof stream extends ReadableStream<infer P> ? P : never;
      const listening = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") text += part.delta;
          if (part.type === "finish") finishReason = part.finishReason;
          controller.enqueue(part);
        },
        flush: () => remember(params, text, finishReason),
      });
      return { ...rest, stream: stream.pipeThrough(listening) };
    },
  };
}

/** Return the text of the last message of the user. */
function lastWords(params: CallOptions): string {
  const message = params.prompt.findLast((one) => one.role === "user");
  if (message?.role !== "user") return "";
  return message.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .filter((text) => text !== "")
    .join("\n");
}

function parts<R extends "user" | "assistant">(role: R, text: string): { role: R; content: string }[] {
  return (text.match(MESSAGE_OF_MOST_CHARS) ?? []).map((content) => ({ role, content }));
}

// A text in older versions of the SDK, an object with the name of the SDK and that of the provider in newer ones.
function nameOf(finishReason: unknown): string {
  return typeof finishReason === "string" ? finishReason : String((finishReason as { unified?: string } | undefined)?.unified);
}
