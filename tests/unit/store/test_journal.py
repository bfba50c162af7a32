"""The journal of a store: what is appended, in which order with the commit, and what happens if one of both fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.changes import Change
from ebbtide.errors import Corrupted, Precondition, Unavailable
from ebbtide.records import Identity, Node
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.journal import Delta, Operation, TreeDelta
from ebbtide.store.layout import FORMAT_VERSION, META, NODES
from ebbtide.store.lmdb.environment import fresh_environment
from ebbtide.store.lmdb.lmdb_store import LmdbStore, without_keys
from tests.support.replicas import Replica, contents_of, opened_trees

MAPS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 24}
IDENTITY = Identity("ann", 0, 1, FORMAT_VERSION)


@pytest.fixture
def replica() -> Iterator[Replica]:
    """A journal with a copy of the store."""
    replica = Replica()
    yield replica
    replica.close()


@pytest.fixture
def store(tmp_path: Path, replica: Replica) -> Iterator[LmdbStore]:
    """A new store with that journal."""
    store = LmdbStore.create(tmp_path, IDENTITY, journal=replica, **MAPS)
    yield store
    store.close()


def add(store: LmdbStore, content: str = "bees") -> int:
    """Write one memory. Return its id."""

    def write(txn: Any) -> int:
        number: int = txn.meta.next_node_id
        txn.apply(Change(nodes=[Node(number, content, "", (), 0, 4)], next_node_id=number + 1))
        return number

    return store.write(write)


def count(store: LmdbStore) -> int:
    """Return how many memories the file has."""
    return store.read(lambda txn: txn.counts()).node_count


class FailingTransactions:
    """An environment whose next commit fails with an error, before or after it is on the disk."""

    def __init__(self, environment: Any, error: Exception, *, after: bool = False) -> None:
        self._environment, self._error, self._after = environment, error, after
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def begin(self, *, write: bool = False) -> Any:
        return (
            self._Failing(self, self._environment.begin(write=write)) if write else self._environment.begin()
        )

    class _Failing:
        def __init__(self, owner: FailingTransactions, txn: Any) -> None:
            self._owner, self._txn = owner, txn

        def __enter__(self) -> Any:
            return self._txn.__enter__()

        def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
            if error is not None or self._owner.failed:
                return self._txn.__exit__(kind, error, trace)
            self._owner.failed += 1
            if self._owner._after:
                self._txn.commit()
            else:
                self._txn.abort()
            raise self._owner._error


def test_the_first_entry_makes_the_store(store: LmdbStore, replica: Replica) -> None:
    """A new store is one entry, and a transaction that writes nothing is none."""
    assert len(replica.entries) == 1
    store.write(lambda _: None)
    assert len(replica.entries) == 1
    replica.assert_equals(store)


def test_the_entry_comes_before_the_commit(store: LmdbStore, replica: Replica) -> None:
    """While an entry is appended, no reader sees what it contains."""
    seen: list[int] = []
    append = replica.append

    def appending(entry: bytes, head: Any) -> Any:
        with store._environment.begin() as txn:  # as a hot copy reads while a job runs
            seen.append(
                txn.stat(store._tables[next(t for t in store._tables if t.name == b"nodes")])["entries"]
            )
        return append(entry, head)

    replica.append = appending  # type: ignore[method-assign]
    add(store)
    assert (seen, count(store)) == ([0], 1)


def test_a_store_is_not_behind_while_it_writes(store: LmdbStore, replica: Replica) -> None:
    """Another thread that looks during an append, a commit or a rewrite does not close the agent."""
    seen: list[bool] = []
    append, rewrite = replica.append, replica.rewrite

    def noting(call: Any) -> Any:
        def noted(*given: Any) -> Any:
            result = call(*given)
            seen.append(store.is_behind)
            return result

        return noted

    replica.append = noting(append)  # type: ignore[method-assign]
    replica.rewrite = noting(rewrite)  # type: ignore[method-assign]
    store._put_head = noting(store._put_head)  # type: ignore[method-assign]
    add(store)
    store.compact()
    assert len(seen) > 3 and not any(seen)


def test_a_store_works_after_its_content_could_not_be_stored(store: LmdbStore, replica: Replica) -> None:
    """A compaction that fails before anything is appended leaves the journal and the store as they are."""
    add(store)
    before = list(replica.entries)

    def refuse(_: bytes) -> bytes:
        raise Unavailable("S3 does not answer.", reason="SNAPSHOTS_UNAVAILABLE")

    replica.placed = refuse  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        store.compact()
    assert replica.entries == before and not store.is_behind
    add(store)
    assert count(store) == 2
    replica.assert_equals(store)


def test_a_refused_entry_changes_nothing(tmp_path: Path, store: LmdbStore, replica: Replica) -> None:
    """Without the journal the write fails, and the store refuses everything until it is opened again."""
    add(store)
    replica.is_refusing = True
    with pytest.raises(Unavailable) as refused:
        add(store)
    assert refused.value.reason == "NOT_ENOUGH_LOG_SERVERS"
    replica.is_refusing = False
    for operation in (count, add):
        with pytest.raises(Unavailable) as behind:
            operation(store)
        assert behind.value.reason == "STORE_BEHIND"
    store.close()
    opened = LmdbStore.open(tmp_path, journal=replica, **MAPS)
    try:
        assert count(opened) == 1
        add(opened)
        replica.assert_equals(opened)
    finally:
        opened.close()


def test_a_full_map_within_the_commit_applies_the_entry(store: LmdbStore, replica: Replica) -> None:
    """LMDB may find the map full when it commits. The function does not run again: its outcome is applied."""
    runs = []
    store._environment = FailingTransactions(store._environment, lmdb.MapFullError("full"))

    def write(txn: Any) -> int:
        runs.append(1)
        txn.apply(Change(nodes=[Node(1, "bees", "", (), 0, 4)], next_node_id=2))
        return 7

    assert store.write(write) == 7
    assert (len(runs), len(replica.entries), count(store)) == (1, 2, 1)
    replica.assert_equals(store)
    add(store)
    replica.assert_equals(store)


@pytest.mark.parametrize("after", [False, True], ids=["not on the disk", "on the disk"])
def test_a_failed_commit_leaves_the_store_behind(store: LmdbStore, replica: Replica, after: bool) -> None:
    """If the entry is in the journal and the commit fails, the store refuses everything."""
    environment = store._environment
    store._environment = FailingTransactions(environment, lmdb.DiskError("Input/output error"), after=after)
    for operation in (add, count, add):
        with pytest.raises(Unavailable) as behind:
            operation(store)
        assert behind.value.reason == "STORE_BEHIND"
    assert len(replica.entries) == 2
    store._environment = environment


def test_a_map_that_cannot_grow_refuses_before_the_entry(tmp_path: Path, replica: Replica) -> None:
    """STORE_FULL appends nothing, and the store continues."""
    small = LmdbStore.create(tmp_path, IDENTITY, journal=replica, map_bytes=1 << 18, max_map_bytes=1 << 18)
    try:
        with pytest.raises(Exception, match="max_map_bytes"):
            add(small, "x" * (1 << 18))
        assert len(replica.entries) == 1
        add(small)
        replica.assert_equals(small)
    finally:
        small.close()


def test_other_bytes_are_no_delta() -> None:
    """Bytes that are damaged, cut off or of another form raise ValueError."""
    data = Delta.of([(b"nodes", b"k", b"v", True)]).encoded()
    assert Delta.decoded(data, without_keys) == Delta.of([(b"nodes", b"k", b"v", True)])
    for other in (b"", data[:-1], data[:10] + b"\0" + data[11:], data + data, b"\0\x28\xb5\x2f\xfd"):
        with pytest.raises(ValueError, match="not a delta"):
            Delta.decoded(other, without_keys)


def test_an_entry_of_a_later_version_is_refused() -> None:
    """Its first byte names a form that this version does not know."""
    with pytest.raises(Precondition) as refused:
        Delta.decoded(b"\2" + Delta.of([]).encoded()[1:], without_keys)
    assert refused.value.reason == "FORMAT_TOO_NEW"


def test_an_encrypted_entry_has_no_text_and_needs_its_key() -> None:
    """It is encrypted as a whole. With the key every value has the bytes that it had, with another key none is read."""
    seal, other = Seal(3, b"k" * 32), Seal(3, b"o" * 32)
    put = [(number.to_bytes(8), b"the bees of Ann " * 9) for number in range(20)]
    sealed = [(key, seal.seal(NODES, key, value)) for key, value in put]
    kept = [(META.prefix + b"focus", b"plain")]
    delta = Delta({"nodes": TreeDelta(put=sealed), "small": TreeDelta(put=kept, deleted=[(b"\1x", b"")])})
    entry = delta.encoded(seal)
    assert b"bees" not in entry and b"focus" not in entry
    assert len(entry) < sum(len(value) for _, value in sealed) / 5
    assert Delta.decoded(entry, {seal.fingerprint: seal}.__getitem__) == delta
    with pytest.raises(Precondition) as locked:
        Delta.decoded(entry, without_keys)
    assert locked.value.reason == "MASTER_KEY_REFUSED"
    for changed in (entry[:-1], entry[:40] + bytes([entry[40] ^ 1]) + entry[41:]):
        with pytest.raises(Corrupted):
            Delta.decoded(changed, lambda _: seal)
    with pytest.raises(Corrupted):
        Delta.decoded(entry, lambda _: other)


KEYS = st.sampled_from([b"a", b"b", b"c"])
LINKS = [bytes([number]) * 24 for number in range(4)]
PLAIN = st.tuples(st.just(b"nodes"), KEYS, st.sampled_from([b"", b"1", b"2"]), st.booleans())
SORTED = st.tuples(st.just(b"links"), KEYS, st.sampled_from(LINKS), st.booleans())
WHOLE_KEY = st.tuples(st.just(b"links"), KEYS, st.just(b""), st.just(False))
CLEARED = st.tuples(st.sampled_from([b"nodes", b"links"]), st.none(), st.just(b""), st.just(False))


@given(st.lists(st.lists(st.one_of(PLAIN, SORTED, WHOLE_KEY, CLEARED), max_size=12), max_size=4))
def test_the_outcome_equals_the_operations(tmp_path_factory: Any, commits: list[list[Operation]]) -> None:
    """Applying the delta of some operations equals running them one by one, also on trees that have entries."""
    folder = tmp_path_factory.mktemp("trees")
    environments = [fresh_environment(folder / name, 1 << 20) for name in ("one", "other")]
    one, other = environments
    trees, copies = opened_trees(one), opened_trees(other)
    for operations in commits:
        with one.begin(write=True) as txn:
            for tree, key, value, is_put in operations:
                handle = trees[tree.decode()]
                if key is None:
                    txn.drop(handle, delete=False)
                elif is_put:
                    txn.put(key, value, db=handle)
                else:
                    txn.delete(key, value if tree == b"links" else b"", db=handle)
        with other.begin(write=True) as txn:
            Delta.decoded(Delta.of(operations).encoded(), without_keys).apply(txn, copies)
        assert contents_of(one, trees) == contents_of(other, copies)
    for environment in environments:
        environment.close()
