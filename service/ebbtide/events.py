"""Events: the kinds of changes of an agent's memory, and how they are packed and unpacked.

Events contain ids, numbers and names of parameters, **never content**: a client reads a memory by its id, and no event
contains what was erased. The events of one commit are one `EventRecord`, in which consecutive events of one kind are a
run: ten thousand forgotten memories take ten thousand numbers in one value.

`store/lmdb/events.py` stores them, and `fleet/state/event_builder.py` creates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, chain, pairwise
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.bounds import MAX_NUMBER, Count, Name, Time

FIELDS_OF: dict[str, tuple[str, ...]] = {
    "BatchDigested": ("batch", "node_count"),
    "BatchParked": ("batch", "attempts"),
    "BatchRetried": ("batch",),
    "NodeCreated": ("node", "batch", "length"),
    "NodeCompressed": ("node", "length_before", "length", "pass_number"),
    "NodeForgotten": ("node", "pass_number"),
    "NodeCorrected": ("node",),
    "MemoryErased": ("node", "message"),
    "LinkBroken": ("node", "target", "pass_number"),
    "NodePinned": ("node",),
    "NodeUnpinned": ("node",),
    "EntityMade": ("node",),
    "EntityGone": ("node",),
    "FocusMoved": (),
    "ParametersChanged": (),
    "PassCompleted": ("pass_number",),
    "StatementClosed": ("node", "target"),
    "ConflictFound": ("node", "target"),
    "ConflictSettled": ("node", "target"),
    "FactPromoted": ("node",),
    "FactDemoted": ("node",),
    "EntitiesMerged": ("node", "target"),
    "EntitiesSeparated": ("node", "target"),
    "Consolidated": ("step", "looked", "changed"),
}
"""The fields of each kind of event, in stored order; 0 stands for none."""


class EventKind(StrEnum):
    """The kinds of events. Stored by position, so a new kind comes last."""

    BATCH_DIGESTED = "BatchDigested"
    BATCH_PARKED = "BatchParked"
    BATCH_RETRIED = "BatchRetried"
    NODE_CREATED = "NodeCreated"
    NODE_COMPRESSED = "NodeCompressed"
    NODE_FORGOTTEN = "NodeForgotten"
    NODE_CORRECTED = "NodeCorrected"
    MEMORY_ERASED = "MemoryErased"
    LINK_BROKEN = "LinkBroken"
    NODE_PINNED = "NodePinned"
    NODE_UNPINNED = "NodeUnpinned"
    ENTITY_MADE = "EntityMade"
    ENTITY_GONE = "EntityGone"
    FOCUS_MOVED = "FocusMoved"
    PARAMETERS_CHANGED = "ParametersChanged"
    PASS_COMPLETED = "PassCompleted"
    STATEMENT_CLOSED = "StatementClosed"
    CONFLICT_FOUND = "ConflictFound"
    CONFLICT_SETTLED = "ConflictSettled"
    FACT_PROMOTED = "FactPromoted"
    FACT_DEMOTED = "FactDemoted"
    ENTITIES_MERGED = "EntitiesMerged"
    ENTITIES_SEPARATED = "EntitiesSeparated"
    CONSOLIDATED = "Consolidated"


class EventRun(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive events of one kind: `count` rows of numbers, or one event with a list."""

    kind: Name
    count: Count
    numbers: bytes = b""
    """Rows of little-endian u64; for FocusMoved the number of memories in focus, their ids, and those of entities."""
    names: tuple[Name, ...] = ()


class EventRecord(msgspec.Struct, frozen=True, array_like=True):
    """The events of one commit."""

    at_ms: Time
    runs: list[EventRun]

    @property
    def count(self) -> int:
        """The number of its events."""
        return sum(run.count for run in self.runs)


class PackedRun(msgspec.Struct, frozen=True, array_like=True):
    """A run as it is stored."""

    code: Annotated[int, msgspec.Meta(ge=0, lt=len(EventKind))]
    """The position of the kind in `EventKind`."""
    numbers: list[Annotated[int, msgspec.Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]]
    """Column by column, the first number and then differences: most take one byte."""
    names: tuple[Name, ...]

    @property
    def kind(self) -> str:
        """The kind of the events."""
        return _KINDS[self.code]

    @property
    def count(self) -> int:
        """The number of events."""
        width = _WIDTHS[self.code]
        return len(self.numbers) // width if width else 1

    @property
    def columns(self) -> list[list[int]]:
        """The numbers of each field of the events; one column for FocusMoved."""
        size = self.count if _WIDTHS[self.code] else len(self.numbers)
        return [
            list(accumulate(self.numbers[start : start + size]))
            for start in range(0, len(self.numbers), size or 1)
        ]

    def part(self, start: int, end: int) -> PackedRun:
        """Return the events of the run from place `start` on, and before `end`."""
        return PackedRun(self.code, _differences(column[start:end] for column in self.columns), self.names)


class PackedRecord(msgspec.Struct, frozen=True, array_like=True):
    """The events of one commit as they are stored."""

    at_ms: Time
    runs: list[PackedRun]


_KINDS = tuple(kind.value for kind in EventKind)
_WIDTHS = tuple(len(FIELDS_OF[kind]) for kind in _KINDS)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_decode_record = msgspec.msgpack.Decoder(PackedRecord).decode


def encode_events(record: EventRecord) -> bytes:
    """Encode the events of one commit."""
    return msgspec.msgpack.encode(PackedRecord(record.at_ms, [_packed(run) for run in record.runs]))


