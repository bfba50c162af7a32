"""One agent's LMDB environment: opening, growing, copying, compacting.

With `translation.py` the only importer of `lmdb`. A commit is durable when `write` returns (LMDB syncs data and then
the meta page). The map grows by itself up to `max_map_bytes`; growing needs that no transaction is open in this
environment, which holds because one agent's jobs run one at a time, and a copy beside them ends for it.

After a meta page that could not be written LMDB refuses everything until the environment is opened anew: so it is,
at once, and whoever holds what was derived from the store is told that it may be behind.

What its errors mean is in `translation.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Precondition, Unavailable
from ebbtide.store import layout
from ebbtide.store.durable import sync_directory, sync_file
from ebbtide.store.hot_copy import CopyGate, copy_tables
from ebbtide.store.port import Identity, ReadTransaction, WriteTransaction
from ebbtide.store.sealed import SealedReading, SealedWriting
from ebbtide.store.transaction import LmdbReading, LmdbWriting
from ebbtide.store.translation import FOREIGN, translated
from ebbtide.telemetry import span
from ebbtide.vocabulary import AgentCounts

if TYPE_CHECKING:
    from ebbtide.store.seal import Seal

T = TypeVar("T")

SealOf = Callable[[str], "Seal"]
"""The seal of the key with this fingerprint; raises where it cannot be had."""

SMALLEST_MAP_BYTES = 1 << 18
"""Below this LMDB cannot even hold the empty tables."""

MAX_READERS = 8
"""Jobs of one agent run one at a time; the rest is room for a checker or a backup beside them."""

LOCK_FILE_BYTES = 8192
"""Room for the reader table of MAX_READERS, with page sizes up to 8 KiB."""


DATA_FILE = "data.mdb"

FRESH_FILE = "data.mdb.new"
"""Where a compaction writes, beside the store."""


def _allocate_lock_file(path: Path) -> None:
    """Give the lock file its blocks before LMDB maps it: a mapped page that finds no room kills the process."""
    descriptor = os.open(path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, LOCK_FILE_BYTES)
    finally:
        os.close(descriptor)


def _environment(path: Path, *, map_bytes: int, max_map_bytes: int, new: bool) -> Any:
    """LMDB's environment in a directory, its map at least as large as its file."""
    present = (path / "data.mdb").stat().st_size if (path / "data.mdb").exists() else 0
    try:
        if new or present:
            _allocate_lock_file(path)
        return lmdb.open(
            str(path),
            map_size=max(min(map_bytes, max_map_bytes), present, SMALLEST_MAP_BYTES),
            max_dbs=len(layout.TABLES) + 16,
            max_readers=MAX_READERS,
            subdir=True,
            create=new,
            readahead=False,
        )
    except (lmdb.Error, OSError) as error:
        raise translated(error, path) from error


def _opened(environment: Any, names: Iterable[bytes], creating: Any = None) -> dict[bytes, Any]:
    """Tables, open; in a transaction that creates the store they are made, else only later ones may be."""
    tables = {}
    for name in names:
        duplicates = name in layout.SORTED_TABLES
        tables[name] = environment.open_db(
            name,
            txn=creating,
            create=creating is not None or name in layout.LATER_TABLES,
            dupsort=duplicates,
            dupfixed=duplicates,
        )
    return tables


def without_keys(fingerprint: str) -> Seal:
    """Refuse: who opens the store has no keys."""
    raise Precondition(f"the store is sealed with key {fingerprint}", reason="MASTER_KEY_REFUSED")


