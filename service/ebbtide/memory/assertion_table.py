"""The assertions of one agent in memory: a row of columns each, and what varies or is rare as packed bytes.

An assertion as an object takes about 900 bytes, a row about 100. Objects are built for the rows that a question
touches. Rows are in order of arrival. Two indexes, by entity and slot and by statement, are built on first use; rows
that arrived later are few and are searched one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.memory.columns import Array, Columns
from ebbtide.records import Source
from ebbtide.statements import Assertion

MAX_UNSORTED: Final = 1024
"""From this many later rows on the indexes are built again."""

MAX_BUILT: Final = 512
"""Most rows of which the assertions are built at once."""

NEVER: Final = -(1 << 62)
"""Stands for a time that is not stated."""

Manner = tuple[Any, ...]
"""The fields of an assertion with few different values."""


class Brief(NamedTuple):
    """The fields of an assertion that say what it is about."""

    statement: int
    subject: int
    slot: str
    object: str
    object_entity: int
    kind: str
    modality: str


class Alike(NamedTuple):
    """Some assertions of one slot, kind and modality."""

    slot: str
    kind: str
    modality: str
    rows: Array
    """Their rows, in order of arrival; valid until the next change of the table."""
    statements: Array


class _Rare(msgspec.Struct, frozen=True, array_like=True):
    """The object of an assertion, with the fields that few assertions have."""

    object: str
    object_entity: int = 0
    replaces: int = 0
    until_ms: int | None = None
    time_words: str = ""
    attributes: dict[str, str] = {}
    valence: float | None = None
    arousal: float | None = None


ARRAY_BITS, ARRAY = 0xF0, 0x90
"""The bits of the first byte of a short array in MessagePack, and their value."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(str | _Rare).decode


class _Names:
    """Distinct values, each with a number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self.nbytes = 0

    def number(self, value: Any) -> int:
        """Return the number of a value, a new one if necessary."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
            self.nbytes += sys.getsizeof(value) + 120
        return number

    def find(self, value: Any) -> int:
        """Return the number of a value; -1 if it has none."""
        return self._numbers.get(value, -1)

    def numbers(self, is_wanted: Callable[[Any], bool]) -> list[int]:
        """Return the numbers of some values."""
        return [number for number, value in enumerate(self.values) if is_wanted(value)]


