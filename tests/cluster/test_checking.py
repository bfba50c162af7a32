"""`ebbtide cluster check`: a log is compared with the file of its agent's owner, and each kind of damage is found."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec
import pytest

from ebbtide.cluster import checking
from ebbtide.cluster.checking import Checked, Checker
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import AgentLog
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import Table
from ebbtide.errors import Corrupted, EbbtideError, NotFound, agent_moving
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.journal import Delta, Digests, TreeDelta
from ebbtide.store.layout import VALUE_SIZES
from ebbtide.store.lmdb.replica import Replica
from tests.cluster.simulated import AGENT, SUBJECT, SimulatedStream

TREE = next(name for name, size in VALUE_SIZES.items() if not size)
SECRET = b"a secret of sixteen bytes"


class LogServers(SimulatedStream):
    """One log, and a table of one slot."""

    def read(self, subject: str) -> tuple[bytes, int] | None:
        return msgspec.msgpack.encode(Table(("n1",))), 1


class Check(Checker):
    """A check that gets the digests of the file from the test."""

    def __init__(self, stream: LogServers, file: Digests | EbbtideError | None) -> None:
        names, secret = Names("test", 1, 1), b"" if file is None else SECRET
        assert names.subject_of(AGENT) == SUBJECT
        super().__init__(cast(Servers, stream), names, ClusterSettings(append_timeout_s=1), secret)
        self._owners_file = file

    async def _file(self, agent_id: AgentId, owner: str) -> Digests:
        assert (agent_id, owner) == (AGENT, "n1")
        if isinstance(self._owners_file, EbbtideError):
            raise self._owners_file
        assert self._owners_file is not None
        return self._owners_file


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "PAUSE_S", 0.0)


def entry(name: str) -> bytes:
    return Delta({TREE: TreeDelta(put=[(name.encode(), name.encode() * 100)])}).encoded()


@pytest.fixture
def log(tmp_path: Path) -> tuple[LogServers, list[Digests]]:
    """A log with four commits, and the digests of the owner's file after each of them."""
    stream, files = LogServers(), list[Digests]()
    journal = AgentLog(stream, SUBJECT, AGENT, "n1")
    copy = Replica(tmp_path / "owner", map_bytes=1 << 20, max_map_bytes=1 << 24)
    for name in ("one", "two", "three", "four"):
        head = journal.append(entry(name), journal.head)
        copy.apply([entry(name)], head)
        files.append(Digests(head.number, head.hash, copy.digests()))
    return stream, files


async def checked(stream: LogServers, file: Digests | EbbtideError | None) -> Checked:
    return await Check(stream, file).check(AgentId(AGENT))


@pytest.mark.parametrize("place", [1, 3])
async def test_an_intact_log_equals_the_file(log: tuple[LogServers, list[Digests]], place: int) -> None:
    """Also while the owner continues: the log is compared up to the end of the file, and read to its end."""
    stream, files = log
    found = await checked(stream, files[place])
    size = sum(len(record.body) for record in stream.records)
    assert found == Checked(AGENT, "n1", True, 4, size, stream.records[-1].sequence)


async def test_a_missing_record_is_found(log: tuple[LogServers, list[Digests]]) -> None:
    """In the middle by the hashes, with or without the file, and at the end by the file."""
    stream, files = log
    last = stream.records.pop()
    found = await checked(stream, files[3])
    assert found.fault == f"The log lacks record {last.sequence}, with which the owner's file ends."
    stream.records.append(last)
    del stream.records[1]
    for file in (files[3], None):
        found = await checked(stream, file)
        assert "record 9 does not follow" in found.fault and found.records == 3


async def test_another_content_is_found(log: tuple[LogServers, list[Digests]]) -> None:
    """The tree that differs is named."""
    stream, files = log
    trees = {**files[3].trees, TREE: files[2].trees[TREE]}
    found = await checked(stream, msgspec.structs.replace(files[3], trees=trees))
    assert found.fault == f"The owner's file differs from the log in: {TREE}."


async def test_a_stale_read_is_no_fault(log: tuple[LogServers, list[Digests]]) -> None:
    """A fault counts only if it is found again."""
    stream, files = log
    stream.hidden, stream.stale_reads = 1, 4
    assert (await checked(stream, files[3])).fault == ""


async def test_errors_of_the_owner(log: tuple[LogServers, list[Digests]]) -> None:
    """A damaged or missing agent is a fault; an owner that does not answer is none, and the log is checked."""
    stream, _ = log
    damaged = Corrupted("The log lacks commits.", reason="LOG_BEHIND")
    assert (await checked(stream, damaged)).fault == "The log lacks commits."
    missing = NotFound("There is no agent.", reason="AGENT_NOT_FOUND")
    assert (await checked(stream, missing)).fault == "There is no agent."
    away = await checked(stream, agent_moving())
    assert (away.fault, away.records) == ("", 4) and "moving" in away.not_compared
    journal = AgentLog(stream, SUBJECT, AGENT, "n1")
    journal.head = stream.records[-1].head
    journal.append_gone()
    deleted = await checked(stream, missing)
    assert (deleted.exists, deleted.fault, deleted.not_compared, deleted.records) == (False, "", "", 1)
