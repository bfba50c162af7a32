"""The records of one agent in one transaction: JSON objects by namespace and key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebbtide.records import StoredRecord
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import Part, TableWriter


class RecordReader(Part):
    """The records of one agent, also those that have expired and are not deleted yet."""

    def get(self, namespace: Sequence[str], key: str) -> StoredRecord | None:
        """Return the record with this key in a namespace, or None."""
        return self._tables.load(layout.RECORDS, layout.record_key(namespace, key))

    def all(self, namespace: Sequence[str] = ()) -> Iterator[StoredRecord]:
        """Yield the records in a namespace and below it, in no order that has a meaning."""
        return (record for _, record in self.placed(namespace))

    def placed(
        self, namespace: Sequence[str] = (), start: bytes = b""
    ) -> Iterator[tuple[bytes, StoredRecord]]:
        """Yield (stored key, record) of a namespace and those below it, from the stored key `start`."""
        prefix = self._tables.placed(layout.RECORDS, layout.record_key(namespace))
        for place, value in self._tables.items(layout.RECORDS, max(prefix, start)):
            if not place.startswith(prefix):
                return
            yield place, layout.RECORDS.value.decode(value)


class RecordWriter(RecordReader):
    """The records of one agent, with changes."""

    _tables: TableWriter

    def put(self, record: StoredRecord) -> None:
        """Write a record, over one with the same key."""
        self._tables.save(layout.RECORDS, layout.record_key(record.namespace, record.key), record)

    def delete(self, record: StoredRecord) -> None:
        """Delete a record."""
        self._tables.delete(layout.RECORDS, layout.record_key(record.namespace, record.key))
