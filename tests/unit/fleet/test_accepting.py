"""Batches that are accepted together share one commit, with the same outcomes as one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ebbtide.errors import Conflict, Exhausted, Unavailable
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, Identity, MessageRecord
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore

MAP_BYTES = 1 << 18
MAX_MAP_BYTES = 1 << 19


class CountingStore:
    """A store that counts its commits and can be made to fail one."""

    def __init__(self, store: LmdbStore) -> None:
        self.store = store
        self.path = store.path
        self.on_reopened: Callable[[], None] = lambda: None
        self.commit_count = 0
        self.failing: dict[int, Exception] = {}

    def read(self, fn: Callable[[Any], Any]) -> Any:
        return self.store.read(fn)

    def write(self, fn: Callable[[Any], Any]) -> Any:
        self.commit_count += 1

        def write(txn: Any) -> Any:
            outcome = fn(txn)
            if self.commit_count in self.failing:
                raise self.failing[self.commit_count]
            return outcome

        return self.store.write(write)

    def close(self) -> None:
        self.store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    """An agent's store, checked afterwards."""
    identity = Identity("ann", 0, 7, layout.FORMAT_VERSION)
    made = CountingStore(
        LmdbStore.create(tmp_path, identity, map_bytes=MAP_BYTES, max_map_bytes=MAX_MAP_BYTES)
    )
    try:
        yield made
        assert check_store(made.store) == []
    finally:
        made.close()


def opened(store: CountingStore, **parameters: object) -> Workspace:
    """Return a workspace on a store whose commits are counted from now on."""
    workspace = Workspace(store, AgentParameters.model_validate(parameters))
    store.commit_count = 0
    return workspace


def arrival(*texts: str, key: str = "", body_hash: bytes = b"") -> IncomingBatch:
    """Return a batch of these messages."""
    records = [
        MessageRecord(0, 0, index, "user", "", "", None, 5, "", layout.text_key(text))
        for index, text in enumerate(texts)
    ]
    return IncomingBatch(Batch(0, 5, 0, len(texts), idempotency_key=key), records, texts, body_hash)


def noise(characters: int) -> str:
    """Return a text that compression hardly shortens."""
    return "".join(map(chr, Random(characters).choices(range(0x4E00, 0x9FFF), k=characters)))


def numbers(outcomes: list[Accepted | Exception]) -> list[int]:
    """Return the batch numbers of outcomes; 0 for an error."""
    return [o.batch.number if isinstance(o, Accepted) else 0 for o in outcomes]


def stored(workspace: Workspace) -> list[tuple[int, list[str]]]:
    """Return (batch, texts) of everything in the inbox, in order."""

    def read(txn: Any) -> list[tuple[int, list[str]]]:
        return [
            (
                batch.number,
                [
                    txn.messages.text(txn.messages.get(batch.first_message + index))
                    for index in range(batch.message_count)
                ],
            )
            for batch in txn.inbox.waiting()
        ]

    found: list[tuple[int, list[str]]] = workspace.store.read(read)
    return found


def test_one_commit_stores_them_all_in_order(store: CountingStore) -> None:
    """Numbers, messages and counts equal those of batches accepted one after the other."""
    workspace = opened(store)
    outcomes = workspace.inbox.accept([arrival("one", "two"), arrival("three"), arrival("one")])
    assert store.commit_count == 1
    assert numbers(outcomes) == [1, 2, 3]
    assert [o.pending_batches for o in outcomes if isinstance(o, Accepted)] == [1, 2, 3]
    assert [o.batch.first_message for o in outcomes if isinstance(o, Accepted)] == [1, 3, 4]
    assert stored(workspace) == [(1, ["one", "two"]), (2, ["three"]), (3, ["one"])]


