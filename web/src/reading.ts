// Reads whole lists that the daemon sends in pages, and texts of nodes, which are kept.
import type { ResponseOf } from "ebbtide-client";
import type { Forecast, History, MapPage } from "./shore/life";
import { client } from "./session";

type Node = ResponseOf<"listNodes">["nodes"][number];
export type NodeDetail = ResponseOf<"getNode">;

const IDS_AT_ONCE = 100;
/** Most nodes on a page of a map. The daemon lets the browser send the first requests with these sizes before the view does. */
export const MAP_PAGE = 100_000;
const HISTORY_PAGE = 200_000;
/** The states of statements that are shown, the past ones included. */
export const STATEMENT_STATES = ["current", "contested", "planned", "superseded", "ended", "corrected", "retracted"] as const;

/** Return the map of an agent's memory. */
export async function readMap(agent: string, signal: AbortSignal): Promise<MapPage> {
  const pages: MapPage[] = [];
  let token = "";
  do {
    const page = await client.value.getMap(agent, { page_size: MAP_PAGE, ...(token && { page_token: token }) }, { signal });
    pages.push(page);
    token = page.next_page_token;
  } while (token);
  const first = pages[0] as MapPage;
  // Kinds are named by each page.
  const kinds = [...new Set(pages.flatMap((page) => page.kinds))];
  const nodes = joined(pages.map((page) => ({ ...page.nodes, kind: page.nodes.kind.map((kind) => kinds.indexOf(page.kinds[kind] ?? "")) })));
  return { ...first, kinds, nodes };
}

/** Return the history of an agent's memory. */
export async function readHistory(agent: string, signal: AbortSignal): Promise<History> {
  const pages: History[] = [];
  let token = "";
  do {
    const page = await client.value.getHistory(agent, { page_size: HISTORY_PAGE, ...(token && { page_token: token }) }, { signal });
    pages.push(page);
    token = page.next_page_token;
  } while (token);
  const ids: number[] = [];
  const offset: number[] = [];
  for (const { focus } of pages) {
    offset.push(...focus.offset.map((one) => one + ids.length));
    for (const id of focus.id) ids.push(id);
  }
  return {
    ...(pages[0] as History),
    born: joined(pages.map((page) => page.born)),
    shortened: joined(pages.map((page) => page.shortened)),
    forgotten: joined(pages.map((page) => page.forgotten)),
    erased: joined(pages.map((page) => page.erased)),
    focus: { pass_number: pages.flatMap((page) => page.focus.pass_number), offset, id: ids },
  };
}

/** Return what the next passes will shorten and forget if nothing is mentioned again. */
export async function readForecast(agent: string, signal: AbortSignal): Promise<Forecast> {
  return client.value.forecast(agent, {}, { signal });
}

function joined<T extends Record<string, number[]>>(tables: readonly T[]): T {
  if (tables.length === 1) return tables[0] as T;
  const names = Object.keys(tables[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, tables.flatMap((one) => one[name] as number[])])) as T;
}

/** Texts of nodes by number, read once each. */
export class Texts {
  readonly #agent: string;
  readonly #nodes = new Map<number, Node | undefined>();

  constructor(agent: string) {
    this.#agent = agent;
  }

  /** Return a node if it was read and lives. */
  get(id: number): Node | undefined {
    return this.#nodes.get(id);
  }

  /** Read nodes that are not known yet. Returns whether there were any. */
  async read(ids: readonly number[], signal: AbortSignal): Promise<boolean> {
    const missing = ids.filter((id) => !this.#nodes.has(id));
    for (let begin = 0; begin < missing.length; begin += IDS_AT_ONCE) {
      const some = missing.slice(begin, begin + IDS_AT_ONCE);
      const { nodes } = await client.value.listNodes(this.#agent, { ids: some.map((id) => `n${id}`) }, { signal });
      for (const id of some) this.#nodes.set(id, undefined);
      for (const node of nodes) this.#nodes.set(numberOf(node.id), node);
    }
    return missing.length > 0;
  }
}

/** Return nodes with their links, without those that do not live: a memory may be forgotten at any time, which is no error. */
export async function readDetails(agent: string, ids: readonly string[], signal: AbortSignal): Promise<readonly NodeDetail[]> {
  if (ids.length === 0) return [];
  return (await client.value.listNodes(agent, { ids: [...ids], details: true }, { signal })).details ?? [];
}

/** Return the number in the id of a node: 17 for n17. */
export function numberOf(id: string): number {
  return Number(id.slice(1));
}
