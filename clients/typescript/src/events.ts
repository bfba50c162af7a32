// A parser of server-sent events, as the HTML standard defines them.

/** One event of a stream. */
export interface ServerSentEvent {
  name: string;
  data: string;
}

/** Yield the events in a stream of bytes. An event that the end cuts off is dropped. */
export async function* serverSentEvents(pieces: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent, void, undefined> {
  let name = "";
  let data: string[] = [];
  for await (const line of lines(pieces)) {
    if (line === "") {
      if (data.length > 0) yield { name: name || "message", data: data.join("\n") };
      name = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
}

async function* lines(pieces: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = pieces.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A return at the end of a piece may be the first half of a line break.
      const whole = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
      const found = whole.split(/\r\n|\n|\r/);
      rest = (found.pop() ?? "") + rest.slice(whole.length);
      yield* found;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
