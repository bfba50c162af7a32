"""The ledger: which statements are true, computed by replaying assertions and rulings in order of arrival.

Nothing is overwritten. To erase, correct or undo is to replay without the entry concerned. Assertions of a slot of an
entity are replayed together (`versions.py`); entities that a ruling has merged are one. Times are in ms, intervals are
half-open, and empty ones are never returned. The module is pure: the caller gives the time.

The assertions are in memory as rows (`assertion_table.py`). A slot is replayed when a question touches it, and its
replay is kept until newer ones need the room. A new assertion is added to the replay of its slot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.memory.assertion_table import Alike, AssertionTable, Brief
from ebbtide.memory.columns import Array, places_in
from ebbtide.memory.slot_names import current_name, slot_of
from ebbtide.memory.values import compare_values
from ebbtide.memory.versions import DAY_MS, Conflicts, SlotReplay, Version, Withdrawal, by_time
from ebbtide.records import Source
from ebbtide.statements import Assertion, Ruling, is_inferred

__all__ = [
    "DAY_MS",
    "MAX_EVIDENCE",
    "MAX_RIVALS",
    "Conflict",
    "Entry",
    "Ledger",
    "Replay",
    "State",
    "Version",
]

MAX_EVIDENCE: Final = 16
"""Most assertions of a version that count as its sources."""
MAX_RIVALS: Final = 16
"""Most versions that count as contradicting another one in its priority, and that are listed with it."""
MAX_REPLAYED: Final = 16_384
"""Assertions whose replays are kept, with those of one more slot, of any size."""
REPLAYED_BYTES: Final = 1500
"""Memory of an assertion in a replay that is kept, with its version."""
RULING_BYTES: Final = 700
"""Memory of a ruling, with its sources."""
MANY_AT_ONCE: Final = 512
"""Most entries that are added at once while a ledger is filled."""

State = Literal["current", "contested", "superseded", "ended", "planned", "corrected", "retracted"]
Entry = Assertion | Ruling
Key = tuple[int, str]
"""A merged entity and a slot."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two versions of one slot that contradict each other at a time, the one with the higher priority first."""

    first: Version
    second: Version


class Lost(NamedTuple):
    """The entries that a deletion removes from a ledger, or changes."""

    entries: list[int]
    """The numbers of the removed assertions and rulings."""
    rulings: list[Ruling]
    """The removed rulings."""
    changed: list[Ruling]
    """The rulings that lose some of their sources."""
    inferred: list[int]
    """The inferred statements, and those of undone corrections, without any assertion left; they are deleted too."""