class AssertionTable:
    """The rows, in order of arrival."""

    def __init__(self) -> None:
        self._rows = Columns(
            entry=np.int64,
            statement=np.int64,
            subject=np.int64,
            message=np.int64,
            told=np.int64,
            known=np.int64,
            since=np.int64,
            offset=np.uint32,
            length=np.uint32,
            slot=np.int32,
            manner=np.int32,
            end=np.uint32,
            named=np.int32,
        )
        self._packed = bytearray()
        """The objects and rare fields, in the order of the rows. `end` is where those of a row end."""
        self._slots, self._manners, self._named = _Names(), _Names(), _Names()
        """Distinct slots, manners, and sets of slots that an object names. `named` is 0 until an object is read."""
        self._indexed_count = 0
        self._by_slot = self._by_statement = np.zeros(0, dtype=np.int32)
        """The order of the indexed rows by entity, slot and arrival, and by statement and arrival."""

    def __len__(self) -> int:
        """Return the number of assertions."""
        return self._rows.count

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        indexes = self._by_slot.nbytes + self._by_statement.nbytes
        names = self._slots.nbytes + self._manners.nbytes + self._named.nbytes
        return self._rows.nbytes + sys.getsizeof(self._packed) + indexes + names

    # --- changes -----------------------------------------------------------------------------------

    def put(self, assertions: Sequence[Assertion]) -> list[Assertion]:
        """Add assertions. Return those with the same entry numbers that they replace."""
        if not assertions:
            return []
        added = sorted({one.entry: one for one in assertions}.values(), key=lambda one: one.entry)
        rows = self._rows
        last = int(rows["entry"][-1]) if rows.count else 0
        if added[0].entry > last:
            self._append(added)
            return []
        replaced = self.remove([one.entry for one in added])
        self._append(added)
        self._take(np.argsort(rows["entry"], kind="stable"))
        return replaced

    def _append(self, added: Sequence[Assertion]) -> None:
        ends = []
        for one in added:
            self._packed += _encode(_packed(one))
            ends.append(len(self._packed))
        self._rows.append(
            len(added),
            entry=[one.entry for one in added],
            statement=[one.statement for one in added],
            subject=[one.subject for one in added],
            message=[one.source.message for one in added],
            told=[one.told_at_ms for one in added],
            known=[one.known_at_ms for one in added],
            since=[NEVER if one.since_ms is None else one.since_ms for one in added],
            offset=[one.source.offset for one in added],
            length=[one.source.length for one in added],
            slot=[self._slots.number(one.slot) for one in added],
            manner=[self._manners.number(_manner(one)) for one in added],
            end=ends,
        )

    def remove(self, numbers: Collection[int]) -> list[Assertion]:
        """Remove the assertions with these entry numbers. Return those that existed."""
        rows = self._find(numbers)
        if not len(rows):
            return []
        removed = self._build(rows)
        is_left = np.ones(self._rows.count, dtype=np.bool_)
        is_left[rows] = False
        self._take(np.flatnonzero(is_left))
        return removed

    def _find(self, numbers: Collection[int]) -> Array:
        entries = self._rows["entry"]
        wanted = np.array(sorted(numbers), dtype=np.int64)
        if not len(entries) or not len(wanted):
            return np.zeros(0, dtype=np.int64)
        rows: Array = np.minimum(np.searchsorted(entries, wanted), len(entries) - 1)
        found: Array = rows[entries[rows] == wanted]
        return found

    def _take(self, rows: Array) -> None:
        """Keep only these rows, in this order."""
        ends = self._rows["end"].astype(np.int64)
        begins = np.concatenate([[0], ends[:-1]])
        lengths = (ends - begins)[rows]
        packed, view = bytearray(), memoryview(self._packed)
        # Neighbours are copied together.
        cuts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for first, stop in pairwise(cuts):
            if first < stop:
                packed += view[int(begins[rows[first]]) : int(ends[rows[stop - 1]])]
        view.release()
        self._packed = packed
        self._rows.keep(rows)
        self._rows["end"][:] = np.cumsum(lengths)
        self._indexed_count = 0
        self._by_slot = self._by_statement = np.zeros(0, dtype=np.int32)

    # --- rows --------------------------------------------------------------------------------------

    def _index(self) -> None:
        count = self._rows.count
        if count - self._indexed_count > min(MAX_UNSORTED, self._indexed_count // 8):
            rows = self._rows
            self._by_slot = np.lexsort((rows["slot"], rows["subject"])).astype(np.int32)
            self._by_statement = np.argsort(rows["statement"], kind="stable").astype(np.int32)
            self._indexed_count = count

    def _rows_with(self, name: str, order: Array, value: int) -> tuple[Array, Array]:
        """Return the indexed rows with a value, and the later ones."""
        column, count = self._rows[name], self._indexed_count
        key = np.int64(value)
        begin = int(np.searchsorted(column[:count], key, "left", order))
        end = begin
        if begin < count and column[order[begin]] == key:
            end = int(np.searchsorted(column[:count], key, "right", order))
        later = column[count:]
        return order[begin:end], np.flatnonzero(later == key) + count if len(later) else later

    def _about(self, subject: int, slot: int | None) -> Array:
        """Return the rows about an entity, of one slot or in any order."""
        self._index()
        rows, later = self._rows_with("subject", self._by_slot, subject)
        if slot is not None:
            slots = self._rows["slot"]
            if len(rows):
                begin, end = np.searchsorted(slots[rows], np.array([slot, slot + 1], dtype=np.int32)).tolist()
                rows = rows[begin:end]
            if len(later):
                later = later[slots[later] == slot]
        return np.concatenate([rows, later]) if len(later) else rows

    def _rows_about(self, subjects: Iterable[int], slot: int | None, before: int | None) -> Array:
        """Return the rows about some entities in order of arrival, up to an entry number."""
        some = list(subjects)
        rows = self._about_any(some, slot)
        if slot is None or len(some) > 1:
            rows = np.sort(rows)
        if before is not None and len(rows):
            rows = rows[self._rows["entry"][rows] < before]
        return rows

    def _about_any(self, subjects: Sequence[int], slot: int | None = None) -> Array:
        """Return the rows about some entities, of one slot or all, in any order."""
        if len(subjects) == 1:
            return self._about(subjects[0], slot)
        self._index()
        order, count, column = self._by_slot, self._indexed_count, self._rows["subject"]
        wanted = np.array(subjects, dtype=np.int64)
        begins, ends = (np.searchsorted(column[:count], wanted, side, order) for side in ("left", "right"))
        lengths = ends - begins
        # The places from begin to end of each entity, one after the other.
        offsets = np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
        rows = order[offsets + np.arange(len(offsets))]
        later = np.flatnonzero(np.isin(column[count:], wanted)) + count
        rows = np.concatenate([rows, later]) if len(later) else rows
        return rows if slot is None else rows[self._rows["slot"][rows] == slot]

    def _build(self, rows: Array) -> list[Assertion]:
        """Return the assertions of some rows."""
        columns = self._rows
        packed, slots, manners = self._packed, self._slots.values, self._manners.values
        begins = self._begins(rows)
        names = ("entry", "statement", "subject", "message", "told", "known", "since", "offset", "length")
        fields = [columns[name][rows].tolist() for name in (*names, "slot", "manner", "end")]
        found = []
        for begin, row in zip(begins, zip(*fields, strict=True), strict=True):
            entry, statement, subject, message, told, known, since, offset, length, slot, manner, end = row
            rest = _decode(packed[begin:end])
            rare = _NOTHING if isinstance(rest, str) else rest
            kind, negated, modality, reports_change, granularity, *others = manners[manner]
            confidence, trust, importance, author, scope = others
            found.append(
                Assertion(
                    entry,
                    statement,
                    subject,
                    slots[slot],
                    rest if isinstance(rest, str) else rest.object,
                    Source(message, offset, length),
                    told,
                    known,
                    kind,
                    rare.object_entity,
                    negated,
                    modality,
                    reports_change,
                    rare.replaces,
                    None if since == NEVER else since,
                    rare.until_ms,
                    granularity,
                    rare.time_words,
                    confidence,
                    trust,
                    importance,
                    author,
                    rare.attributes,
                    rare.valence,
                    rare.arousal,
                    scope,
                )
            )
        return found

    def _begins(self, rows: Array) -> list[int]:
        """Return where the packed bytes of some rows begin."""
        found: list[int] = np.where(rows > 0, self._rows["end"][rows - 1], 0).tolist()
        return found

    # --- questions ---------------------------------------------------------------------------------

    def all(self, after: int = 0) -> Iterator[Assertion]:
        """Yield every assertion in order of arrival, after an entry number."""
        begin = int(np.searchsorted(self._rows["entry"], after, "right"))
        for first in range(begin, self._rows.count, MAX_BUILT):
            yield from self._build(np.arange(first, min(first + MAX_BUILT, self._rows.count)))

    def touched(self, nodes: Collection[int], messages: Collection[int]) -> list[Assertion]:
        """Return the assertions of some statements, about some entities, and from some messages."""
        rows, ids = self._rows, np.array(list(nodes), dtype=np.int64)
        is_touched = np.isin(rows["statement"], ids) | np.isin(rows["subject"], ids)
        is_touched |= np.isin(rows["message"], np.array(list(messages), dtype=np.int64))
        return self._build(np.flatnonzero(is_touched))

    def get(self, entry: int) -> Assertion | None:
        """Return the assertion of an entry number, or None."""
        entries = self._rows["entry"]
        if not len(entries) or entry > entries[-1]:
            return None
        found = self._build(self._find([entry]))
        return found[0] if found else None

    def of_slot(self, subjects: Iterable[int], slot: str, before: int | None) -> list[Assertion]:
        """Return the assertions of a slot of some entities in order of arrival, up to an entry number."""
        number = self._slots.find(slot)
        return [] if number < 0 else self._build(self._rows_about(subjects, number, before))

    def by_slot(self, subjects: Iterable[int], before: int | None) -> dict[str, list[Assertion]]:
        """Return the assertions about some entities by slot, in order of arrival, up to an entry number."""
        found: dict[str, list[Assertion]] = {}
        for one in self._build(self._rows_about(subjects, None, before)):
            found.setdefault(one.slot, []).append(one)
        return found

    def about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> list[Assertion]:
        """Return the assertions about some entities in some slots, in order of arrival."""
        return self._build(self._rows_in(subjects, is_wanted))

    def brief_about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> Iterator[Brief]:
        """Yield the same assertions in brief."""
        return self._in_brief(self._rows_in(subjects, is_wanted))

    def alike_about(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> Iterator[Alike]:
        """Yield the same assertions in groups of one slot, kind and modality."""
        rows, manners = self._rows_in(subjects, is_wanted), self._manners.values
        slots, numbers = self._rows["slot"][rows].astype(np.int64), self._rows["manner"][rows]
        order = np.argsort(slots * len(manners) + numbers, kind="stable")
        rows, slots, numbers = rows[order], slots[order], numbers[order]
        statements = self._rows["statement"][rows]
        is_first = (np.diff(slots, prepend=-1) != 0) | (np.diff(numbers, prepend=-1) != 0)
        begins = np.flatnonzero(is_first).tolist()
        for begin, end in pairwise([*begins, len(rows)]):
            kind, _, modality, *_ = manners[numbers[begin]]
            slot = self._slots.values[slots[begin]]
            yield Alike(slot, kind, modality, rows[begin:end], statements[begin:end])

    def naming(
        self, rows: Array, slots: Collection[str], slots_in: Callable[[str], frozenset[str]]
    ) -> NDArray[np.bool_]:
        """Return which of some rows have an object that names one of some slots. `slots_in` reads an object once."""
        named = self._rows["named"]
        unread = rows[named[rows] == 0]
        if len(unread):
            named[unread] = [self._named.number(slots_in(one)) + 1 for one in self.objects_in(unread)]
        wanted = self._named.numbers(lambda found: not found.isdisjoint(slots))
        return np.isin(named[rows] - 1, wanted)

    def object_entities(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> set[int]:
        """Return the entities that are the objects of the assertions about some entities in some slots."""
        rows = self._rows_in(subjects, is_wanted)
        if not len(rows):
            return set()
        begins = np.array(self._begins(rows))
        # An object alone, as most are, is no array.
        is_rare = np.frombuffer(self._packed, dtype=np.uint8)[begins] & ARRAY_BITS == ARRAY
        ends = self._rows["end"][rows[is_rare]]
        found = (
            _decode(self._packed[begin:end])
            for begin, end in zip(begins[is_rare].tolist(), ends.tolist(), strict=True)
        )
        return {one.object_entity for one in found if one.object_entity}

    def objects_in(self, rows: Array) -> list[str]:
        """Return the objects of some rows."""
        packed, ends = self._packed, self._rows["end"][rows].tolist()
        found = (_decode(packed[begin:end]) for begin, end in zip(self._begins(rows), ends, strict=True))
        return [one if isinstance(one, str) else one.object for one in found]

    def brief_in(self, names: Collection[str]) -> Iterator[Brief]:
        """Yield the assertions of some slots in order of arrival, in brief."""
        return self._in_brief(
            np.flatnonzero(np.isin(self._rows["slot"], self._slots.numbers(names.__contains__)))
        )

    def _in_brief(self, rows: Array) -> Iterator[Brief]:
        columns, packed = self._rows, self._packed
        slots, manners = self._slots.values, self._manners.values
        names = ("statement", "subject", "slot", "manner", "end")
        fields = (columns[name][rows].tolist() for name in names)
        for begin, statement, subject, slot, manner, end in zip(self._begins(rows), *fields, strict=True):
            rest = _decode(packed[begin:end])
            value, entity = (rest, 0) if isinstance(rest, str) else (rest.object, rest.object_entity)
            kind, _, modality, *_ = manners[manner]
            yield Brief(statement, subject, slots[slot], value, entity, kind, modality)

    def _rows_in(self, subjects: Iterable[int], is_wanted: Callable[[str], bool]) -> Array:
        """Return the rows about some entities in some slots, in order of arrival."""
        rows = self._about_any(list(subjects))
        is_wanted_slot = np.zeros(len(self._slots.values), dtype=np.bool_)
        is_wanted_slot[self._slots.numbers(is_wanted)] = True
        return np.sort(rows[is_wanted_slot[self._rows["slot"][rows]]])

    def messages_among(self, messages: Iterable[int]) -> list[int]:
        """Return those of some messages from which assertions are, in the same order."""
        some = np.array(list(messages), dtype=np.int64)
        found: list[int] = some[np.isin(some, self._rows["message"])].tolist()
        return found

    def statements_about(self, subjects: Iterable[int]) -> list[int]:
        """Return the statements about some entities, ascending."""
        return self._distinct("statement", self._rows_about(subjects, None, None))

    def slots(self) -> list[str]:
        """Return the slots of which anything was ever asserted."""
        return list(self._slots.values)

    def slots_with(self, kind: str, negated: bool) -> set[str]:
        """Return the slots with an assertion of a kind, or with a negated one."""
        manners = self._manners.numbers(lambda manner: manner[0] == kind or (negated and manner[1]))
        numbers = np.unique(self._rows["slot"][np.isin(self._rows["manner"], manners)])
        return {self._slots.values[number] for number in numbers.tolist()}

    def in_slots(self, names: Collection[str], before: int | None) -> list[Assertion]:
        """Return the assertions of some slots in order of arrival, up to an entry number."""
        numbers = self._slots.numbers(lambda name: name in names)
        is_wanted = np.isin(self._rows["slot"], numbers)
        if before is not None:
            is_wanted &= self._rows["entry"] < before
        return self._build(np.flatnonzero(is_wanted))

    def slots_of(self, subjects: Iterable[int]) -> set[str]:
        """Return the slots of which something is asserted about some entities."""
        rows = self._rows_about(subjects, None, None)
        return {self._slots.values[number] for number in np.unique(self._rows["slot"][rows]).tolist()}

    def of_statement(self, statement: int) -> list[Assertion]:
        """Return the assertions of a statement in order of arrival."""
        return self._build(self._rows_of_statement(statement))

    def _rows_of_statement(self, statement: int) -> Array:
        self._index()
        rows, later = self._rows_with("statement", self._by_statement, statement)
        return np.concatenate([rows, later]) if len(later) else rows

    def first_entry_of(self, statement: int) -> int | None:
        """Return the number of the first assertion of a statement; None if there is none."""
        rows = self._rows_of_statement(statement)
        return int(self._rows["entry"][rows[0]]) if len(rows) else None

    def begun_count(self, after: int, up_to: int) -> int:
        """Return the number of statements whose first assertion is among some entries."""
        _, first = np.unique(self._rows["statement"], return_index=True)
        entries = self._rows["entry"][first]
        return int(((entries > after) & (entries <= up_to)).sum())

    def slot_of_statement(self, statement: int) -> tuple[int, str] | None:
        """Return the entity and the slot of the first assertion of a statement; None if there is none."""
        rows = self._rows_of_statement(statement)
        if not len(rows):
            return None
        return int(self._rows["subject"][rows[0]]), self._slots.values[self._rows["slot"][rows[0]]]

    def slots_of_statements(self, statements: Sequence[int]) -> list[tuple[int, str] | None]:
        """Return the entity and the slot of the first assertion of each of some statements, or None."""
        self._index()
        count, order, column = self._indexed_count, self._by_statement, self._rows["statement"]
        if not count:
            return [self.slot_of_statement(one) for one in statements]
        wanted = np.array(statements, dtype=np.int64)
        places = np.searchsorted(column[:count], wanted, "left", order)
        rows = order[np.minimum(places, count - 1)]
        names = self._slots.values
        subjects, slots = self._rows["subject"][rows].tolist(), self._rows["slot"][rows].tolist()
        # Only statements that arrived after the index was built are not in it.
        return [
            (subject, names[slot]) if found == statement else self.slot_of_statement(statement)
            for statement, found, subject, slot in zip(
                statements, column[rows].tolist(), subjects, slots, strict=True
            )
        ]

    def statements(self) -> Array:
        """Return the statements, ascending."""
        return np.unique(self._rows["statement"])

    def subjects(self) -> list[int]:
        """Return the entities about which something is asserted, ascending."""
        return self._distinct("subject", slice(None))

    def _distinct(self, name: str, rows: Array | slice) -> list[int]:
        found: list[int] = np.unique(self._rows[name][rows]).tolist()
        return found

    def messages_of(self, kinds: Collection[str]) -> list[int]:
        """Return the messages in which statements of some kinds are made."""
        numbers = self._manners.numbers(lambda manner: manner[0] in kinds)
        return self._messages(np.isin(self._rows["manner"], numbers))

    def messages_by(self, is_author: Callable[[str], bool]) -> list[int]:
        """Return the messages in which some authors found statements."""
        numbers = self._manners.numbers(lambda manner: is_author(manner[8]))
        return self._messages(np.isin(self._rows["manner"], numbers))

    def _messages(self, is_wanted: Array) -> list[int]:
        found: list[int] = np.unique(self._rows["message"][is_wanted]).tolist()
        return found

    def first_known_after(self, time_ms: int) -> int | None:
        """Return the first entry number that was stored after a time; None if there is none."""
        rows = np.flatnonzero(self._rows["known"] > time_ms)
        return int(self._rows["entry"][rows[0]]) if len(rows) else None


def _manner(one: Assertion) -> Manner:
    return (
        one.kind,
        one.negated,
        one.modality,
        one.reports_change,
        one.granularity,
        one.confidence,
        one.trust,
        one.importance,
        one.author,
        one.scope,
    )


_NOTHING: Final = _Rare("")


def _packed(one: Assertion) -> str | _Rare:
    rare = _Rare(
        one.object,
        one.object_entity,
        one.replaces,
        one.until_ms,
        one.time_words,
        one.attributes,
        one.valence,
        one.arousal,
    )
    return one.object if rare == _Rare(one.object) else rare
