"""One agent's LMDB environment: opening, growing, and what its errors mean.

The only module that imports `lmdb`. A commit is durable when `write` returns (LMDB syncs data and then the
meta page). The map grows by itself up to `max_map_bytes`; growing needs that no transaction is open in this
environment, which holds because one agent's jobs run one at a time.

After a meta page that could not be written LMDB refuses everything until the environment is opened anew: so it is,
at once, and whoever holds what was derived from the store is told that it may be behind.

Foreign errors are translated in one table, `TRANSLATION`; a test holds it against what lmdb can raise.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb
import msgspec
import zstandard

from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Internal, Precondition, Unavailable
from ebbtide.store import layout
from ebbtide.store.port import Identity, ReadTransaction, WriteTransaction
from ebbtide.store.sealed import SealedReading, SealedWriting
from ebbtide.store.transaction import LmdbReading, LmdbWriting
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

TRANSLATION: dict[str, tuple[type[EbbtideError], str]] = {
    "Error": (Unavailable, "STORE_UNAVAILABLE"),  # what the operating system said, as a bare errno
    "MapFullError": (Exhausted, "STORE_FULL"),
    "DiskError": (Unavailable, "STORE_UNAVAILABLE"),
    "LockError": (Unavailable, "STORE_UNAVAILABLE"),
    "ReadersFullError": (Unavailable, "STORE_UNAVAILABLE"),
    "MapResizedError": (Unavailable, "STORE_UNAVAILABLE"),
    "MemoryError": (Unavailable, "STORE_UNAVAILABLE"),
    "TlsFullError": (Unavailable, "STORE_UNAVAILABLE"),
    "ReadonlyError": (Unavailable, "STORE_UNAVAILABLE"),
    "CorruptedError": (Corrupted, "STORE_CORRUPTED"),
    "PageNotFoundError": (Corrupted, "STORE_CORRUPTED"),
    "PanicError": (Corrupted, "STORE_CORRUPTED"),
    "InvalidError": (Corrupted, "STORE_CORRUPTED"),
    "BadChecksumError": (Corrupted, "STORE_CORRUPTED"),
    "VersionMismatchError": (Corrupted, "STORE_CORRUPTED"),
    "IncompatibleError": (Corrupted, "STORE_CORRUPTED"),
    "CursorFullError": (Internal, "INTERNAL"),
    "PageFullError": (Internal, "INTERNAL"),
    "TxnFullError": (Internal, "INTERNAL"),
    "BadTxnError": (Internal, "INTERNAL"),
    "BadRslotError": (Internal, "INTERNAL"),
    "BadDbiError": (Internal, "INTERNAL"),
    "BadValsizeError": (Internal, "INTERNAL"),
    "DbsFullError": (Internal, "INTERNAL"),
    "KeyExistsError": (Internal, "INTERNAL"),
    "NotFoundError": (Internal, "INTERNAL"),
    "InvalidParameterError": (Internal, "INTERNAL"),
    "EnvEncryptionError": (Internal, "INTERNAL"),
    "CryptoFailError": (Internal, "INTERNAL"),
    "ProblemError": (Internal, "INTERNAL"),
}
"""lmdb's exception, by name, to ours."""

UNREADABLE = (msgspec.DecodeError, zstandard.ZstdError, UnicodeDecodeError)
"""What a damaged value raises when it is decoded."""

FOREIGN = (lmdb.Error, OSError, *UNREADABLE)

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


LARGEST_WRITE_BYTES = 1 << 20
"""LMDB writes at most this much at once; with less room left, a short write is a full disk."""


def translated(error: Exception, path: Path) -> EbbtideError:
    """Our error for one that lmdb or the operating system raised; the path goes to the log, by `__cause__`."""
    if _says_no_room(error, path):
        return Exhausted("the disk is full; nothing of this change was stored", reason="STORE_FULL")
    family, reason = TRANSLATION.get(type(error).__name__, (Internal, "INTERNAL"))
    if isinstance(error, OSError):
        family, reason = Unavailable, "STORE_UNAVAILABLE"
    elif isinstance(error, UNREADABLE):
        family, reason = Corrupted, "STORE_CORRUPTED"
    return family(f"the store of this agent failed: {type(error).__name__}", reason=reason)


def _says_no_room(error: Exception, path: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    if not isinstance(error, lmdb.Error):
        return False
    if "No space left" in str(error):
        return True
    # A disk that is just getting full writes less than it was given, which LMDB takes for an I/O error.
    return "Input/output error" in str(error) and _free_bytes(path) < LARGEST_WRITE_BYTES


def _free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return LARGEST_WRITE_BYTES


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


def without_keys(fingerprint: str) -> Seal:
    """Refuse: who opens the store has no keys."""
    raise Precondition(f"the store is sealed with key {fingerprint}", reason="MASTER_KEY_REFUSED")


class LmdbStore:
    """A store in one directory. Every call runs on the calling thread; calls must not overlap."""

    def __init__(self, path: Path, environment: Any, *, max_map_bytes: int, seal: Seal | None = None) -> None:
        self.path = path
        self._seal = seal
        self._environment = environment
        self._map_bytes: int = environment.info()["map_size"]
        self._max_map_bytes = max_map_bytes
        self._tables: dict[bytes, Any] = {}
        self._closed = False
        self._is_lost = False
        """Whether the environment was given up, and could not be opened anew yet."""
        self.on_reopened: Callable[[], None] = lambda: None

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
                store._open_tables(layout.TABLES, txn)
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
            store._open_tables(layout.TABLES)
        except (lmdb.Error, OSError) as error:
            store.close()
            if isinstance(error, lmdb.NotFoundError):
                raise Corrupted("the store lacks a table", reason="STORE_CORRUPTED") from error
            raise translated(error, path) from error
        return store

    def _open_tables(self, names: Iterable[bytes], creating: Any = None) -> None:
        """Open tables; in a transaction that creates the store they are made, else only derived ones may be."""
        for name in names:
            duplicates = name in layout.SORTED_TABLES
            self._tables[name] = self._environment.open_db(
                name,
                txn=creating,
                create=creating is not None or name in layout.DERIVED_TABLES,
                dupsort=duplicates,
                dupfixed=duplicates,
            )

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
                with self._environment.begin(write=True) as txn:
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
        map_bytes = self._map_bytes
        self._environment.close()
        environment = _environment(
            self.path, map_bytes=map_bytes, max_map_bytes=self._max_map_bytes, new=False
        )
        self._environment, self._is_lost = environment, False
        try:
            self._open_tables(layout.TABLES)
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
        self._map_bytes = min(size * 2, self._max_map_bytes)
        self._environment.set_mapsize(self._map_bytes)

    def close(self) -> None:
        """Close the environment. Idempotent."""
        if not self._closed:
            self._closed = True
            self._environment.close()

    def _assert_open(self) -> None:
        if self._closed:
            raise Unavailable(
                "the agent was closed meanwhile; ask again", reason="AGENT_CLOSING", retry_after_s=1.0
            )
        if self._is_lost:
            self._reopen()


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
