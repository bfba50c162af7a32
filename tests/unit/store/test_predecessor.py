"""The event numbers of an agent continue in its successor, also where the last number is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.bounds import MAX_NUMBER
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.audit.predecessor import (
    NUMBERS_PER_MS,
    Predecessor,
    highest_event_by,
    read_predecessor,
    valid_event_number,
)
from ebbtide.store.chain import AuditEntry, line_of
from ebbtide.store.directory.data_directory import DataDirectory
from tests.support.erased_log import records_of
from tests.support.moving import MAPS, NOW_MS, directory, received, sent

MOST = MAPS["max_map_bytes"]


def made(data: DataDirectory, name: str, last_event: int = 0) -> Path:
    """Create a closed agent with events up to a number."""
    store = data.create_store(Identity(name, 1, 7, layout.FORMAT_VERSION))
    if last_event:
        store.write(lambda txn: txn.tables.put(layout.META, b"next_event", layout.u64(last_event + 1)))  # type: ignore[attr-defined]
    store.close()
    return data.agents / name


def next_event(data: DataDirectory, name: str) -> int:
    store = data.open_store(AgentId(name))
    try:
        return store.read(lambda txn: txn.meta.next_event)
    finally:
        store.close()


def test_an_unknown_last_event_counts_as_the_highest_possible() -> None:
    """Where the last event is unknown, the highest number that the clock allows counts."""
    with directory() as data:
        path = made(data, "ann", 41)
        details = {"replaced_records": 0, "replaced_record": bytes(32).hex()}
        assert read_predecessor(path, max_map_bytes=MOST, at_ms=NOW_MS) == Predecessor(41, details)
        (path / "data.mdb").write_bytes(b"no store")
        assert read_predecessor(path, max_map_bytes=MOST, at_ms=NOW_MS) == Predecessor(
            NOW_MS * NUMBERS_PER_MS, {"replaced_readable": False}
        )
    for number in (None, "7", -1, MAX_NUMBER, 10**30, 1.5):
        assert valid_event_number(number, NOW_MS) == highest_event_by(NOW_MS)
    assert valid_event_number(7, NOW_MS) == 7
    assert highest_event_by(10**18) < MAX_NUMBER


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_new_agent_starts_beyond_erased_ones(is_damaged: bool) -> None:
    """An agent created again starts beyond the numbers of every erased agent, also after a start."""
    with directory() as data:
        path = made(data, "ann", 41)
        if is_damaged:
            (path / "data.mdb").write_bytes(b"no store")
        data.erase(AgentId("ann"), AuditEntry(NOW_MS, "-", "agent_erased", {}))
        beyond = NOW_MS * NUMBERS_PER_MS if is_damaged else 41
        made(data, "ann")
        assert next_event(data, "ann") == beyond + 2
        data.release()
        again = DataDirectory(data.root, **MAPS)
        again.acquire()
        made(again, "bea")
        assert next_event(again, "bea") == beyond + 2
        again.erase(AgentId("bea"), AuditEntry(NOW_MS, "-", "agent_erased", {}))
        [_, line] = [line_of(record) for record in records_of(again.erased)]
        assert line is not None and line.details["last_event"] == beyond + 1
        again.release()


def test_a_restored_agent_starts_beyond_every_earlier_one() -> None:
    """A restored agent starts beyond the replaced one, the erased ones and the clock."""
    with directory() as data:
        made(data, "ann", 41)
        store: Any = data.open_store(AgentId("ann"))
        content = sent(data, store, "backup")
        store.close()
        for entry, last, beyond in (
            (AuditEntry(0, "-", "restored", {}), 0, 41),
            (AuditEntry(1, "-", "restored", {}), 0, NUMBERS_PER_MS),
            (AuditEntry(1, "-", "restored", {}), 5_000_000, 5_000_000),
        ):
            if last:
                made_anew = data.open_store(AgentId("ann"))
                made_anew.write(lambda txn, n=last: txn.events.restart_beyond(n - 1))  # type: ignore[misc]
                made_anew.close()
            data.install(AgentId("ann"), received(data, content, AgentId("ann")).path, entry)
            assert next_event(data, "ann") == beyond + 2
