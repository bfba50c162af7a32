// The memories and names within two links of a memory, laid out by forces.
import { forceCollide, forceLink, forceManyBody, forceRadial, forceSimulation, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Shown, useLoad } from "../parts/load";
import { pathOf } from "../router";
import { type NodeDetail as Node, readDetails } from "../reading";
import { client } from "../session";
import { visible } from "../text";
import { screens } from "../words/screens";

const MOST_NODES = 300;
const MOST_HOPS = 12;
const IDS_AT_ONCE = 100;
const CHUNK_MS = 8;
const SIZE = 360;
const MARGIN = 26;
const RING = 90;
const LABELS = 24;
const LABEL_HEIGHT = 12;
const LABEL_LENGTH = 14;

interface Dot extends SimulationNodeDatum {
  id: string;
  hops: number;
  isName: boolean;
  phrase: string;
}

interface Line extends SimulationLinkDatum<Dot> {
  source: Dot;
  target: Dot;
  strength: number;
}

interface Graph {
  dots: Dot[];
  lines: Line[];
  isCut: boolean;
}

export default function Neighbourhood({ agent, node }: { agent: string; node: Node }) {
  const s = screens.value.near;
  const graph = useLoad((signal) => readGraph(agent, node, signal), [agent, node]);
  return <Shown of={graph}>{(value) => (value.dots.length === 1 ? <p class="quiet">{s.alone}</p> : <Picture agent={agent} graph={value} />)}</Shown>;
}

interface Found {
  source: string;
  target: string;
  strength: number;
}

function linksOf(node: Node): Found[] {
  return [
    ...node.links_in.map((one) => ({ source: one.source, target: node.id, strength: one.strength })),
    ...node.links_out.map((one) => ({ source: node.id, target: one.target, strength: one.strength })),
  ];
}

async function readGraph(agent: string, node: Node, signal: AbortSignal): Promise<Graph> {
  const first = linksOf(node).sort((a, b) => b.strength - a.strength);
  const near = [...new Set(first.map((one) => other(one, node.id)))];
  const hops = await readDetails(agent, near.slice(0, MOST_HOPS), signal);
  const links = new Map([...first, ...hops.flatMap(linksOf)].map((one) => [`${one.source}>${one.target}`, one]));
  const strongest = [...links.values()].sort((a, b) => b.strength - a.strength);
  const far = [...new Set(strongest.flatMap((one) => [one.source, one.target]))].filter((id) => id !== node.id && !near.includes(id));
  const ids = [node.id, ...near, ...far];
  const kept = ids.slice(0, MOST_NODES);
  const known = await readNodes(agent, kept, signal);
  // The first dots of the order are near the middle, so that the layout needs fewer steps.
  const dots = kept.flatMap((id): Dot[] => {
    const found = known.get(id);
    if (!found) return [];
    return [{ id, hops: id === node.id ? 0 : near.includes(id) ? 1 : 2, isName: found.kind === "entity", phrase: found.phrase || found.content.slice(0, LABEL_LENGTH) }];
  });
  const dotOf = new Map(dots.map((one) => [one.id, one]));
  const lines = strongest.flatMap((one): Line[] => {
    const source = dotOf.get(one.source);
    const target = dotOf.get(one.target);
    return source && target ? [{ source, target, strength: one.strength }] : [];
  });
  return { dots, lines, isCut: ids.length > kept.length };
}

function other(link: Found, id: string): string {
  return link.source === id ? link.target : link.source;
}

async function readNodes(agent: string, ids: readonly string[], signal: AbortSignal) {
  const pages = [];
  for (let begin = 0; begin < ids.length; begin += IDS_AT_ONCE) pages.push(client.value.listNodes(agent, { ids: ids.slice(begin, begin + IDS_AT_ONCE) }, { signal }));
  return new Map((await Promise.all(pages)).flatMap((page) => page.nodes).map((one) => [one.id, one]));
}

// Computes some steps of the layout in each frame, and draws after each.
function useLayout(graph: Graph): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const [middle] = graph.dots;
    if (middle) Object.assign(middle, { fx: 0, fy: 0 });
    const simulation = forceSimulation(graph.dots)
      .force("link", forceLink<Dot, Line>(graph.lines).distance(RING).strength((one) => 0.02 + 0.08 * one.strength))
      .force("charge", forceManyBody<Dot>().strength(-140).distanceMax(2 * RING))
      .force("collide", forceCollide<Dot>(8))
      .force("ring", forceRadial<Dot>((one) => one.hops * RING, 0, 0).strength(0.7))
      .stop();
    let frame = 0;
    const step = () => {
      const begun = performance.now();
      while (simulation.alpha() > simulation.alphaMin() && performance.now() - begun < CHUNK_MS) simulation.tick();
      setTurn((one) => one + 1);
      if (simulation.alpha() > simulation.alphaMin()) frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => {
      cancelAnimationFrame(frame);
      simulation.stop();
    };
  }, [graph]);
  return turn;
}

