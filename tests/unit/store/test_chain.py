"""A chain of audit records detects every changed, removed, swapped or inserted record."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from ebbtide.store.audit.erased_agents import ERASED, HEAD, LOG, ErasedAgents
from ebbtide.store.chain import AuditEntry, AuditRecord, ChainHead, Verification, chained, line_of, proof_of
from tests.support.erased_log import records_of, verified_log

KEY = b"k" * 32


def chain(count: int, agent_id: str = "ann") -> list[AuditRecord]:
    records: list[AuditRecord] = []
    head = ChainHead()
    for number in range(count):
        proofs = (proof_of(KEY, f"text {number}"),) if number % 2 else ()
        records.append(
            chained(AuditEntry(number, "-", "forgotten", {"nodes": number}, proofs), agent_id, head)
        )
        head = ChainHead(records[-1].number, records[-1].hash)
    return records


def verified(records: list[AuditRecord], head: AuditRecord) -> Verification:
    found = Verification("ann")
    found.follow(records)
    found.end(ChainHead(head.number, head.hash))
    return found


def test_a_chain_is_verified_by_its_records_alone() -> None:
    """The records alone verify a chain: each line has the SHA-256 of the previous line."""
    records = chain(5)
    assert verified(records, records[-1]).broken_at is None
    for record in records:
        assert hashlib.sha256(record.text.encode()).hexdigest() == record.hash.hex()
    for before, after in pairwise(records):
        assert json.loads(after.text)["previous"] == before.hash.hex()
    assert "text" not in records[1].text.replace("nodes", "")


def resealed(record: AuditRecord) -> AuditRecord:
    text = record.text.replace('"actor":"-"', '"actor":"x"')
    return AuditRecord(record.number, text, hashlib.sha256(text.encode()).digest(), record.proofs)


TAMPERED: dict[str, tuple[Callable[[list[AuditRecord]], object], int]] = {
    "changed": (
        lambda r: r.__setitem__(
            2, msgspec.structs.replace(r[2], text=r[2].text.replace('"nodes":2', '"nodes":1'))
        ),
        3,
    ),
    "changed and hashed anew": (lambda r: r.__setitem__(2, resealed(r[2])), 4),
    "dropped": (lambda r: r.pop(1), 2),
    "swapped": (lambda r: r.reverse(), 1),
    "cut short": (lambda r: r.pop(), 5),
    "other proofs": (lambda r: r.__setitem__(3, msgspec.structs.replace(r[3], proofs=(KEY,))), 4),
    "no line": (lambda r: r.__setitem__(0, msgspec.structs.replace(r[0], text="{}")), 1),
    "of another agent": (lambda r: r.__setitem__(slice(None), chain(5, "bob")), 1),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_changed_record_is_found(how: str) -> None:
    """Verification names the first record that does not fit."""
    records = chain(5)
    head = records[-1]
    tamper, broken = TAMPERED[how]
    tamper(records)
    found = verified(records, head)
    assert (found.broken_at, bool(found.problem)) == (broken, True)


def test_the_log_of_erased_agents_is_a_chain(tmp_path: Path) -> None:
    """Each erased agent has a line with proofs. A truncated line is overwritten; a changed one is detected."""
    log = ErasedAgents(tmp_path)
    assert list(records_of(log)) == [] and log.head() == ChainHead()
    first = log.append(AuditEntry(1, "-", "agent_erased", {"nodes": 1}, (proof_of(KEY, "one"),)), "ann", KEY)
    with (tmp_path / "audit" / LOG).open("ab") as file:
        file.write(b'{"text": "half a li')
    second = log.append(AuditEntry(2, "-", "agent_erased", {}), "记忆", b"")
    assert [first.number, second.number] == [1, 2]

    found = verified_log(log)
    assert found.broken_at is None and found.count == 2
    assert (
        log.held(1, [" one "]) == [True]
        and log.held(1, ["two"]) == [False]
        and log.held(2, ["one"]) == [False]
    )
    assert [line_of(record).agent_id for record in records_of(log)] == ["ann", "记忆"]  # type: ignore[union-attr]
    content = (tmp_path / "audit" / LOG).read_bytes()
    (tmp_path / "audit" / LOG).write_bytes(content.replace(b'nodes\\":1', b'nodes\\":2'))
    assert verified_log(log).broken_at == 1
    (tmp_path / "audit" / LOG).write_bytes(content)
    (tmp_path / "audit" / "1.proofs").unlink()
    assert verified_log(log).broken_at == 1


def test_an_erasure_is_recorded_exactly_once(tmp_path: Path) -> None:
    """A resumed deletion finds its record among later ones, and does not confuse it with another of the same time."""
    log = ErasedAgents(tmp_path)
    entry = AuditEntry(5, "-", "agent_erased", {"nodes": 1}, (proof_of(KEY, "one"),))
    first = log.ensure(entry, "ann", KEY, after=0)
    for name in ("bea", "cia"):
        log.ensure(AuditEntry(5, "-", "agent_erased", {}), name, b"", after=0)
    assert log.ensure(AuditEntry(5, "-", "agent_erased", {"readable": False}), "ann", b"", after=0) == first
    assert log.ensure(AuditEntry(5, "-", "agent_erased", {}), "ann", b"", after=3).number == 4
    threads = [
        threading.Thread(target=log.ensure, args=(entry, f"a{n}", KEY), kwargs={"after": 4}) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    found = verified_log(log)
    assert (found.broken_at, found.count) == (None, 12)


def test_a_log_that_begins_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """Reading the log succeeds if another deletion writes the first record between the two looks at the file."""
    writer, is_begun = ErasedAgents(tmp_path), []

    def begin() -> None:
        if not is_begun:
            is_begun.append(True)
            writer.append(AuditEntry(1, "-", "agent_erased", {}), "ann", b"")

    log = ErasedAgents(tmp_path, begin)
    assert log.head().number == 1
    assert [record.number for record in records_of(log)] == [1]


def kept_log(path: Path, count: int) -> ErasedAgents:
    """Write a log of erased agents, each with proofs."""
    log = ErasedAgents(path)
    for number in range(1, count + 1):
        log.append(AuditEntry(number, "-", "agent_erased", {}, (proof_of(KEY, f"t{number}"),)), "ann", KEY)
    return log


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_truncated_log_of_erased_agents_is_detected(tmp_path: Path, left: int) -> None:
    """A truncated log is detected by its head file, by a missing head file, or by proofs without a record."""
    log = kept_log(tmp_path, 3)
    assert verified_log(log).broken_at is None
    file = tmp_path / "audit" / LOG
    cut = b"".join(file.read_bytes().splitlines(keepends=True)[:left])
    for how in ("cut", "removed") if left == 0 else ("cut",):
        file.write_bytes(cut)
        if how == "removed":
            file.unlink()
        found = verified_log(log)
        assert (found.broken_at, bool(found.problem)) == (left + 1, True)
    head = tmp_path / "audit" / HEAD
    noted = head.read_bytes()
    head.unlink()
    assert verified_log(log).broken_at is not None
    head.write_bytes(b"nonsense")
    assert verified_log(log).broken_at is not None
    if left:
        lines = [msgspec.json.decode(line) for line in cut.splitlines()]
        head.write_bytes(msgspec.json.encode({"number": left, "hash": lines[-1]["hash"]}))
        assert verified_log(log).broken_at == left + 1, "its proofs are there"
        for number in range(left + 1, 4):
            (tmp_path / "audit" / f"{number}.proofs").rename(tmp_path / f"{number}")
        assert verified_log(log).broken_at is None, "a writer of every file is not detected here"
        for number in range(left + 1, 4):
            (tmp_path / f"{number}").rename(tmp_path / "audit" / f"{number}.proofs")
    head.write_bytes(noted)
    fresh = log.append(AuditEntry(9, "-", "agent_erased", {}, (proof_of(KEY, "nine"),)), "bea", KEY)
    assert fresh.number == 4 and log.held(3, ["t3"]) == [True] and log.held(4, ["nine"]) == [True], (
        "nothing that is left is written over"
    )
    assert verified_log(log).broken_at == left + 1


def test_a_crash_before_the_head_is_noted_is_no_cut(tmp_path: Path) -> None:
    """The log may be one record longer than its head file; the next record or a resumed deletion updates it."""
    log = kept_log(tmp_path, 2)
    head = tmp_path / "audit" / HEAD
    before = head.read_bytes()
    entry = AuditEntry(3, "-", "agent_erased", {})
    third = log.ensure(entry, "ann", KEY, after=2)
    after = head.read_bytes()
    head.write_bytes(before)
    assert verified_log(log).broken_at is None
    assert log.ensure(entry, "ann", KEY, after=2) == third
    assert head.read_bytes() == after
    head.write_bytes(before)
    assert log.append(entry, "bea", KEY).number == 4
    assert verified_log(log).broken_at is None and verified_log(log).count == 4


def test_records_of_several_processes_are_one_chain(tmp_path: Path) -> None:
    """Workers that append at the same time write one intact chain, and each sees the events of the others."""
    logs = [ErasedAgents(tmp_path) for _ in range(2)]
    assert [log.last_event() for log in logs] == [0, 0]

    def append(log: ErasedAgents, first: int) -> None:
        for number in range(first, first + 10):
            details = {"last_event": number}
            log.append(AuditEntry(number, "k1", ERASED, details), f"agent-{number}", b"")

    child = os.fork()
    if not child:
        append(ErasedAgents(tmp_path), 100)
        os._exit(0)
    append(logs[0], 1)
    os.waitpid(child, 0)
    assert [log.last_event() for log in logs] == [109, 109]
    found = verified_log(logs[1])
    assert (found.count, found.broken_at) == (20, None)
