"""A commit of one agent's store as a value, and the journal that it is appended to before it is made.

A `Delta` contains outcomes: the bytes that a transaction puts into each tree of LMDB, and the keys that it deletes.
They are taken below the encryption, so the delta of an encrypted store is encrypted as its file is. Applying the deltas
of an agent in order, from the first one, makes a store with equal trees. No model, clock or random number is needed.

Some entries of META describe one file and differ between equal stores: the place in the journal, and the notes that a
compaction has removed. Deltas contain a note that is put, so that each copy of a store compacts itself.

A store without a journal notes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ebbtide.store import zstd
from ebbtide.store.chain import ChainHead
from ebbtide.store.codec import INVALID, make_known, unpacked
from ebbtide.store.layout import META, NOTES_OF_FILE, SHARED_TREE, VALUE_SIZES, MetaEntries

Operation = tuple[bytes, bytes | None, bytes, bool]
"""One operation of a transaction: tree, key, value, and whether the entry is put. Without a key every entry of the
tree is deleted. A deletion without a value concerns every value of the key."""

Trees = Mapping[str, Any]
"""The LMDB handle of each tree, by its name."""

LEVEL: Final = 3
"""Level of compression. A trained dictionary saves 9 to 24 per cent, too little for a format of its own."""

OWN_TO_FILE: Final = frozenset(
    META.prefix + one.name for one in (*NOTES_OF_FILE, MetaEntries.journal_head, MetaEntries.journal_start)
)
"""Keys of the shared tree that describe one file."""


class TreeDelta(msgspec.Struct, array_like=True):
    """The changes of one tree. They apply in the order of the fields."""

    is_cleared: bool = False
    deleted: list[tuple[bytes, bytes]] = []
    """Keys with the value to delete. An empty value: all values of the key."""
    put: list[tuple[bytes, bytes]] = []


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

    def encoded(self) -> bytes:
        """Return the delta as compressed MessagePack."""
        return zstd.compress(msgspec.msgpack.encode(self), LEVEL)

    @classmethod
    def decoded(cls, data: bytes) -> Delta:
        """Return the delta of `encoded`. Raise ValueError for other bytes."""
        try:
            return msgspec.msgpack.decode(unpacked(data), type=cls)
        except INVALID as error:
            raise ValueError("The bytes are not a delta.") from error


class Digests(msgspec.Struct, frozen=True):
    """The content of a store, to compare it with another one."""

    number: int
    """The last entry of the journal that the store has, and its hash."""
    hash: bytes
    trees: dict[str, str]
    """The digest of the entries of each tree, but those that describe the file."""


make_known(Delta, Digests)


class Rewritten(NamedTuple):
    """The entries that have the whole content of a store."""

    head: ChainHead
    start: int
    """The number of the first one."""


class Journal(Protocol):
    """Where the commits of one agent are appended before they are made."""

    @property
    def head(self) -> ChainHead:
        """The last entry; a new store continues there."""
        ...

    def confirm(self) -> None:
        """Raise an error if what was just read may be older than what another node has committed."""
        ...

    def append(self, delta: Delta, head: ChainHead) -> ChainHead:
        """Append the delta directly after the entry `head`, durably. Return the head of the new entry.

        Raise an error if the entry was not appended, or if that is not known. The store refuses every later operation,
        because its file may lack an entry: it must be closed, and completed from the journal.
        """
        ...

    def rewrite(self, content: Delta) -> Rewritten:
        """Append the whole content of the store after the last entry. It replaces all before. Raise as `append`."""
        ...

    def erase_before(self, start: int) -> None:
        """Erase the entries before a number, so that nothing of them can be read. May raise an error; repeatable."""
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
