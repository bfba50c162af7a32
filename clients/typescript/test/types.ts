// Compiled, not run: each line guards one property of the types.
import { Ebbtide, type Event, type operations, type ResponseOf } from "ebbtide-client";

// Every operation of the OpenAPI document is a method.
type Missing = Exclude<keyof operations, keyof Ebbtide>;
const missing: Missing[] = [] satisfies never[];

const memory = new Ebbtide();
// Fields with a default are optional.
await memory.recall("ann");
const { text, memories }: { text: string; memories?: ResponseOf<"recall">["memories"] } = await memory.recall("ann", { query: "Where?" });
// @ts-expect-error a search needs a request
await memory.search("ann");
// @ts-expect-error no signal of this name
await memory.recall("ann", { without: ["luck"] });
// @ts-expect-error no field of this name
await memory.recall("ann", { querry: "Where?" });
// @ts-expect-error no role of this name
await memory.remember("ann", { role: "friend", content: "Hello." });
await memory.updateAgent("ann", { decay_rate: null });
// @ts-expect-error null is not a value here
await memory.openAgent("ann", { decay_rate: null });
await memory.listNodes("ann", { kinds: ["episode"], metadata: { topic: "travel" } });
// @ts-expect-error an option of the client, not of a call
await memory.getNode("ann", "n1", { timeoutMs: 5 });
for await (const node of memory.everyNode("ann", { page_size: 50 })) {
  const id: string = node.id;
  // @ts-expect-error no field of this name
  console.log(id, node.name);
}
const event = (await memory.watchEvents("ann", { follow: false }).next()).value as Event;
// @ts-expect-error no kind of this name
const isWrong: boolean = event.kind === "NodeLost";
const { agent, is_new }: { agent: ResponseOf<"openAgent">; is_new: boolean } = await memory.openAgent("ann", { focus_limit: 2 });

export { agent, is_new, isWrong, memories, missing, text };
