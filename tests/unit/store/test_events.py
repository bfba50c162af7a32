"""The event log in one store: packed by commit, readable from any number, and bounded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.bounds import MAX_NUMBER
from ebbtide.events import (
    FIELDS_OF,
    EventKind,
    EventRecord,
    EventRun,
    columns_of,
    decode_events,
    decode_packed,
    encode_events,
    fits,
    focus_run,
    names_run,
    run_of,
)
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore

BOUNDS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 26}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store, checked afterwards."""
    made = LmdbStore.create(tmp_path, Identity("ann", 1, 7, layout.FORMAT_VERSION), **BOUNDS)
    yield made
    assert check_store(made) == []
    made.close()


def forgotten(*nodes: int) -> EventRun:
    return run_of(EventKind.NODE_FORGOTTEN, nodes, [3] * len(nodes))


def put(store: LmdbStore, *runs: EventRun, keep: int = 1000) -> None:
    store.write(lambda txn: txn.events.put(5, runs, keep))


def numbers(store: LmdbStore, start: int = 1) -> list[int]:
    return [event.sequence for event in store.read(lambda txn: list(txn.events.since(start)))]


def test_stored_events_are_read_back(store: LmdbStore) -> None:
    """Events keep their numbers, focus and names, and each has its own sequence number."""
    put(store, forgotten(7, 9), focus_run([4, 2], [9]), names_run(["locale"]))
    put(store, run_of(EventKind.NODE_COMPRESSED, [1 << 40], [90], [45], [3]))
    events = store.read(lambda txn: list(txn.events.since(1)))
    assert [(e.sequence, e.kind, e.numbers, (e.focus, e.entity_focus), e.names) for e in events] == [
        (1, "NodeForgotten", {"node": 7, "pass_number": 3}, ((), ()), ()),
        (2, "NodeForgotten", {"node": 9, "pass_number": 3}, ((), ()), ()),
        (3, "FocusMoved", {}, ((4, 2), (9,)), ()),
        (4, "ParametersChanged", {}, ((), ()), ("locale",)),
        (
            5,
            "NodeCompressed",
            {"node": 1 << 40, "length_before": 90, "length": 45, "pass_number": 3},
            ((), ()),
            (),
        ),
    ]
    assert {e.at_ms for e in events} == {5}


def test_reading_begins_at_any_number(store: LmdbStore) -> None:
    """Reading may start within a record, between two, before the first and after the last."""
    for nodes in ([1], [2, 3, 4], [5, 6], [7]):
        put(store, forgotten(*nodes))
    for start in range(10):
        assert numbers(store, start) == list(range(max(1, start), 8))


def test_no_events_write_no_record(store: LmdbStore) -> None:
    """A commit without events writes no record and uses no number."""
    put(store)
    assert store.read(lambda txn: (txn.events.first_number(), txn.meta.next_event)) == (1, 1)
    assert numbers(store) == []


def test_the_latest_are_kept_and_numbers_never_repeat(store: LmdbStore) -> None:
    """At least `keep` events stay, at most one record more; numbers are not reused."""
    for number in range(50):
        put(store, forgotten(*range(1, 4)), keep=10)
        first, following = store.read(lambda txn: (txn.events.first_number(), txn.meta.next_event))
        assert following == 3 * (number + 1) + 1
        assert min(10, following - 1) <= following - first < 10 + 3
        assert numbers(store) == list(range(first, following))
    put(store, forgotten(*range(1, 1000)), keep=10)
    put(store, forgotten(1), keep=10)
    assert len(numbers(store)) == 1000


def test_a_smaller_bound_takes_effect_in_steps(store: LmdbStore) -> None:
    """Each commit drops only a few records, until the limit is met."""
    for node in range(1, 201):
        put(store, forgotten(node))
    put(store, forgotten(1), keep=10)
    assert len(numbers(store)) == 201 - 64
    for _ in range(4):
        put(store, forgotten(1), keep=10)
    assert len(numbers(store)) == 10


def test_ten_thousand_events_are_one_value(store: LmdbStore) -> None:
    """A step that forgets ten thousand memories writes one entry of 16 bytes each."""
    put(store, forgotten(*range(1, 10_001)))
    entries = store.read(lambda txn: list(txn.tables.items(layout.EVENTS)))  # type: ignore[attr-defined]
    assert [len(value) < 161_000 for _, value in entries] == [True]
    assert numbers(store, 9_999) == [9_999, 10_000]


