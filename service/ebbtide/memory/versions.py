"""Versions: the values of one slot of an entity over time, replayed from assertions and rulings in order of arrival.

This is the table of versions and contradictions (knowledge model, section 3). Two rules keep a replay of thousands of
values fast. Versions of the same value never share a time, so the one that a new assertion repeats is found by its
begin. And conflicts are not stored: two versions contradict each other if they share a time and their values do.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, islice
from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np

from ebbtide.memory.columns import Array
from ebbtide.memory.slot_names import Slot
from ebbtide.memory.values import Comparison, Date, Value, compare_values, value_of
from ebbtide.statements import KINDS, Assertion, Ruling

MIN_TRUST: Final = 0.5
"""A statement with less trust ends no other."""
MAX_CONFIDENCE: Final = 0.99
DAY_MS: Final = 86_400_000
MAX_NEWS_AGE_MS: Final = 366 * DAY_MS
"""A change that began longer before it was said is history, not news."""
FOREVER: Final = 1 << 62
MANY: Final = 48
"""From this many versions on, those that share a time are searched in arrays."""

NO_TIMES: Final = np.zeros(0, dtype=np.int64)
ALL: Final = (0, FOREVER)
"""The entry numbers of all assertions."""

Withdrawal = Literal["corrected", "retracted"]
T = TypeVar("T")

Same = tuple[bool, bool, str | Date | int]
"""The equal parts of versions that are the same: negation, planned or not, and the value or the entity that it is."""


@dataclass(slots=True, eq=False)
class Version:
    """A value of a slot over a time: the assertions that state it, and what ended it."""

    assertions: list[Assertion]
    since_ms: int
    until_ms: int | None
    replay: SlotReplay = field(repr=False)
    place: int = -1
    """Its place among the versions of the slot."""
    number: int = -1
    """Its place among the versions with its negation; -1 for a plan and a withdrawn one."""
    retired_by: int = 0
    """The statement that ended it; 0 if none did."""
    withdrawn: Literal["", "corrected", "retracted"] = ""
    said: dict[int, int] | None = None
    """By message that states it, the entry that did first. Set when a second assertion does."""
    repeats: tuple[int, int] = (0, 0)
    """The first entries of the two messages with which the speaker said it again last, the latest one first."""
    _value: Value | None = field(default=None, repr=False)

    @property
    def first(self) -> Assertion:
        """The oldest assertion, which is shown."""
        return self.assertions[0]

    @property
    def statement(self) -> int:
        """The node of the oldest assertion."""
        return self.assertions[0].statement

    @property
    def messages(self) -> set[int]:
        """The messages that state it."""
        return {one.source.message for one in self.assertions}

    @property
    def value(self) -> Value:
        """The value, normalised."""
        if self._value is None:
            self._value = value_of(self.assertions[0].object)
        return self._value

    @property
    def is_empty(self) -> bool:
        """Whether it is true at no time."""
        return self.until_ms is not None and self.until_ms <= self.since_ms

    @property
    def rivals(self) -> list[Version]:
        """The versions that contradict it at some time, in order of arrival."""
        return sorted(self.replay.rivals(self), key=_arrival)

    @property
    def message_count(self) -> int:
        """The number of messages that state it."""
        return 1 if len(self.assertions) == 1 else len(self.messages)

    @property
    def told_at_ms(self) -> int:
        """When it was said last."""
        if len(self.assertions) == 1:
            return self.assertions[0].told_at_ms
        return max([one.told_at_ms for one in self.assertions])

    @property
    def is_observation(self) -> bool:
        """Whether no words state its beginning: it was true when it was said, and probably before."""
        return all(one.since_ms is None for one in self.assertions)

    @property
    def trust(self) -> float:
        """The highest trust of an assertion."""
        return max([one.trust for one in self.assertions])

    @property
    def confidence(self) -> float:
        """The confidence of the evidence: each further message raises it."""
        if len(self.assertions) == 1:
            return self.assertions[0].confidence
        by_message: dict[int, float] = {}
        for one in self.assertions:
            number = one.source.message
            by_message[number] = max(by_message.get(number, 0.0), one.confidence)
        combined = 1 - math.prod(1 - each for each in by_message.values())
        return max(min(MAX_CONFIDENCE, combined), *by_message.values())

    def rivals_at(self, time_ms: int) -> list[Version]:
        """Return the versions that contradict it at a time at which it is true, in order of arrival."""
        return Conflicts(self.replay, time_ms).rivals(self)

    def holds_at(self, time_ms: int) -> bool:
        """Return whether it is true at a time."""
        return (
            not self.withdrawn
            and self.since_ms <= time_ms
            and (self.until_ms is None or time_ms < self.until_ms)
        )

    def is_open_plan(self, time_ms: int) -> bool:
        """Return whether it is a plan for a later time, and was made up to a time."""
        return (
            self.since_ms > time_ms
            and self.first.modality == "planned"
            and not self.withdrawn
            and not self.is_empty
            and any(one.told_at_ms <= time_ms for one in self.assertions)
        )

    def is_contested(self, time_ms: int) -> bool:
        """Return whether another version contradicts it at a time."""
        return self.holds_at(time_ms) and any(self.replay.rivals(self, time_ms))

    def overlaps(self, since_ms: int, until_ms: int | None) -> bool:
        """Return whether it shares a time with an interval. An empty interval shares none."""
        latest = max(self.since_ms, since_ms)
        return (self.until_ms is None or latest < self.until_ms) and (until_ms is None or latest < until_ms)

    def repeat(self, new: Assertion) -> bool:
        """Add an assertion that says the same. Return whether the speaker said it again, in a further message."""
        if self.said is None:
            self.said = {self.first.source.message: self.first.entry}
        self.assertions.append(new)
        first = self.said.setdefault(new.source.message, new.entry)
        if new.modality != "asserted" or new.trust < 1 or first in self.repeats or first < self.repeats[1]:
            return False
        latest, earlier, *_ = sorted((*self.repeats, first), reverse=True)
        self.repeats = latest, earlier
        return True


class VersionColumns(NamedTuple):
    """Fields of versions that a search compares, an array each."""

    told_at_ms: Array
    since_ms: Array
    until_ms: Array
    """`FOREVER` for an open end."""
    importance: Array
    kind: Array
    """Its place in `KINDS`."""
    is_planned: Array
    is_withdrawn: Array
    may_follow: Array
    """Whether another value of the slot may have been true before it, as far as its kind and negation say."""


class _Periods:
    """Versions that never share a time, by their begin."""

    __slots__ = ("_begins", "_entries", "_only", "_versions")

    def __init__(self, version: Version) -> None:
        self._only: Version | None = version
        """The version, if there is one. The lists are filled when there is a second one."""
        self._versions: list[Version] = []
        self._begins: list[int] = []
        self._entries: list[int] = []
        """The first entries of the versions."""

    def add(self, version: Version) -> None:
        """Add a version that shares no time with another one."""
        for one in (self._only, version):
            if one is not None:
                place = bisect_left(self._begins, one.since_ms)
                self._begins.insert(place, one.since_ms)
                self._versions.insert(place, one)
                self._entries.insert(place, one.first.entry)
        self._only = None

    def remove(self, version: Version) -> None:
        """Remove a version."""
        if self._only is version:
            self._only = None
            return
        place = bisect_left(self._begins, version.since_ms)
        if place < len(self._versions) and self._versions[place] is version:
            del self._begins[place], self._versions[place], self._entries[place]

    def first(self, since_ms: int, until_ms: int | None) -> Version | None:
        """Return the version that arrived first of those that share a time with an interval."""
        if self._only is not None:
            return self._only if self._only.overlaps(since_ms, until_ms) else None
        begin = bisect_right(self._begins, since_ms)
        end = len(self._begins) if until_ms is None else bisect_left(self._begins, until_ms, begin)
        if begin and self._versions[begin - 1].overlaps(since_ms, until_ms):
            begin -= 1
        if begin >= end:
            return None
        if begin + 1 == end:
            return self._versions[begin]
        return self._versions[self._entries.index(min(self._entries[begin:end]), begin, end)]


class _Timeline:
    """Versions in order of arrival, to find those that share a time with an interval."""

    __slots__ = ("_begins", "_by_begin", "_endless", "_ends", "_last_end_ms", "versions")

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self._by_begin: list[tuple[int, int]] = []
        """The begins and the numbers of the versions that are not empty, by begin."""
        self._begins = self._ends = NO_TIMES
        """By number, once there are many."""
        self._endless: dict[int, Version] = {}
        """The versions without an end, by number."""
        self._last_end_ms = -FOREVER
        """The latest end of another version."""

    def add(self, version: Version) -> None:
        """Add a version."""
        version.number = len(self.versions)
        self.versions.append(version)
        if not version.is_empty:
            insort(self._by_begin, (version.since_ms, version.number))
        self._note_end(version)
        if len(self.versions) < MANY:
            return
        if len(self.versions) > len(self._begins):
            self._begins, self._ends = (
                np.resize(one, 2 * len(self.versions)) for one in (self._begins, self._ends)
            )
            for one in self.versions:
                self._note(one)
        self._note(version)

    def _note(self, version: Version) -> None:
        self._begins[version.number] = version.since_ms
        # An empty version shares no time with another one.
        end = FOREVER if version.until_ms is None else version.until_ms
        self._ends[version.number] = -FOREVER if version.is_empty else end

    def _note_end(self, version: Version) -> None:
        if version.until_ms is None:
            self._endless[version.number] = version
        else:
            self._endless.pop(version.number, None)
            self._last_end_ms = max(self._last_end_ms, version.until_ms)

    def end(self, version: Version) -> None:
        """Note that a version ends earlier."""
        self._note_end(version)
        if version.number < len(self._ends):
            self._note(version)
        if version.is_empty:
            place = bisect_left(self._by_begin, (version.since_ms, version.number))
            if self._by_begin[place : place + 1] == [(version.since_ms, version.number)]:
                del self._by_begin[place]

    def sharing(
        self, since_ms: int, until_ms: int | None, entries: tuple[int, int] = ALL
    ) -> Iterator[Version]:
        """Yield the versions that share a time with an interval that is not empty, in order of arrival.

        `entries` are the lowest first entry and the one after the highest.
        """
        first, stop = 0, len(self.versions)
        if entries != ALL:
            first, stop = (bisect_left(self.versions, each, key=_arrival) for each in entries)
        if since_ms >= self._last_end_ms and len(self._endless) < MANY:
            for one in list(self._endless.values()):
                if one.overlaps(since_ms, until_ms) and entries[0] <= _arrival(one) < entries[1]:
                    yield one
            return
        if stop - first < MANY:
            for one in self.versions[first:stop]:
                if one.overlaps(since_ms, until_ms):
                    yield one
            return
        is_open = self._ends[first:stop] > since_ms
        if until_ms is not None:
            is_open &= self._begins[first:stop] < until_ms
        numbers = np.flatnonzero(is_open) + first
        # Most callers need few.
        for start in range(0, len(numbers), MANY):
            for number in numbers[start : start + MANY].tolist():
                yield self.versions[number]

    def beginning(self, after_ms: int, before_ms: int | None) -> Iterator[Version]:
        """Yield the versions that begin between two times, by their begin and arrival."""
        place = bisect_right(self._by_begin, (after_ms, FOREVER))
        while place < len(self._by_begin):
            begin, number = self._by_begin[place]
            if before_ms is not None and begin >= before_ms:
                return
            yield self.versions[number]
            place += 1


def _put(places: dict[T, _Periods], key: T, version: Version) -> None:
    if key in places:
        places[key].add(version)
    else:
        places[key] = _Periods(version)


def by_time(version: Version) -> tuple[int, int]:
    """Return the begin of a version, and its place among those with the same begin."""
    return version.since_ms, version.first.entry


def _arrival(version: Version) -> int:
    return version.assertions[0].entry


class SlotReplay:
    """The versions of one slot of an entity. `roots` maps a merged entity to the one that stands for it."""

    def __init__(self, slot: Slot, roots: Mapping[int, int]) -> None:
        self.slot = slot
        self.versions: list[Version] = []
        """All versions in order of arrival, withdrawn and empty ones included."""
        self.assertion_count = self.last_entry = 0
        self._roots = roots
        self._only: Version | None = None
        """The only version of a slot. It is compared with nothing before there is another assertion."""
        self._periods: dict[Same, _Periods] = {}
        self._events: dict[Same, dict[int, _Periods]] = {}
        """The versions that are events in a slot of any number of values, by day."""
        self._changes: list[tuple[int, int, Version]] = []
        """The versions whose first assertions end others, by their first begin and entry."""
        self._last_change_told_ms = -FOREVER
        self._timelines: tuple[_Timeline, ...] = ()
        """The versions that affirm a value, and those that negate it, without plans. Empty for an only version."""
        self._stating: dict[int, list[Version]] | None = None
        """By statement, the versions that it states. Set when a question needs it."""
        self._columns: VersionColumns | None = None
        """Set when a search needs them, and until the next change."""

    def entity_of(self, version: Version) -> int:
        """Return the merged entity that is the value of a version; 0 if none is."""
        entity = version.assertions[0].object_entity
        return self._root(entity) if entity else 0

    def _root(self, entity: int) -> int:
        return self._roots.get(entity, entity)

    def versions_of(self, statement: int) -> Sequence[Version]:
        """Return the versions that an assertion of a statement supports, in order of arrival."""
        if self._stating is None:
            self._stating = {}
            for version in self.versions:
                for one in version.assertions:
                    self._note_stated(one.statement, version)
        return self._stating.get(statement, ())

    def version_of(self, statement: int) -> Version | None:
        """Return the last version that an assertion of a statement supports."""
        found = self.versions_of(statement)
        return found[0] if len(found) == 1 else max(found, key=by_time, default=None)

    def _note_stated(self, statement: int, version: Version) -> None:
        if self._stating is not None:
            stated = self._stating.setdefault(statement, [])
            if version not in stated:
                stated.append(version)

    def columns(self) -> VersionColumns:
        """Return fields of all versions, in order of arrival."""
        if self._columns is None:
            fields = zip(*map(_fields, self.versions), strict=True)
            types = (np.int64, np.int64, np.int64, np.float64, np.int8, np.bool_, np.bool_, np.bool_)
            self._columns = VersionColumns(*map(np.array, fields, types))
        return self._columns

    # --- the table ---------------------------------------------------------------------------------

    def add_withdrawn(self, assertion: Assertion, withdrawal: Withdrawal) -> None:
        """Add an assertion that a ruling has withdrawn."""
        self._note(assertion)
        for version in self.versions_of(assertion.statement):
            if version.withdrawn and version.statement == assertion.statement:
                version.assertions.append(assertion)
                return
        version = Version([assertion], begin_of(assertion), assertion.until_ms, self, withdrawn=withdrawal)
        self._append(version)

    def add(self, new: Assertion) -> None:
        """Add an assertion: as evidence of a version, or as a new version that may end others."""
        self._note(new)
        old = self.same(new)
        if old is not None:
            before = old.repeats[1]
            if old.repeat(new) and old.repeats[1] > old.first.entry:
                self._settle_by_repetition(old, before)
            self._note_stated(new.statement, old)
            if _may_end(new):
                self._replace_by_known(old, new)
                self._settle_by_change(old, new)
            return
        added = Version([new], begin_of(new), new.until_ms, self)
        if not added.is_empty and self.versions:
            if _may_end(new):
                self._retire_others(added)
            self._end_by_known_change(added)
            self._end_by_known_value(added)
        self._append(added)
        if len(self.versions) == 1:
            self._only = added
        else:
            self._enter(added)

    def _note(self, one: Assertion) -> None:
        self.assertion_count += 1
        self.last_entry = one.entry
        self._columns = None

    def settle(self, ruling: Ruling) -> None:
        """End the conflict of two statements in favour of one."""
        self.last_entry = ruling.entry
        self._columns = None
        for kept in self.versions_of(ruling.target):
            for other in self.versions_of(ruling.other):
                if self.contradict(kept, other):
                    self._retire(other, kept.since_ms, kept.statement)

    def same(self, new: Assertion) -> Version | None:
        """Return the version of which an assertion is evidence: the one that arrived first; None for a new value."""
        if self._only is not None:
            self._enter(self._only)
            self._only = None
        since_ms, until_ms = begin_of(new), new.until_ms
        if not self._timelines or (until_ms is not None and until_ms <= since_ms):
            return None
        best: Version | None = None
        for periods in self._periods_of(new):
            found = periods.first(since_ms, until_ms)
            if found is not None and (best is None or found.first.entry < best.first.entry):
                best = found
        return best

    def _periods_of(self, new: Assertion) -> Iterator[_Periods]:
        """Yield the versions that are the same as an assertion, if they share a time with it."""
        for key in self._keys(new):
            if key in self._periods:
                yield self._periods[key]
            if key in self._events:
                by_day = self._events[key]
                # An event is the same as one of its day or of an adjacent one.
                day = begin_of(new) // DAY_MS
                days = (day - 1, day, day + 1) if self._is_event(new) else by_day
                yield from (by_day[day] for day in days if day in by_day)

    def _keys(self, one: Assertion) -> list[Same]:
        is_plan = one.modality == "planned"
        keys: list[Same] = [(one.negated, is_plan, value_of(one.object).key)]
        if one.object_entity:
            keys.append((one.negated, is_plan, self._root(one.object_entity)))
        return keys

    def _is_event(self, one: Assertion) -> bool:
        """Return whether it may be true several times."""
        return one.kind == "event" and self.slot.cardinality == "many"

    def _enter(self, version: Version) -> None:
        """Add a version to those that later ones are compared with."""
        if not self._timelines:
            self._timelines = _Timeline(), _Timeline()
        one = version.first
        if self._is_change(one) and not version.is_empty:
            insort(self._changes, (version.since_ms, one.entry, version))
            self._last_change_told_ms = max(self._last_change_told_ms, one.told_at_ms)
        if one.modality != "planned":
            self._timelines[one.negated].add(version)
        if version.is_empty:
            return
        for key in self._keys(one):
            if self._is_event(one):
                _put(self._events.setdefault(key, {}), version.since_ms // DAY_MS, version)
            else:
                _put(self._periods, key, version)

    def _append(self, version: Version) -> None:
        version.place = len(self.versions)
        self.versions.append(version)
        self._note_stated(version.statement, version)

    def _retire_others(self, added: Version) -> None:
        """End the versions that a new one ends, and the new one where a later one begins."""
        new, since_ms, until_ms = added.first, added.since_ms, added.until_ms
        replaced = self._replaced(new, since_ms, until_ms)
        if self._is_change(new):
            begins: list[Version] = []
            observed: list[Version] = []
            for timeline in self._timelines:
                for old in list(timeline.sharing(since_ms, since_ms + 1)):
                    if old not in replaced and self._is_ended_by(added, old):
                        self._retire(old, since_ms, added.statement)
                for old in timeline.beginning(since_ms, until_ms):
                    if old not in replaced and self._is_ended_by(added, old):
                        if not _is_news(new, old):
                            begins.append(old)
                            break
                        observed.append(old)
            for old in sorted(begins, key=lambda one: (one.since_ms, one.first.entry))[:1]:
                added.until_ms, added.retired_by = old.since_ms, old.statement
            for old in observed:
                if added.until_ms is None or old.since_ms < added.until_ms:
                    self._end(old, since_ms, added.statement)
        elif not new.negated:
            for timeline in self._timelines[1:]:
                for old in list(timeline.sharing(since_ms, since_ms + 1)):
                    if old not in replaced and self._fills(new, old.first):
                        self._retire(old, since_ms, added.statement)
        for old in replaced:
            self._end(old, since_ms, added.statement)

    def _fills(self, value: Assertion, denial: Assertion) -> bool:
        """Return whether a value ends a denial without a value, because it was not said before it (ADR 0059)."""
        return (
            self.slot.cardinality != "many"
            and denial.negated
            and not denial.object
            and not value.negated
            and _may_end(value)
            and value.told_at_ms >= denial.told_at_ms
        )

    def _is_change(self, one: Assertion) -> bool:
        """Return whether an assertion ends other values by its words or its slot."""
        has_cue = one.reports_change or bool(one.replaces) or self.slot.name == "age"
        # Where many values are true together, only a denial ends one.
        return has_cue and (one.negated or self.slot.cardinality != "many") and _may_end(one)

    def _end_by_known_change(self, added: Version) -> None:
        """End a version that was said before a change that arrived earlier, as if it had arrived in order."""
        new = added.first
        if new.told_at_ms >= self._last_change_told_ms or new.modality == "planned" or self._is_change(new):
            return
        begin = bisect_left(self._changes, (added.since_ms,))
        oldest = bisect_left(self._changes, (added.since_ms - MAX_NEWS_AGE_MS,))

        def ends(old: Version) -> bool:
            is_later = old.first.told_at_ms > new.told_at_ms
            return is_later and old.overlaps(added.since_ms, added.until_ms) and self._is_ended_by(old, added)

        before = (old for _, _, old in islice(self._changes, oldest, begin))
        news = [old for old in before if ends(old) and _is_news(old.first, added)]
        later = next(
            (old for _, _, old in islice(self._changes, begin, None) if not news and ends(old)), None
        )
        if news:
            old = min(news, key=_arrival)
            added.since_ms = added.until_ms = old.since_ms
            added.retired_by = old.statement
        elif later is not None:
            added.until_ms, added.retired_by = later.since_ms, later.statement

    def _end_by_known_value(self, added: Version) -> None:
        """End a denial without a value where a value begins that was said later and arrived earlier."""
        new, since_ms = added.first, begin_of(added.first)
        is_denial = new.negated and not new.object and new.modality != "planned"
        if not is_denial or not self._timelines or self._is_change(new) or added.since_ms != since_ms:
            return
        # The first one counts: a change that ended the denial is such a value too.
        values = self._timelines[False]
        at_once = (old for old in values.sharing(since_ms, since_ms + 1) if old.since_ms == since_ms)
        for old in chain(at_once, values.beginning(since_ms, new.until_ms)):
            if old.first.told_at_ms > new.told_at_ms and self._fills(old.first, new):
                added.until_ms, added.retired_by = old.since_ms, old.statement
                return

    def _replaced(self, new: Assertion, since_ms: int, until_ms: int | None) -> list[Version]:
        """Return the versions that an assertion says it replaces, if they share a time with an interval."""
        found = self.versions_of(new.replaces) if new.replaces else ()
        return [old for old in found if not old.withdrawn and old.overlaps(since_ms, until_ms)]

    def _replace_by_known(self, known: Version, new: Assertion) -> None:
        """End the versions that an assertion of a known value replaces.

        A contradiction is settled, as by a ruling. Another version ends when the assertion and the known version begin.
        """
        for old in self._replaced(new, known.since_ms, known.until_ms):
            if old is not known:
                is_rival = self.contradict(known, old)
                at_ms = known.since_ms if is_rival else max(begin_of(new), known.since_ms)
                self._retire(old, at_ms, known.statement)

    def _is_ended_by(self, added: Version, old: Version) -> bool:
        """Return whether a change ends another version, if both are true at a time."""
        if self.slot.cardinality == "many":
            is_denial = added.first.negated and not old.first.negated
            return is_denial and self.disagree(added, old) and self._compare(added, old) == "same"
        if added.first.negated != old.first.negated:
            return self._compare(added, old) != "different"
        return not added.first.negated and self._compare(added, old) == "different"

    def _retire(self, old: Version, at_ms: int, statement: int) -> None:
        """End a version at a time, unless it ends before."""
        if old.until_ms is not None and at_ms >= old.until_ms:
            return
        old.until_ms = max(old.since_ms, at_ms)
        old.retired_by = statement
        if old.number >= 0:
            self._timelines[old.first.negated].end(old)
        if old.is_empty:
            for periods in self._periods_of(old.first):
                periods.remove(old)

    def _end(self, old: Version, at_ms: int, statement: int) -> None:
        """End a version at a time. A beginning that no words state moves to an earlier end."""
        begins_later = at_ms < old.since_ms and old.is_observation
        self._retire(old, at_ms, statement)
        if begins_later and old.retired_by == statement:
            old.since_ms = old.until_ms = at_ms

    def _settle_by_change(self, known: Version, new: Assertion) -> None:
        """End what contests a value that a change says again, unless that was said later."""
        if not self._is_change(new):
            return
        at_ms = max(begin_of(new), known.since_ms)
        for rival in list(self._rivals(known, at_ms, at_ms + 1)):
            if rival.first.told_at_ms <= new.told_at_ms:
                self._retire(rival, at_ms, known.statement)

    def _settle_by_repetition(self, version: Version, before: int) -> None:
        """Settle the conflicts of a version that the speaker alone has said again twice since they began.

        `before` is the entry up to which this was examined. A rival that was said again then stays one.
        """
        own, examined = version.first.entry, before if before > version.first.entry else 0
        entries = examined, version.repeats[1]
        for rival in list(self._rivals(version, version.since_ms, version.until_ms, entries)):
            if rival.repeats[0] <= max(own, rival.first.entry):
                self._retire(rival, version.since_ms, version.statement)

    # --- contradictions ----------------------------------------------------------------------------

    @property
    def may_contradict(self) -> bool:
        """Whether two of its versions can contradict each other."""
        return bool(self._timelines) and (
            self.slot.cardinality == "one" or all(timeline.versions for timeline in self._timelines)
        )

    def rivals(self, version: Version, time_ms: int | None = None) -> Iterator[Version]:
        """Yield the versions that contradict a version at a time, or at some time."""
        if time_ms is None:
            return self._rivals(version, version.since_ms, version.until_ms)
        return self._rivals(version, time_ms, time_ms + 1)

    def _rivals(
        self, version: Version, since_ms: int, until_ms: int | None, entries: tuple[int, int] = ALL
    ) -> Iterator[Version]:
        if version.number < 0 or version.is_empty or not self.may_contradict:
            return
        negated = version.first.negated
        for is_negated, timeline in enumerate(self._timelines):
            if timeline.versions and (is_negated != negated or self.slot.cardinality == "one"):
                for other in timeline.sharing(since_ms, until_ms, entries):
                    if other is not version and self.disagree(version, other):
                        yield other

    def held_at(self, time_ms: int) -> tuple[list[Version], list[Version]]:
        """Return the versions that are true at a time: those that affirm and those that negate, in order of arrival."""
        affirmed, negated = (
            sorted(timeline.sharing(time_ms, time_ms + 1), key=_arrival)
            for timeline in self._timelines or (_Timeline(), _Timeline())
        )
        return affirmed, negated

    def contradict(self, one: Version, other: Version) -> bool:
        """Return whether two versions contradict each other at some time."""
        return (
            one is not other
            and min(one.number, other.number) >= 0
            and one.overlaps(other.since_ms, other.until_ms)
            and self.disagree(one, other)
        )

    def disagree(self, one: Version, other: Version) -> bool:
        """Return whether two versions contradict each other if they share a time."""
        first, second = one.assertions[0], other.assertions[0]
        if first.negated == second.negated:
            is_single = self.slot.cardinality == "one" and not first.negated
            return is_single and self._compare(one, other) == "different"
        days = abs(one.since_ms // DAY_MS - other.since_ms // DAY_MS)
        if days > 1 and self._is_event(first) and self._is_event(second):
            return False
        return self._compare(one, other) != "different"

    def _compare(self, one: Version, other: Version) -> Comparison:
        """Compare two values. Objects that are one entity are the same, also under different names.

        In a topic with one or few values, a denial without a value denies every value (ADR 0059).
        """
        first, second = one.assertions[0], other.assertions[0]
        if first.negated != second.negated and self.slot.cardinality != "many":
            denial = first if first.negated else second
            if not denial.object:
                return "same"
        entity, other_entity = first.object_entity, second.object_entity
        if entity and other_entity and self._root(entity) == self._root(other_entity):
            return "same"
        return compare_values(one.value, other.value)


class Conflicts:
    """The conflicts of several versions of a slot at a time. The versions that are true then are read once."""

    def __init__(self, replay: SlotReplay, time_ms: int) -> None:
        self._replay = replay
        self._affirmed, self._negated = replay.held_at(time_ms)
        self._values = [(one, one.value.text, replay.entity_of(one)) for one in self._affirmed]

    def rivals(self, version: Version, most: int | None = None) -> list[Version]:
        """Return the versions, at most so many, that contradict one that is true at the time, in order of arrival."""
        if version.number < 0 or not self._replay.may_contradict:
            return []
        if version.first.negated:
            return list(islice(self._disagreeing(version, self._affirmed), most))
        others = self._different(version) if self._replay.slot.cardinality == "one" else ()
        denials = self._disagreeing(version, self._negated)
        return list(islice(merge(others, denials, key=_arrival), most))

    def _disagreeing(self, version: Version, others: Sequence[Version]) -> Iterator[Version]:
        return (one for one in others if one is not version and self._replay.disagree(version, one))

    def _different(self, version: Version) -> Iterator[Version]:
        """Yield the other values. Most are different: another entity, and neither text occurs in the other one."""
        text, date = version.value
        if date is not None:
            yield from self._disagreeing(version, self._affirmed)
            return
        entity = self._replay.entity_of(version)
        for one, other, its_entity in self._values:
            is_near = text in other or other in text or (entity and entity == its_entity)
            if not is_near or (one is not version and self._replay.disagree(version, one)):
                yield one


def _fields(version: Version) -> tuple[int, int, int, float, int, bool, bool, bool]:
    """Return the fields of a version in `VersionColumns`."""
    one = version.first
    return (
        version.told_at_ms,
        version.since_ms,
        FOREVER if version.until_ms is None else version.until_ms,
        one.importance,
        KINDS.index(one.kind),
        one.modality == "planned",
        bool(version.withdrawn),
        one.kind in ("fact", "relation") and not one.negated,
    )


def _is_news(new: Assertion, old: Version) -> bool:
    """Return whether an assertion reports a change to what was observed before it was said (ADR 0051)."""
    return (
        new.reports_change
        and old.is_observation
        and old.told_at_ms <= new.told_at_ms
        and new.told_at_ms - begin_of(new) <= MAX_NEWS_AGE_MS
    )


def _may_end(one: Assertion) -> bool:
    """Return whether an assertion may end versions."""
    return one.modality == "asserted" and one.trust >= MIN_TRUST


def begin_of(one: Assertion) -> int:
    """Return the time from which an assertion is true. A beginning that no words state is not after the end."""
    if one.since_ms is not None:
        return one.since_ms
    return one.told_at_ms if one.until_ms is None else min(one.told_at_ms, one.until_ms)
