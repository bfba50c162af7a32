"""The network of one agent: memories, entities, links, importance, decay. Pure: no clock, no randomness, no disk.

**Importance protects a memory.** It is the sum of the strengths of the live links that point *at* a node (memory model,
section 2). Outgoing links do not help a node. At importance 1 and above, a memory is kept whole. Below 1 it keeps that
share of its original length. At 0 it is forgotten.

**Links decay** (section 3): each scan of its *source* multiplies a link by `decay_rate`. The strength is not rewritten;
a link stores the strength it was written with and the source's scan count at that moment (its anchor), and

    strength_now = strength_written * decay_rate ** (scan_count(source) - anchor)

**A held link counts 1.0.** Held are all links of a memory in focus; of an entity in focus those to its newest living
memories; and every link between a pinned memory and an entity.

**Passes skip a kept statement**, one that is true in a lasting slot. Links that point at it keep the strength with
which they were written, and its own links do not count for the importance of entities. Otherwise a fact that never
decays would keep everything about its subject alive.

**Forgetting leaves a trace.** A forgotten memory loses its outgoing links. Links that point at it stay in their sources
and dangle: they do not count for importance or search, but `dangling` returns them. Deleting leaves no trace.

**Arrays.** A node has a slot, its index in parallel arrays (`Columns`), ascending with ids. A forgotten node keeps its
slot while links may point at it. Links are rows of a `LinkTable`, whose column `now` contains current strengths; it is
updated whenever scan counts, focus, pins or links change, so that a recall computes none. Texts are in `FoldedTexts`;
when an agent opens they are not read, because most requests do not need them.

A `Network` is derived from the store when an agent opens, and only `apply` changes it, after the commit. A `Draft`
represents a change in preparation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from typing import NamedTuple

import msgspec
import numpy as np

from ebbtide.changes import Change
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, Columns, Scratch, places_in
from ebbtide.memory.link_table import LinkTable
from ebbtide.memory.strength import DecayTable, round_strength
from ebbtide.memory.texts import FoldedTexts, piece_of
from ebbtide.parameters import AgentParameters
from ebbtide.records import EPISODE, Entity, Link, Node, NodeText, Pin, ScanState
from ebbtide.statements import STATEMENT_KINDS

MAX_KINDS = 30_000
"""Kinds of memories that a query distinguishes."""

MIN_DEAD = 1024
"""Fewer forgotten slots than this are not worth dropping."""

ENTITY_BYTES = 500
"""Memory per entity beyond the arrays, approximately."""


TextReader = Callable[[Callable[[Iterable[Node | NodeText]], FoldedTexts]], FoldedTexts]
"""Calls a function with all memories that the network contains, by ascending id, and returns its result.

