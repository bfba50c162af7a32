"""A store with texts in every place that can contain one, and the traces to search for on disk."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ebbtide.changes import Change
from ebbtide.records import (
    Batch,
    Concept,
    EmbeddedMessage,
    EmbeddingState,
    Entity,
    Link,
    MessageRecord,
    Node,
    PassageEntry,
    Receipt,
    Source,
    StoredRecord,
)
from ebbtide.statements import Assertion, LedgerState, Ruling
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry, proof_of
from ebbtide.store.codec import COMPRESSED
from ebbtide.store.lmdb.lmdb_store import LmdbStore

SAID = ("Grandmother Wilhelmina keeps bees behind the lighthouse.", "外婆住在团岛，养了三只橘猫。")
OWN = "Wilhelmina has bees"
_NUMBERS = np.arange(1, 65, dtype=np.float32)
VECTOR = (_NUMBERS / np.linalg.norm(_NUMBERS)).astype("<f2").tobytes()
TERMS = np.array([77_001, 77_002, 77_003], dtype="<u4").tobytes()
METADATA = '{"room": "Zeppelinsaal"}'

TEXTS = (
    *SAID,
    OWN,
    METADATA,
    "Speaker Ottilie",
    "conversation-Kranichfeld",
    "message-id-0815",
    "idempotency-Xanthippe",
    "phrase-Quittenmus",
    "keyword-Ingwer",
    "relation-Nachbarin",
    "关系名",
    "error: Fledermaus",
    "slot-Kirschkern",
    "object-Marzipan",
    "attribute-Holunder",
    "reason-Zwetschge",
    "label-Weichsel",
    "record-Dirndl",
    "value-Mirabelle",
)
"""All texts of messages, and those derived from them."""


KEYED = (*SAID, OWN, METADATA, TEXTS[7], TEXTS[10], TEXTS[11])
"""The texts with hashes that are keys of a plain store."""


def fill(txn: Any) -> None:
    """Write every text of TEXTS and the derived values through the transaction."""
    metadata_key = layout.text_key(METADATA)
    records = [
        MessageRecord(
            number,
            1,
            number - 1,
            "user",
            TEXTS[4],
            "message-id-0815",
            None,
            5,
            TEXTS[5],
            layout.text_key(text),
            metadata_key,
        )
        for number, text in enumerate(SAID, start=1)
    ]
    batch = Batch(
        1,
        5,
        1,
        2,
        conversation_id=TEXTS[5],
        metadata=METADATA,
        idempotency_key=TEXTS[7],
        last_error=TEXTS[12],
    )
    passages = [[PassageEntry(0, len(text), 8, TERMS, b"\1\1\1")] for text in SAID]
    txn.accept(batch, records, list(SAID), Receipt(1, b"h"), passages, {metadata_key: METADATA})
    identity = txn.meta.identity
    proof = proof_of(bytes(32), SAID[0])
    txn.audit.append(
        AuditEntry(5, "-", "forgotten", {}, (proof,)), "" if identity is None else identity.agent_id
    )
    txn.meta.set(embedding=EmbeddingState("m", 1, 2))
    for number in (1, 2):
        txn.vectors.put(number, EmbeddedMessage(1, (VECTOR,)))
    own = txn.texts.put(OWN)
    source = Source(1, 0, len(SAID[0]))
    nodes = [
        Node(1, SAID[0], TEXTS[8], (TEXTS[9],), 1, len(SAID[0]), sources=(source,)),
        Node(2, OWN, TEXTS[8], (TEXTS[9],), 1, len(OWN), sources=(source,), first_key=own),
    ]
    whole = Source(2, 0, len(SAID[1].encode()))
    nodes.append(Node(3, SAID[1], "", (), 1, len(SAID[1]), kind="fact", sources=(whole,)))
    assertion = Assertion(
        1, 3, 9, TEXTS[13], TEXTS[14], whole, 5, 5, attributes={TEXTS[15]: TEXTS[15]}, time_words=TEXTS[9]
    )
    ruling = Ruling(2, "retract", 3, 5, name=TEXTS[9], reason=TEXTS[16], sources=(source,))
    links = [Link(1, 2, TEXTS[10], 0.5, 0), Link(2, 1, TEXTS[11], 0.5, 0)]
    entity = Entity(9, TEXTS[9], TEXTS[9].casefold(), 1)
    links += [Link(1, 9, TEXTS[10], 1.0, 0), Link(9, 1, TEXTS[10], 1.0, 0)]
    change = Change(
        nodes=nodes,
        entities={9: entity},
        links=links,
        focus=(2, 1),
        entity_focus=(9,),
        concepts=[Concept(5, (TEXTS[9], TEXTS[14]), (3, 9), 5)],
        next_node_id=10,
        assertions=[assertion],
        rulings=[ruling],
        ledger=LedgerState(3, 1),
    )
    txn.apply(change)
    value = json.dumps({TEXTS[19]: TEXTS[19]})
    txn.records.put(StoredRecord((TEXTS[17], TEXTS[18]), TEXTS[18], value, 1, 5, 5))
    txn.meta.set(next_record_version=2)


def traces() -> dict[str, bytes]:
    """Return what must not be on disk: texts, hashes, terms of the index, and compressed forms."""
    wanted = {text: text.encode() for text in TEXTS}
    wanted |= {f"hash of {text}": hashlib.sha256(text.encode()).digest() for text in TEXTS}
    wanted |= {f"part of {text}": text.encode()[3:12] for text in TEXTS}
    wanted |= {f"packed {text}": COMPRESSED.encode(text.encode())[:12] for text in SAID}
    wanted["key of a record"] = layout.record_key((TEXTS[17],))
    return wanted | {"vector": VECTOR[:32], "terms": TERMS}


def found_in(directory: Path) -> set[str]:
    """Return the traces that are in a file under a directory."""
    contents = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return {name for name, trace in traces().items() if any(trace in content for content in contents)}


def everything(store: LmdbStore) -> dict[str, Any]:
    """Return the decoded content of a store."""

    def read(txn: Any) -> dict[str, Any]:
        records = list(txn.messages.all())
        return {
            "identity": txn.meta.identity,
            "counts": txn.counts(),
            "focus": txn.meta.focus,
            "nodes": list(txn.nodes.all()),
            "entities": list(txn.entities.all()),
            "node texts": list(txn.nodes.texts()),
            "citings": list(txn.citings.all()),
            "entries": list(txn.statements.entries()),
            "ledger": txn.meta.ledger,
            "records": sorted(txn.records.all(), key=lambda one: (one.namespace, one.key)),
            "first": [txn.nodes.first_content(node) for node in txn.nodes.all()],
            "links": list(txn.links.all()),
            "scans": list(txn.scans.all()),
            "passages": list(txn.passages.by_message()),
            "texts": [txn.messages.text(record) for record in records],
            "metadata": [txn.messages.metadata(record) for record in records],
            "embedded": list(txn.vectors.all()),
            "embedding": txn.meta.embedding,
            "batches": list(txn.inbox.all()),
            "waiting": list(txn.inbox.waiting()),
            "receipts": [txn.inbox.receipt(batch.idempotency_key) for batch in txn.inbox.all()],
            "next": (
                txn.meta.next_node_id,
                txn.meta.next_message_number,
                txn.meta.next_batch_number,
                txn.meta.texts_from,
            ),
            "references": sorted(
                layout.from_u32(value) for _, value in txn.tables.items(layout.CHUNK_REFERENCES)
            ),
        }

    return store.read(read)


def digest(directory: Path) -> str:
    """Return a hash of the names and contents of all files under a directory."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        found.update(f"{path.relative_to(directory)}\0".encode())
        if path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
