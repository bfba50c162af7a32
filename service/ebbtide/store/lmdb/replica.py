"""The closed file of one agent, as a copy that is completed from the agent's log."""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lmdb

from ebbtide.errors import Corrupted, Exhausted
from ebbtide.store.chain import ChainHead
from ebbtide.store.durable import sync_directory
from ebbtide.store.journal import Delta, SealOf, with_marks
from ebbtide.store.layout import VALUE_SIZES
from ebbtide.store.lmdb.environment import DATA_FILE, open_environment, open_tables, refuse_unsound, trees_of
from ebbtide.store.lmdb.lmdb_store import without_keys
from ebbtide.store.lmdb.probe import note_closed, note_use
from ebbtide.store.lmdb.tables import MetaReader, MetaWriter, TableReader, TableWriter
from ebbtide.store.translation import FOREIGN, translated

ASIDE = ".aside-"
"""Begins the name of a directory that was put aside."""


class Replica:
    """The file in one agent's directory. No other part of the process may have it open."""

    def __init__(
        self, path: Path, *, map_bytes: int, max_map_bytes: int, seal_of: SealOf = without_keys
    ) -> None:
        self.path = path
        self._seal_of = functools.cache(seal_of)
        self._map_bytes = map_bytes
        self._max_map_bytes = max_map_bytes

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return (self.path / DATA_FILE).exists()

    @property
    def head(self) -> ChainHead:
        """The last record of the log that the file has; number 0 without a file.

        Raise LOG_BEHIND for a file that is not from a log.
        """
        return self._position()[0]

    @property
    def start(self) -> int:
        """The first record of the latest rewrite of the log that the file has; 0 without one."""
        return self._position()[1]

    @property
    def marks(self) -> tuple[bytes, ...]:
        """The marks of the latest sessions of the log that the file has."""
        return self._position()[2]

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 without a file."""
        return (self.path / DATA_FILE).stat().st_size if self.exists else 0

    def _position(self) -> tuple[ChainHead, int, tuple[bytes, ...]]:
        if not self.exists:
            return ChainHead(), 0, ()
        refuse_unsound(self.path)
        with self._opened() as environment:
            if environment.stat()["entries"] < len(VALUE_SIZES):
                return ChainHead(), 0, ()  # its creation was interrupted
            tables = open_tables(environment)
            with environment.begin() as txn:
                meta = MetaReader(TableReader(txn, tables, None))
                head, start, identity = meta.journal_head, meta.journal_start, meta.identity
                marks = meta.journal_marks
            if head.number == 0 and identity is not None:
                raise Corrupted(
                    "The agent's file is not from the log of this cluster. Run `ebbtide cluster adopt`.",
                    reason="LOG_BEHIND",
                )
            return head, start, marks

    def content(self) -> bytes:
        """Return the whole content of the file, as an entry of the log."""
        return self._content().encoded()

    def digests(self) -> dict[str, str]:
        """Return a digest of each tree of the file, to compare it with another one."""
        return self._content().digests()

    def _content(self) -> Delta:
        with self._opened() as environment:
            tables = open_tables(environment)
            with environment.begin() as txn:
                return Delta.of_content(txn, trees_of(tables))

    def apply(
        self, entries: Sequence[bytes], head: ChainHead, start: int = 0, marks: Sequence[bytes] = ()
    ) -> None:
        """Apply commits and write the new head, in one transaction. Create the file if there is none.

        `start` is the first record of a rewrite that is among the commits, `marks` are those of sessions that began.
        Raise FORMAT_TOO_NEW, and the errors of the seals, before anything is changed.
        """
        deltas = [Delta.decoded(entry, self._seal_of) for entry in entries]
        with self._opened() as environment:
            while True:
                try:
                    with environment.begin(write=True) as txn:
                        tables = open_tables(environment, txn)
                        trees = trees_of(tables)
                        for delta in deltas:
                            delta.apply(txn, trees)
                        meta = MetaWriter(TableWriter(txn, tables, None))
                        meta.set(journal_head=head)
                        if start:
                            meta.set(journal_start=start)
                        if marks:
                            meta.set(journal_marks=with_marks(meta.journal_marks, marks))
                    return
                except lmdb.MapFullError as error:
                    size = environment.info()["map_size"]
                    if size >= self._max_map_bytes:
                        raise Exhausted(
                            f"The agent's store has reached max_map_bytes = {self._max_map_bytes}.",
                            reason="STORE_FULL",
                        ) from error
                    environment.set_mapsize(min(2 * size, self._max_map_bytes))

    def put_aside(self) -> None:
        """Rename the directory. An earlier one that was put aside is deleted."""
        aside = self.path.with_name(ASIDE + self.path.name)
        shutil.rmtree(aside, ignore_errors=True)
        self.path.rename(aside)
        sync_directory(self.path.parent)

    def remove(self, *, keeps_aside: bool = False) -> None:
        """Delete the directory, and one that was put aside unless that is kept."""
        shutil.rmtree(self.path, ignore_errors=True)
        if not keeps_aside:
            shutil.rmtree(self.path.with_name(ASIDE + self.path.name), ignore_errors=True)
        sync_directory(self.path.parent)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        self.path.mkdir(mode=0o700, exist_ok=True)
        environment = open_environment(
            self.path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes, new=not self.exists
        )
        note_use(self.path)
        try:
            yield environment
        except FOREIGN as error:
            raise translated(error, self.path) from error
        finally:
            environment.close()
            note_closed(self.path)
