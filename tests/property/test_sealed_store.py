"""An encrypted store behaves exactly as a plain one, and copies made from deltas equal both."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ebbtide.changes import Change
from ebbtide.events import names_run
from ebbtide.fleet.archive.retention import is_digested
from ebbtide.records import (
    Batch,
    EmbeddedMessage,
    EmbeddingState,
    Identity,
    Link,
    MessageRecord,
    Node,
    PassageEntry,
    Receipt,
    Source,
)
from ebbtide.statements import Assertion, LedgerState, Ruling
from ebbtide.store import layout
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.rebuild import rebuild_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.encrypted import everything
from tests.support.replicas import Replica

MAPS: dict[str, int] = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 26}
TEXTS = st.sampled_from(["", "bees", "外婆住在团岛", "the lighthouse " * 40, "bees and 蜜蜂"])
NAMES = st.sampled_from(["", "上文", "neighbour"])
SEAL = Seal(3, b"k" * 32)


class TwoStores(RuleBasedStateMachine):
    """The same transactions on a plain and on a sealed store."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        identity = Identity("ann", 1, 7, layout.FORMAT_VERSION)
        self.stores = []
        self.replicas = [Replica(), Replica(lambda _: SEAL)]
        for replica, (name, seal) in zip(self.replicas, (("plain", None), ("sealed", SEAL)), strict=True):
            (self.root / name).mkdir()
            store = LmdbStore.create(self.root / name, identity, seal=seal, journal=replica, **MAPS)
            self.stores.append(store)

    def teardown(self) -> None:
        for store, replica in zip(self.stores, self.replicas, strict=True):
            assert check_store(store) == []
            replica.assert_equals(store)
            store.close()
            replica.close()
        shutil.rmtree(self.root)

    def both(self, change: Callable[[Any], Any]) -> None:
        """Do the same to both."""
        outcomes = [store.write(change) for store in self.stores]
        assert outcomes[0] == outcomes[1]

    @rule(texts=st.lists(TEXTS, min_size=1, max_size=3), key=st.sampled_from(["", "k1", "钥匙"]))
    def accept(self, texts: list[str], key: str) -> None:
        """A batch arrives, with a receipt unless its key was used before."""

        def accept(txn: Any) -> Any:
            number, first = txn.meta.next_batch_number, txn.meta.next_message_number
            records = [
                MessageRecord(first + i, number, i, "user", "Ann", "", None, 5, "c", layout.text_key(text))
                for i, text in enumerate(texts)
            ]
            passages = [[PassageEntry(0, len(text), 1, b"", b"")] for text in texts]
            used = "" if key and txn.inbox.receipt(key) else key
            batch = Batch(number, 5, first, len(texts), idempotency_key=used)
            return txn.accept(batch, records, texts, Receipt(number, b"h") if used else None, passages)

        self.both(accept)

    @rule(word=TEXTS, is_ruling=st.booleans(), removed=st.integers(0, 9))
    def state(self, word: str, is_ruling: bool, removed: int) -> None:
        """A statement or a ruling arrives, and an earlier entry may be deleted."""

        def state(txn: Any) -> None:
            entry, node = txn.meta.ledger.next_entry, txn.meta.next_node_id
            change = Change(removed_entries=[removed], ledger=LedgerState(entry + 1))
            said = next((one for one in txn.messages.all() if not one.is_withdrawn), None)
            if is_ruling or said is None:
                change.rulings = [Ruling(entry, "pin", max(node - 1, 1), 5, reason=word)] if node > 1 else []
            else:
                source = Source(said.number, 0, 0)
                own = txn.texts.put(word)
                change.nodes = [
                    Node(node, word, "", (), 5, len(word), kind="fact", sources=(source,), first_key=own)
                ]
                change.next_node_id = node + 2
                change.assertions = [Assertion(entry, node, node + 1, "likes", word, source, 5, 5)]
            txn.apply(change)

        self.both(state)

    @rule(what=st.sampled_from(["finish", "defer", "park"]))
    def move_batch(self, what: str) -> None:
        """The batch at the head goes where batches go."""

        def move(txn: Any) -> Any:
            head = txn.inbox.head()
            return None if head is None else getattr(txn.inbox, what)(head)

        self.both(move)

    @rule(keep=st.integers(0, 2))
    def prune(self, keep: int) -> None:
        """Statuses and receipts go."""
        self.both(lambda txn: txn.inbox.prune(keep=keep, older_than_ms=0, most=10))

    @rule(relation=NAMES, content=TEXTS)
    def digest(self, relation: str, content: str) -> None:
        """Two nodes come, one of them with a text of its own, linked both ways."""

        def digest(txn: Any) -> None:
            first = txn.meta.next_node_id
            own = txn.texts.put(content)
            nodes = [
                Node(first, "bees", "p", ("k",), 1, 4, sources=()),
                Node(first + 1, content, "p", (), 1, len(content), sources=(), first_key=own),
            ]
            links = [Link(first, first + 1, relation, 0.5, 0), Link(first + 1, first, "下文", 0.5, 0)]
            txn.apply(Change(nodes=nodes, links=links, next_node_id=first + 2, finished_passes=1))
            txn.apply(Change(scanned=np.array([first]), scanned_in=1))

        self.both(digest)

    @rule(place=st.integers(0, 5), strength=st.sampled_from([0.0, 0.25, 4.0]))
    def strengthen_or_remove(self, place: int, strength: float) -> None:
        """A link gets another strength; 0 removes it."""

        def change(txn: Any) -> None:
            for link in list(txn.links.all())[place : place + 1]:
                changed = [msgspec.structs.replace(link, strength=strength)] if strength else []
                txn.apply(Change(links=changed, removed_links=[] if strength else [link]))

        self.both(change)

    @rule(place=st.integers(0, 5), is_deleted=st.booleans())
    def forget(self, place: int, is_deleted: bool) -> None:
        """A node is deleted."""

        def forget(txn: Any) -> None:
            ids = [node.id for node in txn.nodes.all()][place : place + 1]
            txn.apply(Change(deleted=ids) if is_deleted else Change(forgotten=ids))

        self.both(forget)

    @rule(number=st.integers(1, 6))
    def embed_or_withdraw(self, number: int) -> None:
        """A message gets a vector; every other one loses its text once its batch is digested."""

        def change(txn: Any) -> None:
            record = txn.messages.get(number)
            if record is None or record.is_withdrawn:
                return
            if number % 2:
                txn.meta.set(embedding=EmbeddingState("m", 1, 0))
                txn.vectors.put(number, EmbeddedMessage(1, (b"\0\x3c" + bytes(14),)))
            elif is_digested(txn, record, {}):
                txn.messages.withdraw(record, [])

        self.both(change)

    @rule()
    def rebuild(self) -> None:
        """Rebuild the derived tables."""
        assert [rebuild_store(store) for store in self.stores] == [[], []]

    @rule()
    def compact(self) -> None:
        """Both files are written again without what was deleted."""
        for store in self.stores:
            store.write(lambda txn: txn.meta.set(compaction_due=True))
            store.compact()

    @rule(record=st.sampled_from(["Ann", "安", ""]), keep=st.integers(0, 2))
    def restart_events(self, record: str, keep: int) -> None:
        """The event log is emptied, and continues with an event."""

        def restart(txn: Any) -> None:
            if not record:
                txn.events.restart_beyond(txn.meta.next_event)
            txn.events.put(7, [names_run([record or "x"])], keep)

        self.both(restart)

    @rule()
    def reopen(self) -> None:
        """Both are closed and opened."""
        for store in self.stores:
            store.close()
        self.stores = [
            LmdbStore.open(store.path, seal_of=lambda fingerprint: SEAL, journal=replica, **MAPS)
            for store, replica in zip(self.stores, self.replicas, strict=True)
        ]
        assert [store.sealed_with for store in self.stores] == ["", SEAL.fingerprint]

    @invariant()
    def tell_the_same(self) -> None:
        """Everything that can be asked has the same answer."""
        plain, sealed = map(everything, self.stores)
        assert plain == sealed


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
