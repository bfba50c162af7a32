"""A copy of an open store has one consistent state without deleted data, and no job waits for it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.changes import Change
from ebbtide.errors import Exhausted, Unavailable
from ebbtide.records import Identity, Link, Node
from ebbtide.store.integrity.check import check_store
from ebbtide.store.layout import FORMAT_VERSION
from ebbtide.store.lmdb import lmdb_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.moving import content_of

MAPS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 28}
FANS = 600


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """A store whose links need pages of their own for one source, as LMDB keeps many duplicates."""
    (tmp_path / "store").mkdir()
    made = LmdbStore.create(tmp_path / "store", Identity("ann", 0, 1, FORMAT_VERSION), **MAPS)
    nodes = [Node(number, "x", "", (), 0, 1) for number in range(1, FANS + 1)]
    links = [Link(1, number, "fan", 0.5, 0) for number in range(2, FANS + 1)]
    made.write(lambda txn: txn.apply(Change(nodes=nodes, links=links, next_node_id=FANS + 1)))
    yield made
    made.close()


def opened(path: Path) -> LmdbStore:
    """The copy."""
    return LmdbStore.open(path, **MAPS)


def never() -> bool:
    return False


def test_a_copy_is_the_store(store: LmdbStore, tmp_path: Path) -> None:
    """A copy has every entry, including many sorted duplicates, and passes the checker."""
    into = tmp_path / "copy"
    into.mkdir()
    assert store.copy(into, never, lambda: None)
    copy = opened(into)
    assert content_of(copy) == content_of(store)
    assert check_store(copy) == []
    copy.close()


def test_what_was_deleted_is_not_in_a_copy(store: LmdbStore, tmp_path: Path) -> None:
    """A copy does not contain deleted text that is still in free pages of the store."""
    node = Node(1, "the secret of the lighthouse " * 9, "", (), 0, 261)
    store.write(lambda txn: txn.apply(Change(nodes=[node])))
    store.write(lambda txn: txn.apply(Change(nodes=[Node(1, "x", "", (), 0, 1)])))
    assert b"lighthouse" in (store.path / "data.mdb").read_bytes()
    into = tmp_path / "copy"
    into.mkdir()
    assert store.copy(into, never, lambda: None)
    assert b"lighthouse" not in (into / "data.mdb").read_bytes()


def test_the_map_grows_during_a_copy_which_starts_again(store: LmdbStore, tmp_path: Path) -> None:
    """The map grows while a copy is in progress, and the copy has one consistent state."""
    into = tmp_path / "copy"
    into.mkdir()
    grown, started = threading.Event(), threading.Event()
    begun, before = [0], content_of(store)

    def pause() -> None:
        begun[0] += 1
        started.set()
        if begun[0] == 2:
            # Stand still in the middle until the map wants to grow: nobody waits for this copy to end.
            while not store._copies.must_end:
                threading.Event().wait(0.001)

    copying = threading.Thread(target=lambda: store.copy(into, never, pause))
    copying.start()
    started.wait(20)

    def write() -> None:
        big = Node(2, "猫" * 300_000, "", (), 0, 300_000)
        store.write(lambda txn: txn.apply(Change(nodes=[big])))
        grown.set()

    writing = threading.Thread(target=write)
    writing.start()
    assert grown.wait(20)
    writing.join()
    copying.join(20)
    assert not copying.is_alive()
    copy = opened(into)
    # It may have begun anew between two growths, before the commit that needed both.
    assert content_of(copy) in (before, content_of(store))
    copy.close()


def test_a_store_that_closes_ends_its_copies(store: LmdbStore, tmp_path: Path) -> None:
    """Closing the store ends a copy with AGENT_CLOSING."""
    into = tmp_path / "copy"
    into.mkdir()
    started, failures = threading.Event(), []

    def pause() -> None:
        started.set()
        while not store._copies.must_end:
            threading.Event().wait(0.001)

    def copy() -> None:
        try:
            store.copy(into, never, pause)
        except Unavailable as error:
            failures.append(error.reason)

    copying = threading.Thread(target=copy)
    copying.start()
    started.wait(20)
    store.close()
    copying.join(20)
    assert failures == ["AGENT_CLOSING"]


def test_a_cancelled_copy_ends(store: LmdbStore, tmp_path: Path) -> None:
    """A cancelled copy returns False, and the store can be copied again."""
    into = tmp_path / "copy"
    into.mkdir()
    asked = iter([False, False, False])
    assert not store.copy(into, lambda: next(asked, True), lambda: None)
    assert store.copy(into, never, lambda: None)
    assert store.read(lambda txn: txn.counts()).link_count == FANS - 1


class Held:
    """A copy in its own thread that waits until it must end, or is released."""

    def __init__(self, store: LmdbStore, into: Path) -> None:
        into.mkdir()
        self.store, self.into = store, into
        self.release, self.is_under_way = threading.Event(), threading.Event()
        self.had_to_end = 0
        self.whole: list[bool] = []
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()
        assert self.is_under_way.wait(20)

    def _copy(self) -> None:
        self.whole.append(self.store.copy(self.into, never, self._pause))

    def _pause(self) -> None:
        self.is_under_way.set()
        while not self.release.wait(0.001):
            if self.store._copies.must_end:
                self.had_to_end += 1
                return

    def content(self) -> dict[str, object]:
        """The nodes in the finished copy."""
        self.release.set()
        self._thread.join(20)
        assert self.whole == [True]
        copy = opened(self.into)
        try:
            assert check_store(copy) == []
            return content_of(copy)
        finally:
            copy.close()


def noise(number: int, characters: int) -> str:
    """Incompressible text."""
    return "".join(hashlib.sha256(b"%d %d" % (number, i)).hexdigest() for i in range(characters // 64))


def told(store: LmdbStore, number: int, characters: int) -> None:
    """Change the content of node 2."""
    node = Node(2, noise(number, characters), "", (), 0, characters)
    store.write(lambda txn: txn.apply(Change(nodes=[node])))


def test_a_copy_gives_way_in_a_map_that_cannot_grow(tmp_path: Path) -> None:
    """A commit that needs pages which only a copy still reads ends the copy, which starts again."""
    (tmp_path / "store").mkdir()
    store = LmdbStore.create(
        tmp_path / "store", Identity("ann", 0, 1, FORMAT_VERSION), map_bytes=1 << 20, max_map_bytes=1 << 20
    )
    store.write(lambda txn: txn.apply(Change(nodes=[Node(1, "x", "", (), 0, 1)], next_node_id=3)))
    for number in range(20):
        told(store, number, 100_000)
    held = Held(store, tmp_path / "copy")
    states = []
    for number in range(20, 80):
        told(store, number, 100_000)
        states.append(content_of(store))
    assert held.had_to_end
    assert held.content() in states
    store.close()


def test_a_copy_of_a_full_store_goes_on_while_writes_are_refused(tmp_path: Path) -> None:
    """A write that fails for another lack of space does not end the copy."""
    (tmp_path / "store").mkdir()
    store = LmdbStore.create(
        tmp_path / "store", Identity("ann", 0, 1, FORMAT_VERSION), map_bytes=1 << 20, max_map_bytes=1 << 20
    )
    store.write(lambda txn: txn.apply(Change(nodes=[Node(1, "x", "", (), 0, 1)], next_node_id=3)))
    told(store, 1, 200_000)
    held = Held(store, tmp_path / "copy")
    for number in range(2, 12):
        with pytest.raises(Exhausted):
            told(store, number, 1_200_000)
    assert not held.had_to_end
    assert held.content() == content_of(store)
    store.close()


def test_a_copy_that_starts_again_too_often_fails(
    store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that has to start again too often is STORE_UNAVAILABLE with a retry time."""
    monkeypatch.setattr(lmdb_store, "MAX_COPY_ATTEMPTS", 3)
    into, over = tmp_path / "copy", threading.Event()
    into.mkdir()

    def pause() -> None:
        while not store._copies.must_end:
            over.wait(0.001)

    def interrupt() -> None:
        while not over.wait(0.001):
            with store._copies.standstill():
                pass

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(Unavailable) as caught:
            store.copy(into, never, pause)
    finally:
        over.set()
        interrupting.join(20)
    assert caught.value.reason == "STORE_UNAVAILABLE"
    assert caught.value.retry_after_s
    assert store.copy(into, never, lambda: None)


def test_a_copy_waits_for_a_compaction(
    store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that starts during a compaction waits and succeeds."""
    into = tmp_path / "copy"
    into.mkdir()
    outcomes: list[object] = []

    def copy() -> None:
        try:
            outcomes.append(store.copy(into, never, lambda: None))
        except Unavailable as error:
            outcomes.append(error.reason)

    copying = threading.Thread(target=copy)
    sync = lmdb_store.sync_directory

    def begin_copy(path: Path) -> None:
        copying.start()
        copying.join(0.3)
        sync(path)

    monkeypatch.setattr(lmdb_store, "sync_directory", begin_copy)
    store.compact()
    copying.join(20)
    assert outcomes == [True]
    again = opened(into)
    assert content_of(again) == content_of(store)
    again.close()
