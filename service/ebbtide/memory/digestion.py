"""Digestion: what a batch becomes (memory model, section 4, steps 3 to 6).

One `Change` contains the new memories and entities, their links, the new focus, the pins, and one more owed pass. The
language model has already segmented the batch, and may have named relations.

An agent's first batch finds an empty focus. The memories that it puts into focus then take the place of the focus for
the other memories of the batch; otherwise the first conversation would be forgotten first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from types import MappingProxyType

import msgspec

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key, names_of
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.draft import Draft
from ebbtide.memory.focus import moved_focus, trim_focus
from ebbtide.memory.naming import (
    NEIGHBOUR_NAMES,
    Locale,
    accepted_link_name,
    entity_link_name,
    memory_link_names,
)
from ebbtide.memory.network import Network
from ebbtide.memory.pin_requests import asks_to_remember
from ebbtide.parameters import AgentParameters
from ebbtide.records import EPISODE, Entity, Link, Node, Pin, Source


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A processed segment that becomes a memory. `first_key` as in `Node`."""

    content: str
    phrase: str
    keywords: tuple[str, ...]
    created_at_ms: int
    label: str = ""
    speaker: str = ""
    sources: tuple[Source, ...] = ()
    first_key: bytes = b""
    is_from_user: bool = False
    """Whether a user said it, who may ask to remember it."""
    kind: str = EPISODE
    """`episode`, or a kind of the caller's own."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A segment that becomes no memory. Existing entities among its keywords are mentioned."""

    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnLink:
    """A link that the caller gives a new memory, both ways."""

    other: NodeId
    relation: str
    strength: float


DigestItem = NewMemory | Mention
"""A segment of a batch."""


@dataclass(frozen=True, slots=True)
class Partner:
    """A memory with which a new memory is linked: one in focus, or one of the same batch in its place.

    `position` counts within the focus, 0 = newest. `index` is the position in the batch; None for an existing memory.
    """

    position: int
    node_id: NodeId | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class LinkNames:
    """The names of links that a language model chose. Links without an allowed one are named by rules."""

    memories: Mapping[tuple[int, int], str] = field(default_factory=lambda: MappingProxyType({}))
    """By (index of the new memory, position of its partner in focus)."""
    entities: Mapping[tuple[int, str], str] = field(default_factory=lambda: MappingProxyType({}))
    """By (index of the new memory, key of the entity)."""


def batch_locale(contents: Sequence[str], setting: str) -> Locale:
    """Return the language of a batch's links: the setting, or Chinese if any Han character occurs."""
    if setting == "auto":
        return "zh" if any(contains_han(content) for content in contents) else "en"
    return "zh" if setting == "zh" else "en"


def partners(focus: Sequence[NodeId], count: int, focus_limit: int) -> list[list[Partner]]:
    """Return the partners of each of `count` new memories, newest focus first (step 4)."""
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


def named_entities(keywords: Sequence[str], parameters: AgentParameters) -> dict[str, str]:
    """Return the names of the entities of a memory with these keywords, by key, in order (step 3b)."""
    return _by_key(_names(keywords, parameters))


def _names(keywords: Sequence[str], parameters: AgentParameters) -> list[tuple[str, str]]:
    is_off = parameters.focus_policy == "nodes"
    return names_of(keywords, 0 if is_off else parameters.entities_per_memory)