The memories are those of the last commit. So the network must not call it between a commit and `apply`.
"""


class NodeState(NamedTuple):
    """A node of the network, without its text. Lengths are in code points."""

    original_length: int
    content_length: int
    scan: ScanState


class LinkState(NamedTuple):
    """A link as written, and its current strength."""

    link: Link
    strength: float


class Network:
    """Nodes, links and focus of one agent."""

    def __init__(self, parameters: AgentParameters) -> None:
        self._parameters = parameters
        self.decay = DecayTable(parameters.decay_rate)
        self.slots = Columns(
            id=np.int64,
            alive=np.bool_,
            original_length=np.int32,
            content_length=np.int32,
            scan_count=np.int32,
            last_pass=np.int32,
            has_han=np.bool_,
            dangling_count=np.int32,
            is_entity=np.bool_,
            is_statement=np.bool_,
            is_kept=np.bool_,
            is_pinned=np.bool_,
            by_request=np.bool_,
            created_at_ms=np.int64,
            speaker=np.int32,
            kind=np.int16,
        )
        self.revision = 0
        """Changes with every change of the network or its parameters."""
        self.names_revision = 0
        """Changes if an entity is added, removed or renamed."""
        self.links = LinkTable()
        self._texts: FoldedTexts | None = FoldedTexts()
        """None until they are needed, after an agent was opened."""
        self._read_texts: TextReader | None = None
        self.keys = FoldedTexts()
        """The keys of entities, for search."""
        self.entities: dict[NodeId, Entity] = {}
        self.entity_of_key: dict[str, NodeId] = {}
        self.focus: tuple[NodeId, ...] = ()
        """The memories in focus, newest first."""
        self.entity_focus: tuple[NodeId, ...] = ()
        """The entities in focus, newest first."""
        self.entity_memories = parameters.entity_memories
        """The current parameter: a new value takes effect at the next pass."""
        self.next_node_id: NodeId = 1
        self.node_count = 0
        """Living memories."""
        self.link_count = 0
        self.dead_kept = 0
        """Forgotten slots that stayed at the last clean-up because links pointed at them."""
        self.relations: list[str] = []
        self._relation_numbers: dict[str, int] = {}
        self.speakers: list[str] = [""]
        self._speaker_numbers: dict[str, int] = {"": 0}
        self.kinds: list[str] = [EPISODE]
        self._kind_numbers: dict[str, int] = {EPISODE: 0}
        self._scratch: Scratch | None = None

    def without_texts(self) -> Network:
        """Return a copy that can be changed by itself, without the texts of memories: passes do not need them."""
        copied = copy(self)
        copied._texts = copied._read_texts = copied._scratch = None
        copied.decay = DecayTable(self._parameters.decay_rate)
        copied.slots, copied.links, copied.keys = deepcopy(self.slots), self.links.copy(), deepcopy(self.keys)
        copied.entities, copied.entity_of_key = copy(self.entities), copy(self.entity_of_key)
        copied.relations, copied._relation_numbers = copy(self.relations), copy(self._relation_numbers)
        copied.speakers, copied._speaker_numbers = copy(self.speakers), copy(self._speaker_numbers)
        copied.kinds, copied._kind_numbers = copy(self.kinds), copy(self._kind_numbers)
        return copied

    # --- slots and names ---------------------------------------------------------------------------

    def slot_of(self, node_id: NodeId) -> int:
        """Return the slot of a node, living or forgotten; -1 if it has none."""
        ids = self.slots["id"]
        count = len(ids)
        if count and 0 <= (guess := node_id - int(ids[0])) < count and ids[guess] == node_id:
            return guess  # nothing was dropped between the first node and this one
        slot = int(np.searchsorted(ids, node_id))
        return slot if slot < count and ids[slot] == node_id else -1

    def _slots_of(self, node_ids: Array) -> tuple[Array, Array]:
        """Return the slots of many nodes, and which of them have one."""
        return places_in(self.slots["id"], node_ids)

    def slots_of(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return the slots of nodes that all have one."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        assert bool(known.all()), "the node has a slot"
        return slots

    def relation_number(self, name: str) -> int:
        """Return the number of a relation name, assigning one if necessary."""
        number = self._relation_numbers.setdefault(name, len(self.relations))
        if number == len(self.relations):
            self.relations.append(name)
        return number

    def speaker_number(self, name: str) -> int:
        """Return the number of a speaker, assigning one if necessary."""
        number = self._speaker_numbers.setdefault(name, len(self.speakers))
        if number == len(self.speakers):
            self.speakers.append(name)
        return number

    def kind_number(self, kind: str) -> int:
        """Return the number of a kind of memories, assigning one if necessary. Those beyond the last share it."""
        number = self._kind_numbers.setdefault(kind, min(len(self.kinds), MAX_KINDS))
        if number == len(self.kinds):
            self.kinds.append(kind)
        return number

    def scratch(self) -> Scratch:
        """Return zeroed arrays by slot. The caller zeroes them again, or calls `spoil_scratch`."""
        if self._scratch is None or len(self._scratch.label) < self.slots.count:
            self._scratch = Scratch.of(self.slots.capacity)
        return self._scratch

    def spoil_scratch(self) -> None:
        """Discard the scratch arrays, because they were not zeroed."""
        self._scratch = None

    @property
    def resident_bytes(self) -> int:
        """Size of the arrays in bytes."""
        scratch = 0 if self._scratch is None else 37 * len(self._scratch.label)
        texts = self.keys.nbytes + ENTITY_BYTES * len(self.entities)
        texts += 0 if self._texts is None else self._texts.nbytes
        return self.slots.nbytes + self.links.nbytes + texts + scratch

    # --- texts -------------------------------------------------------------------------------------

    def read_texts_with(self, read: TextReader) -> None:
        """Read the texts with `read` when they are first needed."""
        self._texts, self._read_texts = None, read

    @property
    def texts(self) -> FoldedTexts:
        """The casefolded texts of the memories. The first use may read the store."""
        if self._texts is None:
            assert self._read_texts is not None, "texts are present, or can be read"
            self._texts = self._read_texts(self._folded)
        return self._texts

    def _folded(self, nodes: Iterable[Node | NodeText]) -> FoldedTexts:
        ids, starts, buffer, texts = array("q"), array("q"), bytearray(), FoldedTexts()
        for node in nodes:
            ids.append(node.id)
            starts.append(len(buffer))
            buffer += piece_of(node.content, node.keywords)
        slots = self.slots_of(np.frombuffer(ids, dtype=np.int64))
        assert self.slots["alive"][slots].all(), "network and store contain the same nodes"
        texts.load(buffer, slots, np.array(starts, dtype=np.int64), self.slots.count)
        return texts

    # --- queries -----------------------------------------------------------------------------------

    @property
    def parameters(self) -> AgentParameters:
        """The agent's parameters. Before a new `decay_rate`, links must be `reanchored`."""
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: AgentParameters) -> None:
        """Set the parameters."""
        self.revision += 1
        before, self._parameters = self._parameters, parameters
        if parameters.decay_rate != before.decay_rate:
            self.decay = DecayTable(parameters.decay_rate)
            self._refresh(np.arange(self.links.rows.count))

    def __contains__(self, node_id: NodeId) -> bool:
        slot = self.slot_of(node_id)
        return slot >= 0 and bool(self.slots["alive"][slot])

    def are_alive(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return which of these nodes live."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        alive: Array = known.copy()
        alive[known] = self.slots["alive"][slots[known]]
        return alive

    def is_statement(self, node_id: NodeId) -> bool:
        """Whether the node is a living statement."""
        slot = self.slot_of(node_id)
        return slot >= 0 and bool(self.slots["alive"][slot] & self.slots["is_statement"][slot])

    def are_memories(self, slots: Array) -> Array:
        """Return which slots have living memories: neither statements, which no focus holds, nor what is forgotten."""
        found: Array = self.slots["alive"][slots] & ~self.slots["is_statement"][slots]
        return found

    def are_of_kinds(self, node_ids: Array, kinds: Collection[str]) -> Array:
        """Return which of these nodes live and are of one of the kinds."""
        numbers = [number for kind, number in self._kind_numbers.items() if kind in kinds]
        chosen = self.are_alive(node_ids)
        slots, known = self._slots_of(node_ids)
        chosen[known] &= np.isin(self.slots["kind"][slots[known]], numbers)
        return chosen

    def kept_shares(self, node_ids: Array) -> Array:
        """Return the share of the original length that each node still has, from 0 (forgotten or unknown) to 1."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        shares = np.zeros(len(node_ids))
        slots = slots[known]
        original = np.maximum(self.slots["original_length"][slots], 1)
        shares[known] = self.slots["alive"][slots] * np.minimum(
            self.slots["content_length"][slots] / original, 1
        )
        return shares

    def node_ids(self, start: NodeId = 0, *, with_entities: bool = False) -> list[NodeId]:
        """Return the living memories from `start` on, ascending; and the entities if requested."""
        first = int(np.searchsorted(self.slots["id"], start))
        chosen = self.slots["alive"][first:].copy()
        if not with_entities:
            chosen &= ~self.slots["is_entity"][first:]
        found: list[int] = self.slots["id"][first:][chosen].tolist()
        return found

    def node(self, node_id: NodeId) -> NodeState:
        """Return what is known of a living node."""
        assert node_id in self, "the node lives"
        slot, slots = self.slot_of(node_id), self.slots
        scan = ScanState(
            int(slots["scan_count"][slot]), int(slots["last_pass"][slot]), bool(slots["is_kept"][slot])
        )
        return NodeState(int(slots["original_length"][slot]), int(slots["content_length"][slot]), scan)

    def scan_count(self, node_id: NodeId) -> int:
        """Return how often a living node was scanned."""
        return int(self.slots["scan_count"][self.slot_of(node_id)])

    def focus_slots(self) -> Array:
        """Return the slots of the memories in focus, newest first."""
        return self.slots_of(self.focus)

    def pinned(self) -> list[tuple[NodeId, Pin]]:
        """Return the pinned memories, oldest first."""
        slots = np.flatnonzero(self.slots["is_pinned"] & self.slots["alive"])
        kinds = [Pin.BY_REQUEST if by else Pin.BY_HAND for by in self.slots["by_request"][slots].tolist()]
        return list(zip(self.slots["id"][slots].tolist(), kinds, strict=True))

    def keeping(self, statements: Iterable[NodeId]) -> Change:
        """Return the change after which exactly these statements are kept, as far as they live.

        No pass visits or forgets them, and `max_nodes` does not count them. Links that point at a statement that is no
        longer kept decay from now on.
        """
        table, slots = self.links.rows, self.slots
        wanted = np.zeros(slots.count, dtype=np.bool_)
        wanted[[slot for slot in map(self.slot_of, statements) if slot >= 0]] = True
        wanted &= slots["alive"]
        change = Change()
        changed = np.flatnonzero((wanted != slots["is_kept"]) & slots["alive"])
        change.kept = dict(zip(slots["id"][changed].tolist(), wanted[changed].tolist(), strict=True))
        for slot in changed[~wanted[changed]].tolist():
            rows = self.rows_to(slot)
            rows = rows[slots["alive"][table["source"][rows]]]
            counts = slots["scan_count"][table["source"][rows]].tolist()
            change.links += [
                Link(link.source, link.target, link.relation, link.strength, count)
                for link, count in zip(self.as_links(rows), counts, strict=True)
            ]
        return change

    def supports_importance(self, rows: Array) -> Array:
        """Return which links count for the importance of their targets: not those of kept statements to entities."""
        table = self.links.rows
        counts: Array = ~(
            self.slots["is_kept"][table["source"][rows]] & self.slots["is_entity"][table["target"][rows]]
        )
        return counts

    def have_kept_statements(self) -> Array:
        """Return by slot which nodes a link joins with a kept statement, either way. Such entities are not deleted."""
        table, kept = self.links.rows, self.slots["is_kept"]
        have = np.zeros(self.slots.count, dtype=np.bool_)
        slots = np.flatnonzero(kept)
        if len(slots):
            rows = self.rows_from_each(slots)
            have[table["target"][rows]] = True
            member = self.scratch().member
            member[slots] = True
            rows = self.links.present(self.links.of_targets(slots, member[: self.slots.count]))
            member[slots] = False
            have[table["source"][rows]] = True
        return have

    @property
    def kept_count(self) -> int:
        """Number of living statements that are kept."""
        return int(np.count_nonzero(self.slots["is_kept"] & self.slots["alive"]))

    def rows_from(self, slot: int) -> Array:
        """Return the rows of the links of one node."""
        return self.links.present(self.links.of_source(slot))

    def rows_to(self, slot: int) -> Array:
        """Return the rows of the links that point at one node."""
        return self.links.present(self.links.of_target(slot))

    def ids_to(self, slot: int) -> list[NodeId]:
        """Return the sources of the links that point at one node."""
        ids: list[NodeId] = self.slots["id"][self.links.rows["source"][self.rows_to(slot)]].tolist()
        return ids

    def is_live(self, rows: Array) -> Array:
        """Return which links count: strong enough, with a living source."""
        table = self.links.rows
        alive = self.slots["alive"][table["source"][rows]]
        live: Array = alive & (table["now"][rows] >= self._parameters.link_break_threshold)
        return live

    def live_rows_from(self, slots: Array) -> Array:
        """Return the rows of the live links of many nodes, by source."""
        rows = self.rows_from_each(slots)
        rows = rows[self.is_live(rows)]
        by_source: Array = rows[np.argsort(self.links.rows["source"][rows], kind="stable")]
        return by_source

    def rows_from_each(self, slots: Array) -> Array:
        """Return the rows of the links of many nodes."""
        scratch = self.scratch()
        scratch.member[slots] = True
        member = scratch.member[: self.slots.count]
        rows = self.links.of_sources(slots, member)
        if rows is None:
            rows = np.flatnonzero(member[self.links.rows["source"]])
        scratch.member[slots] = False
        return self.links.present(rows)

    def links_from(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """Return (target, relation, strength now) of every live link of the node, including dangling ones."""
        yield from self._ends(self.rows_from(self.slot_of(node_id)), "target")

    def linked_from(self, node_id: NodeId) -> Array:
        """Return the living nodes to which live links of a node point, those of the links written strongest first."""
        table, rows = self.links.rows, self.rows_from(self.slot_of(node_id))
        rows = rows[self.is_live(rows) & self.slots["alive"][table["target"][rows]]]
        strongest_first = np.argsort(-table["written"][rows], kind="stable")
        found: Array = self.slots["id"][table["target"][rows[strongest_first]]]
        return found

    def links_to(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """Return (source, relation, strength now) of every live link that points at the node."""
        yield from self._ends(self.rows_to(self.slot_of(node_id)), "source")

    def _ends(self, rows: Array, end: str) -> Iterator[tuple[NodeId, str, float]]:
        rows = rows[self.is_live(rows)]
        table = self.links.rows
        ids = self.slots["id"][table[end][rows]].tolist()
        names = [self.relations[number] for number in table["relation"][rows].tolist()]
        return zip(ids, names, table["now"][rows].tolist(), strict=True)

    def dangling(self, node_id: NodeId) -> list[tuple[NodeId, str]]:
        """Return (target, relation) of the node's live links to forgotten nodes, by strength, newness and name."""
        slot = self.slot_of(node_id)
        if not self.slots["dangling_count"][slot]:
            return []
        rows = self.rows_from(slot)
        rows = rows[~self.slots["alive"][self.links.rows["target"][rows]]]
        found = [
            (-round_strength(strength), -target, relation)
            for target, relation, strength in self._ends(rows, "target")
        ]
        return [(-target, relation) for _, target, relation in sorted(found)]

    def link_states(self, rows: Array) -> list[LinkState]:
        """Return the links of these rows, including broken and dangling ones."""
        found = zip(self.as_links(rows), self.links.rows["now"][rows].tolist(), strict=True)
        return [LinkState(link, now) for link, now in found]

    def _ends_of(self, link: Link) -> tuple[int, int, int]:
        return self.slot_of(link.source), self.slot_of(link.target), self._relation_numbers[link.relation]

    def as_links(self, rows: Array) -> list[Link]:
        """Return the links of these rows as they were written."""
        table, ids = self.links.rows, self.slots["id"]
        columns = (
            ids[table["source"][rows]],
            ids[table["target"][rows]],
            table["relation"][rows],
            table["written"][rows],
            table["anchor"][rows],
        )
        return [
            Link(source, target, self.relations[relation], written, anchor)
            for source, target, relation, written, anchor in zip(*(c.tolist() for c in columns), strict=True)
        ]

    def entities_of(self, slot: int) -> set[NodeId]:
        """Return the entities that a live link joins with a memory, either way."""
        table, slots = self.links.rows, self.slots
        own, others = self.rows_from(slot), self.rows_to(slot)
        ends = np.concatenate(
            [table["target"][own[self.is_live(own)]], table["source"][others[self.is_live(others)]]]
        )
        found: set[NodeId] = set(slots["id"][ends[slots["is_entity"][ends] & slots["alive"][ends]]].tolist())
        return found

    # --- rewritten links ---------------------------------------------------------------------------

    def covered_rows(self, entity: Entity) -> Array:
        """Return the rows that were written as 1.0 when an entity left focus, as far as their targets live."""
        if not entity.left_from:
            return np.zeros(0, dtype=np.int64)
        table, slots = self.links.rows, self.slots
        rows = self.rows_from(self.slot_of(entity.id))
        targets = table["target"][rows]
        covered = self.are_memories(targets) & (slots["id"][targets] >= entity.left_from)
        return rows[covered & (table["anchor"][rows] <= entity.left_at)]

    def reanchored(self) -> Change:
        """Return the change that writes every link at its present strength, for before `decay_rate` changes.

        A held link is written at the strength by which it will fade. Links of memories in focus keep what was written;
        they are written as 1.0 when their source leaves focus.
        """
        table, slots = self.links.rows, self.slots
        counts = slots["scan_count"][table["source"]]
        stale = slots["alive"][table["source"]] & (table["written"] >= 0)
        stale &= table["anchor"] != counts
        stale &= ~np.isin(table["source"], self.focus_slots())
        left = [entity for entity in self.entities.values() if entity.left_from]
        for entity in left:
            stale[self.covered_rows(entity)] = True
        rows = np.flatnonzero(stale)
        # A held link will fade by its stored strength.
        strengths = self.faded(rows, np.zeros(len(rows), dtype=np.int32))
        return Change(
            entities={one.id: msgspec.structs.replace(one, left_from=0, left_at=0) for one in left},
            links=[
                Link(link.source, link.target, link.relation, strength, count)
                for link, strength, count in zip(
                    self.as_links(rows), strengths.tolist(), counts[rows].tolist(), strict=True
                )
            ],
        )

    # --- changes, after their commit ---------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Apply a committed change."""
        self.revision += 1
        known = [entity for entity in change.entities.values() if entity.id in self.entities]
        # A statement and its entities get their ids in turn, and slots are in the order of ids.
        added: list[Node | Entity] = [*change.nodes, *change.entities.values()]
        for one in sorted(added, key=lambda one: one.id):
            if isinstance(one, Entity):
                self.put_entity(one)
            else:
                self.put_node(one)
        for node_id in change.forgotten:
            self._forget(node_id)
        if change.deleted:
            self._delete(self.slots_of(change.deleted))
        if change.deleted_entities:
            self._delete(self.slots_of(change.deleted_entities))
        if change.removed_links:
            rows = set(self._rows_of_ends(list(map(self._ends_of, change.removed_links)))) - {-1}
            self._drop_rows(np.array(sorted(rows), dtype=np.int64))
        self._write_left(known)
        self._keep(change.kept)
        self.put_links(change.links)
        if len(change.scanned):
            self._scan(self.slots_of(change.scanned), change.scanned_in)
        self._hold(change)
        if change.next_node_id is not None:
            self.next_node_id = change.next_node_id
        self._tidy()

    def put_node(self, node: Node) -> None:
        """Add a memory or replace its text. New ids are higher than all others."""
        slot = self.slot_of(node.id)
        fields = {
            "original_length": node.original_length,
            "content_length": len(node.content),
            "has_han": contains_han(node.content),
            "created_at_ms": node.created_at_ms,
            "speaker": self.speaker_number(node.speaker),
            "is_statement": node.kind in STATEMENT_KINDS,
            "kind": self.kind_number(node.kind),
            "is_pinned": node.pinned != Pin.NONE.value,
            "by_request": node.pinned == Pin.BY_REQUEST.value,
        }
        if slot < 0:
            slot = self._new_slot(node.id, fields)
            self.node_count += 1
        else:
            for name, value in fields.items():
                self.slots[name][slot] = value
        if self._texts is not None:
            self._texts.put(slot, piece_of(node.content, node.keywords))

    def put_entity(self, entity: Entity) -> None:
        """Add an entity or replace its record."""
        before = self.entities.get(entity.id)
        if before is None or before.name != entity.name:
            self.names_revision += 1
        if before is None:
            slot = self._new_slot(entity.id, {"is_entity": True})
            self.keys.put(slot, piece_of(entity.key, ()))
            self.entity_of_key[entity.key] = entity.id
        self.entities[entity.id] = entity

    def _new_slot(self, node_id: NodeId, fields: Mapping[str, object]) -> int:
        ids = self.slots["id"]
        assert not len(ids) or node_id > ids[-1], "ids are given in ascending order"
        return self.slots.append(1, id=node_id, alive=True, **fields)

    def _set_pin(self, slot: int, pin: str) -> None:
        self.slots["is_pinned"][slot] = pin != Pin.NONE.value
        self.slots["by_request"][slot] = pin == Pin.BY_REQUEST.value

    def _keep(self, kept: Mapping[NodeId, bool]) -> None:
        """Note which statements passes skip from now on."""
        slots = [self.slot_of(node_id) for node_id in kept]
        for slot, is_kept in zip(slots, kept.values(), strict=True):
            self.slots["is_kept"][slot] = is_kept
        if slots:
            self._refresh(np.concatenate([self.rows_to(slot) for slot in slots]))

    def _write_left(self, entities: Iterable[Entity]) -> None:
        """Write the links that entities held when they left focus as 1.0 at that scan count."""
        rows_of = [(self.covered_rows(entity), entity) for entity in entities if entity.left_from]
        for rows, entity in rows_of:
            self.links.rows["written"][rows] = 1.0
            self.links.rows["anchor"][rows] = entity.left_at
        if rows_of:
            self._refresh(np.concatenate([rows for rows, _ in rows_of]))

    def put_links(self, links: Sequence[Link]) -> None:
        """Add links, or update strength and anchor of existing ones. The last of equal links counts."""
        if not links:
            return
        sources = self.slots_of([link.source for link in links])
        targets = self.slots_of([link.target for link in links])
        assert self.slots["alive"][sources].all(), "a link has a living source"
        numbers = [self.relation_number(link.relation) for link in links]
        ends = zip(sources.tolist(), targets.tolist(), numbers, strict=True)
        last = {key: place for place, key in enumerate(ends)}
        rows = np.array(self._rows_of_ends(list(last)), dtype=np.int64)
        places = np.array(list(last.values()), dtype=np.int64)
        new = np.flatnonzero(rows < 0)
        added = places[new]
        table = self.links.rows
        rows[new] = self.links.append(sources[added], targets[added], np.array(numbers)[added])
        table["written"][rows] = np.array([link.strength for link in links])[places]
        table["anchor"][rows] = np.array([link.anchor for link in links])[places]
        self.link_count += len(new)
        dangling = sources[added][~self.slots["alive"][targets[added]]]
        np.add.at(self.slots["dangling_count"], dangling, 1)
        self._refresh(rows)

    def _rows_of_ends(self, ends: Sequence[tuple[int, int, int]]) -> list[int]:
        """Return the row of each (source slot, target slot, relation number); -1 if there is no such link."""
        table = self.links.rows
        is_source, is_target = (np.zeros(self.slots.count, dtype=np.bool_) for _ in range(2))
        sources = np.unique(np.array([source for source, _, _ in ends], dtype=np.int64))
        is_source[sources] = True
        is_target[[target for _, target, _ in ends]] = True
        rows = self.links.of_sources(sources, is_source)
        if rows is None:
            rows = np.flatnonzero(is_source[table["source"]])
        rows = self.links.present(rows[is_target[table["target"][rows]]])
        columns = (table[name][rows].tolist() for name in ("source", "target", "relation"))
        known = dict(zip(zip(*columns, strict=True), rows.tolist(), strict=True))
        return [known.get(one, -1) for one in ends]

    def _forget(self, node_id: NodeId) -> None:
        slot = self.slot_of(node_id)
        self.slots["alive"][slot] = False
        self._drop_text(slot)
        self.node_count -= 1
        self.link_count -= len(self.rows_from(slot))
        sources = self.links.rows["source"][self.rows_to(slot)]
        np.add.at(self.slots["dangling_count"], sources, 1)

    def _delete(self, slots: Array) -> None:
        """Remove nodes with the links at both ends; nothing dangles."""
        member = np.zeros(self.slots.count, dtype=np.bool_)
        member[slots] = True
        out = self.links.of_sources(slots, member)
        out = np.flatnonzero(member[self.links.rows["source"]]) if out is None else out
        self._drop_rows(np.unique(np.concatenate([out, self.links.of_targets(slots, member)])))
        self.slots["alive"][slots] = False
        self.slots["is_kept"][slots] = False
        for slot, node_id in zip(slots.tolist(), self.slots["id"][slots].tolist(), strict=True):
            entity = self.entities.pop(node_id, None)
            if entity is None:
                self._drop_text(slot)
                self.node_count -= 1
            else:
                self.names_revision += 1
                self.keys.drop(slot)
                del self.entity_of_key[entity.key]

    def _drop_text(self, slot: int) -> None:
        if self._texts is not None:
            self._texts.drop(slot)

    def _drop_rows(self, rows: Array) -> None:
        """Remove links of living sources."""
        table, alive = self.links.rows, self.slots["alive"]
        rows = self.links.present(rows)
        rows = rows[alive[table["source"][rows]]]
        dangling = rows[~alive[table["target"][rows]]]
        np.subtract.at(self.slots["dangling_count"], table["source"][dangling], 1)
        self.links.remove(rows)
        self.link_count -= len(rows)

    def _scan(self, slots: Array, pass_number: int) -> None:
        self.slots["scan_count"][slots] += 1
        self.slots["last_pass"][slots] = pass_number
        self._refresh(self.rows_from_each(slots))

    # --- held links --------------------------------------------------------------------------------

    def _hold(self, change: Change) -> None:
        """Apply the new focus and pins, and recompute which links are held where a change may have changed it."""
        affected = {*self.focus, *self.entity_focus, *change.pins}
        pinned = {node.id for node in change.nodes if node.pinned != Pin.NONE.value}
        for node_id, pin in change.pins.items():
            self._set_pin(self.slot_of(node_id), pin.value)
        if change.focus is not None:
            self.focus = change.focus
        if change.entity_focus is not None:
            self.entity_focus = change.entity_focus
        if change.entity_memories is not None:
            self.entity_memories = change.entity_memories
        is_structural = (
            bool(change.links or change.forgotten or change.deleted or change.removed_links)
            or change.entity_memories is not None
        )
        if not (
            affected ^ {*self.focus, *self.entity_focus} or is_structural or change.pins or change.entities
        ):
            return
        affected |= {*self.focus, *self.entity_focus} | pinned
        slots = [slot for slot in map(self.slot_of, affected) if slot >= 0 and self.slots["alive"][slot]]
        # The links of entities to memories that were pinned or unpinned.
        for node_id in {*change.pins, *pinned}:
            sources = self.links.rows["source"][self.rows_to(self.slot_of(node_id))]
            slots += sources[self.slots["is_entity"][sources] & self.slots["alive"][sources]].tolist()
        self._rehold(sorted(set(slots)))
        if self.slots["is_pinned"].any():
            self._hold_new_links_of_pinned(change.links)

    def _hold_new_links_of_pinned(self, links: Sequence[Link]) -> None:
        """Hold links that were written between pinned memories and entities."""
        ends = {node_id for link in links for node_id in (link.source, link.target)}
        slots = self.slots_of(list(ends))
        for slot in slots[self.slots["is_pinned"][slots]].tolist():
            sources = self.links.rows["source"][self.rows_to(slot)]
            self._rehold([slot, *sources[self.slots["is_entity"][sources]].tolist()])

    def _rehold(self, slots: Iterable[int]) -> None:
        """Recompute which links of these nodes are held."""
        rows_of = [(slot, self.rows_from(slot)) for slot in slots]
        for slot, rows in rows_of:
            self.links.rows["held"][rows] = self._are_held(slot, rows)
        if rows_of:
            self._refresh(np.concatenate([rows for _, rows in rows_of]))

    def _are_held(self, slot: int, rows: Array) -> Array:
        """Return which links of one node count 1.0 (section 3)."""
        slots, targets = self.slots, self.links.rows["target"][rows]
        node_id = int(slots["id"][slot])
        if not slots["is_entity"][slot]:
            if node_id in self.focus:
                return np.ones(len(rows), dtype=np.bool_)
            held: Array = slots["is_entity"][targets] & slots["is_pinned"][slot]
            return held
        held = slots["is_pinned"][targets] & slots["alive"][targets]
        if node_id in self.entity_focus:
            living = self.are_memories(targets)
            held |= living & (targets >= newest_from(targets[living], self.entity_memories))
        return held

    def set_focus(self, focus: tuple[NodeId, ...], entity_focus: tuple[NodeId, ...] = ()) -> None:
        """Set both lists of the focus of a network that was just loaded, and find all held links."""
        self.focus, self.entity_focus = focus, entity_focus
        slots = set(map(self.slot_of, (*focus, *entity_focus)))
        for slot in np.flatnonzero(self.slots["is_pinned"]).tolist():
            sources = self.links.rows["source"][self.rows_to(slot)]
            slots |= {slot, *sources[self.slots["is_entity"][sources]].tolist()}
        self._rehold(sorted(slots))

    def _refresh(self, rows: Array) -> None:
        """Recompute `now`. A held link counts 1.0 (section 3)."""
        table = self.links.rows
        now = self.faded(rows, np.zeros(len(rows), dtype=np.int32))
        now[table["held"][rows]] = 1.0
        if self.links.removed_count:
            now[table["written"][rows] < 0] = -1.0
        table["now"][rows] = now

    def decayed(self, rows: Array, more_scans: Array) -> Array:
        """Return the strength of links after additional scans of their sources."""
        strengths = self.faded(rows, more_scans)
        strengths[self.links.rows["held"][rows]] = 1.0
        return strengths

    def faded(self, rows: Array, more_scans: Array) -> Array:
        """Return the strength of links by decay alone, after additional scans of their sources."""
        table = self.links.rows
        ages = self.slots["scan_count"][table["source"][rows]] - table["anchor"][rows] + more_scans
        ages[self.slots["is_kept"][table["target"][rows]]] = 0
        strengths: Array = table["written"][rows] * self.decay.factors(ages)
        return strengths

    # --- clean-up of the arrays --------------------------------------------------------------------

    def _tidy(self) -> None:
        # Slots that a link points at stay, so only nodes forgotten since the last time can be dropped.
        newly_dead = self.slots.count - self.node_count - len(self.entities) - self.dead_kept
        if newly_dead > max(MIN_DEAD, self.slots.count // 4):
            self._drop_dead()
        elif self.links.wants_merge:
            present = self._are_present()
            keep = None if present.all() else np.flatnonzero(present)
            self.links.merge(keep, None, self.slots.count)

    def _are_present(self) -> Array:
        """Return which rows are links of living nodes."""
        rows = self.links.rows
        present: Array = self.slots["alive"][rows["source"]] & (rows["written"] >= 0)
        return present

    def _drop_dead(self) -> None:
        """Drop forgotten slots that no link points at, and links of forgotten nodes."""
        table = self.links.rows
        keep = np.flatnonzero(self._are_present())
        needed = self.slots["alive"].copy()
        needed[table["target"][keep]] = True
        kept = np.flatnonzero(needed)
        slot_of = np.zeros(self.slots.count, dtype=np.int32)
        slot_of[kept] = np.arange(len(kept))
        self.slots.keep(kept)
        self.links.merge(keep, slot_of, len(kept))
        if self._texts is not None:
            self._texts.renumber(kept)
        self.keys.renumber(kept)
        self.dead_kept = len(kept) - self.node_count - len(self.entities)
        self._scratch = None


def newest_from(targets: Array, most: int) -> int:
    """Return the lowest of the highest `most` distinct slots."""
    if len(targets) > 8 * most:
        few = np.unique(np.partition(targets, len(targets) - 4 * most)[len(targets) - 4 * most :])
        if len(few) >= most:
            return int(few[-most])
    distinct = np.unique(targets)
    return int(distinct[-most]) if len(distinct) >= most else 0
