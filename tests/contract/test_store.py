"""The store of one agent: durability, growth, refusals, error translation; the same for plain and encrypted stores."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Precondition, Unavailable
from ebbtide.records import Batch, Identity, Link, MessageRecord, Node, Receipt, ScanState
from ebbtide.store import layout
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.store.translation import translated

IDENTITY = Identity("ann", 1, 7, layout.FORMAT_VERSION)
SMALL = 1 << 18


@pytest.fixture(params=["plain", "sealed"])
def seal(request: pytest.FixtureRequest) -> Seal | None:
    """Return the encryption of the stores of a test; none for plain stores."""
    return Seal(1, bytes(32)) if request.param == "sealed" else None


@pytest.fixture
def store(tmp_path: Path, seal: Seal | None) -> Iterator[LmdbStore]:
    made = LmdbStore.create(tmp_path, IDENTITY, map_bytes=SMALL, max_map_bytes=1 << 26, seal=seal)
    yield made
    assert check_store(made) == []
    made.close()


def put_batch(txn: WriteTransaction, *texts: str, key: str = "") -> Batch:
    number, first = txn.meta.next_batch_number, txn.meta.next_message_number
    records = [
        MessageRecord(first + i, number, i, "user", "", "", None, 5, "", layout.text_key(text))
        for i, text in enumerate(texts)
    ]
    batch = Batch(number, 5, first, len(texts), idempotency_key=key)
    return txn.accept(batch, records, list(texts), Receipt(number, b"h") if key else None)


def node(node_id: int, content: str = "content", **fields: object) -> Node:
    return msgspec.structs.replace(Node(node_id, content, "phrase", ("key",), 1, len(content)), **fields)


def test_a_store_keeps_its_identity(tmp_path: Path, seal: Seal | None) -> None:
    """Identity, counters and records are the same after closing and opening."""
    made = LmdbStore.create(tmp_path, IDENTITY, map_bytes=SMALL, max_map_bytes=1 << 26, seal=seal)
    made.write(lambda txn: put_batch(txn, "hello", "你好"))
    made.close()
    made.close()
    opening: dict[str, Any] = {} if seal is None else {"seal_of": lambda fingerprint: seal}
    again = LmdbStore.open(tmp_path, map_bytes=SMALL, max_map_bytes=1 << 26, **opening)
    assert again.read(lambda txn: txn.meta.identity) == IDENTITY
    head = again.read(lambda txn: txn.inbox.head())
    assert head is not None
    assert (head.number, head.message_count, head.position) == (1, 2, 1)
    record = again.read(lambda txn: txn.messages.get(2))
    assert record is not None
    assert again.read(lambda txn: txn.messages.text(record)) == "你好"
    again.close()
    with pytest.raises(Unavailable, match="closed"):
        again.read(lambda txn: txn.counts())


def test_a_write_that_raises_leaves_nothing(store: LmdbStore) -> None:
    """An error inside a transaction undoes all of it."""

    def fail(txn: WriteTransaction) -> None:
        put_batch(txn, "hello")
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        store.write(fail)
    assert store.read(lambda txn: txn.counts()).message_count == 0
    assert store.read(lambda txn: txn.meta.next_batch_number) == 1


def test_the_map_grows_by_itself(store: LmdbStore) -> None:
    """A write that exceeds the map enlarges it, and everything is stored."""
    import random

    dice = random.Random(1)
    texts = ["".join(chr(dice.randrange(0x4E00, 0x9FFF)) for _ in range(5000)) for _ in range(60)]
    for text in texts:
        store.write(lambda txn, text=text: put_batch(txn, text))  # type: ignore[misc]
    assert store.read(lambda txn: txn.counts()).message_count == 60
    assert (store.path / "data.mdb").stat().st_size > SMALL


def test_a_full_map_refuses_and_keeps_everything(tmp_path: Path, seal: Seal | None) -> None:
    """At max_map_bytes a write is STORE_FULL and stores nothing. Reads still work."""
    store = LmdbStore.create(tmp_path, IDENTITY, map_bytes=SMALL, max_map_bytes=SMALL, seal=seal)

    def fill() -> None:
        for number in range(2000):
            store.write(lambda txn, n=number: put_batch(txn, f"{n} " + "字" * 300 + str(n) * 50))  # type: ignore[misc]

    with pytest.raises(Exhausted) as caught:
        fill()
    assert caught.value.reason == "STORE_FULL"
    held = store.read(lambda txn: txn.counts()).message_count
    assert held > 10
    assert store.read(lambda txn: txn.meta.next_message_number) == held + 1
    assert check_store(store) == []
    store.close()


def test_equal_texts_are_stored_once_and_counted(store: LmdbStore) -> None:
    """Equal texts share a chunk."""
    store.write(lambda txn: put_batch(txn, "same", "same", "other"))
    entries = store.read(lambda txn: sum(1 for _ in txn.tables.items(layout.CHUNKS)))  # type: ignore[attr-defined]
    assert entries == 2


def test_tables_of_the_shared_tree_have_prefixes_of_their_own() -> None:
    """The prefix of a table is one byte that no other table has, so no entry belongs to two tables."""
    prefixes = [table.prefix for table in layout.TABLES if table.prefix]
    assert all(len(prefix) == 1 for prefix in prefixes)
    assert len(set(prefixes)) == len(prefixes)


@pytest.mark.parametrize("known", [None, (), (1, 3), (1, 2, 3, 9)])
def test_links_to_a_deleted_node_are_removed(store: LmdbStore, known: tuple[int, ...] | None) -> None:
    """A deletion removes the links to a node: of the known sources, of this transaction, or found by a scan.

    Other links of the same sources stay.
    """
    links = [
        Link(1, 2, "a", 0.5, 0),
        Link(1, 2, "b", 0.5, 0),
        Link(3, 2, "a", 0.5, 0),
        Link(1, 3, "a", 0.5, 0),
    ]
    written = links[:3] if known == () else []
    nodes = [node(number) for number in (1, 2, 3)]
    store.write(lambda txn: txn.apply(Change(nodes=nodes, next_node_id=4)))
    store.write(lambda txn: txn.links.put([one for one in links if one not in written]))
    store.sources_of = lambda _: known

    def delete(txn: Any) -> int:
        txn.links.put(written)
        count: int = txn.links.count_at(2)
        txn.apply(Change(deleted=[2]))
        return count

    assert store.write(delete) == 3
    assert store.read(lambda txn: list(txn.links.all())) == [links[3]]
    assert check_store(store) == []


def test_a_change_is_written_with_its_index_entries(store: LmdbStore) -> None:
    """A repeated link is replaced; forgetting a node removes its links and scans."""
    links = [Link(1, 2, "下文", 0.5, 0), Link(2, 1, "", 1.0, 0), Link(1, 2, "", 0.25, 0)]
    store.write(lambda txn: txn.apply(Change(nodes=[node(1), node(2)], links=links, next_node_id=3)))
    assert check_store(store) == []
    store.write(lambda txn: txn.apply(Change(links=[Link(1, 2, "", 0.75, 0)])))
    assert set(store.read(lambda txn: list(txn.links.all()))) == {*links[:2], Link(1, 2, "", 0.75, 0)}
    store.write(lambda txn: txn.scans.put(1, ScanState(1, 1)))
    store.write(lambda txn: txn.apply(Change(scanned=np.array([1]), scanned_in=2, finished_passes=2)))
    assert dict(store.read(lambda txn: list(txn.scans.all()))) == {1: ScanState(2, 2)}
    store.write(lambda txn: txn.apply(Change(forgotten=[1])))
    assert store.read(lambda txn: list(txn.links.all())) == [Link(2, 1, "", 1.0, 0)]
    assert store.read(lambda txn: list(txn.scans.all())) == []


def test_scan_counters_of_many_nodes_are_packed(store: LmdbStore) -> None:
    """Scan counters are packed in blocks: thousands fit in a few values."""
    nodes = [node(i) for i in range(1, 3001)]
    scans = {i: ScanState(i % 7, 7) for i in range(1, 3001)}
    store.write(lambda txn: txn.apply(Change(nodes=nodes, next_node_id=3001, finished_passes=7)))
    for times in range(1, 7):
        scanned = [i for i, scan in scans.items() if scan.count >= times]
        store.write(lambda txn, ids=scanned: txn.apply(Change(scanned=np.array(ids), scanned_in=7)))
    assert dict(store.read(lambda txn: list(txn.scans.all()))) == {i: s for i, s in scans.items() if s.count}
    assert store.read(lambda txn: sum(1 for _ in txn.tables.items(layout.SCANS))) == 3  # type: ignore[attr-defined]


def test_statuses_are_pruned_by_count_and_by_age(store: LmdbStore) -> None:
    """Statuses beyond the maximum number or age are removed with their receipts."""
    for number in range(1, 7):
        batch = store.write(lambda txn, n=number: put_batch(txn, f"text {n}", key=f"k{n}"))  # type: ignore[misc]
        done = msgspec.structs.replace(batch, digested_at_ms=number * 100)
        store.write(lambda txn, b=done: txn.inbox.finish(b))  # type: ignore[misc]
    store.write(lambda txn: txn.inbox.prune(keep=4, older_than_ms=0, most=32))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.all()))] == [3, 4, 5, 6]
    assert store.read(lambda txn: txn.inbox.receipt("k2")) is None
    store.write(lambda txn: txn.inbox.prune(keep=4, older_than_ms=9000, most=32, least=3))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.all()))] == [4, 5, 6], "the latest stay"
    store.write(lambda txn: txn.inbox.prune(keep=4, older_than_ms=500, most=32))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.all()))] == [5, 6]
    store.write(lambda txn: txn.inbox.prune(keep=1, older_than_ms=900, most=1))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.all()))] == [6]


def test_deferred_parked_and_retried_batches_keep_their_messages(store: LmdbStore) -> None:
    """A batch moves to the tail, out of the inbox, and back to the tail, and is never dropped."""
    first = store.write(lambda txn: put_batch(txn, "one"))
    store.write(lambda txn: put_batch(txn, "two"))
    moved = store.write(lambda txn: txn.inbox.defer(first))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.waiting()))] == [2, 1]
    store.write(lambda txn: txn.inbox.park(moved))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.waiting()))] == [2]
    assert store.read(lambda txn: txn.counts()).parked_batches == 1
    parked = store.read(lambda txn: txn.inbox.get(1))
    assert parked is not None
    assert parked.state == "parked"
    store.write(lambda txn: txn.inbox.unpark(parked))
    assert [b.number for b in store.read(lambda txn: list(txn.inbox.waiting()))] == [2, 1]


def test_a_newer_format_is_refused_not_guessed(tmp_path: Path) -> None:
    """Data of a newer Ebbtide is FORMAT_TOO_NEW and stays unchanged."""
    newer = Identity("ann", 1, 7, layout.FORMAT_VERSION + 1)
    LmdbStore.create(tmp_path, newer, map_bytes=SMALL, max_map_bytes=1 << 26).close()
    with pytest.raises(Precondition) as caught:
        LmdbStore.open(tmp_path, map_bytes=SMALL, max_map_bytes=1 << 26)
    assert caught.value.reason == "FORMAT_TOO_NEW"


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """A file that is no LMDB environment is STORE_CORRUPTED, not a crash."""
    (tmp_path / "data.mdb").write_bytes(b"this is not a database" * 1000)
    with pytest.raises(Corrupted):
        LmdbStore.open(tmp_path, map_bytes=SMALL, max_map_bytes=1 << 26)


def test_a_damaged_value_is_corruption_not_a_crash(store: LmdbStore) -> None:
    """A node that cannot be decoded is STORE_CORRUPTED."""
    store.write(lambda txn: txn.tables.put(layout.NODES, layout.u64(1), b"\xc1"))  # type: ignore[attr-defined]
    with pytest.raises(Corrupted):
        store.read(lambda txn: list(txn.nodes.all()))
    store.write(lambda txn: txn.tables.delete(layout.NODES, layout.u64(1)))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (lmdb.MapFullError("full"), "STORE_FULL"),
        (lmdb.DiskError("x: No space left on device"), "STORE_FULL"),
        (lmdb.DiskError("x: Input/output error"), "STORE_UNAVAILABLE"),
        (lmdb.CorruptedError("x"), "STORE_CORRUPTED"),
        (OSError(errno.ENOSPC, "no room"), "STORE_FULL"),
        (OSError(errno.EIO, "io"), "STORE_UNAVAILABLE"),
        (lmdb.Error("mdb_txn_commit: Input/output error"), "STORE_UNAVAILABLE"),
    ],
)
def test_foreign_errors_are_translated(error: Exception, reason: str, tmp_path: Path) -> None:
    """Errors of LMDB and the operating system become EbbtideErrors without paths in their messages."""
    ours = translated(error, tmp_path)
    assert isinstance(ours, EbbtideError)
    assert ours.reason == reason
    assert str(tmp_path) not in ours.message