class Ledger:
    """The assertions and rulings of one agent, and what is true according to them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._assertions = AssertionTable()
        self._rulings: dict[int, Ruling] = {}
        self._now = Replay(self, None)
        self._past: Replay | None = None
        """The replay of the last question about what was known earlier."""
        self._statements: Array | None = None
        self.revision = 0
        """Changes with every change of the entries."""
        more = iter(entries)
        while some := list(islice(more, MANY_AT_ONCE)):
            self.apply(some)

    def apply(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those with the same numbers."""
        added = list(entries)
        rulings = {one.entry: one for one in added if isinstance(one, Ruling)}
        assertions = [_with_current_slot(one) for one in added if isinstance(one, Assertion)]
        self.remove([one.entry for one in assertions if one.entry in self._rulings])
        replaced = self._assertions.put(assertions)
        replaced += self._assertions.remove(rulings)
        self._rulings.update(rulings)
        self._changed(replaced, has_rulings=bool(rulings))
        for one in assertions:
            self._now.follow(one)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove entries, as if they had never arrived."""
        wanted = list(numbers)
        rulings = [self._rulings.pop(number, None) for number in wanted]
        self._changed(self._assertions.remove(wanted), has_rulings=any(rulings))

    def _changed(self, removed: Sequence[Assertion], *, has_rulings: bool) -> None:
        self.revision += 1
        self._past, self._statements = None, None
        if has_rulings:
            self._now = Replay(self, None)
        for one in removed:
            self._now.forget(one)

    def release(self) -> None:
        """Drop the replays. They refer to the ledger: such a cycle would keep it in memory. It is not used again."""
        del self._now, self._past

    def known(self, known_at_ms: int | None = None) -> Replay:
        """Return what was known at a time, or everything."""
        if known_at_ms is None:
            return self._now
        later = [entry for entry, one in self._rulings.items() if one.known_at_ms > known_at_ms]
        first = self._assertions.first_known_after(known_at_ms)
        if first is not None:
            later.append(first)
        if not later:
            return self._now
        if self._past is None or self._past.before != min(later):
            self._past = Replay(self, min(later))
        return self._past

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._assertions) + len(self._rulings)

    @property
    def resident_bytes(self) -> int:
        """Size in memory."""
        replayed = self._now.assertion_count + (0 if self._past is None else self._past.assertion_count)
        return self._assertions.nbytes + REPLAYED_BYTES * replayed + RULING_BYTES * len(self._rulings)

    @property
    def statements(self) -> list[int]:
        """The nodes that are statements, ascending."""
        found: list[int] = self._ids().tolist()
        return found

    def _ids(self) -> Array:
        if self._statements is None:
            self._statements = self._assertions.statements()
        return self._statements

    def are_statements(self, nodes: Array) -> Array:
        """Return which of some nodes are statements."""
        return places_in(self._ids(), nodes)[1]

    def stating(self, messages: Iterable[int]) -> list[int]:
        """Return those of some messages that state something, in the same order."""
        return self._assertions.messages_among(messages)

    @property
    def statement_count(self) -> int:
        """The number of statements."""
        return len(self._ids())

    def begun_count(self, after: int, up_to: int) -> int:
        """Return the number of statements whose first assertion is among some entries."""
        return self._assertions.begun_count(after, up_to)

    def all_assertions(self, after: int = 0) -> Iterator[Assertion]:
        """Yield every assertion in order of arrival, after an entry number."""
        return self._assertions.all(after)

    def all_rulings(self) -> Iterator[Ruling]:
        """Yield every ruling, also those that are undone."""
        yield from self._rulings.values()

    def assertion(self, entry: int) -> Assertion | None:
        """Return the assertion of this entry number, or None."""
        return self._assertions.get(entry)

    def ruling(self, entry: int) -> Ruling | None:
        """Return the ruling of this entry number, or None."""
        return self._rulings.get(entry)

    def rulings(self) -> list[Ruling]:
        """Return the rulings that no later ruling has undone, in order."""
        return list(self._now.rulings)

    def assertions_of(self, statement: int) -> list[Assertion]:
        """Return the assertions of a statement in order."""
        return self._assertions.of_statement(statement)

    def evidence(self, candidate: Assertion) -> list[int]:
        """Return the statements that a new assertion would repeat, the newest first; empty for a new value."""
        version = self._now.slot(self._now.key_of(candidate)).same(candidate)
        return [] if version is None else [one.statement for one in reversed(version.assertions)]

    def messages_of(self, kinds: Collection[str]) -> list[int]:
        """Return the messages in which statements of some kinds are made."""
        return self._assertions.messages_of(kinds)

    def messages_by(self, is_author: Callable[[str], bool]) -> list[int]:
        """Return the messages in which some authors found statements."""
        return self._assertions.messages_by(is_author)

    def inferred_links(self) -> set[tuple[int, int]]:
        """Return the causes and effects that consolidation has linked, by rulings in effect."""
        return {(one.target, one.other) for one in self._now.rulings if one.kind == "cause"}

    # For deletions.

    def about(self, entities: Collection[int]) -> set[int]:
        """Return the statements about some entities."""
        return set(self._assertions.statements_about(entities))

    def lost(
        self, gone: Collection[int], messages: Collection[int], is_erased: Callable[[Source], bool]
    ) -> Lost:
        """Return the entries that go with statements and entities, and with erased words in some messages.

        An assertion goes with its words, its statement and its entity. A ruling goes with the last of its sources, with
        what it is about, and with the ruling that it undoes.
        """
        nodes = set(gone)
        removed = [
            one
            for one in self._assertions.touched(nodes, messages)
            if not nodes.isdisjoint((one.statement, one.subject)) or is_erased(one.source)
        ]
        # An inferred statement is deleted with the first of its sources.
        inferred = {one.statement for one in removed if is_inferred(one)}
        removed += [one for node in inferred for one in self.assertions_of(node) if is_inferred(one)]
        entries = {one.entry for one in removed}
        ended = nodes.union(
            statement
            for statement in {one.statement for one in removed}
            if all(one.entry in entries for one in self.assertions_of(statement))
        )
        # The assertion of an undone correction goes with the corrected statement: without the ruling, it would be true.
        for one in self.undone_corrections(None):
            made = self.assertion(one.entry + 1)
            if one.target in ended and made is not None and made.statement == one.other:
                entries.add(made.entry)
                inferred.add(made.statement)
                if all(each.entry in entries for each in self.assertions_of(made.statement)):
                    ended.add(made.statement)
        rulings: list[Ruling] = []
        changed: list[Ruling] = []
        undone: set[int] = set()
        for number in sorted(self._rulings):
            ruling = self._rulings[number]
            sources = tuple(one for one in ruling.sources if not is_erased(one))
            is_about = undone if ruling.kind == "undo" else ended
            if (
                (ruling.sources and not sources)
                or ruling.target in is_about
                or (ruling.other and ruling.other in is_about)
            ):
                undone.add(number)
                rulings.append(ruling)
            elif sources != ruling.sources:
                changed.append(msgspec.structs.replace(ruling, sources=sources))
        return Lost(sorted(entries | undone), rulings, changed, sorted(inferred & ended - nodes))

    # For replays.

    def is_said(self, statement: int, before: int | None = None) -> bool:
        """Return whether a statement has an assertion, up to an entry number."""
        first = self._assertions.first_entry_of(statement)
        return first is not None and (before is None or first < before)

    def slot_of_statement(self, statement: int) -> tuple[int, str] | None:
        """Return the entity and the slot of a statement; None if there is no such statement."""
        return self._assertions.slot_of_statement(statement)

    def slots_of_statements(self, statements: Sequence[int]) -> list[tuple[int, str] | None]:
        """Return the entity and the slot of each of some statements; None where there is no such statement."""
        return self._assertions.slots_of_statements(statements)

    def between(self, subjects: Iterable[int], slot: str, before: int | None) -> list[Assertion]:
        """Return the assertions of a slot of some entities in order, up to an entry number."""
        return self._assertions.of_slot(subjects, slot, before)

    def by_slot(self, subjects: Iterable[int], before: int | None) -> dict[str, list[Assertion]]:
        """Return the assertions about some entities by slot, in order, up to an entry number."""
        return self._assertions.by_slot(subjects, before)

    def said_in(self, messages: Collection[int]) -> list[Assertion]:
        """Return the assertions from some messages, in order."""
        return self._assertions.touched((), messages)

    def said_about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> list[Assertion]:
        """Return the assertions about some entities in some slots, in order."""
        return self._assertions.about(subjects, is_wanted)

    def brief_about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> Iterator[Brief]:
        """Yield the assertions about some entities in some slots, in order, in brief."""
        return self._assertions.brief_about(subjects, is_wanted)

    def alike_about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> Iterator[Alike]:
        """Yield the assertions about some entities in some slots, in groups of one slot, kind and modality."""
        return self._assertions.alike_about(subjects, is_wanted)

    def naming(
        self, rows: Array, slots: Collection[str], slots_in: Callable[[str], frozenset[str]]
    ) -> NDArray[np.bool_]:
        """Return which of these assertions have an object that names one of some slots. `slots_in` reads it once."""
        return self._assertions.naming(rows, slots, slots_in)

    def objects_in(self, rows: Array) -> list[str]:
        """Return the objects of some of these assertions."""
        return self._assertions.objects_in(rows)

    def object_entities(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> set[int]:
        """Return the entities that are the objects of the statements about some entities in some slots."""
        return self._assertions.object_entities(subjects, is_wanted)

    def brief_in(self, names: Collection[str]) -> Iterator[Brief]:
        """Yield the assertions of some slots of all entities, in order, in brief."""
        return self._assertions.brief_in(names)

    def slots_of(self, subjects: Iterable[int]) -> set[str]:
        """Return the slots of which statements about some entities are made."""
        return self._assertions.slots_of(subjects)

    def slots(self) -> list[str]:
        """Return the slots of which statements were made."""
        return self._assertions.slots()

    def slots_with(self, *, kind: str = "", negated: bool = False) -> set[str]:
        """Return the slots with a statement of a kind, or with a negated one."""
        return self._assertions.slots_with(kind, negated)

    def in_slots(self, names: Collection[str], before: int | None) -> list[Assertion]:
        """Return the assertions of some slots of all entities in order, up to an entry number."""
        return self._assertions.in_slots(names, before)

    def subjects(self) -> list[int]:
        """Return the entities about which statements are made."""
        return self._assertions.subjects()

    def rulings_before(self, before: int | None) -> list[Ruling]:
        """Return the rulings up to an entry number that no later ruling has undone, in order."""
        undone: set[int] = set()
        left: list[Ruling] = []
        for ruling in sorted(self.all_rulings(), key=lambda one: one.entry, reverse=True):
            if (before is None or ruling.entry < before) and ruling.entry not in undone:
                if ruling.kind == "undo":
                    undone.add(ruling.target)
                else:
                    left.append(ruling)
        left.reverse()
        return left

    def undone_corrections(self, before: int | None) -> list[Ruling]:
        """Return the corrections that are undone, up to an entry number, in order.

        A correction of a statement that an undone correction made is undone with it.
        """
        known = [one for one in self.all_rulings() if before is None or one.entry < before]
        if not any(one.kind == "undo" for one in known):
            return []
        known.sort(key=lambda one: one.entry)
        undone: dict[int, int] = {}
        for one in reversed(known):
            if one.kind == "undo" and one.entry not in undone:
                undone.setdefault(one.target, one.entry)
        made: dict[int, int] = {}
        found: list[Ruling] = []
        for one in known:
            undo = max(undone.get(one.entry, 0), made.get(one.target, 0))
            if one.kind == "correct" and undo > one.entry:
                made[one.other] = undo
                found.append(one)
        return found


def _with_current_slot(one: Assertion) -> Assertion:
    """Return an assertion with the name that its slot has now, so that older ones are read as new ones are."""
    name = current_name(one.slot)
    return one if name == one.slot else msgspec.structs.replace(one, slot=name)


class Replay:
    """The versions of all slots, computed from the entries up to one."""

    def __init__(self, ledger: Ledger, before: int | None) -> None:
        self._ledger = ledger
        self.before = before
        """The first entry that does not count; None if all do."""
        self._slots: dict[Key, SlotReplay] = {}
        self.assertion_count = 0
        """The number of assertions whose replay is kept."""
        self._largest: Key = (0, "")
        self._rulings: list[Ruling] | None = None
        self._roots: dict[int, int] = {}
        self._members: dict[int, set[int]] = {}
        self._withdrawn: dict[int, tuple[int, Withdrawal]] = {}
        self._corrections: dict[int, int] = {}
        self._unmade: dict[int, int] = {}
        """The statements of undone corrections, by the entry that made each."""
        self._settled: dict[int, list[Ruling]] = {}
        """The rulings that settle a conflict, by the statement to keep."""
        self._votes: dict[int, dict[str, float]] = {}
        self._pins: dict[int, bool] = {}

    def follow(self, new: Assertion) -> None:
        """Add a new assertion to the replay of its slot, if that is kept. It is the last entry, or forgets the slot."""
        slot = self._slots.get(self.key_of(new)) if self._slots else None
        if slot is None:
            return
        if new.entry <= slot.last_entry:
            self.forget(new)
            return
        self._add(slot, new)
        self.assertion_count += 1

    def forget(self, assertion: Assertion) -> None:
        """Forget the replay of the slot of an assertion."""
        self._drop(self.key_of(assertion))

    def _drop(self, key: Key) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None:
            self.assertion_count -= slot.assertion_count

    @property
    def rulings(self) -> list[Ruling]:
        """The rulings in effect, in order."""
        if self._rulings is None:
            self._rulings = self._ledger.rulings_before(self.before)
            undone = {one.entry: one.other for one in self._ledger.undone_corrections(self.before)}
            # The assertion of a correction follows its ruling.
            self._unmade = {entry + 1: statement for entry, statement in undone.items()}
            for ruling in self._rulings:
                if ruling.entry in undone:
                    continue
                if ruling.kind == "merge":
                    self._merge(ruling.target, ruling.other)
                elif ruling.kind == "retract":
                    self._withdrawn[ruling.target] = ruling.entry, "retracted"
                elif ruling.kind == "correct":
                    self._withdrawn[ruling.target] = ruling.entry, "corrected"
                    self._corrections[ruling.target] = ruling.other
                elif ruling.kind == "settle":
                    self._settled.setdefault(ruling.target, []).append(ruling)
                elif ruling.kind == "vote":
                    self._votes.setdefault(ruling.target, {})[ruling.author] = ruling.value
                elif ruling.kind in ("pin", "unpin"):
                    self._pins[ruling.target] = ruling.kind == "pin"
        return self._rulings

    def _merge(self, first: int, second: int) -> None:
        members = self._members.get(self._roots.get(first, first), {first}) | self._members.get(
            self._roots.get(second, second), {second}
        )
        root = min(members)
        for one in members:
            self._roots[one] = root
            self._members.pop(one, None)
        self._members[root] = members

    def root(self, entity: int) -> int:
        """Return the entity that stands for all that are merged with one."""
        assert self.rulings is not None
        return self._roots.get(entity, entity)

    def merged_with(self, entity: int) -> frozenset[int]:
        """Return the entities that are one with an entity, itself included."""
        return frozenset(self._members.get(self.root(entity), {entity}))

    def all_merged_with(self, entities: Iterable[int]) -> set[int]:
        """Return some entities, with those that are one with them."""
        found = set(entities)
        assert self.rulings is not None
        return found.union(*map(self.merged_with, found & self._roots.keys()))

    def key_of(self, assertion: Assertion) -> Key:
        """Return the merged entity and the slot of an assertion."""
        return self.root(assertion.subject), assertion.slot

    def versions(self, subject: int, slot: str) -> Sequence[Version]:
        """Return all versions of a slot of an entity in order of arrival, withdrawn and empty ones included."""
        return self.slot((self.root(subject), slot)).versions

    def slot(self, key: Key, assertions: Sequence[Assertion] | None = None) -> SlotReplay:
        """Return the replay of a slot of a merged entity. `assertions` are those of the slot, if they are known."""
        found = self._slots.get(key)
        if found is None:
            subject, name = key
            if assertions is None:
                assertions = self._ledger.between(self.merged_with(subject), name, self.before)
            found = self._replayed(name, assertions)
            self._make_room()
            self._slots[key] = found
            self.assertion_count += found.assertion_count
            if found.assertion_count > MAX_REPLAYED:
                self._largest = key
        return found

    def _make_room(self) -> None:
        """Drop the oldest replays if there are too many. The last slot that is larger than the room is kept too."""
        largest = self._slots.get(self._largest)
        room = MAX_REPLAYED + (0 if largest is None else largest.assertion_count)
        while self.assertion_count > room:
            self._drop(next(key for key in self._slots if key != self._largest))

    def _replayed(self, name: str, assertions: Sequence[Assertion]) -> SlotReplay:
        """Replay a slot."""
        assert self.rulings is not None
        slot = SlotReplay(slot_of(name), self._roots)
        steps: Sequence[Entry] = assertions
        if self._settled:
            statements = {one.statement for one in assertions}
            settled = [
                ruling
                for statement in statements & self._settled.keys()
                for ruling in self._settled[statement]
                if ruling.other in statements
            ]
            if settled:
                steps = sorted((*assertions, *settled), key=lambda entry: entry.entry)
        for entry in steps:
            if isinstance(entry, Ruling):
                slot.settle(entry)
            else:
                self._add(slot, entry)
        return slot

    def _add(self, slot: SlotReplay, assertion: Assertion) -> None:
        withdrawn = self._withdrawn.get(assertion.statement)
        if withdrawn is not None and assertion.entry < withdrawn[0]:
            slot.add_withdrawn(assertion, withdrawn[1])
        elif self._unmade.get(assertion.entry) == assertion.statement:
            slot.add_withdrawn(assertion, "retracted")
        else:
            slot.add(assertion)

    def each_slot(self, subject: int) -> Iterator[tuple[str, SlotReplay]]:
        """Yield the slots of an entity with their replays, the lasting slots first, then by name."""
        members, root = self.merged_with(subject), self.root(subject)
        names = self._ledger.slots_of(members)
        missing = [name for name in names if (root, name) not in self._slots]
        known = self._ledger.by_slot(members, self.before) if len(missing) > 1 else {}
        for name in sorted(names, key=lambda name: (not slot_of(name).is_lasting, name)):
            yield name, self.slot((root, name), known.get(name))

    def in_force(self, subject: int, slot: str, as_of_ms: int, now_ms: int) -> list[Version]:
        """Return the versions of a slot that are true at a time, the best first."""
        return self._in_force(self.slot((self.root(subject), slot)), as_of_ms, now_ms)

    def _in_force(self, slot: SlotReplay, as_of_ms: int, now_ms: int) -> list[Version]:
        found = [version for version in slot.versions if version.holds_at(as_of_ms)]
        if len(found) < 2:
            return found
        # Plans last. Contested versions by priority, then narrower before wider ones, and newer before older ones.
        others = [(len(one.first.object), one.value) for one in found[:MAX_EVIDENCE]]
        may_contradict = slot.may_contradict

        def order(version: Version) -> tuple[bool, bool, float, int]:
            is_contested = may_contradict and version.is_contested(as_of_ms)
            value, length = version.value, len(version.first.object)
            is_wider = any(
                size > length and compare_values(other, value) == "refines" for size, other in others
            )
            is_plan, priority = version.first.modality == "planned", self.priority(version, now_ms)
            return is_plan, is_wider, -priority if is_contested else 0.0, -version.since_ms

        return sorted(found, key=order)

    def profile(self, subject: int, as_of_ms: int, now_ms: int) -> Iterator[tuple[str, list[Version]]]:
        """Yield each slot of an entity with the versions that are true at a time, the lasting slots first.

        Open plans follow: those that were made up to this time, for a later one.
        """
        for name, slot in self.each_slot(subject):
            plans = [version for version in slot.versions if version.is_open_plan(as_of_ms)]
            found = self._in_force(slot, as_of_ms, now_ms)
            if found or plans:
                yield name, [*found, *sorted(plans, key=by_time)]

    def history(self, statement: int) -> list[Version]:
        """Return all versions of the slot of a statement, by the time from which they are true."""
        slot = self._slot_of(statement)
        return [] if slot is None else sorted(slot.versions, key=by_time)

    def version_of(self, statement: int) -> Version | None:
        """Return the last version that an assertion of a statement supports."""
        slot = self._slot_of(statement)
        return None if slot is None else slot.version_of(statement)

    def correction_of(self, statement: int) -> int:
        """Return the statement that corrects a statement; 0 if none does."""
        assert self.rulings is not None
        return self._corrections.get(statement, 0)

    def newest(self, statement: int) -> int:
        """Return the last correction of a statement; the statement itself if none corrects it."""
        seen = set()
        while statement not in seen and (correction := self.correction_of(statement)):
            seen.add(statement)
            statement = correction
        return statement

    def _slot_of(self, statement: int) -> SlotReplay | None:
        """Return the replay of the slot of a statement; None if there is no such statement."""
        found = self._ledger.slot_of_statement(statement)
        return None if found is None else self.slot((self.root(found[0]), found[1]))

    def state(self, version: Version, as_of_ms: int) -> State:
        """Return the state of a version at a time."""
        state = self.state_alone(version, as_of_ms)
        return "contested" if state == "current" and version.is_contested(as_of_ms) else state

    def state_alone(self, version: Version, as_of_ms: int) -> State:
        """Return the state that a version would have if no other one contradicted it at this time."""
        if version.withdrawn:
            return version.withdrawn
        if version.holds_at(as_of_ms):
            return "planned" if version.first.modality == "planned" else "current"
        if version.since_ms > as_of_ms and (version.until_ms is None or version.until_ms > version.since_ms):
            return "planned"
        return "superseded" if version.retired_by else "ended"

    def counts(self, as_of_ms: int) -> Counter[tuple[str, str]]:
        """Return the number of statements by kind and state at a time."""
        found: Counter[tuple[str, str]] = Counter()
        for slot in self._replays(self._ledger.slots()):
            for version in slot.versions:
                statements = {one.statement for one in version.assertions}
                found[version.first.kind, self.state(version, as_of_ms)] += len(statements)
        return found

    def conflicts(self, as_of_ms: int, now_ms: int, most: int | None = None) -> list[Conflict]:
        """Return the pairs of versions that contradict each other at a time, at most so many, in order of arrival."""
        names = {name for name in self._ledger.slots() if slot_of(name).cardinality == "one"}
        names |= self._ledger.slots_with(negated=True)
        slots = self._replays(names)
        pairs = (pair for slot in slots for pair in self._conflicts_in(slot, as_of_ms, now_ms))
        return list(islice(pairs, most))

    def conflicts_of(self, root: int, as_of_ms: int, now_ms: int) -> Iterator[Conflict]:
        """Yield the pairs of versions of an entity that contradict each other at a time."""
        for _, slot in sorted(self.each_slot(root), key=lambda one: one[0]):
            yield from self._conflicts_in(slot, as_of_ms, now_ms)

    def _conflicts_in(self, slot: SlotReplay, as_of_ms: int, now_ms: int) -> Iterator[Conflict]:
        conflicts = Conflicts(slot, as_of_ms)
        for version in slot.versions:
            if version.holds_at(as_of_ms):
                for rival in conflicts.rivals(version):
                    if rival.first.entry > version.first.entry:
                        pair = sorted((version, rival), key=lambda one: -self.priority(one, now_ms))
                        yield Conflict(*pair)

    def _replays(self, names: Collection[str]) -> Iterator[SlotReplay]:
        """Yield the replays of slots of all entities, by entity and name. They are not kept."""
        found: dict[Key, list[Assertion]] = {}
        for one in self._ledger.in_slots(names, self.before):
            found.setdefault(self.key_of(one), []).append(one)
        for key in sorted(found):
            yield self._slots.get(key) or self._replayed(key[1], found[key])

    def votes(self, statement: int) -> tuple[int, int]:
        """Return the votes for and against a statement; the last vote of each author counts."""
        assert self.rulings is not None
        last = self._votes.get(statement)
        if last is None:
            return 0, 0
        return sum(value > 0 for value in last.values()), sum(value < 0 for value in last.values())

    def pinned(self) -> set[int]:
        """Return the statements whose last pin or unpin is a pin."""
        assert self.rulings is not None
        pins = (statement for statement, is_pin in self._pins.items() if is_pin)
        return {statement for statement in pins if self._ledger.is_said(statement, self.before)}

    def priority(self, version: Version, now_ms: int, least_rivals: int = 0) -> float:
        """Return the priority of a version (knowledge model, section 3). It orders, and ends nothing.

        At least `least_rivals` versions are known to contradict it. They are not counted again if there are enough.
        """
        days = max(0, now_ms - version.told_at_ms) / DAY_MS
        supports, contradicts = self.votes(version.statement)
        if least_rivals < MAX_RIVALS:
            least_rivals = sum(1 for _ in islice(version.replay.rivals(version), MAX_RIVALS))
        contradicts += least_rivals
        return (
            0.35 * version.trust
            + 0.30 * math.exp(-days / 90)
            + 0.25 * (1 - 0.5**version.message_count)
            + 0.10 * (1 + supports - contradicts) / (2 + supports + contradicts)
        )

    def true_at(self, time_ms: int) -> Iterator[Version]:
        """Yield every version that is true at a time."""
        for root in {self.root(subject) for subject in self._ledger.subjects()}:
            for name in self._ledger.slots_of(self.merged_with(root)):
                yield from (version for version in self.versions(root, name) if version.holds_at(time_ms))

    def kept(self, now_ms: int) -> set[int]:
        """Return the statements that no pass forgets: true now in a lasting slot, an open task, or pinned."""
        found = self.pinned()
        names = {name for name in self._ledger.slots() if slot_of(name).is_lasting}
        names |= self._ledger.slots_with(kind="task")
        for slot in self._replays(names):
            for version in slot.versions:
                if version.holds_at(now_ms) and (slot.slot.is_lasting or version.first.kind == "task"):
                    found.update(one.statement for one in version.assertions)
        return found
