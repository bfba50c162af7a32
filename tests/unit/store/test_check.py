"""The consistency checker finds what is broken, and rebuild mends what is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebbtide.store import layout
from ebbtide.store.check import check_store
from ebbtide.store.lmdb_store import LmdbStore
from ebbtide.store.port import Identity
from ebbtide.store.rebuild import rebuild_store
from ebbtide.store.seal import Seal
from ebbtide.vocabulary import (
    Batch,
    Change,
    Link,
    MessageRecord,
    Node,
    PassageEntry,
    PassState,
    Receipt,
    ScanState,
    Source,
)

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
    made.write(_fill)
    assert check_store(made) == []
    yield made
    made.close()


def _fill(txn: Any) -> None:
    key = layout.text_key(TEXT)
    for number in (1, 2, 3):
        record = MessageRecord(number, number, 0, "user", "", "", None, 5, "", key)
        batch = txn.accept(
            Batch(number, 5, number, 1, idempotency_key=f"k{number}"), [record], [TEXT], Receipt(number, b"h")
        )
        if number == 1:
            txn.finish_batch(batch)
        if number == 2:
            txn.park_batch(batch)
    own = txn.put_chunk("rephrased")
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


def _put(table: bytes, key: bytes, value: bytes) -> Callable[[Any], None]:
    return lambda txn: txn.put(table, key, value)


def _delete(table: bytes, key: bytes) -> Callable[[Any], None]:
    return lambda txn: txn.delete(table, key)


REPAIRABLE: dict[str, Callable[[Any], None]] = {
    "links of a node that is gone": _put(layout.LINKS, layout.u64(9), layout.link_value(1, 1, 0.5, 0)),
    "a link without its backlink": _delete(layout.BACKLINKS, layout.u64(2)),
    "a backlink without its link": _put(layout.BACKLINKS, layout.u64(2), layout.backlink_value(2, 1)),
    "a counter of a node that is gone": lambda txn: txn.put_scans({77: ScanState(1, 1)}),
    "a focus that names the gone": _put(layout.META, b"focus", layout.encode((9,))),
    "a focus that names one twice": _put(layout.META, b"focus", layout.encode((2, 2))),
    "a chunk counted wrongly": _put(layout.CHUNK_REFERENCES, layout.text_key(TEXT), layout.u32(9)),
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
    "a chunk nobody refers to": lambda txn: txn.put_chunk("an orphan"),
}

LOST: dict[str, Callable[[Any], None]] = {
    "a node under another's key": lambda txn: txn.put(
        layout.NODES, layout.u64(5), txn.get(layout.NODES, layout.u64(1))
    ),
    "a node that cannot be decoded": _put(layout.NODES, layout.u64(2), b"\xc1"),
    "a message whose text is gone": _delete(layout.CHUNKS, layout.text_key(TEXT)),
    "a text that is not what its key says": lambda txn: txn.put(
        layout.CHUNKS, layout.text_key(TEXT), txn.get(layout.CHUNKS, layout.text_key("rephrased"))
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
    "a strength out of range": _put(layout.LINKS, layout.u64(1), layout.link_value(2, 2, 1.5, 0)),
    "a link from the future": lambda txn: txn.apply(Change(links=[Link(1, 2, "下文", 0.5, 5)])),
    "a link to what never was": lambda txn: txn.apply(Change(links=[Link(1, 99, "", 0.5, 0)])),
    "a relation without a name": _delete(layout.RELATIONS, layout.u32(1)),
    "an id that could be given twice": _put(layout.META, b"next_node_id", layout.u64(2)),
    "a message number that could be given twice": _put(layout.META, b"next_message_number", layout.u64(3)),
    "a batch number that could be given twice": _put(layout.META, b"next_batch_number", layout.u64(3)),
    "a scan in a pass to come": lambda txn: txn.put_scans({1: ScanState(1, 9)}),
    "a pass out of turn": lambda txn: txn.apply(Change(pass_state=PassState(7, "scan", 3), owed_passes=1)),
    "a pass nobody owes": lambda txn: txn.apply(Change(pass_state=PassState(2, "scan", 3), owed_passes=0)),
    "a waiting batch that is not in the inbox": lambda txn: txn.clear(layout.INBOX),
    "an inbox entry without its batch": _put(layout.INBOX, layout.u64(50), layout.u64(50)),
    "a batch at another place": lambda txn: (
        txn.clear(layout.INBOX),
        txn.put(layout.INBOX, layout.u64(50), layout.u64(3)),
    ),
    "a parked batch that is not listed": lambda txn: txn.clear(layout.PARKED),
    "a batch digested twice": _put(layout.DIGESTED, layout.u64(50), layout.u64(1)),
    "a receipt for a batch that is gone": _put(layout.RECEIPTS, b"k" * 32, layout.encode(Receipt(50, b"h"))),
}


@pytest.mark.parametrize("what", REPAIRABLE)
def test_derived_damage_is_found_and_mended(store: LmdbStore, what: str) -> None:
    """What is derived, when it is off, is a finding; rebuild makes it anew and nothing is found any more."""
    store.write(REPAIRABLE[what])
    findings = check_store(store)
    assert findings
    assert all(finding.is_repairable for finding in findings), findings
    assert rebuild_store(store) == []
    assert store.read(lambda txn: txn.counts()).node_count == 2


@pytest.mark.parametrize("what", LOST)
def test_ground_damage_is_found_and_never_invented_away(store: LmdbStore, what: str) -> None:
    """What cannot be derived is a finding that rebuild does not hide."""
    store.write(LOST[what])
    findings = check_store(store)
    assert any(not finding.is_repairable for finding in findings), findings
