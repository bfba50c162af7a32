"""Faults at random moments in a real cluster, for two minutes, and the checks that find what is wrong there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ebbtide.cluster.log import Kind, Record, hash_of
from ebbtide.store.chain import ChainHead
from ebbtide.store.journal import Delta, TreeDelta
from ebbtide.store.layout import VALUE_SIZES
from ebbtide.store.lmdb.lmdb_store import without_keys
from ebbtide.store.lmdb.replica import Replica
from tests.cluster.chaos import disorder, run
from tests.cluster.history import Promises, apply, faults_of_authors, faults_of_files

MINUTES = float(os.environ.get("EBBTIDE_CLUSTER_MINUTES", "2"))
SEED = int(os.environ.get("EBBTIDE_CLUSTER_SEED", str(random.SystemRandom().randrange(1 << 32))))


@pytest.mark.full
@pytest.mark.chaos
@pytest.mark.timeout(400 + 120 * MINUTES)
def test_nothing_acknowledged_is_lost_whatever_fails(tmp_path: Path) -> None:
    """Clients append and read lists while nodes, log servers and connections fail; `chaos.py` says what must hold."""
    print(f"EBBTIDE_CLUSTER_SEED={SEED} EBBTIDE_CLUSTER_MINUTES={MINUTES}")
    outcome = run(tmp_path, SEED, MINUTES)
    print(outcome.table())
    assert outcome.is_clean, "\n".join([*outcome.timeline, outcome.table()])
    assert outcome.acknowledged > 100
    assert len(outcome.faults) > 5


# --- the checks themselves -----------------------------------------------------------------------------


def test_reads_are_compared_with_acknowledgements_and_with_each_other() -> None:
    """A read that lacks an acknowledged text, repeats one, or contradicts another read is found."""
    promises = Promises("ann")
    for text in ("a", "b"):
        promises.send(text)
        promises.acknowledge(text)
    promises.end_read(promises.begin_read(), ["a", "b", "c"], "")
    promises.end_read(frozenset("a"), ["a"], "")
    assert (promises.stale, promises.twice) == ([], [])
    promises.end_read(promises.begin_read(), ["a"], "")
    assert len(promises.stale) == 1
    promises.end_read(frozenset(), ["b", "a"], "")
    assert len(promises.stale) == 2
    promises.end_read(frozenset(), ["a", "b", "c", "a"], "")
    assert len(promises.twice) == 1
    assert promises.lost(["b", "c"]) == ["a"]
    assert promises.invented(["a", "b", "c"]) == ["c"]


def test_the_order_of_each_client_is_compared() -> None:
    """A text that precedes an earlier one of the same client is found; the clients may alternate."""
    texts = [
        f"Client {client} noted number {number} of the list." for client, number in ((0, 1), (1, 0), (0, 3))
    ]
    assert disorder(texts) == []
    assert disorder([*texts, texts[0]]) == [texts[0]]


def log_of(*commits: tuple[str, bytes]) -> list[Record]:
    """Return a log of which each record puts a value, by an author."""
    head, found = ChainHead(), list[Record]()
    tree = next(name for name, size in VALUE_SIZES.items() if size == 0)
    for number, (author, value) in enumerate(commits, 1):
        kind = Kind.DELTA if value else Kind.OWN
        # The four bytes say that no part belongs to it.
        body = bytes(4) + Delta({tree: TreeDelta(put=[(b"key", value)])}).encoded() if value else b""
        found.append(Record(kind, hash_of(head.hash, kind, body), author, "ann", body, 2 * number))
        head = found[-1].head
    return found


def test_a_record_of_a_deposed_process_is_found() -> None:
    """Only the process that took the agent last may append."""
    assert faults_of_authors(log_of(("e1", b"1"), ("e2", b""), ("e2", b"2"))) == []
    assert len(faults_of_authors(log_of(("e1", b"1"), ("e2", b""), ("e1", b"2")))) == 1


def test_a_file_that_differs_from_the_log_is_found(tmp_path: Path) -> None:
    """Each file is compared with the fold of the log up to its head; the owner may lack the last record at most."""
    log = log_of(("e1", b"1"), ("e1", b"2"), ("e1", b"3"))
    other = log_of(("e1", b"1"), ("e1", b"4"), ("e1", b"3"))
    new_folder = iter(tmp_path / f"fold{number}" for number in range(9))

    def found(name: str, records: list[Record], head: ChainHead | None = None) -> list[str]:
        path = tmp_path / name
        copy = Replica(path, map_bytes=1 << 20, max_map_bytes=1 << 30)
        apply(copy, records)
        if head is not None:
            copy.apply([], head)
        return faults_of_files(log, {"e1": path}, "e1", next(new_folder), without_keys)

    assert found("equal", log) == []
    assert found("one behind", log[:2]) == []
    assert "2 records behind" in found("two behind", log[:1])[0]
    assert "another record" in found("another", other)[0]
    assert "differs from the fold" in found("changed", other[:2], log[1].head)[0]
    assert "the log lacks" in found("ahead", log, ChainHead(7, b"x" * 32))[0]
