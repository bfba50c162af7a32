"""The ledger: which statements are true, computed by replaying assertions and rulings in order of arrival.

Nothing is overwritten. To erase, correct or undo is to replay without the entry concerned. Assertions of a slot of an
entity are replayed together; entities that a ruling has merged are one. Times are in ms, intervals are half-open, and
empty ones are never returned. The module is pure: the caller gives the time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal

from ebbtide.memory.slot_names import Slot, slot_of
from ebbtide.memory.values import Comparison, compare
from ebbtide.statements import Assertion, Ruling

MAX_EVIDENCE: Final = 16
"""Most assertions of a version that count as its sources."""
MIN_TRUST: Final = 0.5
"""A statement with less trust ends no other."""
SETTLING_MESSAGES: Final = 2
"""Further messages of the speaker that settle a conflict if none says the opposite."""
MAX_CONFIDENCE: Final = 0.99
DAY_MS: Final = 86_400_000

State = Literal["current", "contested", "superseded", "ended", "planned", "corrected", "retracted"]
Entry = Assertion | Ruling
Key = tuple[int, str]
"""A merged entity and a slot."""


@dataclass(slots=True, eq=False)
class Version:
    """A value of a slot over a time: the assertions that state it, and what ended it."""

    assertions: list[Assertion]
    since_ms: int
    until_ms: int | None
    retired_by: int = 0
    """The statement that ended it; 0 if none did."""
    withdrawn: Literal["", "corrected", "retracted"] = ""
    rivals: list[Version] = field(default_factory=list)
    """The versions that contradict it."""
    repeated: list[Assertion] = field(default_factory=list)
    """The assertions of the speaker that said it again during a conflict."""

    @property
    def first(self) -> Assertion:
        """The oldest assertion, which is shown."""
        return self.assertions[0]

    @property
    def statement(self) -> int:
        """The node of the oldest assertion."""
        return self.first.statement

    @property
    def messages(self) -> set[int]:
        """The messages that state it."""
        return {one.source.message for one in self.assertions}

    @property
    def confidence(self) -> float:
        """The confidence of the evidence: each further message raises it."""
        by_message: dict[int, float] = {}
        for one in self.assertions:
            number = one.source.message
            by_message[number] = max(by_message.get(number, 0.0), one.confidence)
        combined = 1 - math.prod(1 - each for each in by_message.values())
        return max(min(MAX_CONFIDENCE, combined), *by_message.values())

    def holds_at(self, time_ms: int) -> bool:
        """Return whether it is true at a time."""
        return (
            not self.withdrawn
            and self.since_ms <= time_ms
            and (self.until_ms is None or time_ms < self.until_ms)
        )

    def overlaps(self, since_ms: int, until_ms: int | None) -> bool:
        """Return whether it shares a time with an interval. An empty interval shares none."""
        latest = max(self.since_ms, since_ms)
        return all(end is None or latest < end for end in (self.until_ms, until_ms))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two versions of one slot that contradict each other at a time, the one with the higher priority first."""

    first: Version
    second: Version


