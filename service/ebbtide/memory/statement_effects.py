"""Effects of changed assertions and rulings on statements and entities, for the event log.

Two replays are compared: without the change and with it, of the slots that it concerns. A slot in which new assertions
cannot end or contradict anything is not replayed. The rule guarded here: the effects follow from the entries alone, so
every way to change a statement has the same events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ebbtide.memory.statements import Entry, Ledger, Replay, Version
from ebbtide.statements import Assertion, Ruling

Pair = tuple[int, int]


@dataclass(slots=True)
class Effects:
    """The statements and entities that a change concerns, by what happened to them."""

    closed: list[Pair] = field(default_factory=list)
    """A statement that was superseded, corrected or retracted, and the one that takes its place; 0 for none."""
    found: list[Pair] = field(default_factory=list)
    """Two statements that contradict each other now."""
    settled: list[Pair] = field(default_factory=list)
    """Two statements that no longer contradict each other, the one that is still true first."""
    promoted: list[int] = field(default_factory=list)
    """A statement that is true again, or comes first among those that contradict each other."""
    demoted: list[int] = field(default_factory=list)
    """A statement that no longer comes first among those that contradict each other."""
    merged: list[Pair] = field(default_factory=list)
    separated: list[Pair] = field(default_factory=list)


def effects_of(ledger: Ledger, added: Sequence[Entry], removed: Collection[int], now_ms: int) -> Effects:
    """Return the effects of adding entries to a ledger and removing others. The ledger does not change."""
    before, found = ledger.known(), Effects()
    rulings = list(_changed_rulings(ledger, added, removed))
    assertions = list(_changed_assertions(ledger, added, removed))
    slots = {(one.subject, one.slot) for one in assertions}
    if not rulings and len(assertions) == len(added):  # nothing is removed or replaced
        slots = set(_slots_with_effects(assertions, before))
        if not slots:
            return found
    changed = _ChangedLedger(ledger, added, removed)
    after = changed.known()
    for ruling in rulings:
        slots.update(_slots_of(ruling, ledger, changed, before, after))
    _compare_entities(rulings, before, after, found)
    _compare_versions(_versions(before, slots), _versions(after, slots), before, after, now_ms, found)
    changed.release()
    return found


class _ChangedLedger(Ledger):
    """A ledger with some entries more and some fewer, without a copy of it."""

    def __init__(self, ledger: Ledger, added: Sequence[Entry], removed: Collection[int]) -> None:
        self._base = ledger
        self._added = [one for one in added if isinstance(one, Assertion)]
        super().__init__(one for one in added if isinstance(one, Ruling))
        self._without = {*removed, *(one.entry for one in added)}

    def between(self, subjects: Iterable[int], slot: str, before: int | None) -> list[Assertion]:
        """Return the assertions of a slot of some entities in order."""
        wanted = set(subjects)
        left = [one for one in self._base.between(wanted, slot, before) if one.entry not in self._without]
        more = [one for one in self._added if one.subject in wanted and one.slot == slot]
        return sorted([*left, *more], key=lambda one: one.entry) if more else left

    def all_rulings(self) -> Iterator[Ruling]:
        """Yield every ruling, also those that are undone."""
        yield from (one for one in self._base.all_rulings() if one.entry not in self._without)
        yield from super().all_rulings()

    def assertions_of(self, statement: int) -> list[Assertion]:
        """Return the assertions of a statement in order."""
        left = [one for one in self._base.assertions_of(statement) if one.entry not in self._without]
        more = [one for one in self._added if one.statement == statement]
        return sorted([*left, *more], key=lambda one: one.entry)

    def slots_of(self, subjects: Iterable[int]) -> set[str]:
        """Return the slots of which statements about some entities are made, and those that they lose."""
        wanted = set(subjects)
        return self._base.slots_of(wanted) | {one.slot for one in self._added if one.subject in wanted}


def _slots_with_effects(added: Iterable[Assertion], before: Replay) -> Iterator[tuple[int, str]]:
    """Yield the slots in which new assertions may end a statement, make one true again, or contradict one."""
    said: dict[tuple[int, str], list[Assertion]] = {}
    for one in added:
        said.setdefault(before.key_of(one), []).append(one)
    for key, some in said.items():
        slot = before.slot(key)
        if not slot.versions and len(some) == 1:
            continue
        if (
            slot.slot.cardinality != "many"
            or any(one.negated or one.replaces for one in some)
            or any(version.first.negated or _is_closed(version) for version in slot.versions)
        ):
            yield key


def _changed_assertions(
    ledger: Ledger, added: Sequence[Entry], removed: Collection[int]
) -> Iterator[Assertion]:
    numbers = {*removed, *(one.entry for one in added)}
    yield from (one for one in added if isinstance(one, Assertion))
    yield from filter(None, map(ledger.assertion, numbers))


def _changed_rulings(ledger: Ledger, added: Sequence[Entry], removed: Collection[int]) -> Iterator[Ruling]:
    """Yield the rulings that are added or removed, and those that they undo."""
    numbers = {*removed, *(one.entry for one in added)}
    changed = [one for one in added if isinstance(one, Ruling)]
    changed += filter(None, map(ledger.ruling, numbers))
    yield from changed
    undone = {one.target for one in changed if one.kind == "undo"}
    while undone:
        found = list(filter(None, map(ledger.ruling, undone)))
        yield from found
        undone = {one.target for one in found if one.kind == "undo"}


def _slots_of(
    ruling: Ruling, ledger: Ledger, changed: Ledger, before: Replay, after: Replay
) -> Iterator[tuple[int, str]]:
    """Yield the slots that a ruling concerns."""
    if ruling.kind == "merge":
        members: set[int] = set()
        for entity in (ruling.target, ruling.other):
            members |= before.merged_with(entity) | after.merged_with(entity)
        for subject in members:
            yield from ((subject, slot) for slot in changed.slots_of((subject,)))
        for one in ledger.all_assertions():
            if one.object_entity in members:
                yield one.subject, one.slot
    elif ruling.kind in ("settle", "correct", "retract", "vote"):
        for statement in (ruling.target, ruling.other):
            for one in (*ledger.assertions_of(statement), *changed.assertions_of(statement)):
                yield one.subject, one.slot


def _versions(replay: Replay, slots: Collection[tuple[int, str]]) -> list[Version]:
    """Return the versions of slots, those of each slot by the time from which they are true."""
    keys = sorted({(replay.root(subject), slot) for subject, slot in slots})
    return [
        version
        for key in keys
        for version in sorted(replay.versions(*key), key=lambda one: (one.since_ms, one.first.entry))
    ]


def _compare_entities(rulings: Iterable[Ruling], before: Replay, after: Replay, found: Effects) -> None:
    pairs = dict.fromkeys((one.target, one.other) for one in rulings if one.kind == "merge")
    for pair in pairs:
        was, now = (replay.root(pair[0]) == replay.root(pair[1]) for replay in (before, after))
        if now and not was:
            found.merged.append(pair)
        elif was and not now:
            found.separated.append(pair)


def _compare_versions(
    old: Sequence[Version],
    new: Sequence[Version],
    before: Replay,
    after: Replay,
    now_ms: int,
    found: Effects,
) -> None:
    old_of, new_of = _by_statement(old), _by_statement(new)
    corrections = {one.target: one.other for one in after.rulings if one.kind == "correct"}
    for statement, version in new_of.items():
        was_closed = statement in old_of and _is_closed(old_of[statement])
        if _is_closed(version) and not was_closed:
            by = corrections.get(statement, 0) if version.withdrawn else version.retired_by
            found.closed.append((statement, by))
        elif was_closed and not _is_closed(version):
            found.promoted.append(statement)
    old_priorities, new_priorities = _priorities(old, before, now_ms), _priorities(new, after, now_ms)
    old_states, new_states = _states(old, before, old_priorities), _states(new, after, new_priorities)
    changed = {
        statement
        for statement in old_states.keys() | new_states.keys()
        if old_states.get(statement) != new_states.get(statement)
    }
    old_pairs, new_pairs = _conflicts(old, changed), _conflicts(new, changed)
    found.found += new_pairs.keys() - old_pairs.keys()
    for pair in old_pairs.keys() - new_pairs.keys():
        is_true = [one in new_of and not _is_closed(new_of[one]) for one in pair]
        found.settled.append(pair[::-1] if is_true == [False, True] else pair)
    for pair in sorted(old_pairs.keys() & new_pairs.keys()):
        was_first = _first(old_pairs[pair], old_priorities)
        is_first = _first(new_pairs[pair], new_priorities)
        if is_first != was_first:
            found.promoted.append(is_first)
            found.demoted.append(was_first)
    for pairs in (found.found, found.settled):
        pairs.sort()
    # A statement may come first, or no longer, in several pairs, also by an older version than the one that is closed.
    closed = {statement for statement, _ in found.closed}
    for statements in (found.promoted, found.demoted):
        statements[:] = [one for one in dict.fromkeys(statements) if one not in closed]


def _by_statement(versions: Sequence[Version]) -> dict[int, Version]:
    """Return the last version that an assertion of each statement supports."""
    return {one.statement: version for version in versions for one in version.assertions}


def _is_closed(version: Version) -> bool:
    return bool(version.withdrawn or version.retired_by)


def _priorities(versions: Iterable[Version], replay: Replay, now_ms: int) -> dict[int, float]:
    """Return the priority of each version, by its first entry."""
    return {one.first.entry: replay.priority(one, now_ms) for one in versions}


def _states(
    versions: Sequence[Version], replay: Replay, priorities: Mapping[int, float]
) -> dict[int, list[object]]:
    """Return what decides which versions contradict those of each statement, and which of them comes first."""
    found: dict[int, list[object]] = {}
    for version in versions:
        entity = version.first.object_entity
        found.setdefault(version.statement, []).append(
            (
                version.first,
                version.since_ms,
                version.until_ms,
                version.retired_by,
                version.withdrawn,
                entity and replay.root(entity),
                priorities[version.first.entry],
            )
        )
    return found


def _conflicts(versions: Sequence[Version], changed: Collection[int]) -> dict[Pair, tuple[Version, Version]]:
    """Return the pairs of open versions that contradict each other, one of them changed, by their statements.

    The pairs of a topic with many values are too many to compare all of them with each change.
    """
    pairs = [
        (version, rival) if version.first.entry < rival.first.entry else (rival, version)
        for version in versions
        if version.statement in changed and not _is_closed(version)
        for rival in version.rivals
        if not _is_closed(rival)
    ]
    return {
        (min(one.statement, other.statement), max(one.statement, other.statement)): (one, other)
        for one, other in pairs
    }


def _first(pair: tuple[Version, Version], priorities: Mapping[int, float]) -> int:
    """Return the statement of a pair that has the higher priority; the older one if they have the same."""
    first, second = (priorities[version.first.entry] for version in pair)
    return pair[second > first].statement
