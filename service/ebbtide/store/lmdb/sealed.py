"""The tables of a sealed store: what is read is opened, what is written is sealed, and nobody above can tell.

The one place where a seal is used. A store that is not sealed does not come by here: which transaction a store hands
out is chosen once, when it is opened, so that encryption costs nothing where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ebbtide.errors import Corrupted
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import TableReading, Tables, TableWriting
from ebbtide.store.lmdb.transaction import LmdbReading, LmdbWriting

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal


class SealedTableReading(TableReading):
    """Entries of sealed tables, opened."""

    def __init__(self, txn: Any, tables: Tables, seal: Seal) -> None:
        super().__init__(txn, tables)
        self._seal = seal

    def placed(self, table: bytes, key: bytes) -> bytes:
        """The key under which LMDB holds what is asked for under `key`."""
        return self._seal.key(table, key)

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """The value under a key of one table."""
        place = self._seal.key(table, key)
        value = super().get(table, place)
        return None if value is None else self._opened(table, place, value)

    def items(self, table: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every (key as it is held, value) of one table in order."""
        entries = super().items(table, start)
        if table not in layout.SEALED_TABLES:
            return entries
        opened = self._seal.open
        return ((key, opened(table, key, value)) for key, value in entries)

    def unopened(self) -> Iterator[tuple[bytes, bytes]]:
        """(table, key as it is held) of every value that is not what was sealed there."""
        for table in sorted(layout.SEALED_TABLES):
            for place, value in super().items(table):
                try:
                    self._seal.open(table, place, value)
                except Corrupted:
                    yield table, place

    def _opened(self, table: bytes, place: bytes, value: bytes) -> bytes:
        return self._seal.open(table, place, value) if table in layout.SEALED_TABLES else value


class SealedTableWriting(SealedTableReading, TableWriting):
    """Entries of sealed tables, sealed."""

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Write one entry of one table."""
        place = self._seal.key(table, key)
        if table in layout.SEALED_TABLES:
            value = self._seal.seal(table, place, value)
        super().put(table, place, value)

    def delete(self, table: bytes, key: bytes, value: bytes = b"") -> None:
        """Delete the entry under a key; in a sorted table only the one of this value, if one is given."""
        super().delete(table, self._seal.key(table, key), value)


class SealedReading(SealedTableReading, LmdbReading):
    """A consistent view of a sealed store."""


class SealedWriting(SealedTableWriting, LmdbWriting):
    """A change of a sealed store."""
