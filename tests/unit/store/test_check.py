"""The consistency checker finds damage, and a rebuild repairs what is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.records import (
    Attachment,
    Batch,
    Concept,
    EmbeddedMessage,
    EmbeddingState,
    Entity,
    Identity,
    Link,
    MessageRecord,
    Node,
    PassageEntry,
    PassState,
    PersonalSpan,
    Receipt,
    Region,
    ScanState,
    Source,
)
from ebbtide.statements import Assertion, LedgerState, Ruling
from ebbtide.store import layout
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.entries import MAX_FINDINGS
from ebbtide.store.integrity.rebuild import rebuild_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore

TEXT = "外婆住在团岛。She lives there."


@pytest.fixture(params=["plain", "sealed"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LmdbStore]:
    made = LmdbStore.create(
        tmp_path,
        Identity("ann", 1, 7, layout.FORMAT_VERSION),
        map_bytes=1 << 18,
        max_map_bytes=1 << 26,
        seal=Seal(1, bytes(32)) if request.param == "sealed" else None,
    )
    made.write(fill)
    assert check_store(made) == []
    yield made
    made.close()


def fill(txn: Any) -> None:
    """Write nodes, links, batches in every state, and texts that several messages share."""
    key = layout.text_key(TEXT)
    for number in (1, 2, 3):
        record = MessageRecord(number, number, 0, "user", "", "", None, 5, "", key)
        batch = txn.accept(
            Batch(number, 5, number, 1, idempotency_key=f"k{number}"), [record], [TEXT], Receipt(number, b"h")
        )
        if number == 1:
            txn.inbox.finish(batch)
        if number == 2:
            txn.inbox.park(batch)
    own = txn.texts.put("rephrased")
    nodes = [
        Node(1, "外婆住在团岛。", "p", (), 1, 7, sources=(Source(1, 0, 21),)),
        Node(2, "rephrased", "p", (), 1, 9, sources=(Source(1, 0, len(TEXT.encode())),), first_key=own),
    ]
    links = [Link(1, 2, "下文", 0.5, 0), Link(2, 1, "上文", 0.5, 0)]
    txn.apply(
        Change(
            nodes=nodes,
            links=links,
            focus=(2,),
            next_node_id=3,
            finished_passes=1,
        )
    )
    txn.apply(Change(scanned=np.array([1]), scanned_in=1))


def _put(table: layout.Table[Any], key: bytes, value: bytes) -> Callable[[Any], None]:
    return lambda txn: txn.tables.put(table, key, value)


def _delete(table: layout.Table[Any], key: bytes) -> Callable[[Any], None]:
    return lambda txn: txn.tables.delete(table, key)


def _amended(table: layout.Table[Any], number: int, **changes: Any) -> Callable[[Any], None]:
    """Return a function that changes fields of a record."""
    kind = {layout.BATCHES: Batch, layout.MESSAGES: MessageRecord}[table]

    def amend(txn: Any) -> None:
        record = layout.decode(txn.tables.get(table, layout.u64(number)), type=kind)
        txn.tables.put(table, layout.u64(number), layout.encode(msgspec.structs.replace(record, **changes)))

    return amend


def _stated(
    assertion: dict[str, Any] | None = None, ruling: dict[str, Any] | None = None, next_entry: int = 3
) -> Callable[[Any], None]:
    """Return a function that writes a statement and its ruling, with some fields changed."""
    told, ruled = assertion or {}, ruling or {}
    source = Source(1, 0, 21)
    return lambda txn: txn.apply(
        Change(
            nodes=[Node(3, "外婆住在团岛。", "", (), 1, 7, kind="fact", sources=(source,))],
            entities={4: Entity(4, "外婆", "外婆")},
            next_node_id=5,
            assertions=[
                msgspec.structs.replace(Assertion(1, 3, 4, "residence", "团岛", source, 5, 5), **told)
            ],
            rulings=[msgspec.structs.replace(Ruling(2, "pin", 3, 5), **ruled)],
            ledger=LedgerState(next_entry, 1),
        )
    )


def _conceived(**changes: Any) -> Callable[[Any], None]:
    """Return a function that writes a concept with some fields changed."""
    concept = msgspec.structs.replace(Concept(3, ("外婆",), (1, 2), 5), **changes)
    return lambda txn: txn.apply(Change(concepts=[concept], next_node_id=4))


def _attached(
    content: bytes = b"\x89PNG", regions: tuple[Region, ...] = (), **changes: Any
) -> Callable[[Any], None]:
    """Return a function that gives the first message an attachment, with some fields changed."""

    def attach(txn: Any) -> None:
        made = Attachment("image/png", txn.texts.put_content(content), len(content), 21, 4, regions)
        _amended(layout.MESSAGES, 1, attachments=(msgspec.structs.replace(made, **changes),))(txn)

    return attach


def _passing(
    drawn: tuple[int, ...] = (), after: tuple[int, int] | None = None, start_id: int = 3
) -> Callable[[Any], None]:
    state = PassState(2, "slots", start_id, after, drawn)
    return lambda txn: txn.apply(Change(pass_state=state, owed_passes=1))


def _frame_of(size: int) -> bytes:
    """Return the header of a Zstandard frame that declares a size."""
    return b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + bytes(16)


REPAIRABLE: dict[str, Callable[[Any], None]] = {
    "links of a node that is gone": _put(layout.LINKS, layout.u64(9), layout.link_value(1, 1, 0.5, 0)),
    "a counter of a node that is gone": lambda txn: txn.scans.put(77, ScanState(1, 1)),
    "a focus that names the gone": _put(layout.META, b"focus", layout.encode((9,))),
    "a focus that names one twice": _put(layout.META, b"focus", layout.encode((2, 2))),
    "a chunk counted wrongly": _put(layout.CHUNK_REFERENCES, layout.text_key(TEXT), layout.u32(9)),
    "a chunk counted once": _put(layout.CHUNK_REFERENCES, layout.text_key("rephrased"), layout.u32(1)),
    "a shared chunk without its count": _delete(layout.CHUNK_REFERENCES, layout.text_key(TEXT)),
    "a count of a text that is gone": _put(layout.CHUNK_REFERENCES, layout.text_key("gone"), layout.u32(2)),
    "passages of a message that is gone": _put(layout.PASSAGES, layout.u64(99), layout.encode([])),
    "passages that leave something out": _put(
        layout.PASSAGES, layout.u64(1), layout.encode([PassageEntry(0, 5, 0, b"", b"")])
    ),
    "passages that cannot be decoded": _put(layout.PASSAGES, layout.u64(1), b"\xc1"),
    "terms out of order": _put(
        layout.PASSAGES, layout.u64(1), layout.encode([PassageEntry(0, len(TEXT), 2, bytes(8), b"11")])
    ),
    "a term that is counted twice": _put(
        layout.PASSAGES, layout.u64(1), layout.encode([PassageEntry(0, len(TEXT), 1, bytes(4), b"11")])
    ),
    "texts said to be gone": _put(layout.META, b"texts_from", layout.u64(3)),
    "texts of messages to come said to be gone": _put(layout.META, b"texts_from", layout.u64(1 << 52)),
    "vectors of messages to come": _put(
        layout.META, b"embedding", layout.encode(EmbeddingState("m", 1, 1 << 52))
    ),
    "a vector that is no direction": lambda txn: (
        txn.meta.set(embedding=EmbeddingState("m", 1, 1)),
        txn.vectors.put(1, EmbeddedMessage(1, (bytes(8),))),
    ),
    "a vector that is no number": lambda txn: (
        txn.meta.set(embedding=EmbeddingState("m", 1, 1)),
        txn.vectors.put(1, EmbeddedMessage(1, (b"\x00\x7e" * 4,))),
    ),
    "passages of a withdrawn text that end before a cited range": lambda txn: (
        txn.apply(Change(nodes=[Node(1, "外婆住在团岛。", "p", (), 1, 7, sources=(Source(1, 9, 12),))])),
        txn.messages.withdraw(txn.messages.get(1), [PassageEntry(0, 6, 0, b"", b"", (1, 2))]),
    ),
    "passages of a withdrawn text that name a memory of another passage": lambda txn: txn.messages.withdraw(
        txn.messages.get(1),
        [PassageEntry(0, 60, 0, b"", b"", (1, 2)), PassageEntry(60, 9, 0, b"", b"", (1,))],
    ),
    "citings without a node": lambda txn: txn.tables.save(layout.CITINGS, layout.u64(0), {1: (1,)}),
    "citings of a node that cites nothing": lambda txn: txn.tables.save(
        layout.CITINGS, layout.u64(0), {1: (1, 2), 2: (1,)}
    ),
    "citings that are missing": lambda txn: txn.tables.clear(layout.CITINGS),
    "a concept with a member to come": _conceived(members=(1, 3)),
    "a concept with members out of order": _conceived(members=(2, 1)),
    "a concept without members": _conceived(members=()),
    "a concept that is a memory": _conceived(id=1, members=(2,)),
    "a concept under another's key": lambda txn: (
        _conceived()(txn),
        txn.tables.put(layout.CONCEPTS, layout.u64(1), txn.tables.get(layout.CONCEPTS, layout.u64(3))),
    ),
    "a concept that cannot be decoded": _put(layout.CONCEPTS, layout.u64(1), b"\xc1"),
    "citings that cannot be decoded": _put(layout.CITINGS, layout.u64(0), b"\xc1"),
    "a chunk without a reference": lambda txn: txn.texts.put("an orphan"),
    "the content of an attachment without a reference": lambda txn: txn.texts.put_content(b"\xff\xfe"),
    "the content of an attachment counted wrongly": lambda txn: (
        _attached()(txn),
        txn.tables.put(layout.CHUNK_REFERENCES, layout.chunk_key(b"\x89PNG"), layout.u32(3)),
    ),
}

LOST: dict[str, Callable[[Any], None]] = {
    "a node under another's key": lambda txn: txn.tables.put(
        layout.NODES, layout.u64(5), txn.tables.get(layout.NODES, layout.u64(1))
    ),
    "a node that cannot be decoded": _put(layout.NODES, layout.u64(2), b"\xc1"),
    "a message whose text is gone": _delete(layout.CHUNKS, layout.text_key(TEXT)),
    "a text that is not what its key says": lambda txn: txn.tables.put(
        layout.CHUNKS, layout.text_key(TEXT), txn.tables.get(layout.CHUNKS, layout.text_key("rephrased"))
    ),
    "a text that cannot be decompressed": _put(layout.CHUNKS, layout.text_key(TEXT), b"torn"),
    "a cited message that is gone": _delete(layout.MESSAGES, layout.u64(1)),
    "a waiting batch without its message": _delete(layout.MESSAGES, layout.u64(3)),
    "a slice through a character": lambda txn: txn.apply(
        Change(nodes=[Node(1, "外婆住在团岛。", "p", (), 1, 7, sources=(Source(1, 1, 21),))])
    ),
    "a first content of another length": lambda txn: txn.apply(
        Change(nodes=[Node(1, "外婆", "p", (), 1, 7, sources=(Source(1, 0, 6),))])
    ),
    "a content that has grown": lambda txn: txn.apply(
        Change(nodes=[Node(1, "外婆住在团岛。啊", "p", (), 1, 7, sources=(Source(1, 0, 21),))])
    ),
    "two entities of one key": lambda txn: txn.apply(
        Change(entities={3: Entity(3, "Ann", "ann"), 4: Entity(4, "Ann", "ann")}, next_node_id=5)
    ),
    "a strength out of range": _put(layout.LINKS, layout.u64(1), layout.link_value(2, 2, 1.5, 0)),
    "a link from the future": lambda txn: txn.apply(Change(links=[Link(1, 2, "下文", 0.5, 5)])),
    "a link to what never was": lambda txn: txn.apply(Change(links=[Link(1, 99, "", 0.5, 0)])),
    "a relation without a name": _delete(layout.RELATIONS, layout.u32(1)),
    "an id that could be given twice": _put(layout.META, b"next_node_id", layout.u64(2)),
    "a message number that could be given twice": _put(layout.META, b"next_message_number", layout.u64(3)),
    "a batch number that could be given twice": _put(layout.META, b"next_batch_number", layout.u64(3)),
    "a kept memory that is no statement": lambda txn: txn.scans.put(1, ScanState(0, 0, True)),
    "a scan in a pass to come": lambda txn: txn.scans.put(1, ScanState(1, 9)),
    "a pass out of turn": lambda txn: txn.apply(Change(pass_state=PassState(7, "scan", 3), owed_passes=1)),
    "a pass nobody owes": lambda txn: txn.apply(Change(pass_state=PassState(2, "scan", 3), owed_passes=0)),
    "a waiting batch that is not in the inbox": lambda txn: txn.tables.clear(layout.INBOX),
    "an inbox entry without its batch": _put(layout.INBOX, layout.u64(50), layout.u64(50)),
    "a batch at another place": lambda txn: (
        txn.tables.clear(layout.INBOX),
        txn.tables.put(layout.INBOX, layout.u64(50), layout.u64(3)),
    ),
    "a parked batch that is not listed": lambda txn: txn.tables.clear(layout.PARKED),
    "a batch digested twice": _put(layout.DIGESTED, layout.u64(50), layout.u64(1)),
    "a batch that is queued twice": _put(layout.INBOX, layout.u64(2), layout.u64(3)),
    "a place in the inbox that could be given twice": _put(layout.META, b"next_position", layout.u64(3)),
    "a place of a digest that could be given twice": _put(layout.META, b"next_digested", layout.u64(1)),
    "a relation id that could be given twice": _put(layout.META, b"next_relation_id", layout.u64(2)),
    "a node from a batch that never was": lambda txn: txn.apply(
        Change(nodes=[Node(2, "a", "", (), 1, 9, sources=(Source(1, 0, 9),), batch=4)])
    ),
    "a batch that became nodes to come": _amended(layout.BATCHES, 1, node_ids=(9,)),
    "a batch with messages to come": _amended(layout.BATCHES, 1, message_count=9),
    "a waiting batch with the message of another": _amended(layout.BATCHES, 3, first_message=1),
    "a waiting batch without its text": _amended(layout.MESSAGES, 3, text_key=b""),
    "a text that is gone, and nothing says so": _amended(layout.MESSAGES, 1, text_key=b""),
    "an attachment without its content": lambda txn: (
        _attached()(txn),
        txn.tables.delete(layout.CHUNKS, layout.chunk_key(b"\x89PNG")),
    ),
    "an attachment of another size": _attached(size=5),
    "a caption through a character": _attached(offset=1),
    "a caption beyond the text": _attached(length=1 << 20),
    "a region beyond the text": _attached(regions=(Region(1, (), -1, -1, 1 << 20, 4),)),
    "an attachment of a text that is gone": lambda txn: (
        txn.messages.withdraw(txn.messages.get(1), [PassageEntry(0, 60, 0, b"", b"", (1, 2))]),
        _attached()(txn),
    ),
    "a text that is no text": lambda txn: _amended(
        layout.MESSAGES, 1, text_key=txn.texts.put_content(b"\xff\xfe")
    )(txn),
    "personal data beyond a text": _amended(
        layout.MESSAGES, 1, personal=(PersonalSpan("email", 40, 1 << 20),)
    ),
    "a text without a role": _amended(layout.MESSAGES, 1, role=""),
    "a memory of an erased message": lambda txn: (
        _amended(layout.MESSAGES, 1, role="")(txn),
        txn.messages.withdraw(txn.messages.get(1), [PassageEntry(0, 60, 0, b"", b"", (1, 2))]),
    ),
    "metadata that is gone": _amended(layout.MESSAGES, 1, metadata_key=bytes(32)),
    "metadata that is no object": lambda txn: _amended(layout.MESSAGES, 1, metadata_key=txn.texts.put("[1]"))(
        txn
    ),
    "metadata of a batch that is no object": _amended(layout.BATCHES, 1, metadata="5"),
    "a relation that its name does not find": lambda txn: txn.tables.put(
        layout.RELATION_IDS, layout.text_key("上文"), layout.u32(1)
    ),
    "a name without a relation": lambda txn: txn.tables.put(
        layout.RELATION_IDS, layout.text_key("else"), layout.u32(7)
    ),
    "a link that stands twice": _put(layout.LINKS, layout.u64(1), layout.link_value(2, 1, 0.25, 0)),
    "a strength that is no number": _put(layout.LINKS, layout.u64(1), layout.link_value(2, 2, nan, 0)),
    "a node scanned more often than there were passes": lambda txn: txn.scans.put(1, ScanState(7, 1)),
    "a receipt under another key": _put(layout.RECEIPTS, b"k" * 32, layout.encode(Receipt(2, b"h"))),
    "a pass that visits a node twice": _passing(drawn=(1, 1)),
    "a pass that visits a node to come": _passing(drawn=(3,)),
    "a pass behind a node that it does not visit": _passing(drawn=(1,), after=(0, 2)),
    "a pass that began with nodes to come": _passing(start_id=9),
    "a chunk that says it is endless": lambda txn: txn.tables.put(
        layout.CHUNKS, layout.text_key(TEXT), _frame_of(1 << 40)
    ),
    "an assertion under another's key": lambda txn: (
        _stated()(txn),
        txn.tables.put(layout.ASSERTIONS, layout.u64(7), txn.tables.get(layout.ASSERTIONS, layout.u64(1))),
    ),
    "an assertion that cannot be decoded": _put(layout.ASSERTIONS, layout.u64(1), b"\xc1"),
    "a ruling that cannot be decoded": _put(layout.RULINGS, layout.u64(1), b"\xc1"),
    "an entry number that could be given twice": _stated(next_entry=2),
    "an entry number that was given twice": _stated(ruling={"entry": 1}),
    "a statement of a node to come": _stated({"statement": 5}),
    "a statement about an entity to come": _stated({"subject": 5}),
    "a statement about a statement to come": _stated({"replaces": 5}),
    "a statement with an object to come": _stated({"object_entity": 5}),
    "a statement about a memory": _stated({"subject": 1}),
    "a statement that is an entity": _stated({"statement": 4}),
    "a statement of another kind": _stated({"kind": "opinion"}),
    "an episode as a statement": _stated({"statement": 1}),
    "a quote of a missing message": _stated({"source": Source(9, 0, 1)}),
    "a quote that is no text": _stated({"source": Source(1, 1, 1)}),
    "a ruling about a node to come": _stated(ruling={"target": 5}),
    "a ruling with another node to come": _stated(ruling={"other": 5}),
    "a ruling that undoes an assertion": _stated(ruling={"kind": "undo", "target": 1}),
    "a ruling that undoes itself": _stated(ruling={"kind": "undo", "target": 2}),
    "a ruling with a missing source": _stated(ruling={"sources": (Source(9, 0, 1),)}),
    "extraction of messages to come": lambda txn: txn.meta.set(ledger=LedgerState(1, 4)),
    "a receipt for a batch that is gone": _put(layout.RECEIPTS, b"k" * 32, layout.encode(Receipt(50, b"h"))),
}


def test_concepts_are_no_damage(store: LmdbStore) -> None:
    """A concept passes the checker, also when a member is forgotten, and is deleted with a member."""
    store.write(_conceived())
    assert check_store(store) == []
    store.write(lambda txn: txn.apply(Change(forgotten=[1], focus=())))
    assert check_store(store) == []
    assert store.read(lambda txn: [one.members for one in txn.concepts.all()]) == [(1, 2)]
    store.write(lambda txn: txn.apply(Change(deleted=[2])))
    assert store.read(lambda txn: list(txn.concepts.all())) == []


def test_attachments_are_no_damage(store: LmdbStore) -> None:
    """A content that is no text, an equal one of two messages, and one that equals a text are consistent."""
    region = Region(2, (0.5, 0.5, 0.25, 0.25), 0, 900, 26, 4)
    store.write(_attached(b"\xff\xfe", (region,)))
    assert check_store(store) == [] == rebuild_store(store)
    store.write(_amended(layout.MESSAGES, 1, attachments=()))
    store.write(lambda txn: txn.texts.drop(layout.chunk_key(b"\xff\xfe")))
    store.write(_attached(TEXT.encode()))
    assert check_store(store) == []


@pytest.mark.parametrize("what", REPAIRABLE)
def test_derived_damage_is_found_and_repaired(store: LmdbStore, what: str) -> None:
    """Wrong derived entries are findings, and a rebuild repairs them."""
    store.write(REPAIRABLE[what])
    findings = check_store(store)
    assert findings
    assert all(finding.is_repairable for finding in findings), findings
    assert rebuild_store(store) == []
    assert store.read(lambda txn: txn.counts()).node_count == 2


def test_statements_are_read_in_order_of_arrival(store: LmdbStore) -> None:
    """Assertions and rulings are one sequence; those of forgotten statements and undone rulings are valid."""
    store.write(_stated())
    store.write(
        lambda txn: txn.apply(
            Change(
                forgotten=[3],
                assertions=[Assertion(4, 3, 4, "residence", "团岛", Source(1, 0, 21), 5, 5)],
                rulings=[Ruling(3, "undo", 2, 5), Ruling(5, "undo", 9, 5)],
                removed_entries=[5],
                ledger=LedgerState(6),
            )
        )
    )
    store.write(lambda txn: txn.apply(Change(removed_entries=[5])))
    assert check_store(store) == []
    assert store.read(lambda txn: [one.entry for one in txn.statements.entries()]) == [1, 2, 3, 4]
    assert store.read(lambda txn: [one.entry for one in txn.statements.entries(3)]) == [3, 4]
    assert store.read(lambda txn: txn.statements.assertion(3)) is None
    assert store.read(lambda txn: txn.statements.ruling(3)) == Ruling(3, "undo", 2, 5)


def test_an_entry_that_cites_an_erased_message_is_found(store: LmdbStore) -> None:
    """The checker reports assertions and rulings that a deletion should have changed or removed."""
    gone = Source(1, 0, 21)
    change = Change(
        forgotten=[1, 2, 3],
        focus=(),
        assertions=[Assertion(5, 3, 4, "residence", "团岛", gone, 5, 5)],
        rulings=[Ruling(3, "retract", 3, 5, sources=(gone,))],
        ledger=LedgerState(7),
    )
    store.write(_stated())
    store.write(lambda txn: txn.apply(change))
    assert check_store(store) == []
    store.write(lambda txn: txn.messages.erase(txn.messages.get(1)))
    found = {(one.table, one.key) for one in check_store(store)}
    assert {("assertions", "5"), ("rulings", "3")} <= found


def test_the_nodes_that_cite_a_message_are_found(store: LmdbStore) -> None:
    """Statements of other batches are found, within the transaction too, until they are forgotten."""
    assert store.read(lambda txn: txn.citings.of(1)) == (1, 2)

    def write(txn: Any) -> None:
        _stated()(txn)
        assert txn.citings.of(1) == (1, 2, 3)
        again = msgspec.structs.replace(txn.nodes.get(3), sources=(Source(2, 0, 21), Source(3, 0, 21)))
        txn.nodes.put(again)
        assert [txn.citings.of(number) for number in (1, 2, 3, 40)] == [(1, 2), (3,), (3,), ()]
        txn.nodes.forget(2)

    store.write(write)
    assert store.read(lambda txn: dict(txn.citings.all())) == {1: (1,), 2: (3,), 3: (3,)}
    store.write(lambda txn: txn.apply(Change(forgotten=[1], deleted=[3])))
    assert store.read(lambda txn: txn.tables.count(layout.CITINGS)) == 0


@pytest.mark.parametrize("what", LOST)
def test_ground_damage_is_found_and_never_hidden(store: LmdbStore, what: str) -> None:
    """Damaged ground state is a finding that a rebuild does not hide."""
    store.write(LOST[what])
    findings = check_store(store)
    assert any(not finding.is_repairable for finding in findings), findings


SIZES = [
    (table, table.key.size or 0, table.value.size) for table in layout.TABLES if table is not layout.META
]

FAR = (2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)

BEYOND: dict[str, Callable[[Any], None]] = {
    "texts_from": _put(layout.META, b"texts_from", layout.u64(4611686018427387904)),
    "decay_rate": _put(layout.META, b"decay_rate", layout.encode(1e308)),
    "a decay rate that is no number": _put(layout.META, b"decay_rate", layout.encode(nan)),
    "an override": _put(layout.META, b"overrides", layout.encode({"decay_rate": 1e308})),
    "an unknown override": _put(layout.META, b"overrides", layout.encode({"courage": 1})),
    "a focus of -1": _put(layout.META, b"focus", layout.encode((-1,))),
    "a focus too long": _put(layout.META, b"focus", layout.encode(tuple(range(1, 66)))),
    "a seed": _put(layout.META, b"identity", layout.encode(("ann", 1, 2**64 - 1, 1))),
    "created_at": _put(
        layout.META,
        b"identity",
        layout.encode({"agent_id": "ann", "created_at_ms": 2**63, "seed": 1, "format_version": 1}),
    ),
    "an agent id": _put(
        layout.META,
        b"identity",
        layout.encode({"agent_id": "a/b", "created_at_ms": 1, "seed": 1, "format_version": 1}),
    ),
    "an entry of no table": lambda txn: txn.tables._txn.put(
        b"\xffkey", b"value", db=txn.tables._handles[layout.META]
    ),
    "no identity": _delete(layout.META, b"identity"),
    "a timestamp": _amended(layout.MESSAGES, 1, timestamp_ms=2**63),
    "a message of a batch far away": _amended(layout.MESSAGES, 1, batch=2**64 - 1),
    "a batch of very many messages": _amended(layout.BATCHES, 3, message_count=2**63),
    "a batch of a message far away": _amended(layout.BATCHES, 3, first_message=2**64 - 1),
    "a state that there is not": _amended(layout.BATCHES, 3, state="lost"),
    "a role that there is not": _amended(layout.MESSAGES, 1, role="root"),
    "a strength": _put(layout.LINKS, layout.u64(1), layout.link_value(2, 1, inf, 0)),
    "scans of nodes far away": _put(layout.SCANS, layout.u64(2**60), b"\0\0\0\1"),
    "a counter of scans": _put(layout.SCANS, layout.u64(0), b"\xff" * layout.SCAN_BLOCK_BYTES),
    "a block of scans that is too long": _put(
        layout.SCANS, layout.u64(0), b"\1" * (layout.SCAN_BLOCK_BYTES + 1)
    ),
    "an empty block of scans": _put(layout.SCANS, layout.u64(0), b""),
    "an event far away": _put(layout.EVENTS, layout.u64(2**64 - 1), b""),
    **{
        f"{name.decode()} = {far}": _put(layout.META, name, layout.u64(far))
        for name, entry in layout.ENTRIES.items()
        if entry.codec.size == 8
        for far in FAR
    },
    **{
        f"a key of {table.name.decode()}": _put(table, layout.u64(2**64 - 1), bytes(value_bytes or 0))
        for table, key_bytes, value_bytes in SIZES
        if key_bytes == 8
    },
    **{
        f"a key of a wrong size in {table.name.decode()}": _put(
            table, b"k" * (key_bytes + 1), bytes(value_bytes or 0)
        )
        for table, key_bytes, value_bytes in SIZES
        if not table.text_kind  # HMACs in a sealed store
    },
    **{
        f"a value of a wrong size in {table.name.decode()}": _put(
            table, b"k" * key_bytes, bytes(value_bytes + 1)
        )
        for table, key_bytes, value_bytes in SIZES
        if value_bytes is not None and not table.has_duplicates  # LMDB keeps these at one size
    },
    **{
        f"{name} of a wrong size": _put(layout.META, name.encode(), b"12345")
        for name in ("next_node_id", "owed_passes", "audit_head", "proof_key")
    },
}


@pytest.mark.parametrize("what", BEYOND)
def test_numbers_beyond_their_bounds_are_found_and_stop_nothing(store: LmdbStore, what: str) -> None:
    """Values beyond their bounds are findings; the checker neither fails nor loops as often as they say."""
    store.write(BEYOND[what])
    assert check_store(store), what


def test_findings_are_bounded(store: LmdbStore) -> None:
    """The checker stops after MAX_FINDINGS findings."""

    def fill(txn: Any) -> None:
        for number in range(100, MAX_FINDINGS + 200):
            txn.tables.put(layout.PARKED, layout.u64(number), b"x")

    store.write(fill)
    assert len(check_store(store)) == MAX_FINDINGS
