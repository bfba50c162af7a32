"""The entries of all tables in one LMDB transaction: read, written, encrypted and decrypted.

Keys and values are bytes; `load`, `load_all` and `save` also decode and encode values as the table states. In an
encrypted store, keys made from text are replaced by HMACs and the values of sealed tables are encrypted. Keeping
tables consistent with each other is the task of the modules that use these classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ebbtide.errors import Corrupted
from ebbtide.store import layout
from ebbtide.store.layout import META, Entry, MetaEntries, Table

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal
    from ebbtide.store.journal import Operation

V = TypeVar("V")

Handles = Mapping[Table[Any], Any]
"""The LMDB handle of the tree of each table."""


class TableReader:
    """The entries of one agent's tables in one transaction."""

    __slots__ = ("_handles", "_seal", "_txn")

    def __init__(self, txn: Any, handles: Handles, seal: Seal | None) -> None:
        self._txn = txn
        self._handles = handles
        self._seal = seal

    def get(self, table: Table[Any], key: bytes) -> bytes | None:
        """Return the value under a key, or None."""
        seal = self._seal
        if seal is None:
            value: bytes | None = self._txn.get(table.prefix + key, db=self._handles[table])
            return value
        place = seal.key(table, key)
        value = self._txn.get(table.prefix + place, db=self._handles[table])
        return None if value is None else self.opened(table, place, value)

    def load(self, table: Table[V], key: bytes) -> V | None:
        """Return the decoded value under a key, or None."""
        value = self.get(table, key)
        return None if value is None else table.value.decode(value)

    def has(self, table: Table[Any], key: bytes) -> bool:
        """Return whether a table has an entry under a key."""
        place = table.prefix + self.placed(table, key)
        return self._txn.get(place, db=self._handles[table]) is not None

    def items(self, table: Table[Any], start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield (stored key, value) of one table in order, from the key `start`."""
        items = self._stored(table, start)
        seal = self._seal
        if seal is None or not table.is_sealed:
            return items
        return ((key, seal.open(table, key, value)) for key, value in items)

    def _stored(self, table: Table[Any], start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield (stored key, stored value) of one table in order, from the key `start`."""
        cursor, first = self._txn.cursor(db=self._handles[table]), table.prefix + start
        if first and not cursor.set_range(first):
            return iter(())
        entries: Iterator[tuple[bytes, bytes]] = cursor.iternext()
        return _of_prefix(table.prefix, entries) if table.prefix else entries

    def load_all(self, table: Table[V], start: bytes = b"") -> Iterator[V]:
        """Yield the decoded values of one table in order, from the key `start`."""
        decode = table.value.decode
        for _, value in self.items(table, start):
            yield decode(value)

    def cursor(self, table: Table[Any]) -> Any:
        """Return LMDB's cursor on a table with a tree of its own: values are as stored."""
        assert not table.prefix
        return self._txn.cursor(db=self._handles[table])

    def placed(self, table: Table[Any], key: bytes) -> bytes:
        """Return the stored form of a key: an HMAC for a key made from text in an encrypted store."""
        return key if self._seal is None else self._seal.key(table, key)

    def opened(self, table: Table[Any], place: bytes, value: bytes) -> bytes:
        """Return a stored value, decrypted."""
        return value if self._seal is None or not table.is_sealed else self._seal.open(table, place, value)

    def unopened(self) -> Iterator[tuple[Table[Any], bytes]]:
        """Yield (table, stored key) of every value that cannot be decrypted."""
        for table in sorted(self._handles, key=lambda one: one.name):
            if self._seal is not None and table.is_sealed:
                for place, value in self._stored(table):
                    try:
                        self._seal.open(table, place, value)
                    except Corrupted:
                        yield table, place

    def strays(self) -> Iterator[bytes]:
        """Yield the keys of the shared tree that belong to no table."""
        prefixes = {table.prefix for table in self._handles}
        for key in self._txn.cursor(db=self._handles[META]).iternext(keys=True, values=False):
            if key[:1] not in prefixes:
                yield key

    def count(self, table: Table[Any]) -> int:
        """Return the number of entries of one table. Those of a table that shares a tree are counted one by one."""
        if table.prefix:
            return sum(1 for _ in self._stored(table))
        count: int = self._txn.stat(self._handles[table])["entries"]
        return count

    def used_bytes(self) -> int:
        """Return the size of the pages that the tables use; the file also contains free pages."""
        # LMDB keeps these counters. It leaves out the pages of very many links of one source.
        trees = {table.tree: handle for table, handle in self._handles.items()}
        stats = [self._txn.stat(handle) for handle in trees.values()]
        return sum(
            (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]) * stat["psize"]
            for stat in stats
        )


