// The links of the chosen memory and of the one under the pointer.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type NodeDetail, numberOf, readDetails } from "../reading";
import type { Chord, Hub } from "../shore/draw";
import { ENTITY, lifeOf, type Lives, type MapPage } from "../shore/life";
import { visible } from "../text";

const MOST_HUBS = 12;
// A pointer that crosses dots reads none of them; one that rests does.
const REST_MS = 120;

/** A link as seen from one of its ends. */
interface Link {
  other: number;
  strength: number;
  isIncoming: boolean;
}

interface Found {
  id: number;
  links: readonly Link[];
  hubs: readonly { name: string; ids: readonly number[] }[];
}

const NOTHING: Found = { id: -1, links: [], hubs: [] };

/**
 * Return the links to draw. Names join memories that are far apart, so those of the chosen memory are drawn too.
 *
 * `chosen` and `hovered` are numbers of nodes that have links, or -1. Links stay until newer ones are read.
 */
export function useLinks(agent: string, chosen: number, hovered: number, lives: Lives, map: MapPage): { chords: Chord[]; hubs: Hub[] } {
  const [ofChosen, setChosen] = useState(NOTHING);
  const [ofHovered, setHovered] = useState(NOTHING);
  const known = useMemo(() => new Map<number, Found>(), [agent, map]);
  useEffect(() => {
    if (chosen < 0) return;
    const stop = new AbortController();
    readLinks(agent, chosen, stop.signal, setChosen).catch(() => undefined);
    return () => stop.abort();
  }, [agent, chosen, map]);
  useEffect(() => {
    if (hovered < 0 || hovered === chosen) return;
    const found = known.get(hovered);
    if (found) return setHovered(found);
    const stop = new AbortController();
    const timer = setTimeout(() => {
      readDetails(agent, [`n${hovered}`], stop.signal).then(
        ([node]) => {
          const read = { id: hovered, links: node ? linksOf(node) : [], hubs: [] };
          known.set(hovered, read);
          setHovered(read);
        },
        () => undefined,
      );
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [agent, hovered, chosen, known]);
  return useMemo(() => {
    const shown = [ofChosen.id === chosen ? ofChosen : NOTHING, ofHovered.id === hovered && hovered !== chosen ? ofHovered : NOTHING];
    const chords = shown.flatMap(({ id, links }) => {
      const from = lifeOf(lives, id);
      return links.map(({ other, strength, isIncoming }) => ({ from, life: lifeOf(lives, other), strength, isIncoming }));
    });
    const hubs = shown.flatMap((one) => one.hubs).map(({ name, ids }) => ({ name, lives: ids.map((id) => lifeOf(lives, id)).filter((life) => life >= 0) }));
    return { chords: chords.filter((one) => one.life >= 0), hubs };
  }, [ofChosen, ofHovered, chosen, hovered, lives]);
}

// First the links of the memory, then those of its names.
async function readLinks(agent: string, id: number, signal: AbortSignal, set: (found: Found) => void): Promise<void> {
  const [node] = await readDetails(agent, [`n${id}`], signal);
  if (!node) return;
  const links = linksOf(node);
  // A name has no place in time, so it is drawn outside the spiral.
  if (node.kind === ENTITY) return set({ id, links: [], hubs: [hubOf(node)] });
  set({ id, links, hubs: [] });
  const names = await readDetails(agent, node.entities.slice(0, MOST_HUBS).map((one) => one.id), signal);
  if (names.length > 0) set({ id, links, hubs: names.map(hubOf) });
}

function hubOf(name: NodeDetail) {
  return { name: visible(name.phrase), ids: [...new Set(linksOf(name).map((link) => link.other))] };
}

function linksOf(node: NodeDetail): Link[] {
  return [
    ...node.links_in.map((link) => ({ other: numberOf(link.source), strength: link.strength, isIncoming: true })),
    ...[...node.links_out, ...node.dangling].map((link) => ({ other: numberOf(link.target), strength: link.strength, isIncoming: false })),
  ];
}
