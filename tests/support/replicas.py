"""Copies of a store that are made from its deltas, and the comparison of two stores byte for byte."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ebbtide.errors import Unavailable
from ebbtide.store.chain import ChainHead
from ebbtide.store.journal import OWN_TO_FILE, Delta, Rewritten, SealOf
from ebbtide.store.layout import SHARED_TREE, VALUE_SIZES
from ebbtide.store.lmdb.environment import fresh_environment, open_environment, trees_of
from ebbtide.store.lmdb.lmdb_store import LmdbStore, without_keys

Contents = dict[str, list[tuple[bytes, bytes]]]


def opened_trees(environment: Any) -> dict[str, Any]:
    """Return the handle of each tree, created if necessary."""
    return {
        name: environment.open_db(name.encode(), dupsort=size > 0, dupfixed=size > 0)
        for name, size in VALUE_SIZES.items()
    }


def contents_of(environment: Any, trees: dict[str, Any]) -> Contents:
    """Return the entries of every tree but those that describe one file."""
    with environment.begin() as txn:
        found = {name: list(txn.cursor(db=tree).iternext()) for name, tree in trees.items()}
    shared = SHARED_TREE.decode()
    found[shared] = [one for one in found[shared] if one[0] not in OWN_TO_FILE]
    return found


class Replica:
    """A journal that applies each delta, after its codec, to a copy of the store."""

    def __init__(self, seal_of: SealOf = without_keys) -> None:
        self._seal_of = seal_of
        self._folder = Path(tempfile.mkdtemp())
        self._environment = fresh_environment(self._folder / "data.mdb", 1 << 27)
        self._trees = opened_trees(self._environment)
        self.entries: list[bytes] = []
        self.heads = [ChainHead()]
        self.is_refusing = False

    @property
    def head(self) -> ChainHead:
        """The last entry."""
        return self.heads[-1]

    @property
    def mark(self) -> bytes:
        """One session."""
        return b"mark"

    def confirm(self) -> None:
        """Every read is current."""

    def append(self, entry: bytes, head: ChainHead) -> ChainHead:
        """Apply a commit that follows the last one."""
        if self.is_refusing:
            raise Unavailable("The journal is not there.", reason="NOT_ENOUGH_LOG_SERVERS")
        assert head == self.heads[-1], "an entry follows the one before it"
        with self._environment.begin(write=True) as txn:
            Delta.decoded(entry, self._seal_of).apply(txn, self._trees)
        self.entries.append(entry)
        self.heads.append(ChainHead(head.number + 1, hashlib.sha256(head.hash + entry).digest()))
        return self.heads[-1]

    def placed(self, content: bytes) -> bytes:
        """Store nothing elsewhere."""
        return content

    def rewrite(self, content: bytes) -> Rewritten:
        """Begin again with the whole content."""
        with self._environment.begin(write=True) as txn:
            for tree in self._trees.values():
                txn.drop(tree, delete=False)
        head = self.append(content, self.head)
        return Rewritten(head, head.number)

    def erase_before(self, start: int) -> None:
        """Forget the entries before a number."""
        self.entries[: start - 1] = [b""] * (start - 1)

    def assert_equals(self, store: LmdbStore) -> None:
        """Fail unless every tree of the store and of its copy are equal byte for byte."""
        trees = trees_of(store._tables)
        original, copy = contents_of(store._environment, trees), contents_of(self._environment, self._trees)
        for name in VALUE_SIZES:
            assert original[name] == copy[name], name
        assert store.read(lambda txn: txn.meta.journal_head) == self.heads[-1]

    def close(self) -> None:
        """Remove the copy."""
        self._environment.close()
        shutil.rmtree(self._folder)


def contents_at(path: Path) -> Contents:
    """Return the entries of the closed store in a directory, but those that describe one file."""
    environment = open_environment(path, map_bytes=1 << 20, max_map_bytes=1 << 34, new=False)
    try:
        return contents_of(environment, opened_trees(environment))
    finally:
        environment.close()
