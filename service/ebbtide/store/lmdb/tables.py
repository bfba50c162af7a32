"""The tables of one LMDB transaction: what reads and writes an entry, whatever it is.

Everything else that is asked of a transaction goes through here. Which table holds what, and under which keys,
is said in `layout`; keeping tables in step with each other is for those who build on these two classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.store import layout

Tables = Mapping[bytes, Any]
"""Table name to LMDB database handle."""


class TableReading:
    """The entries of one agent's tables, as one transaction sees them."""

    def __init__(self, txn: Any, tables: Tables) -> None:
        self._txn = txn
        self._tables = tables

    def placed(self, table: bytes, key: bytes) -> bytes:
        """The key under which LMDB holds what is asked for under `key`; another one only where keys are sealed."""
        return key

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """The value under a key of one table."""
        value: bytes | None = self._txn.get(key, db=self._tables[table])
        return value

    def has(self, table: bytes, key: bytes, value: bytes) -> bool:
        """Whether a sorted table has this value under a key."""
        found: bool = self._txn.cursor(db=self._tables[table]).set_key_dup(key, value)
        return found

    def items(self, table: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every (key, value) of one table in order, from the key `start` on."""
        cursor = self._txn.cursor(db=self._tables[table])
        if start and not cursor.set_range(start):
            return iter(())
        items: Iterator[tuple[bytes, bytes]] = cursor.iternext()
        return items

    def _opened(self, table: bytes, place: bytes, value: bytes) -> bytes:
        """What a cursor of its own found, as it was written."""
        return value

    def unopened(self) -> Iterator[tuple[bytes, bytes]]:
        """(table, key as it is held) of every value that is not what was sealed there; none where nothing is."""
        return iter(())

    def entry_count(self, table: bytes) -> int:
        """How many entries one table has."""
        return self._entries(table)

    def _entries(self, table: bytes) -> int:
        count: int = self._txn.stat(self._tables[table])["entries"]
        return count

    def _page_bytes(self, table: bytes) -> int:
        # A few microseconds a table: LMDB keeps count. Pages of very many links of one source are not in it.
        stat = self._txn.stat(self._tables[table])
        pages: int = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        page_bytes: int = stat["psize"]
        return pages * page_bytes

    def _number(self, name: bytes, default: int = 0) -> int:
        value = self.get(layout.META, name)
        return default if value is None else layout.from_u64(value)


class TableWriting(TableReading):
    """Entries of one agent's tables, written."""

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Write one entry of one table."""
        self._txn.put(key, value, db=self._tables[table])

    def delete(self, table: bytes, key: bytes, value: bytes = b"") -> None:
        """Delete the entry under a key; in a sorted table only the one of this value, if one is given."""
        self._txn.delete(key, value, db=self._tables[table])

    def drop_placed(self, table: bytes, place: bytes) -> None:
        """Delete the entry under a key as it is held."""
        self._txn.delete(place, db=self._tables[table])

    def clear(self, table: bytes) -> None:
        """Empty one table."""
        self._txn.drop(self._tables[table], delete=False)

    def _set_number(self, name: bytes, number: int) -> None:
        self.put(layout.META, name, layout.u64(number))
