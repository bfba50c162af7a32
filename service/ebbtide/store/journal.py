"""A commit of one agent's store as a value, and the journal that it is appended to before it is made.

A `Delta` contains outcomes: the bytes that a transaction puts into each tree of LMDB, and the keys that it deletes.
Applying the deltas of an agent in order, from the first one, makes a store with equal trees. No model, clock or random
number is needed.

An entry of the journal is a delta as bytes. In an encrypted store the values are decrypted, compressed together, and
encrypted once, with their nonces: encrypted values cannot be compressed. A replay needs the data key, and encrypts each
value again with its nonce, which gives the same bytes. The content of a whole store stays as stored.

Some entries of META describe one file and differ between equal stores: the place in the journal, and the notes that a
compaction has removed. Deltas contain a note that is put, so that each copy of a store compacts itself.

A store without a journal notes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from ebbtide.errors import Precondition
from ebbtide.store import zstd
from ebbtide.store.chain import ChainHead
from ebbtide.store.codec import INVALID, make_known, unpacked
from ebbtide.store.layout import META, NOTES_OF_FILE, SHARED_TREE, TABLES, VALUE_SIZES, MetaEntries, Table

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

Operation = tuple[bytes, bytes | None, bytes, bool]
"""One operation of a transaction: tree, key, value, and whether the entry is put. Without a key every entry of the
tree is deleted. A deletion without a value concerns every value of the key."""

Trees = Mapping[str, Any]
"""The LMDB handle of each tree, by its name."""

SealOf = Callable[[str], "Seal"]
"""Returns the seal of the key with a fingerprint; raises where there is no such key."""

PLAIN, SEALED = b"\0", b"\1"
"""The first byte of an entry: its form. The fingerprint of the key follows in an encrypted one."""

FINGERPRINT_BYTES: Final = 8

MAX_MARKS: Final = 1000
"""Most marks in a file. A journal has fewer: it is rewritten before."""

LEVEL: Final = 3
"""Level of compression. A trained dictionary saves 9 to 24 per cent, too little for a format of its own."""

OWN_TO_FILE: Final = frozenset(
    META.prefix + one.name
    for one in (
        *NOTES_OF_FILE,
        MetaEntries.journal_head,
        MetaEntries.journal_start,
        MetaEntries.journal_marks,
    )
)
"""Keys of the shared tree that describe one file."""


class TreeDelta(msgspec.Struct, array_like=True):
    """The changes of one tree. They apply in the order of the fields."""

    is_cleared: bool = False
    deleted: list[tuple[bytes, bytes]] = []
    """Keys with the value to delete. An empty value: all values of the key."""
    put: list[tuple[bytes, bytes]] = []

    def mapped(self, tree: str, change: Callable[[Table[Any], bytes, bytes], bytes]) -> TreeDelta:
        """Return the changes with other values in encrypted tables: `change` of the table, the key and the value."""
        put = [
            (key, value if table is None else change(table, key[len(table.prefix) :], value))
            for key, value in self.put
            for table in (_sealed_table(tree, key),)
        ]
        return TreeDelta(self.is_cleared, self.deleted, put)


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """The changes of one commit, by the name of the tree."""

    trees: dict[str, TreeDelta]

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> Delta:
        """Return the outcome of some operations: at most one change of each entry."""
        trees: dict[bytes, _Outcome] = {}
        for tree, key, value, is_put in operations:
            outcome = trees.get(tree)
            if outcome is None:
                outcome = trees[tree] = _Outcome(has_duplicates=VALUE_SIZES[tree.decode()] > 0)
            outcome.note(key, value, is_put)
        changes = {name.decode(): outcome.as_delta() for name, outcome in sorted(trees.items())}
        shared = changes.get(SHARED_TREE.decode())
        if shared is not None:
            shared.deleted = [one for one in shared.deleted if one[0] not in OWN_TO_FILE]
        return cls(changes)

    @classmethod
    def of_content(cls, txn: Any, trees: Trees) -> Delta:
        """Return what makes any store equal to one that is read in an LMDB transaction."""
        changes = {
            name: TreeDelta(is_cleared=True, put=list(txn.cursor(db=tree).iternext()))
            for name, tree in trees.items()
        }
        shared = changes[SHARED_TREE.decode()]
        shared.put = [one for one in shared.put if one[0] not in OWN_TO_FILE]
        return cls(changes)

    def apply(self, txn: Any, trees: Trees) -> None:
        """Make the changes in an LMDB transaction."""
        for name, changes in self.trees.items():
            tree = trees[name]
            if changes.is_cleared:
                txn.drop(tree, delete=False)
            for key, value in changes.deleted:
                txn.delete(key, value, db=tree)
            txn.cursor(db=tree).putmulti(changes.put)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of the entries that are put into each tree, to compare two contents."""
        return {
            name: hashlib.sha256(msgspec.msgpack.encode(changes.put)).hexdigest()
            for name, changes in self.trees.items()
        }

    def encoded(self, seal: Seal | None = None) -> bytes:
        """Return the entry: compressed MessagePack, encrypted if there is a seal, which has encrypted the values."""
        if seal is None:
            return PLAIN + _packed(self)
        packed = _packed(self._mapped(seal.split))
        return SEALED + bytes.fromhex(seal.fingerprint) + seal.seal_entry(packed)

    @classmethod
    def decoded(cls, entry: bytes, seal_of: SealOf) -> Delta:
        """Return the delta of `encoded`. Raise ValueError for other bytes.

        Raise FORMAT_TOO_NEW for a form of a later version, and the errors of `seal_of`.
        """
        form, packed = entry[:1], entry[1:]
        if form == PLAIN:
            return _unpacked(packed)
        if form != SEALED:
            if not form:
                raise ValueError("The bytes are not a delta.")
            raise Precondition(
                f"The agent's log has an entry of the form {form[0]}, which this version of Ebbtide cannot read. "
                "Install the version that wrote it.",
                reason="FORMAT_TOO_NEW",
            )
        seal = seal_of(packed[:FINGERPRINT_BYTES].hex())
        return _unpacked(seal.open_entry(packed[FINGERPRINT_BYTES:]))._mapped(seal.join)

    def _mapped(self, change: Callable[[Table[Any], bytes, bytes], bytes]) -> Delta:
        return Delta({name: changes.mapped(name, change) for name, changes in self.trees.items()})