function Picture({ agent, graph }: { agent: string; graph: Graph }) {
  const s = screens.value.near;
  const turn = useLayout(graph);
  const { dots, lines } = graph;
  const names = dots.filter((one) => one.isName).length;
  const scale = useMemo(() => {
    const far = Math.max(1, ...dots.flatMap((one) => [Math.abs(one.x ?? 0), Math.abs(one.y ?? 0)]));
    return Math.min(1.2, (SIZE / 2 - MARGIN) / far);
  }, [dots, turn]);
  const x = (one: Dot) => (one.x ?? 0) * scale;
  const y = (one: Dot) => (one.y ?? 0) * scale;
  const labels = useMemo(() => labelled(dots, x, y), [dots, turn, scale]);
  const nameOf = (one: Dot) => visible(one.phrase || one.id);
  return (
    <figure class="near">
      <svg viewBox={`${-SIZE / 2} ${-SIZE / 2} ${SIZE} ${SIZE}`} role="group" aria-label={s.picture(dots.length - names, names)}>
        {lines.map((one) => (
          <line
            key={`${one.source.id}>${one.target.id}`} x1={x(one.source)} y1={y(one.source)} x2={x(one.target)} y2={y(one.target)}
            class={one.target.hops === 0 ? "incoming" : one.source.hops === 0 ? "outgoing" : ""} style={{ strokeWidth: 0.5 + (isDirect(one) ? 1.8 : 0.6) * one.strength }}
          />
        ))}
        {dots.map((one) => (
          <a key={one.id} href={pathOf(["a", agent, "m", one.id])} class={`hop-${one.hops}`} aria-label={nameOf(one)}>
            <title>{nameOf(one)}</title>
            <circle class="hit" cx={x(one)} cy={y(one)} r={10} />
            {one.isName
              ? <rect x={x(one) - 4} y={y(one) - 4} width={8} height={8} rx={1} />
              : <circle cx={x(one)} cy={y(one)} r={one.hops === 0 ? 7 : one.hops === 1 ? 5 : 3.5} />}
          </a>
        ))}
        <g aria-hidden="true">
          {[...labels].map(([one, middle]) => <text key={one.id} class={`hop-${one.hops}`} x={middle} y={y(one) - 9} text-anchor="middle">{shortened(nameOf(one))}</text>)}
        </g>
      </svg>
      <figcaption class="quiet small"><i class="stroke incoming" /> {s.incoming} <i class="stroke outgoing" /> {s.outgoing} <i class="square" /> {s.name} {graph.isCut && s.bounded(MOST_NODES)}</figcaption>
    </figure>
  );
}

function isDirect(line: Line): boolean {
  return line.source.hops === 0 || line.target.hops === 0;
}

function shortened(text: string): string {
  const characters = [...text];
  return characters.length > LABEL_LENGTH ? `${characters.slice(0, LABEL_LENGTH - 1).join("")}…` : text;
}

// The middle of each label. Names come first, then what is near; a label that would cover another one is left out.
function labelled(dots: readonly Dot[], x: (one: Dot) => number, y: (one: Dot) => number): ReadonlyMap<Dot, number> {
  const order = [...dots].sort((a, b) => Number(b.hops === 0) - Number(a.hops === 0) || Number(b.isName) - Number(a.isName) || a.hops - b.hops);
  const kept: { dot: Dot; middle: number; half: number }[] = [];
  for (const dot of order) {
    if (kept.length === LABELS) break;
    const half = widthOf(shortened(dot.phrase || dot.id)) / 2;
    const middle = Math.max(half - SIZE / 2 + 2, Math.min(SIZE / 2 - half - 2, x(dot)));
    const isFree = kept.every((other) => Math.abs(middle - other.middle) > half + other.half + 2 || Math.abs(y(dot) - y(other.dot)) > LABEL_HEIGHT);
    if (isFree) kept.push({ dot, middle, half });
  }
  return new Map(kept.map(({ dot, middle }) => [dot, middle]));
}

// In units of the picture, for letters of the size that the style sheet gives them.
function widthOf(text: string): number {
  return [...text].reduce((sum, one) => sum + (one > "\u2e7f" ? 9 : 5.2), 0);
}
