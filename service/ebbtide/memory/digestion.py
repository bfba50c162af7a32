"""Digestion: what a batch becomes (memory model, section 4, steps 3 to 6).

New nodes, a chain of links between neighbours, links to what was in focus before, the focus moved, one more
compression pass owed: all in one `Change`. Segmenting, wording and naming relations are done before, by a
language model; the names arrive here as plain text.

An agent's first batch finds no focus. The nodes it is about to put in focus stand in for it towards the other
nodes of the batch, or the first conversation would be the first to be forgotten.
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
"""Names of the links from an earlier to a later neighbour and back, by the batch's locale."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A processed segment on its way to become a node. `first_key` as in `Node`."""

    content: str
    phrase: str
    keywords: tuple[str, ...]
    created_at_ms: int
    prefix: str = ""
    sources: tuple[Source, ...] = ()
    first_key: bytes = b""


@dataclass(frozen=True, slots=True)
class Partner:
    """Whom a new node is linked with: a node in focus, or a node of the same batch standing in for one.

    `position` counts in the focus, 0 = newest. `index` is the place in the batch, None for an old node.
    """

    position: int
    node_id: NodeId | None = None
    index: int | None = None


def batch_locale(contents: Sequence[str], setting: str) -> Literal["zh", "en"]:
    """The language of a batch's own links: as set, else Chinese where any Han character stands in it."""
    if setting == "auto":
        return "zh" if any(contains_han(content) for content in contents) else "en"
    return "zh" if setting == "zh" else "en"


def partners(focus: Sequence[NodeId], count: int, focus_limit: int) -> list[list[Partner]]:
    """For each of `count` new nodes, whom it is linked with, newest focus first (step 4)."""
    kept = focus[:focus_limit]
    if kept:
        everyone = [Partner(position, node_id=node_id) for position, node_id in enumerate(kept)]
        return [everyone] * count
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
    dice: Random,
) -> Change:
    """The change that a batch makes.

    `relation_names` maps (index of the new node, position of its partner in focus) to a name; what is absent
    is empty. `owed_passes` is what the agent owes so far. `dice` is drawn from under `slots` only.
    """
    parameters = network.parameters
    draft = Draft(network)
    if not memories:
        return draft.change
    trim_focus(draft, parameters.focus_limit)
    old_focus = draft.focus
    ids = _create_nodes(draft, memories, batch, dice)
    names = NEIGHBOUR_NAMES[batch_locale([m.content for m in memories], parameters.locale)]
    links = _neighbour_links(ids, names, parameters.link_initial_strength)
    links += _focus_links(draft, ids, old_focus, relation_names)
    draft.set_focus(moved_focus(old_focus, ids, parameters.focus_limit))
    change = draft.change
    # The links of nodes that leave focus are written as 1.0 already; the new ones come after them, so that
    # a pair linked twice keeps what this batch says.
    change.links = _latest_of_each(change.links + links)
    change.next_node_id = ids[-1] + 1
    change.owed_passes = min(owed_passes + 1, max(owed_passes, parameters.max_owed_passes))
    return change


def _create_nodes(draft: Draft, memories: Sequence[NewMemory], batch: int, dice: Random) -> list[NodeId]:
    parameters = draft.network.parameters
    ids: list[NodeId] = []
    for node_id, memory in enumerate(memories, start=draft.network.next_node_id):
        if parameters.strategy == "slots":
            make_room(draft, parameters, parameters.max_nodes - 1, dice)
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


def make_room(draft: Draft, parameters: AgentParameters, most: int, dice: Random) -> None:
    """Forget nodes, each the least important of a random few, until at most `most` live (5.1, slots).

    Nodes in focus and nodes of the batch in hand are never drawn. Where no other is left the memory goes
    over its limit for the moment; the next batch or pass brings it down.
    """
    if draft.node_count <= most:
        return
    candidates = draft.living(outside_focus=True)
    while draft.node_count > most and candidates:
        drawn = dice.sample(candidates, min(parameters.slot_sample_size, len(candidates)))
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
    """At most one link for each (source, target, relation): the one written last."""
    return list({(link.source, link.target, link.relation): link for link in links}.values())
