"""Records that are deleted: how one is removed, which a selection contains, and which have expired.

Every deletion of a record, also one of a single record by its key, uses `delete_record`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.deletion.removal import Record
from ebbtide.records import StoredRecord
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

MAX_TEXTS = 100
"""Most texts of a record that are hashed separately; the whole value always is."""

MAX_READ_PER_STEP = 1000
"""Most records read in one step of a search for expired ones."""

MAX_DUE_PER_STEP = 200
"""Most expired records deleted in one step."""


def delete_record(txn: WriteTransaction, record: StoredRecord, proofs: Proofs | None) -> None:
    """Delete a record, and hash its texts before if `proofs` takes them."""
    if proofs is not None:
        for text in islice((record.value, *texts_in(value_of(record))), 1 + MAX_TEXTS):
            proofs.add_whole(text)
    txn.records.delete(record)
    txn.meta.set(leftovers=True)


def value_of(record: StoredRecord) -> dict[str, object]:
    """Return the value of a record."""
    return msgspec.json.decode(record.value, type=dict[str, object])


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value, also the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def find_expired(txn: ReadTransaction, start: bytes, now_ms: int) -> tuple[list[Record], bytes]:
    """Return expired records from a stored key on, and the key from which to read next; empty at the end."""
    due: list[Record] = []
    for count, (place, record) in enumerate(txn.records.placed(start=start)):
        if count == MAX_READ_PER_STEP or len(due) == MAX_DUE_PER_STEP:
            return due, place
        if record.is_expired(now_ms):
            due.append(Record(record.namespace, record.key, record.version))
    return due, b""
