"""One agent's LMDB environment: opening, growing, copying, compacting.

A commit is durable when `write` returns (LMDB syncs data and then
the meta page). The map grows by itself up to `max_map_bytes`; growing needs that no transaction is open in this
environment, which holds because one agent's jobs run one at a time, and a copy beside them ends for it. So it does
where the map may not grow and pages are free but for the copy, which still reads them.

After a meta page that could not be written LMDB refuses everything until the environment is opened anew: so it is,
at once, and whoever holds what was derived from the store is told that it may be behind. A map that could not be made
larger is gone, and is opened anew as well.

How LMDB is opened is in `environment.py`, what its errors mean in `translation.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import lmdb

from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Unavailable
from ebbtide.store import layout
from ebbtide.store.durable import sync_directory, sync_file
from ebbtide.store.lmdb.environment import (
    SMALLEST_MAP_BYTES,
    fresh_environment,
    open_environment,
    opened_tables,
)
from ebbtide.store.lmdb.hot_copy import CopyGate, copy_tables
from ebbtide.store.lmdb.opening import (
    Beginning,
    SealOf,
    begin_empty,
    fingerprint_in,
    refuse_unsound,
    without_keys,
)
from ebbtide.store.lmdb.probe import note_closed, note_use
from ebbtide.store.lmdb.sealed import SealedReading, SealedWriting
from ebbtide.store.lmdb.transaction import LmdbReading, LmdbWriting
from ebbtide.store.port import Identity, ReadTransaction, WriteTransaction
from ebbtide.store.presence import Confirm, Presence, elsewhere, nothing_to_confirm
from ebbtide.store.translation import FOREIGN, translated
from ebbtide.store.yielding import Rest
from ebbtide.telemetry import span

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

T = TypeVar("T")

MOST_BEGINNINGS = 40
"""How often a copy begins anew before it is refused: more often than a map can be doubled."""

DATA_FILE = "data.mdb"

FRESH_FILE = "data.mdb.new"
"""Where a compaction writes, beside the store."""


class LmdbStore:
    """A store in one directory. Every call runs on the calling thread; calls must not overlap, but for `copy`."""

    def __init__(
        self,
        path: Path,
        environment: Any,
        *,
        max_map_bytes: int,
        seal: Seal | None = None,
        confirm: Confirm = nothing_to_confirm,
    ) -> None:
        self.path = path
        self._presence = Presence(path / DATA_FILE, confirm)
        self._seal = seal
        self._environment = environment
        self._map_bytes: int = environment.info()["map_size"]
        self._max_map_bytes = max_map_bytes
        self._tables: dict[bytes, Any] = {}
        self._closed = False
        self._is_lost = False
        """Whether the environment was given up, or closed to replace its file, and not opened anew since."""
        self.on_reopened: Callable[[], None] = lambda: None
        self._copies = CopyGate()
        self._seen_by_copies: list[int] = []
        """The commits that copies under way read as the latest."""

    @property
    def sealed_with(self) -> str:
        """The fingerprint of the key that seals it; empty where nothing is sealed."""
        return "" if self._seal is None else self._seal.fingerprint

    @classmethod
    def create(
        cls,
        path: Path,
        identity: Identity,
        *,
        map_bytes: int,
        max_map_bytes: int,
        seal: Seal | None = None,
        events_beyond: int = 0,
        begin: Beginning = begin_empty,
        confirm: Confirm = nothing_to_confirm,
    ) -> LmdbStore:
        """Create a store for `identity` in an existing directory, sealed if there is a seal.

        Its tables, its identity, the number its events begin with and what `begin` writes are one commit: after a
        kill the store has all of them, or is blank.
        """
        environment = open_environment(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, new=True)
        note_use(path)
        store = cls(path, environment, max_map_bytes=max_map_bytes, seal=seal, confirm=confirm)
        try:
            with environment.begin(write=True) as txn:
                store._tables = opened_tables(environment, layout.TABLES, txn)
                writing = store._writing(txn)
                writing.create(identity, store.sealed_with)
                if events_beyond:
                    writing.begin_events_beyond(events_beyond)
                begin(writing)
        except BaseException as error:
            store.close()
            if isinstance(error, FOREIGN):
                raise translated(error, path) from error
            raise
        return store

    @classmethod
    def is_blank(cls, path: Path) -> bool:
        """Whether nothing was ever committed to the store in `path`: its creation was cut off."""
        refuse_unsound(path)
        environment = open_environment(path, map_bytes=0, max_map_bytes=SMALLEST_MAP_BYTES, new=False)
        try:
            table_count: int = environment.stat()["entries"]
            return table_count == 0
        finally:
            environment.close()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        map_bytes: int,
        max_map_bytes: int,
        seal_of: SealOf = without_keys,
        confirm: Confirm = nothing_to_confirm,
    ) -> LmdbStore:
        """Open the store in `path`. FORMAT_TOO_NEW when a newer Ebbtide wrote it; what `seal_of` raises."""
        with contextlib.suppress(OSError):
            # A compaction that was cut off: what it was made of is still there, whole.
            (path / FRESH_FILE).unlink(missing_ok=True)
        store = cls._open(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, confirm=confirm)
        try:
            fingerprint = store.read(fingerprint_in)
            store._seal = seal_of(fingerprint) if fingerprint else None
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def look(
        cls, path: Path, fn: Callable[[ReadTransaction], T], *, map_bytes: int = 0, max_map_bytes: int
    ) -> T:
        """Read from the store in `path`, which is closed, what is told without the key. FORMAT_TOO_NEW as ever."""
        store = cls._open(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes)
        try:
            store.read(fingerprint_in)
            return store.read(fn)
        finally:
            store.close()

    @classmethod
    def _open(
        cls, path: Path, *, map_bytes: int, max_map_bytes: int, confirm: Confirm = nothing_to_confirm
    ) -> LmdbStore:
        refuse_unsound(path)
        environment = open_environment(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, new=False)
        note_use(path)
        store = cls(path, environment, max_map_bytes=max_map_bytes, confirm=confirm)
        try:
            store._tables = opened_tables(environment, layout.TABLES)
        except (lmdb.Error, OSError) as error:
            store.close()
            if isinstance(error, lmdb.NotFoundError):
                raise Corrupted("the store lacks a table", reason="STORE_CORRUPTED") from error
            raise translated(error, path) from error
        return store

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on a consistent view."""
        self._assert_open()
        try:
            with self._environment.begin() as txn:
                return fn(self._reading(txn))
        except FOREIGN as error:
            self._recover()
            raise translated(error, self.path) from error

    def write(self, fn: Callable[[WriteTransaction], T]) -> T:
        """Run `fn` and make what it wrote durable; grow the map and run it again when it was too small."""
        self._assert_open()
        while True:
            try:
                return self._committed(fn)
            except lmdb.MapFullError as error:
                if self._map_bytes >= self._max_map_bytes:
                    return self._written_alone(fn, error)
                self._grow()
            except FOREIGN as error:
                self._recover()
                raise translated(error, self.path) from error

    def _committed(self, fn: Callable[[WriteTransaction], T]) -> T:
        if self._presence.must_reopen():
            self._give_up()
        with span("commit"), self._environment.begin(write=True) as txn:
            done = fn(self._writing(txn))
        if not self._presence.is_there:
            self._give_up()
        return done

    def _give_up(self) -> NoReturn:
        """Refuse: the file that is open is not the one at the path. Whoever uses the store next opens that one."""
        self._is_lost = True
        self.on_reopened()
        raise elsewhere()

    def _written_alone(self, fn: Callable[[WriteTransaction], T], error: Exception) -> T:
        """Run `fn` in a map that may not grow, without the copies that keep it from pages given up meanwhile."""
        full = Exhausted(
            f"the agent's store holds max_map_bytes = {self._max_map_bytes}; nothing was stored",
            reason="STORE_FULL",
        )
        # A copy that saw the latest commit keeps no page from anybody: it may go on.
        if not any(seen < self._environment.info()["last_txnid"] for seen in list(self._seen_by_copies)):
            raise full from error
        try:
            with self._copies.standstill():
                return self._committed(fn)
        except lmdb.MapFullError as again:
            raise full from again
        except FOREIGN as failure:
            self._recover()
            raise translated(failure, self.path) from failure

    def _reading(self, txn: Any) -> LmdbReading:
        if self._seal is None:
            return LmdbReading(txn, self._tables)
        return SealedReading(txn, self._tables, self._seal)

    def _writing(self, txn: Any) -> LmdbWriting:
        if self._seal is None:
            return LmdbWriting(txn, self._tables)
        return SealedWriting(txn, self._tables, self._seal)

    def _recover(self) -> None:
        """Open the environment anew where a commit that failed has left it unusable."""
        try:
            self._environment.begin().abort()
        except lmdb.PanicError:
            self._is_lost = True
            # What could not be written may be there all the same: nothing in memory can be relied on.
            self.on_reopened()
            # Where this fails too, the next call tries again.
            with contextlib.suppress(EbbtideError):
                self._reopen()
        except FOREIGN:
            return

    def _reopen(self) -> None:
        """Take up the store again; where that fails, whoever uses it next tries again."""
        with self._copies.standstill():
            self._presence.confirm()
            self._environment.close()
            self._environment = open_environment(
                self.path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes, new=False
            )
            self._presence.note()
            self._map_bytes, self._is_lost = self._environment.info()["map_size"], False
            try:
                self._tables = opened_tables(self._environment, layout.TABLES)
            except (lmdb.Error, OSError) as error:
                self._is_lost = True
                raise translated(error, self.path) from error

    def _grow(self) -> None:
        larger = min(self._map_bytes * 2, self._max_map_bytes)
        with self._copies.standstill():
            try:
                self._environment.set_mapsize(larger)
            except FOREIGN as error:
                # LMDB gave up the map it had before it asked for another.
                self._is_lost = True
                with contextlib.suppress(EbbtideError):
                    self._reopen()
                raise translated(error, self.path) from error
            self._map_bytes = larger

    def copy(self, into: Path, is_given_up: Callable[[], bool], rest: Rest) -> bool:
        """Copy the store as it is now into an empty directory, beside whatever else is done with it.

        False when it was given up. It begins anew when the map had to grow meanwhile, or to be written to its last
        page; STORE_UNAVAILABLE where that happens again and again. The copy is not durable: it is for who reads it at
        once.
        """

        def between() -> bool:
            rest()
            return not (self._copies.must_end or is_given_up())

        for _ in range(MOST_BEGINNINGS):
            if is_given_up():
                return False
            for left in into.iterdir():
                left.unlink()
            try:
                with self._copies.copying():
                    self._refuse_closed()
                    if self._copy_into(into / DATA_FILE, between):
                        return True
            except FOREIGN as error:
                raise translated(error, into) from error
        raise Unavailable(
            "the agent's store is nearly full and too much at work to be copied; ask again later",
            reason="STORE_UNAVAILABLE",
            retry_after_s=10.0,
        )

    def _copy_into(self, file: Path, between: Callable[[], bool]) -> bool:
        """Write every entry as it is now into a fresh store, not durably; False when `between` cut it off."""
        info = self._environment.info()
        # Twice what is there, since pages may be filled otherwise; the file takes only what is used of it.
        map_bytes = 2 * (info["last_pgno"] + 1) * self._environment.stat()["psize"]
        fresh = fresh_environment(file, map_bytes)
        try:
            with fresh.begin(write=True) as txn:
                tables = opened_tables(fresh, layout.TABLES, txn)
            if not self._copy_entries(fresh, tables, between):
                return False
            # Nothing stands in it that no entry holds.
            with fresh.begin(write=True) as txn:
                for note in (layout.COMPACTION_DUE, layout.LEFTOVERS):
                    txn.delete(note, db=tables[layout.META])
            return True
        finally:
            fresh.close()

    def _copy_entries(self, fresh: Any, tables: dict[bytes, Any], between: Callable[[], bool]) -> bool:
        with self._environment.begin() as txn:
            seen = txn.id()
            self._seen_by_copies.append(seen)
            try:
                return copy_tables(txn, self._tables, fresh, tables, between)
            finally:
                self._seen_by_copies.remove(seen)

    def compact(self) -> None:
        """Write everything the store refers to into a fresh file, which takes the place of the old one.

        LMDB leaves what was deleted where it was until it needs the page, and its own copying takes along what stands
        between the entries of a page. So entries are written anew, one by one: a byte that no entry holds is in no
        page of the new file. The old one is replaced by a rename: a kill at any moment leaves one of the two, whole.
        """
        self._assert_open()
        fresh = self.path / FRESH_FILE
        try:
            fresh.unlink(missing_ok=True)
            self._copy_into(fresh, lambda: True)
            sync_file(fresh)
            self._take_up(fresh)
        except FOREIGN as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise translated(error, self.path) from error

    def _take_up(self, fresh: Path) -> None:
        """Put a fresh file in the place of the open one; who wants a copy waits until it is open again."""
        with self._copies.standstill():
            self._environment.close()
            # The map begins anew with the size of the fresh file.
            self._is_lost, self._map_bytes = True, 0
            try:
                fresh.replace(self.path / DATA_FILE)
                sync_directory(self.path)
            finally:
                self._reopen()

    def close(self) -> None:
        """Close the environment. Idempotent."""
        if not self._closed:
            self._closed = True
            with self._copies.standstill():
                self._environment.close()
            note_closed(self.path)

    def _refuse_closed(self) -> None:
        """For who reads beside the agent's jobs, and must not open anything itself."""
        if self._closed:
            raise Unavailable(
                "the agent was closed meanwhile; ask again", reason="AGENT_CLOSING", retry_after_s=1.0
            )
        if self._is_lost:
            raise Unavailable(
                "the agent's store is not open now; ask again", reason="STORE_UNAVAILABLE", retry_after_s=1.0
            )

    def _assert_open(self) -> None:
        if self._is_lost and not self._closed:
            self._reopen()
        self._refuse_closed()