def decode_events(data: bytes) -> EventRecord:
    """Decode the events of one commit. Raise DecodeError for bytes that are no valid record."""
    record = _decode_record(data)
    return EventRecord(record.at_ms, [_run(packed) for packed in record.runs])


def decode_packed(data: bytes) -> PackedRecord:
    """Return the events of one commit as they are stored. Raise DecodeError for bytes that are no valid record."""
    record = _decode_record(data)
    for run in record.runs:
        _refuse_incomplete(run)
    return record


def _refuse_incomplete(run: PackedRun) -> None:
    if len(run.numbers) % (_WIDTHS[run.code] or 1):
        raise msgspec.ValidationError("a run has incomplete rows")


def _packed(run: EventRun) -> PackedRun:
    width = len(FIELDS_OF[run.kind]) or 1
    numbers: list[int] = np.frombuffer(run.numbers, dtype="<u8").tolist()
    if len(numbers) > width:
        numbers = _differences(numbers[place::width] for place in range(width))
    return PackedRun(_CODES[run.kind], numbers, run.names)


def _differences(columns: Iterable[list[int]]) -> list[int]:
    """Return the numbers of columns as they are stored."""
    return [after - before for column in columns for before, after in pairwise([0, *column])]


def columns_of(kind: EventKind, runs: Sequence[PackedRun]) -> list[NDArray[np.int64]]:
    """Return the `columns` of runs of one kind, one run after the other. It is much faster for many runs."""
    width = len(FIELDS_OF[kind]) or 1
    counts = np.array([len(run.numbers) // width for run in runs], dtype=np.int64)
    numbers = np.array(list(chain.from_iterable(run.numbers for run in runs)), dtype=np.int64)
    # The sums of a column include everything before it, which is subtracted.
    sums, sizes = np.cumsum(numbers), np.repeat(counts, width)
    firsts = np.cumsum(sizes) - sizes
    values = sums - np.repeat(sums[firsts] - numbers[firsts], sizes)
    places = np.repeat(np.tile(np.arange(width), len(runs)), sizes)
    return [values[places == place] for place in range(width)]


def _run(packed: PackedRun) -> EventRun:
    _refuse_incomplete(packed)
    kind, width = packed.kind, _WIDTHS[packed.code]
    columns = np.cumsum(np.array(packed.numbers, dtype="<i8").reshape(width or 1, -1), axis=1)
    count = columns.shape[1] if width else 1
    return EventRun(kind, count, columns.T.astype("<u8").tobytes(), packed.names)


class Event(msgspec.Struct, frozen=True):
    """One event. `numbers` has the fields of its kind."""

    sequence: int
    at_ms: int
    kind: str
    numbers: dict[str, int]
    focus: tuple[int, ...] = ()
    entity_focus: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


def run_of(kind: EventKind, *columns: Sequence[int]) -> EventRun:
    """Return events of one kind, from a column of numbers for each field."""
    assert len(columns) == len(FIELDS_OF[kind]), kind
    rows = np.array(columns, dtype="<u8").T
    return EventRun(kind.value, len(rows), rows.tobytes())


def focus_run(memories: Sequence[int], entities: Sequence[int]) -> EventRun:
    """Return the event of a focus that moved."""
    numbers = np.array([len(memories), *memories, *entities], dtype="<u8")
    return EventRun(EventKind.FOCUS_MOVED.value, 1, numbers.tobytes())


def names_run(names: Sequence[str]) -> EventRun:
    """Return the event of changed parameters."""
    return EventRun(EventKind.PARAMETERS_CHANGED.value, 1, names=tuple(names))


def unpacked(record: EventRecord, first: int, start: int) -> Iterator[Event]:
    """Yield the events of a record, whose first has number `first`, from number `start`."""
    for run in record.runs:
        skipped = min(max(0, start - first), run.count)
        if skipped < run.count:
            yield from _unpacked_run(run, record.at_ms, first, skipped)
        first += run.count


def _unpacked_run(run: EventRun, at_ms: int, first: int, skipped: int) -> Iterator[Event]:
    fields = FIELDS_OF.get(run.kind, ())
    if not fields:
        memory_count, *ids = np.frombuffer(run.numbers, dtype="<u8").tolist() or [0]
        yield Event(
            first, at_ms, run.kind, {}, tuple(ids[:memory_count]), tuple(ids[memory_count:]), run.names
        )
        return
    rows = np.frombuffer(run.numbers, dtype="<u8").reshape(run.count, len(fields))
    for place in range(skipped, run.count):
        yield Event(first + place, at_ms, run.kind, dict(zip(fields, rows[place].tolist(), strict=True)))


def fits(record: EventRecord) -> bool:
    """Return whether a record is consistent: known kinds, matching counts, at least one event."""
    for run in record.runs:
        fields = FIELDS_OF.get(run.kind)
        if fields is None or run.count < 1:
            return False
        if fields and len(run.numbers) != 8 * len(fields) * run.count:
            return False
        if not fields and (run.count != 1 or len(run.numbers) % 8):
            return False
        numbers = np.frombuffer(run.numbers, dtype="<u8")
        if numbers.max(initial=0) > MAX_NUMBER:
            return False
        if run.kind == EventKind.FOCUS_MOVED.value and (not len(numbers) or numbers[0] >= len(numbers)):
            return False
    return bool(record.runs)