@pytest.mark.parametrize(
    "damage",
    [
        lambda txn: txn.tables.put(layout.EVENTS, layout.u64(2), b"\xc1"),
        lambda txn: txn.tables.delete(layout.EVENTS, layout.u64(2)),
        lambda txn: txn.tables.put(layout.META, b"next_event", layout.u64(2)),
        lambda txn: txn.tables.put(
            layout.EVENTS, layout.u64(9), txn.tables.get(layout.EVENTS, layout.u64(1))
        ),
        lambda txn: txn.tables.put(
            layout.EVENTS, layout.u64(4), layout.encode((5, [("NodeForgotten", 2, b"too short")]))
        ),
        lambda txn: txn.tables.put(layout.EVENTS, layout.u64(4), layout.encode((5, [("Nonsense", 1, b"")]))),
    ],
)
def test_the_checker_finds_what_is_broken(tmp_path: Path, damage: object) -> None:
    """The checker finds an invalid, missing or moved record, and a next number in use."""
    store = LmdbStore.create(tmp_path, Identity("ann", 1, 7, layout.FORMAT_VERSION), **BOUNDS)
    for node in (1, 2, 3):
        put(store, forgotten(node))
    store.write(lambda txn: txn.events.put(5, [forgotten(4)], 1000))
    assert check_store(store) == []
    store.write(damage)  # type: ignore[arg-type]
    assert check_store(store) != []
    store.close()


NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, MAX_NUMBER))


@st.composite
def runs(draw: st.DrawFn) -> EventRun:
    """Return events of one kind with any numbers."""
    kind = draw(st.sampled_from(EventKind))
    fields = FIELDS_OF[kind.value]
    if kind is EventKind.FOCUS_MOVED:
        return focus_run(draw(st.lists(NUMBERS, max_size=9)), draw(st.lists(NUMBERS, max_size=9)))
    if not fields:
        return names_run(draw(st.lists(st.sampled_from(["locale", "max_nodes"]), max_size=3)))
    rows = draw(st.lists(st.tuples(*(NUMBERS for _ in fields)), min_size=1, max_size=20))
    return run_of(kind, *(list(column) for column in zip(*rows, strict=True)))


@given(st.integers(0, 10**13), st.lists(runs(), min_size=1, max_size=4))
def test_any_record_is_decoded_as_it_was_encoded(at_ms: int, several: list[EventRun]) -> None:
    """Differences and columns lose nothing, up to the largest numbers."""
    record = EventRecord(at_ms, several)
    assert fits(record)
    assert decode_events(encode_events(record)) == record


@given(st.lists(runs(), min_size=1, max_size=8), st.data())
def test_columns_and_parts_are_those_of_the_events(several: list[EventRun], data: st.DataObject) -> None:
    """Columns of many runs are those of each run, one after the other; a part has some of the events of its run."""
    packed = decode_packed(encode_events(EventRecord(5, several))).runs
    for kind in EventKind:
        own = [run for run in packed if run.kind == kind.value and run.numbers]
        if own:
            joined = [list(chain(*parts)) for parts in zip(*(run.columns for run in own), strict=True)]
            assert [column.tolist() for column in columns_of(kind, own)] == joined
    run = data.draw(st.sampled_from([run for run in packed if FIELDS_OF[run.kind]] or [None]))
    if run is not None:
        end = data.draw(st.integers(1, run.count))
        start = data.draw(st.integers(0, end - 1))
        part = run.part(start, end)
        assert (part.kind, part.columns) == (run.kind, [column[start:end] for column in run.columns])


@given(st.recursive(st.integers(-MAX_NUMBER, MAX_NUMBER) | st.text(max_size=3), st.lists, max_leaves=12))
def test_any_other_value_is_refused_or_found(value: object) -> None:
    """Bytes of another shape are DecodeError, or a record that the checker can judge."""
    try:
        record = decode_events(msgspec.msgpack.encode(value))
    except msgspec.DecodeError:
        return
    fits(record)


def test_a_number_takes_about_a_byte() -> None:
    """Consecutive ids with a common field take about one byte a number."""
    record = EventRecord(5, [run_of(EventKind.LINK_BROKEN, [9] * 100, range(1000, 1100), [70] * 100)])
    assert len(encode_events(record)) < 330


@pytest.mark.parametrize(
    "numbers",
    [[1, 2, 3], [], [2**63 - 1], [MAX_NUMBER + 1], [MAX_NUMBER] * 3000 + [1, 2] * 1500, [-1, 2]],
)
def test_a_forged_run_is_refused_or_found(numbers: list[int]) -> None:
    """Incomplete rows, no rows, and numbers beyond their range are DecodeError or no valid events."""
    kind = list(EventKind).index(EventKind.NODE_FORGOTTEN)
    try:
        record = decode_events(msgspec.msgpack.encode([5, [[kind, numbers, []]]]))
    except msgspec.DecodeError:
        return
    assert not fits(record)