def _by_key(names: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, name in names:
        found.setdefault(key, name)
    return found


def passes_due(tokens: int, every: int) -> tuple[int, int]:
    """Return how many passes a digested batch owes, and the tokens that are left for the next; 0: one a batch."""
    return divmod(tokens, every) if every else (1, 0)


def digest(
    network: Network,
    items: Sequence[DigestItem],
    names: LinkNames,
    *,
    batch: int,
    owed_passes: int,
    tokens: int = 0,
    rng: Random,
    own_links: Sequence[OwnLink] = (),
) -> Change:
    """Return the change for a batch of segments in text order.

    `owed_passes` is the current number. `tokens` are those of the new memories and of earlier ones for which no pass is
    owed yet; they count under `pass_every_tokens`. `rng` is used only under `slots`. A batch of one memory may have
    links of its own instead of those with the focus, which it then does not enter: a memory in focus has no strengths
    of its own.
    """
    parameters = network.parameters
    if not items:
        return Change()
    memories = [one for one in items if isinstance(one, NewMemory)]
    builder = _Builder(Draft(network), memories, names)
    if memories:
        trim_focus(builder.draft)
    old_focus = builder.draft.focus
    builder.create_memories(batch, rng, {one.other for one in own_links})
    builder.link_neighbours()
    builder.link_entities(items)
    if own_links:
        builder.link_as_given(own_links)
    else:
        builder.link_to_focus(old_focus)
    builder.pin()
    draft = builder.draft
    draft.change.links += builder.links
    if memories and not own_links:
        draft.set_focus(moved_focus(old_focus, builder.ids, parameters.focus_limit))
    if parameters.focus_policy == "both":
        draft.mention(builder.mentioned)
    change = draft.change
    # The new links follow again, so that they win for a pair that is linked twice.
    change.links = _latest_of_each(change.links + builder.links)
    if memories:
        change.next_node_id = builder.next_id
        passes, change.uncounted_tokens = passes_due(tokens, parameters.pass_every_tokens)
        change.owed_passes = min(owed_passes + passes, max(owed_passes, parameters.max_owed_passes))
    return change


def make_room(
    draft: Draft, parameters: AgentParameters, most: int, rng: Random, kept: Collection[NodeId] = ()
) -> None:
    """Forget memories until at most `most` live, each the least important of a random sample (5.2, slots).

    Memories in focus, new ones, pinned ones, kept statements and those in `kept` are never drawn. If no others are
    left, the limit is exceeded until the next batch or pass.
    """
    most += draft.network.kept_count
    if draft.node_count <= most:
        return
    candidates = draft.candidates(with_pinned=False)
    if kept:
        candidates = [one for one in candidates if one not in kept]
    while draft.node_count > most and candidates:
        drawn = rng.sample(candidates, min(parameters.slot_sample_size, len(candidates)))
        victim = min(drawn, key=lambda n: (draft.importance(n), n))
        draft.forget(victim)
        candidates.remove(victim)


@dataclass(slots=True)
class _Builder:
    """The new memories, entities and links of one batch."""

    draft: Draft
    memories: Sequence[NewMemory]
    names: LinkNames
    locale: Locale = field(init=False)
    """The language of the batch."""
    ids: list[NodeId] = field(default_factory=list)
    next_id: NodeId = 0
    links: list[Link] = field(default_factory=list)
    entities_of: list[dict[str, NodeId]] = field(default_factory=list)
    """The entities of each new memory, by key."""
    mentioned: list[NodeId] = field(default_factory=list)
    """The entities that the batch mentions, in order of their last mention."""
    _in_focus: dict[NodeId, tuple[str, set[NodeId]]] = field(default_factory=dict)
    """The key of the first keyword of each memory in focus, and its entities."""

    def __post_init__(self) -> None:
        """Find the language of the batch."""
        setting = self.draft.network.parameters.locale
        self.locale = batch_locale([memory.content for memory in self.memories], setting)

    def create_memories(self, batch: int, rng: Random, kept: Collection[NodeId] = ()) -> None:
        """Create the memories, under `slots` in the places of others that are not in `kept`."""
        network = self.draft.network
        parameters = network.parameters
        for node_id, memory in enumerate(self.memories, start=network.next_node_id):
            if parameters.strategy == "slots":
                make_room(self.draft, parameters, parameters.max_nodes - 1, rng, kept)
            self.draft.change.nodes.append(
                Node(
                    id=node_id,
                    content=memory.content,
                    phrase=memory.phrase,
                    keywords=memory.keywords,
                    created_at_ms=memory.created_at_ms,
                    original_length=len(memory.content),
                    speaker=memory.speaker,
                    label=memory.label,
                    sources=memory.sources,
                    first_key=memory.first_key,
                    batch=batch,
                    kind=memory.kind,
                )
            )
            self.ids.append(node_id)
        self.next_id = network.next_node_id + len(self.ids)

    def link_neighbours(self) -> None:
        """Link the memories that follow each other, both ways."""
        strength = self.draft.network.parameters.link_initial_strength
        onward, back = NEIGHBOUR_NAMES[self.locale]
        for earlier, later in pairwise(self.ids):
            self.links.append(Link(earlier, later, onward, strength, 0))
            self.links.append(Link(later, earlier, back, strength, 0))

    # --- entities ----------------------------------------------------------------------------------

    def link_entities(self, items: Sequence[DigestItem]) -> None:
        """Find or create the entities of each memory and link them both ways, and note what the batch mentions."""
        parameters = self.draft.network.parameters
        mentioned: dict[NodeId, None] = {}
        created: dict[str, NodeId] = {}
        for one in items:
            names = _names(one.keywords, parameters)
            named = _by_key(names)
            if isinstance(one, NewMemory):
                found = {key: self._entity_id(key, name, created) for key, name in named.items()}
                self._link_with_entities(len(self.entities_of), named, found)
                self.entities_of.append(found)
            else:
                known = {key: self._known_entity(key, created) for key in named}
                found = {key: entity_id for key, entity_id in known.items() if entity_id is not None}
            for entity_id in (found[key] for key, _ in names if key in found):
                mentioned.pop(entity_id, None)
                mentioned[entity_id] = None
        self.mentioned = list(mentioned)

    def _known_entity(self, key: str, created: Mapping[str, NodeId]) -> NodeId | None:
        return self.draft.network.entity_of_key.get(key) or created.get(key)

    def _entity_id(self, key: str, name: str, created: dict[str, NodeId]) -> NodeId:
        known = self._known_entity(key, created)
        if known is None:
            known, self.next_id = self.next_id, self.next_id + 1
            created[key] = known
            named_by = self.ids[len(self.entities_of)]
            self.draft.change.entities[known] = Entity(known, name, key, named_by)
        return known

    def _link_with_entities(self, index: int, named: Mapping[str, str], found: Mapping[str, NodeId]) -> None:
        memory, node_id = self.memories[index], self.ids[index]
        first, locale = self._first_key(index), self.locale
        for key, entity_id in found.items():
            answer = self.names.entities.get((index, key), "")
            name = accepted_link_name(answer, locale) if answer else ""
            if not name:
                name = entity_link_name(memory.content, named[key], is_first=key == first, locale=locale)
            self.links.append(Link(node_id, entity_id, name, 1.0, 0))
            self.links.append(Link(entity_id, node_id, name, 1.0, self.draft.scan_count(entity_id)))

    # --- focus -------------------------------------------------------------------------------------

    def link_to_focus(self, focus: Sequence[NodeId]) -> None:
        """Link each new memory with each memory in focus, both ways."""
        draft, locale = self.draft, self.locale
        limit = draft.network.parameters.focus_limit
        anchors = {node_id: draft.scan_count(node_id) for node_id in focus}
        for index, new_partners in enumerate(partners(focus, len(self.ids), limit)):
            new_id = self.ids[index]
            for partner in new_partners:
                if partner.index is not None:
                    other, anchor = self.ids[partner.index], 0
                else:
                    assert partner.node_id is not None
                    other, anchor = partner.node_id, anchors[partner.node_id]
                answer = self.names.memories.get((index, partner.position), "")
                name = accepted_link_name(answer, locale) if answer else ""
                onward, back = (name, name) if name else self._rule_names(index, partner, locale)
                earlier_is_new = new_id < other
                self.links.append(Link(new_id, other, onward if earlier_is_new else back, 1.0, 0))
                self.links.append(Link(other, new_id, back if earlier_is_new else onward, 1.0, anchor))

    def link_as_given(self, links: Sequence[OwnLink]) -> None:
        """Link the only new memory with the nodes that the caller names, both ways."""
        (new_id,) = self.ids
        for one in links:
            anchor = self.draft.scan_count(one.other)
            self.links.append(Link(new_id, one.other, one.relation, one.strength, 0))
            self.links.append(Link(one.other, new_id, one.relation, one.strength, anchor))

    def _rule_names(self, index: int, partner: Partner, locale: Locale) -> tuple[str, str]:
        own = self.entities_of[index]
        if not own:
            return memory_link_names((), (), locale)
        common: Collection[str]
        if partner.index is not None:
            first_key, common = (
                self._first_key(partner.index),
                own.keys() & self.entities_of[partner.index].keys(),
            )
        else:
            assert partner.node_id is not None
            if partner.node_id not in self._in_focus:
                network = self.draft.network
                slot = network.slot_of(partner.node_id)
                first_key = entity_key(network.texts.first_keyword(slot))
                self._in_focus[partner.node_id] = first_key, network.entities_of(slot)
            first_key, joined = self._in_focus[partner.node_id]
            if joined.isdisjoint(own.values()):
                return memory_link_names((), (), locale)
            common = {key for key, entity_id in own.items() if entity_id in joined}
        first_keys = {first_key, self._first_key(index)} if common else ()
        return memory_link_names(common, first_keys, locale)

    def _first_key(self, index: int) -> str:
        keywords = self.memories[index].keywords
        return entity_key(keywords[0]) if keywords else ""

    # --- pins --------------------------------------------------------------------------------------

    def pin(self) -> None:
        """Pin the memories in which a user asks for it; at the limit the oldest of these pins ends (step 3c)."""
        parameters, nodes = self.draft.network.parameters, self.draft.change.nodes
        if not parameters.pin_on_request:
            return
        asking = [
            index
            for index, memory in enumerate(self.memories)
            if memory.is_from_user and asks_to_remember(memory.content)
        ]
        if not asking:
            return
        pinned = self.draft.network.pinned()
        for index in asking:
            excess = max(0, len(pinned) + 1 - parameters.max_pinned)
            oldest = [one for one in pinned if one[1] is Pin.BY_REQUEST][:excess]
            if len(oldest) < excess:
                return
            for one in oldest:
                pinned.remove(one)
                self._unpin(one[0])
            nodes[index] = msgspec.structs.replace(nodes[index], pinned=Pin.BY_REQUEST.value)
            pinned.append((nodes[index].id, Pin.BY_REQUEST))

    def _unpin(self, node_id: NodeId) -> None:
        if node_id in self.ids:
            index = self.ids.index(node_id)
            nodes = self.draft.change.nodes
            nodes[index] = msgspec.structs.replace(nodes[index], pinned=Pin.NONE.value)
        else:
            self.draft.unpin(node_id)


def _latest_of_each(links: Sequence[Link]) -> list[Link]:
    """Return at most one link for each (source, target, relation): the last one."""
    return list({(link.source, link.target, link.relation): link for link in links}.values())