class TableWriter(TableReader):
    """The entries of one agent's tables, with changes. With a list `noted`, each change is also appended to it."""

    __slots__ = ("_noted",)

    def __init__(
        self, txn: Any, handles: Handles, seal: Seal | None, noted: list[Operation] | None = None
    ) -> None:
        super().__init__(txn, handles, seal)
        self._noted = noted

    def put(self, table: Table[Any], key: bytes, value: bytes) -> None:
        """Write one entry."""
        seal = self._seal
        if seal is not None:
            key = seal.key(table, key)
            if table.is_sealed:
                value = seal.seal(table, key, value)
        key = table.prefix + key
        if self._noted is not None:
            self._noted.append((table.tree, key, value, True))
        self._txn.put(key, value, db=self._handles[table])

    def put_all(self, table: Table[Any], entries: Collection[tuple[bytes, bytes]]) -> None:
        """Write entries of a table with a tree of its own, as they are stored."""
        assert not table.prefix
        if self._noted is not None:
            self._noted.extend((table.tree, key, value, True) for key, value in entries)
        self.cursor(table).putmulti(entries)

    def save(self, table: Table[V], key: bytes, value: V) -> None:
        """Encode a value and write it."""
        self.put(table, key, table.value.encode(value))

    def delete(self, table: Table[Any], key: bytes, value: bytes = b"") -> None:
        """Delete the entry under a key; in a table with duplicates only the given value, if there is one."""
        self.drop_placed(table, self.placed(table, key), value)

    def drop_placed(self, table: Table[Any], place: bytes, value: bytes = b"") -> None:
        """Delete the entry under a stored key."""
        key = table.prefix + place
        if self._noted is not None:
            self._noted.append((table.tree, key, value, False))
        self._txn.delete(key, value, db=self._handles[table])

    def drop_at(self, table: Table[Any], cursor: Any) -> None:
        """Delete the entry at a cursor of a table with a tree of its own."""
        assert not table.prefix
        if self._noted is not None:
            self._noted.append((table.tree, *cursor.item(), False))
        cursor.delete()

    def clear(self, table: Table[Any]) -> None:
        """Delete every entry of one table."""
        if table.prefix:
            for place, _ in list(self._stored(table)):
                self.drop_placed(table, place)
            return
        if self._noted is not None:
            self._noted.append((table.tree, None, b"", False))
        self._txn.drop(self._handles[table], delete=False)


def _of_prefix(prefix: bytes, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first entries whose keys have a prefix of one byte, without it."""
    for key, value in entries:
        if key[:1] != prefix:
            return
        yield key[1:], value


class Part:
    """A part of a transaction: the entries of some tables, by their meaning."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables


class MetaReader(Part, MetaEntries):
    """The entries of META in one transaction."""

    def value_of(self, entry: Entry[Any]) -> object:
        """Return the value of an entry, or its default."""
        value = self._tables.get(META, entry.name)
        return entry.default if value is None else entry.codec.decode(value)


class MetaWriter(MetaReader):
    """The entries of META, with changes."""

    _tables: TableWriter

    def set(self, **values: Any) -> None:
        """Write entries by name. None or False deletes the entry."""
        for name, value in values.items():
            entry = layout.ENTRIES[name.encode()]
            if value is None or value is False:
                self._tables.delete(META, entry.name)
            else:
                self._tables.put(META, entry.name, entry.codec.encode(value))

    def take(self, entry: Entry[int]) -> int:
        """Return the next number of a sequence, and advance it."""
        value = self.value_of(entry)
        assert isinstance(value, int)
        self._tables.put(META, entry.name, entry.codec.encode(value + 1))
        return value