class Digests(msgspec.Struct, frozen=True):
    """The content of a store, to compare it with another one."""

    number: int
    """The last entry of the journal that the store has, and its hash."""
    hash: bytes
    trees: dict[str, str]
    """The digest of the entries of each tree, but those that describe the file."""


class Position(msgspec.Struct, frozen=True):
    """Where the closed file of an agent ends."""

    number: int
    """The last entry of the journal that it has; 0 without a file."""
    mark: bytes
    """The mark of its last session."""


make_known(Delta, Digests, Position)

_SEALED_TABLES: Final = {(table.tree.decode(), table.prefix): table for table in TABLES if table.is_sealed}


def _sealed_table(tree: str, key: bytes) -> Table[Any] | None:
    """Return the encrypted table that has an entry; None for other tables."""
    return _SEALED_TABLES.get((tree, key[:1] if tree == _SHARED else b""))


_SHARED: Final = SHARED_TREE.decode()


def _packed(delta: Delta) -> bytes:
    return zstd.compress(msgspec.msgpack.encode(delta), LEVEL)


def _unpacked(data: bytes) -> Delta:
    try:
        return msgspec.msgpack.decode(unpacked(data), type=Delta)
    except INVALID as error:
        raise ValueError("The bytes are not a delta.") from error


class Rewritten(NamedTuple):
    """The entries that have the whole content of a store."""

    head: ChainHead
    start: int
    """The number of the first one."""


def with_marks(before: tuple[bytes, ...], marks: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the marks of a file that has got those of later sessions."""
    return (*before, *(mark for mark in marks if mark not in before))[-MAX_MARKS:]


class Journal(Protocol):
    """Where the commits of one agent are appended before they are made."""

    @property
    def head(self) -> ChainHead:
        """The last entry; a new store continues there."""
        ...

    @property
    def mark(self) -> bytes:
        """The mark of the current session: no other process, and no other session of this one, has the same."""
        ...

    def confirm(self) -> None:
        """Raise an error if what was just read may be older than what another node has committed."""
        ...

    def append(self, entry: bytes, head: ChainHead) -> ChainHead:
        """Append an entry directly after the entry `head`, durably. Return the head of the new entry.

        Raise an error if the entry was not appended, or if that is not known. The store refuses every later operation,
        because its file may lack an entry: it must be closed, and completed from the journal.
        """
        ...

    def placed(self, content: bytes) -> bytes:
        """Return the entry for the whole content of the store: the content, or a reference to where it is stored now.

        May raise an error; nothing is appended.
        """
        ...

    def rewrite(self, entry: bytes) -> Rewritten:
        """Append what `placed` has returned after the last entry. It replaces all before. Raise as `append`."""
        ...

    def erase_before(self, start: int) -> None:
        """Erase the entries before a number and what they refer to, so that nothing of them can be read.

        May raise an error; repeatable.
        """
        ...


class _Outcome:
    """The outcome of the operations on one tree."""

    def __init__(self, *, has_duplicates: bool) -> None:
        self._has_duplicates = has_duplicates
        self._is_cleared = False
        self._emptied: set[bytes] = set()
        """Keys that have lost every value."""
        self._values: dict[bytes, dict[bytes, bool]] = {}
        """For each key, whether each value is put or deleted."""

    def note(self, key: bytes | None, value: bytes, is_put: bool) -> None:
        if key is None:
            self._is_cleared = True
            self._emptied.clear()
            self._values.clear()
        elif is_put:
            if not self._has_duplicates:
                self._values.pop(key, None)
            self._values.setdefault(key, {})[value] = True
        elif value and self._has_duplicates:
            self._values.setdefault(key, {})[value] = False
        else:
            self._emptied.add(key)
            self._values.pop(key, None)

    def as_delta(self) -> TreeDelta:
        entries = [
            (key, value, put) for key, values in sorted(self._values.items()) for value, put in values.items()
        ]
        # A put replaces the only value of a key.
        emptied = self._emptied if self._has_duplicates else self._emptied - self._values.keys()
        deleted = [(key, b"") for key in sorted(emptied)]
        deleted += sorted((key, value) for key, value, put in entries if not put)
        return TreeDelta(
            self._is_cleared, deleted, sorted((key, value) for key, value, put in entries if put)
        )