class Ledger:
    """The assertions and rulings of one agent, and what is true according to them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._assertions: dict[int, Assertion] = {}
        self._rulings: dict[int, Ruling] = {}
        self._by_statement: dict[int, set[int]] = defaultdict(set)
        self._by_subject: dict[int, dict[str, set[int]]] = defaultdict(dict)
        self._now = Replay(self, None)
        self._arrivals: tuple[list[int], list[int]] | None = None
        self.apply(entries)

    def apply(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those with the same numbers."""
        for entry in entries:
            self._drop(entry.entry)
            if isinstance(entry, Assertion):
                self._assertions[entry.entry] = entry
                self._by_statement[entry.statement].add(entry.entry)
                self._by_subject[entry.subject].setdefault(entry.slot, set()).add(entry.entry)
                self._now.forget(entry)
            else:
                self._rulings[entry.entry] = entry
                self._now = Replay(self, None)
        self._arrivals = None

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove entries, as if they had never arrived."""
        for number in numbers:
            self._drop(number)
        self._arrivals = None

    def _drop(self, number: int) -> None:
        assertion = self._assertions.pop(number, None)
        if assertion is not None:
            self._now.forget(assertion)
            entries = self._by_statement[assertion.statement]
            entries.discard(number)
            if not entries:
                del self._by_statement[assertion.statement]
            slots = self._by_subject[assertion.subject]
            slots[assertion.slot].discard(number)
            if not slots[assertion.slot]:
                del slots[assertion.slot]
            if not slots:
                del self._by_subject[assertion.subject]
        if self._rulings.pop(number, None) is not None:
            self._now = Replay(self, None)

    def known(self, known_at_ms: int | None = None) -> Replay:
        """Return what was known at a time, or everything."""
        if known_at_ms is None:
            return self._now
        if self._arrivals is None:
            entries: list[Entry] = [*self._assertions.values(), *self._rulings.values()]
            arrived = sorted(entries, key=lambda entry: entry.entry)
            times = list(accumulate((entry.known_at_ms for entry in arrived), max))
            self._arrivals = times, [entry.entry for entry in arrived]
        times, numbers = self._arrivals
        count = bisect_right(times, known_at_ms)
        if count == len(numbers):
            return self._now
        return Replay(self, numbers[count])

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._assertions) + len(self._rulings)

    @property
    def statements(self) -> Iterable[int]:
        """The nodes that are statements."""
        return self._by_statement.keys()

    @property
    def statement_count(self) -> int:
        """The number of statements."""
        return len(self._by_statement)

    def all_assertions(self) -> Iterable[Assertion]:
        """Return every assertion."""
        return self._assertions.values()

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
        return [self._assertions[number] for number in sorted(self._by_statement.get(statement, ()))]

    def evidence(self, candidate: Assertion) -> list[int]:
        """Return the statements that a new assertion would repeat, the newest first; empty for a new value."""
        for version in self._now.replay(self._now.key_of(candidate), candidate):
            if candidate in version.assertions:
                return [one.statement for one in reversed(version.assertions) if one is not candidate]
        return []

    def messages_of(self, kinds: Collection[str]) -> list[int]:
        """Return the messages in which statements of some kinds are made."""
        return sorted({one.source.message for one in self._assertions.values() if one.kind in kinds})

    # For replays.

    def is_said(self, statement: int, before: int | None) -> bool:
        """Return whether a statement has an assertion, up to an entry number."""
        entries = self._by_statement.get(statement, ())
        return any(before is None or number < before for number in entries)

    def between(self, subjects: Iterable[int], slot: str, before: int | None) -> list[Assertion]:
        """Return the assertions of a slot of some entities in order, up to an entry number."""
        numbers = [
            number
            for subject in subjects
            for number in self._by_subject.get(subject, {}).get(slot, ())
            if before is None or number < before
        ]
        return [self._assertions[number] for number in sorted(numbers)]

    def slots_of(self, subjects: Iterable[int]) -> set[str]:
        """Return the slots of which statements about some entities are made."""
        return {slot for subject in subjects for slot in self._by_subject.get(subject, ())}

    def subjects(self) -> list[int]:
        """Return the entities about which statements are made."""
        return list(self._by_subject)

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


class Replay:
    """The versions of all slots, computed from the entries up to one."""

    def __init__(self, ledger: Ledger, before: int | None) -> None:
        self._ledger = ledger
        self._before = before
        self._versions: dict[Key, list[Version]] = {}
        self._rulings: list[Ruling] | None = None
        self._roots: dict[int, int] = {}
        self._members: dict[int, set[int]] = {}
        self._withdrawn: dict[int, tuple[int, Literal["corrected", "retracted"]]] = {}
        self._settled: list[Ruling] = []

    def forget(self, assertion: Assertion) -> None:
        """Forget what was computed of the slot of an assertion that is added or removed."""
        self._versions.pop(self.key_of(assertion), None)

    @property
    def rulings(self) -> list[Ruling]:
        """The rulings in effect, in order."""
        if self._rulings is None:
            self._rulings = self._ledger.rulings_before(self._before)
            for ruling in self._rulings:
                if ruling.kind == "merge":
                    self._merge(ruling.target, ruling.other)
                elif ruling.kind == "retract":
                    self._withdrawn[ruling.target] = ruling.entry, "retracted"
                elif ruling.kind == "correct":
                    self._withdrawn[ruling.target] = ruling.entry, "corrected"
                elif ruling.kind == "settle":
                    self._settled.append(ruling)
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

    def key_of(self, assertion: Assertion) -> Key:
        """Return the merged entity and the slot of an assertion."""
        return self.root(assertion.subject), assertion.slot

    def versions(self, subject: int, slot: str) -> Sequence[Version]:
        """Return all versions of a slot of an entity in order of arrival, withdrawn and empty ones included."""
        key = self.root(subject), slot
        if key not in self._versions:
            self._versions[key] = self.replay(key)
        return self._versions[key]

    def replay(self, key: Key, candidate: Assertion | None = None) -> list[Version]:
        """Replay a slot, with a further assertion at the end if given."""
        assert self.rulings is not None
        subject, name = key
        assertions = self._ledger.between(self.merged_with(subject), name, self._before)
        if candidate is not None:
            assertions.append(candidate)
        statements = {one.statement for one in assertions}
        settled = [one for one in self._settled if one.target in statements and one.other in statements]
        slot = slot_of(name)
        versions: list[Version] = []
        steps: list[Entry] = sorted((*assertions, *settled), key=lambda entry: entry.entry)
        for entry in steps:
            if isinstance(entry, Ruling):
                _settle(versions, entry)
                continue
            entry_number, withdrawal = self._withdrawn.get(entry.statement, (0, "retracted"))
            if entry.entry < entry_number:
                _add_withdrawn(versions, entry, withdrawal)
            else:
                _add(versions, entry, slot, self._compare)
        return versions

    def _compare(self, new: Assertion, old: Assertion) -> Comparison:
        """Compare two objects. Objects that are one entity are the same, whatever their words."""
        if (
            new.object_entity
            and old.object_entity
            and self.root(new.object_entity) == self.root(old.object_entity)
        ):
            return "same"
        return compare(new.object, old.object)

    def in_force(self, subject: int, slot: str, as_of_ms: int, now_ms: int) -> list[Version]:
        """Return the versions of a slot that are true at a time, the best first."""
        found = [version for version in self.versions(subject, slot) if version.holds_at(as_of_ms)]
        return sorted(found, key=lambda one: self._order(one, found, as_of_ms, now_ms))

    def _order(
        self, version: Version, others: Sequence[Version], as_of_ms: int, now_ms: int
    ) -> tuple[bool, float, int]:
        """Order contested versions by priority, then narrower before wider ones and newer before older ones."""
        is_contested = any(one.holds_at(as_of_ms) for one in version.rivals)
        priority = -self.priority(version, now_ms) if is_contested else 0.0
        value = version.first.object
        is_wider = any(
            len(one.first.object) > len(value) and compare(one.first.object, value) == "refines"
            for one in others[:MAX_EVIDENCE]
        )
        return is_wider, priority, -version.since_ms

    def profile(self, subject: int, as_of_ms: int, now_ms: int) -> Iterator[tuple[str, list[Version]]]:
        """Yield each slot of an entity with the versions that are true at a time, the lasting slots first."""
        names = self._ledger.slots_of(self.merged_with(subject))
        for name in sorted(names, key=lambda name: (not slot_of(name).is_lasting, name)):
            if found := self.in_force(subject, name, as_of_ms, now_ms):
                yield name, found

    def history(self, statement: int) -> list[Version]:
        """Return all versions of the slot of a statement, by the time from which they are true."""
        assertions = self._ledger.assertions_of(statement)
        if not assertions:
            return []
        found = self.versions(assertions[0].subject, assertions[0].slot)
        return sorted(found, key=lambda one: (one.since_ms, one.first.entry))

    def version_of(self, statement: int) -> Version | None:
        """Return the last version that an assertion of a statement supports."""
        for version in reversed(self.history(statement)):
            if any(one.statement == statement for one in version.assertions):
                return version
        return None

    def state(self, version: Version, as_of_ms: int) -> State:
        """Return the state of a version at a time."""
        if version.withdrawn:
            return version.withdrawn
        if version.holds_at(as_of_ms):
            return "contested" if any(one.holds_at(as_of_ms) for one in version.rivals) else "current"
        if version.since_ms > as_of_ms and (version.until_ms is None or version.until_ms > version.since_ms):
            return "planned"
        return "superseded" if version.retired_by else "ended"

    def counts(self, as_of_ms: int) -> Counter[tuple[str, str]]:
        """Return the number of statements by kind and state at a time."""
        found: Counter[tuple[str, str]] = Counter()
        for root in {self.root(subject) for subject in self._ledger.subjects()}:
            for name in self._ledger.slots_of(self.merged_with(root)):
                for version in self.versions(root, name):
                    statements = {one.statement for one in version.assertions}
                    found[version.first.kind, self.state(version, as_of_ms)] += len(statements)
        return found

    def conflicts(self, as_of_ms: int, now_ms: int) -> list[Conflict]:
        """Return the pairs of versions that contradict each other at a time, in order of arrival."""
        roots = sorted({self.root(subject) for subject in self._ledger.subjects()})
        return [pair for root in roots for pair in self.conflicts_of(root, as_of_ms, now_ms)]

    def conflicts_of(self, root: int, as_of_ms: int, now_ms: int) -> Iterator[Conflict]:
        """Yield the pairs of versions of an entity that contradict each other at a time."""
        for name in sorted(self._ledger.slots_of(self.merged_with(root))):
            for version in self.versions(root, name):
                for rival in version.rivals:
                    if rival.first.entry > version.first.entry and all(
                        one.holds_at(as_of_ms) for one in (version, rival)
                    ):
                        pair = sorted((version, rival), key=lambda one: -self.priority(one, now_ms))
                        yield Conflict(*pair)

    def votes(self, statement: int) -> tuple[int, int]:
        """Return the votes for and against a statement; the last vote of each author counts."""
        last = {
            one.author: one.value for one in self.rulings if one.kind == "vote" and one.target == statement
        }
        return sum(value > 0 for value in last.values()), sum(value < 0 for value in last.values())

    def pinned(self) -> set[int]:
        """Return the statements whose last pin or unpin is a pin."""
        last = {one.target: one.kind for one in self.rulings if one.kind in ("pin", "unpin")}
        return {
            target
            for target, kind in last.items()
            if kind == "pin" and self._ledger.is_said(target, self._before)
        }

    def priority(self, version: Version, now_ms: int) -> float:
        """Return the priority of a version (knowledge model, section 3). It orders, and ends nothing."""
        days = max(0, now_ms - max(one.told_at_ms for one in version.assertions)) / DAY_MS
        supports, contradicts = self.votes(version.statement)
        contradicts += len(version.rivals)
        return (
            0.35 * max(one.trust for one in version.assertions)
            + 0.30 * math.exp(-days / 90)
            + 0.25 * (1 - 0.5 ** len(version.messages))
            + 0.10 * (1 + supports - contradicts) / (2 + supports + contradicts)
        )

    def kept(self, now_ms: int) -> set[int]:
        """Return the statements that no pass forgets: true now in a lasting slot, an open task, or pinned."""
        found = self.pinned()
        for root in {self.root(subject) for subject in self._ledger.subjects()}:
            for name in self._ledger.slots_of(self.merged_with(root)):
                is_lasting = slot_of(name).is_lasting
                for version in self.versions(root, name):
                    if version.holds_at(now_ms) and (is_lasting or version.first.kind == "task"):
                        found.update(one.statement for one in version.assertions)
        return found


# The table of versions and contradictions (knowledge model, section 3).


def _add_withdrawn(
    versions: list[Version], assertion: Assertion, withdrawal: Literal["corrected", "retracted"]
) -> None:
    """Add an assertion that a ruling has withdrawn."""
    for version in versions:
        if version.withdrawn and version.statement == assertion.statement:
            version.assertions.append(assertion)
            return
    since_ms = assertion.told_at_ms if assertion.since_ms is None else assertion.since_ms
    versions.append(Version([assertion], since_ms, assertion.until_ms, withdrawn=withdrawal))


def _add(
    versions: list[Version], new: Assertion, slot: Slot, compare: Callable[[Assertion, Assertion], Comparison]
) -> None:
    """Add an assertion to a slot: as evidence of a version, or as a new version that may end others."""
    since_ms = new.told_at_ms if new.since_ms is None else new.since_ms
    added = Version([new], since_ms, new.until_ms)
    open_ones = [one for one in versions if not one.withdrawn and one.overlaps(since_ms, new.until_ms)]
    relations = [(one, _relation(added, one, slot, compare)) for one in open_ones]
    for old, relation in relations:
        if relation == "same":
            old.assertions.append(new)
            _settle_by_repetition(old, new)
            return
    has_cue = new.reports_change or bool(new.replaces) or slot.name == "age"
    may_retire = new.modality == "asserted" and new.trust >= MIN_TRUST
    is_exclusive = slot.cardinality in ("one", "few")
    for old, relation in relations:
        if may_retire and new.replaces and _states(old, new.replaces):
            _retire(old, added)
        elif relation == "compatible":
            continue
        elif is_exclusive and has_cue and may_retire:
            if added.since_ms >= old.since_ms:
                _retire(old, added)
            else:
                _retire(added, old)
        elif relation == "opposite" or slot.cardinality == "one":
            old.rivals.append(added)
            added.rivals.append(old)
    versions.append(added)


def _relation(
    added: Version, old: Version, slot: Slot, compare: Callable[[Assertion, Assertion], Comparison]
) -> Literal["same", "opposite", "different", "compatible"]:
    """Return how a new version relates to another one that is true at the same time."""
    new, first = added.first, old.first
    is_plan = new.modality == "planned"
    if is_plan != (first.modality == "planned") or (
        slot.cardinality == "many" and _are_two_events(added, old)
    ):
        return "compatible"
    relation = compare(new, first)
    is_opposite = new.negated != first.negated
    if relation == "same" and not is_opposite:
        return "same"
    if is_plan:
        return "compatible"
    if is_opposite:
        return "compatible" if relation == "different" else "opposite"
    return "different" if relation == "different" and not new.negated else "compatible"


def _are_two_events(one: Version, other: Version) -> bool:
    """Return whether both are events, of days that are neither equal nor adjacent."""
    days = abs(one.since_ms // DAY_MS - other.since_ms // DAY_MS)
    return one.first.kind == other.first.kind == "event" and days > 1


def _states(version: Version, statement: int) -> bool:
    return any(one.statement == statement for one in version.assertions)


def _retire(old: Version, new: Version) -> None:
    """End a version when another one begins, unless it ends before."""
    if old.until_ms is None or new.since_ms < old.until_ms:
        old.until_ms = max(old.since_ms, new.since_ms)
        old.retired_by = new.statement


def _settle_by_repetition(version: Version, new: Assertion) -> None:
    """Settle the conflicts of a version if the speaker alone has said it again often enough."""
    if not version.rivals or new.modality != "asserted" or new.trust < 1:
        return
    version.repeated.append(new)
    for rival in list(version.rivals):
        contested_from = max(version.first.entry, rival.first.entry)
        if not _said_again(rival, contested_from, 1) and _said_again(
            version, contested_from, SETTLING_MESSAGES
        ):
            _end_conflict(version, rival)


def _said_again(version: Version, entry: int, count: int) -> bool:
    """Return whether so many further messages of the speaker said it again after an entry."""
    before = {one.source.message for one in version.assertions if one.entry <= entry}
    found: set[int] = set()
    for one in reversed(version.repeated):
        if one.entry <= entry or len(found) >= count:
            break
        found |= {one.source.message} - before
    return len(found) >= count


def _settle(versions: Sequence[Version], ruling: Ruling) -> None:
    """End the conflict of two statements in favour of one."""
    for kept in versions:
        if _states(kept, ruling.target):
            for rival in list(kept.rivals):
                if _states(rival, ruling.other):
                    _end_conflict(kept, rival)


def _end_conflict(kept: Version, other: Version) -> None:
    """End the version that lost a conflict: when the other one begins, or from its beginning if that is earlier."""
    if kept.overlaps(other.since_ms, other.until_ms):
        _retire(other, kept)
        kept.rivals.remove(other)
        other.rivals.remove(kept)