def test_same_key_in_one_commit_does_the_work_once(store: CountingStore) -> None:
    """The second request gets the first one's batch; with another body it alone is refused."""
    workspace = opened(store)
    outcomes = workspace.inbox.accept(
        [
            arrival("one", key="k", body_hash=b"1"),
            arrival("one", key="k", body_hash=b"1"),
            arrival("other", key="k", body_hash=b"2"),
            arrival("two", key="l", body_hash=b"3"),
        ]
    )
    assert numbers(outcomes) == [1, 1, 0, 2]
    assert isinstance(outcomes[2], Conflict)
    assert outcomes[2].reason == "IDEMPOTENCY_KEY_REUSED"
    assert stored(workspace) == [(1, ["one"]), (2, ["two"])]
    again = workspace.inbox.accept([arrival("one", key="k", body_hash=b"1"), arrival("three")])
    assert numbers(again) == [1, 3]


def test_inbox_that_gets_full_refuses_the_rest(store: CountingStore) -> None:
    """The batches that fit are stored; a replay needs no place and is answered nevertheless."""
    workspace = opened(store, max_queue_size=2)
    outcomes = workspace.inbox.accept(
        [arrival("one", key="k"), arrival("two"), arrival("three"), arrival("one", key="k"), arrival("four")]
    )
    assert numbers(outcomes) == [1, 2, 0, 1, 0]
    assert [o.reason for o in outcomes if isinstance(o, Exhausted)] == ["QUEUE_FULL"] * 2
    assert stored(workspace) == [(1, ["one"]), (2, ["two"])]
    assert store.commit_count == 1


def test_batch_without_room_is_refused_by_itself(store: CountingStore) -> None:
    """STORE_FULL goes to the batch that does not fit. It leaves no trace, and its neighbours are stored."""
    workspace = opened(store)
    outcomes = workspace.inbox.accept([arrival("one"), arrival(noise(400_000)), arrival("two")])
    assert numbers(outcomes) == [1, 0, 2]
    assert isinstance(outcomes[1], Exhausted)
    assert outcomes[1].reason == "STORE_FULL"
    assert stored(workspace) == [(1, ["one"]), (2, ["two"])]


def test_map_grows_for_all_of_them(store: CountingStore) -> None:
    """A commit that is repeated in a larger map stores nothing twice."""
    workspace = opened(store)
    texts = [noise(10_000 + n) for n in range(8)]
    assert numbers(workspace.inbox.accept([arrival(text) for text in texts])) == list(range(1, 9))
    assert stored(workspace) == [(n + 1, [text]) for n, text in enumerate(texts)]


def test_commit_that_fails_stores_none_of_them(store: CountingStore) -> None:
    """A failed commit raises and stores nothing, and the next batch gets the same numbers."""
    workspace = opened(store)
    store.failing = {1: Unavailable("no disk", reason="STORE_UNAVAILABLE")}
    with pytest.raises(Unavailable):
        workspace.inbox.accept([arrival("one", key="k"), arrival("two")])
    assert stored(workspace) == []
    assert numbers(workspace.inbox.accept([arrival("one", key="k"), arrival("two")])) == [1, 2]


def test_a_failed_commit_does_not_affect_earlier_ones(store: CountingStore) -> None:
    """When batches are stored separately, those before a failing commit stay acknowledged."""
    workspace = opened(store)
    full = Exhausted("the disk is full", reason="STORE_FULL")
    store.failing = {1: full, 3: Unavailable("no disk", reason="STORE_UNAVAILABLE")}
    outcomes = workspace.inbox.accept([arrival("one"), arrival("two"), arrival("three")])
    assert numbers(outcomes) == [1, 0, 2]
    assert isinstance(outcomes[1], Unavailable)
    assert stored(workspace) == [(1, ["one"]), (2, ["three"])]


def test_full_disk_refuses_one_alone(store: CountingStore) -> None:
    """A single batch is tried once."""
    workspace = opened(store)
    store.failing = {1: Exhausted("the disk is full", reason="STORE_FULL")}
    with pytest.raises(Exhausted):
        workspace.inbox.accept([arrival("one")])
    assert store.commit_count == 1
    assert stored(workspace) == []
