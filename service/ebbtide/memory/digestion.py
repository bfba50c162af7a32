"""Digestion: what a batch becomes (memory model, section 4, steps 3 to 6).

One `Change` contains the new nodes, links between neighbours, links to the previous focus, the new focus, and one more
owed pass. The language model has already segmented the batch and named the relations.

An agent's first batch finds an empty focus. The nodes that it puts into focus then take the place of the focus for the
other nodes of the batch; otherwise the first conversation would be forgotten first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Literal

from ebbtide.changes import Change
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.draft import Draft
from ebbtide.memory.focus import moved_focus, trim_focus
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Link, Node, Source

NEIGHBOUR_NAMES = {"zh": ("下文", "上文"), "en": ("next", "previous")}
"""Names of the links to the next and to the previous neighbour, by locale."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A processed segment that becomes a node. `first_key` as in `Node`."""

    content: str
    phrase: str
    keywords: tuple[str, ...]
    created_at_ms: int
    prefix: str = ""
    sources: tuple[Source, ...] = ()
    first_key: bytes = b""


@dataclass(frozen=True, slots=True)
class Partner:
    """A node with which a new node is linked: one in focus, or one of the same batch in its place.

    `position` counts within the focus, 0 = newest. `index` is the position in the batch; None for an existing node.
    """

    position: int
    node_id: NodeId | None = None
    index: int | None = None


def batch_locale(contents: Sequence[str], setting: str) -> Literal["zh", "en"]:
    """Return the language of a batch's neighbour links: the setting, or Chinese if any Han character occurs."""
    if setting == "auto":
        return "zh" if any(contains_han(content) for content in contents) else "en"
    return "zh" if setting == "zh" else "en"


def partners(focus: Sequence[NodeId], count: int, focus_limit: int) -> list[list[Partner]]:
    """Return the partners of each of `count` new nodes, newest focus first (step 4)."""
    kept = focus[:focus_limit]
    if kept:
        all_partners = [Partner(position, node_id=node_id) for position, node_id in enumerate(kept)]
        return [all_partners] * count
    first_in_focus = max(0, count - focus_limit)
    stand_ins = [
        Partner(position, index=index)
        for position, index in enumerate(range(count - 1, first_in_focus - 1, -1))
    ]
    return [stand_ins if index < first_in_focus else [] for index in range(count)]


def digest(
    network: Network,
    memories: Sequence[NewMemory],
    relation_names: Mapping[tuple[int, int], str],
    *,
    batch: int,
    owed_passes: int,
    rng: Random,
) -> Change:
    """Return the change for a batch.

    `relation_names` maps (index of the new node, position of its partner in focus) to a name, by default empty.
    `owed_passes` is the current number. `rng` is used only under `slots`.
    """
    parameters = network.parameters
    draft = Draft(network)
    if not memories:
        return draft.change
    trim_focus(draft, parameters.focus_limit)
    old_focus = draft.focus
    ids = _create_nodes(draft, memories, batch, rng)
    names = NEIGHBOUR_NAMES[batch_locale([m.content for m in memories], parameters.locale)]
    links = _neighbour_links(ids, names, parameters.link_initial_strength)
    links += _focus_links(draft, ids, old_focus, relation_names)
    draft.set_focus(moved_focus(old_focus, ids, parameters.focus_limit))
    change = draft.change
    # Nodes that leave focus have their links at 1.0 already. The new links follow, so that they win for a pair that is
    # linked twice.
    change.links = _latest_of_each(change.links + links)
    change.next_node_id = ids[-1] + 1
    change.owed_passes = min(owed_passes + 1, max(owed_passes, parameters.max_owed_passes))
    return change


def _create_nodes(draft: Draft, memories: Sequence[NewMemory], batch: int, rng: Random) -> list[NodeId]:
    parameters = draft.network.parameters
    ids: list[NodeId] = []
    for node_id, memory in enumerate(memories, start=draft.network.next_node_id):
        if parameters.strategy == "slots":
            make_room(draft, parameters, parameters.max_nodes - 1, rng)
        draft.change.nodes.append(
            Node(
                id=node_id,
                content=memory.content,
                phrase=memory.phrase,
                keywords=memory.keywords,
                created_at_ms=memory.created_at_ms,
                original_length=len(memory.content),
                prefix=memory.prefix,
                sources=memory.sources,
                first_key=memory.first_key,
                batch=batch,
            )
        )
        ids.append(node_id)
    return ids


def make_room(draft: Draft, parameters: AgentParameters, most: int, rng: Random) -> None:
    """Forget nodes until at most `most` live, each the least important of a random sample (5.1, slots).

    Nodes in focus and new nodes are never drawn. If no others are left, the limit is exceeded until the next batch or
    pass.
    """
    if draft.node_count <= most:
        return
    candidates = draft.living(outside_focus=True)
    while draft.node_count > most and candidates:
        drawn = rng.sample(candidates, min(parameters.slot_sample_size, len(candidates)))
        victim = min(drawn, key=lambda n: (draft.importance(n), n))
        draft.forget(victim)
        candidates.remove(victim)


def _neighbour_links(ids: Sequence[NodeId], names: tuple[str, str], strength: float) -> list[Link]:
    links = []
    for earlier, later in pairwise(ids):
        links.append(Link(earlier, later, names[0], strength, 0))
        links.append(Link(later, earlier, names[1], strength, 0))
    return links


def _focus_links(
    draft: Draft,
    ids: Sequence[NodeId],
    focus: Sequence[NodeId],
    relation_names: Mapping[tuple[int, int], str],
) -> list[Link]:
    links = []
    anchors = {node_id: draft.scan_count(node_id) for node_id in focus}
    for index, new_partners in enumerate(partners(focus, len(ids), draft.network.parameters.focus_limit)):
        for partner in new_partners:
            name = relation_names.get((index, partner.position), "")
            if partner.index is not None:
                other, anchor = ids[partner.index], 0
            else:
                assert partner.node_id is not None
                other, anchor = partner.node_id, anchors[partner.node_id]
            links.append(Link(ids[index], other, name, 1.0, 0))
            links.append(Link(other, ids[index], name, 1.0, anchor))
    return links


def _latest_of_each(links: Sequence[Link]) -> list[Link]:
    """Return at most one link for each (source, target, relation): the last one."""
    return list({(link.source, link.target, link.relation): link for link in links}.values())