class LmdbStore:
    """A store in one directory. Every call runs on the calling thread; calls must not overlap, but for `copy`."""

    def __init__(self, path: Path, environment: Any, *, max_map_bytes: int, seal: Seal | None = None) -> None:
        self.path = path
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

    @property
    def sealed_with(self) -> str:
        """The fingerprint of the key that seals it; empty where nothing is sealed."""
        return "" if self._seal is None else self._seal.fingerprint

    @classmethod
    def create(
        cls, path: Path, identity: Identity, *, map_bytes: int, max_map_bytes: int, seal: Seal | None = None
    ) -> LmdbStore:
        """Make a new store for `identity` in an existing directory, sealed if there is a seal.

        Its tables and whose it is are one commit: cut off at any moment, the store is blank.
        """
        environment = _environment(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, new=True)
        store = cls(path, environment, max_map_bytes=max_map_bytes, seal=seal)
        try:
            with environment.begin(write=True) as txn:
                store._tables = _opened(environment, layout.TABLES, txn)
                LmdbWriting(txn, store._tables).create(identity, store.sealed_with)
        except BaseException as error:
            store.close()
            if isinstance(error, FOREIGN):
                raise translated(error, path) from error
            raise
        return store

    @classmethod
    def is_blank(cls, path: Path) -> bool:
        """Whether nothing was ever committed to the store in `path`: its creation was cut off."""
        environment = _environment(path, map_bytes=0, max_map_bytes=SMALLEST_MAP_BYTES, new=False)
        try:
            table_count: int = environment.stat()["entries"]
            return table_count == 0
        finally:
            environment.close()

    @classmethod
    def open(
        cls, path: Path, *, map_bytes: int, max_map_bytes: int, seal_of: SealOf = without_keys
    ) -> LmdbStore:
        """Open the store in `path`. FORMAT_TOO_NEW when a newer Ebbtide wrote it; what `seal_of` raises."""
        with contextlib.suppress(OSError):
            # A compaction that was cut off: what it was made of is still there, whole.
            (path / FRESH_FILE).unlink(missing_ok=True)
        store = cls._open(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes)
        try:
            fingerprint = store.read(_sealed_with)
            store._seal = seal_of(fingerprint) if fingerprint else None
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def glance(
        cls, path: Path, *, map_bytes: int, max_map_bytes: int
    ) -> tuple[Identity | None, AgentCounts, str]:
        """Whose the store in `path` is, how much it holds and which key seals it: what is told without the key."""
        store = cls._open(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes)
        try:
            fingerprint = store.read(_sealed_with)
            identity, counts = store.read(lambda txn: (txn.identity(), txn.counts()))
            return identity, counts, fingerprint
        finally:
            store.close()

    @classmethod
    def _open(cls, path: Path, *, map_bytes: int, max_map_bytes: int) -> LmdbStore:
        environment = _environment(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, new=False)
        store = cls(path, environment, max_map_bytes=max_map_bytes)
        try:
            store._tables = _opened(environment, layout.TABLES)
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
                with span("commit"), self._environment.begin(write=True) as txn:
                    return fn(self._writing(txn))
            except lmdb.MapFullError as error:
                self._grow(error)
            except FOREIGN as error:
                self._recover()
                raise translated(error, self.path) from error

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
            self._environment.close()
            self._environment = _environment(
                self.path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes, new=False
            )
            self._map_bytes, self._is_lost = self._environment.info()["map_size"], False
            try:
                self._tables = _opened(self._environment, layout.TABLES)
            except (lmdb.Error, OSError) as error:
                self._is_lost = True
                raise translated(error, self.path) from error

    def _grow(self, error: Exception) -> None:
        size = self._map_bytes
        if size >= self._max_map_bytes:
            raise Exhausted(
                f"the agent's store holds max_map_bytes = {self._max_map_bytes}; nothing was stored",
                reason="STORE_FULL",
            ) from error
        with self._copies.standstill():
            self._map_bytes = min(size * 2, self._max_map_bytes)
            self._environment.set_mapsize(self._map_bytes)

    def copy(self, into: Path, is_given_up: Callable[[], bool], rest: Callable[[], None]) -> bool:
        """Copy the store as it is now into an empty directory, beside whatever else is done with it.

        False when it was given up. It begins anew when the map had to grow meanwhile: each time to twice its size, so
        that this ends. The copy is not durable: it is for who reads it at once.
        """

        def between() -> bool:
            rest()
            return not (self._copies.must_end or is_given_up())

        while not is_given_up():
            for left in into.iterdir():
                left.unlink()
            try:
                with self._copies.copying():
                    self._refuse_closed()
                    if self._copy_into(into / DATA_FILE, between):
                        return True
            except FOREIGN as error:
                raise translated(error, self.path) from error
        return False

    def _copy_into(self, file: Path, between: Callable[[], bool]) -> bool:
        """Write every entry as it is now into a fresh store, not durably; False when `between` cut it off."""
        info = self._environment.info()
        # Twice what is there, since pages may be filled otherwise; the file takes only what is used of it.
        map_bytes = 2 * (info["last_pgno"] + 1) * self._environment.stat()["psize"]
        fresh = lmdb.open(
            str(file),
            subdir=False,
            lock=False,
            sync=False,
            map_size=max(map_bytes, SMALLEST_MAP_BYTES * 4),
            max_dbs=len(layout.TABLES) + 16,
        )
        try:
            with fresh.begin(write=True) as txn:
                tables = _opened(fresh, layout.TABLES, txn)
            with self._environment.begin() as txn:
                if not copy_tables(txn, self._tables, fresh, tables, between):
                    return False
            # Nothing stands in it that no entry holds.
            with fresh.begin(write=True) as txn:
                txn.delete(layout.COMPACTION_DUE, db=tables[layout.META])
            return True
        finally:
            fresh.close()

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
            with self._copies.standstill():
                self._environment.close()
                # The map begins anew with the size of the fresh file.
                self._is_lost, self._map_bytes = True, 0
            fresh.replace(self.path / DATA_FILE)
            sync_directory(self.path)
        except FOREIGN as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise translated(error, self.path) from error
        finally:
            if self._is_lost:
                self._reopen()

    def close(self) -> None:
        """Close the environment. Idempotent."""
        if not self._closed:
            self._closed = True
            with self._copies.standstill():
                self._environment.close()

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


def _sealed_with(txn: ReadTransaction) -> str:
    """The fingerprint of the key that seals a store. FORMAT_TOO_NEW when a newer Ebbtide wrote it."""
    identity = txn.identity()
    version = layout.FORMAT_VERSION if identity is None else identity.format_version
    if version > layout.FORMAT_VERSION:
        raise Precondition(
            f"the data has format {version}, this Ebbtide reads up to {layout.FORMAT_VERSION}; "
            "use a newer Ebbtide",
            reason="FORMAT_TOO_NEW",
        )
    return txn.sealed_with()
