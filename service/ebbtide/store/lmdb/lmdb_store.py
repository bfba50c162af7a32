"""One agent's LMDB environment: opening, growing, copying and compacting it.

* A commit is durable when `write` returns: LMDB syncs the data, then the meta page.
* The map grows up to `max_map_bytes`. This needs an environment without open transactions: the jobs of one agent run
  one at a time, and copies end for it. A copy also ends where the map cannot grow and only the copy still uses pages
  that are otherwise free.
* After a meta page that could not be written, LMDB refuses every operation until the environment is opened again. The
  store does so at once and calls `on_reopened`. The same holds for a map that could not grow.
* With a journal, a transaction is appended to it and then committed. If the file may lack what the journal has, the
  store refuses every later operation: it must be closed, and completed from the journal.

`environment.py` opens LMDB; `translation.py` translates its errors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

import lmdb

from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Precondition, Unavailable
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.chain import ChainHead
from ebbtide.store.durable import sync_directory, sync_file
from ebbtide.store.journal import Delta, Digests, Journal, Operation, Rewritten, SealOf, with_marks
from ebbtide.store.lmdb.environment import (
    DATA_FILE,
    MIN_MAP_BYTES,
    fresh_environment,
    open_environment,
    open_tables,
    refuse_other_format,
    refuse_unsound,
    trees_of,
)
from ebbtide.store.lmdb.hot_copy import CopyGate, write_trees
from ebbtide.store.lmdb.network import SourcesOf
from ebbtide.store.lmdb.probe import note_closed, note_use
from ebbtide.store.lmdb.tables import Handles
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction
from ebbtide.store.lmdb.upgrade import (
    has_trees_of_present_format,
    upgrade,
    upgrade_entries,
    write_citings,
    write_lives,
)
from ebbtide.store.presence import Confirm, Presence, file_moved, nothing_to_confirm
from ebbtide.store.translation import FOREIGN, translated
from ebbtide.store.yielding import Pause
from ebbtide.telemetry import span

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

T = TypeVar("T")

Beginning = Callable[[WriteTransaction], None]
"""Writes the initial content of a new store, in its first commit."""

MAX_COPY_ATTEMPTS = 40
"""Starts of one copy before it fails: more than a map can be doubled."""

TRIMMED_BYTES = 1 << 20
"""A larger file is not trimmed: its free pages are a small part of it, and writing it takes long."""

PAGES_OF_ALL_STORES = 3
"""The two meta pages of a file, and the root of the tree that names all others."""

FRESH_FILE = "data.mdb.new"
"""The file that a compaction writes, in the directory of the store."""


def without_keys(fingerprint: str) -> Seal:
    """Refuse an encrypted store: the caller has no keys."""
    raise Precondition(f"The store is encrypted with key {fingerprint}.", reason="MASTER_KEY_REFUSED")


def begin_empty(_: WriteTransaction) -> None:
    """Write nothing: the new store is empty."""


class _Ahead(NamedTuple, Generic[T]):
    """A transaction that the journal has and the file does not."""

    delta: Delta
    head: ChainHead
    done: T
    """The result of its function."""


class LmdbStore:
    """A store in one directory. Every call runs on the calling thread; only `copy` may overlap other calls."""

    def __init__(
        self,
        path: Path,
        environment: Any,
        *,
        max_map_bytes: int,
        seal: Seal | None = None,
        confirm: Confirm = nothing_to_confirm,
        journal: Journal | None = None,
    ) -> None:
        self.path = path
        self._presence = Presence(path / DATA_FILE, confirm)
        self._seal = seal
        self._environment = environment
        self._map_bytes: int = environment.info()["map_size"]
        self._max_map_bytes = max_map_bytes
        self._tables: Handles = {}
        self._journal = journal
        self._head = ChainHead() if journal is None else journal.head
        """The latest entry of the journal that the file has."""
        self._ahead: _Ahead[Any] | None = None
        self._is_behind = False
        """Whether the file may lack what the journal has."""
        self._closed = False
        self._is_lost = False
        """Whether the environment is closed, or must not be used, until `_reopen` has opened it again."""
        self._reset_callbacks()
        self._copies = CopyGate()
        self._seen_by_copies: list[int] = []
        """The latest commits that the copies in progress read."""

    @property
    def sealed_with(self) -> str:
        """The fingerprint of the key that encrypts the store; empty for an unencrypted one."""
        return "" if self._seal is None else self._seal.fingerprint

    # --- opening -----------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path,
        identity: Identity,
        *,
        map_bytes: int,
        max_map_bytes: int,
        seal: Seal | None = None,
        begin: Beginning = begin_empty,
        confirm: Confirm = nothing_to_confirm,
        journal: Journal | None = None,
    ) -> LmdbStore:
        """Create a store for `identity` in an existing directory, encrypted if there is a seal.

        One commit writes its tables, its identity and the content that `begin` writes. So after a kill the store has
        all of them, or is blank.
        """
        environment = open_environment(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, new=True)
        note_use(path)
        store = cls(
            path, environment, max_map_bytes=max_map_bytes, seal=seal, confirm=confirm, journal=journal
        )

        def first_content(writing: WriteTransaction) -> None:
            writing.create(identity, store.sealed_with)
            begin(writing)

        try:
            with environment.begin(write=True) as txn:
                store._tables = open_tables(environment, txn)
                store._run(txn, first_content)
            store._note_committed()
        except BaseException as error:
            store.close()
            if isinstance(error, FOREIGN):
                raise translated(error, path) from error
            raise
        return store

    @classmethod
    def is_blank(cls, path: Path) -> bool:
        """Return whether nothing was ever committed to the store in `path`: its creation was interrupted."""
        refuse_unsound(path)
        environment = open_environment(path, map_bytes=0, max_map_bytes=MIN_MAP_BYTES, new=False)
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
        journal: Journal | None = None,
    ) -> LmdbStore:
        """Open the store in `path`, after an upgrade where an older Ebbtide wrote it.

        The caller has completed the file from its journal, if there is one.

        Raise FORMAT_TOO_NEW or FORMAT_TOO_OLD for another format, and the errors of `seal_of`.
        """
        with contextlib.suppress(OSError):
            # Left by an interrupted compaction, which has not changed the store.
            (path / FRESH_FILE).unlink(missing_ok=True)
        store = cls._open(path, map_bytes=map_bytes, max_map_bytes=max_map_bytes, confirm=confirm)
        try:
            fingerprint = store.read(_fingerprint)
            store._seal = seal_of(fingerprint) if fingerprint else None
            store._journal, store._head = journal, store.read(lambda txn: txn.meta.journal_head)
            # Entries that cannot be read are findings of the checker, and errors of those who read them.
            with contextlib.suppress(Corrupted):
                if store.read(lambda txn: txn.meta.citings_due):
                    store.write(write_citings)
                if not store.read(lambda txn: txn.meta.has_lives):
                    store.write(write_lives)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def peek(cls, path: Path, fn: Callable[[ReadTransaction], T], *, max_map_bytes: int) -> T:
        """Read from the closed store in `path` without its key. Raise FORMAT_TOO_NEW or FORMAT_TOO_OLD."""
        store = cls._open(path, map_bytes=0, max_map_bytes=max_map_bytes)
        try:
            store.read(_fingerprint)
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
            try:
                store._tables = open_tables(environment)
            except lmdb.NotFoundError:
                store._upgrade()
                store._tables = open_tables(environment)
            if store.read(has_trees_of_present_format):
                store.write(upgrade_entries)
        except BaseException as error:
            store.close()
            if isinstance(error, FOREIGN):
                raise translated(error, path) from error
            raise
        return store

    def _upgrade(self) -> None:
        """Upgrade the store of an older format. The map grows where it has no room for both."""
        while True:
            try:
                return upgrade(self._environment)
            except lmdb.MapFullError as error:
                if self._map_bytes >= self._max_map_bytes:
                    raise _full(self._max_map_bytes) from error
                self._grow()

    def close(self) -> None:
        """Close the environment. Idempotent."""
        if not self._closed:
            self._closed = True
            with self._copies.standstill():
                self._environment.close()
            note_closed(self.path)
            # They refer to the store's user, which would stay in memory as part of a cycle.
            self._reset_callbacks()

    def _reset_callbacks(self) -> None:
        self.on_reopened: Callable[[], None] = lambda: None
        """Called when a failed commit made the store open its files again: state in memory may be stale."""
        self.on_behind: Callable[[], None] = lambda: None
        """Called when the file may lack what the journal has: the store must be closed and opened again."""
        self.sources_of: SourcesOf = lambda _: None
        """Returns the sources of the links to a node, from the network in memory."""
        self.before_commit: Callable[[WriteTransaction], None] = lambda _: None
        """Adds to every transaction that writes. It may run again, as the function of the transaction."""

    # --- transactions ------------------------------------------------------------------------------

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on a consistent view of the store."""
        self._assert_open()
        try:
            with self._environment.begin() as txn:
                found = fn(ReadTransaction(txn, self._tables, self._seal, self.sources_of))
        except FOREIGN as error:
            self._recover()
            raise translated(error, self.path) from error
        if self._journal is not None:
            self._journal.confirm()
        return found

    def write(self, fn: Callable[[WriteTransaction], T]) -> T:
        """Run `fn` and make its changes durable, all of them or none.

        `fn` may run again after the map has grown, so it must change nothing but the transaction.
        """
        self._assert_open()
        while True:
            try:
                return self._committed(fn)
            except lmdb.MapFullError as error:
                if self._ahead is not None:
                    done: T = self._committed_ahead(self._ahead)
                    return done
                if self._map_bytes >= self._max_map_bytes:
                    return self._written_alone(fn, error)
                self._grow()
            except FOREIGN as error:
                self._fall_behind_if_ahead(error)
                self._recover()
                raise translated(error, self.path) from error

    def _committed(self, fn: Callable[[WriteTransaction], T]) -> T:
        if self._presence.must_reopen():
            self._give_up()
        with span("commit"), self._environment.begin(write=True) as txn:
            done = self._run(txn, fn)
        if not self._presence.is_there:
            self._give_up()
        self._note_committed()
        return done

    def _run(self, txn: Any, fn: Callable[[WriteTransaction], T]) -> T:
        """Run `fn` in a transaction, and append to the journal what it writes."""
        noted: list[Operation] | None = None if self._journal is None else []
        writing = WriteTransaction(txn, self._tables, self._seal, self.sources_of, noted)
        done = fn(writing)
        self.before_commit(writing)
        writing.finish()
        if self._journal is not None and noted:
            delta = Delta.of(noted)
            journal, entry = self._journal, delta.encoded(self._seal)
            head = self._appended(lambda: journal.append(entry, self._head))
            self._ahead = _Ahead(delta, head, done)
            self._put_head(txn, head)
        return done

    def _appended(self, append: Callable[[], T]) -> T:
        """Append to the journal. After any error the store is behind: the entry may be there."""
        try:
            return append()
        except BaseException:
            self._is_behind = True
            self.on_behind()
            raise

    def _put_head(self, txn: Any, head: ChainHead, start: int | None = None) -> None:
        meta = WriteTransaction(txn, self._tables, self._seal).meta
        meta.set(journal_head=head)
        marks = meta.journal_marks
        if self._journal is not None and self._journal.mark not in marks:
            meta.set(journal_marks=with_marks(marks, [self._journal.mark]))
        if start is not None:
            meta.set(journal_start=start)

    def _note_committed(self) -> None:
        if self._ahead is not None:
            self._head, self._ahead = self._ahead.head, None

    def _committed_ahead(self, ahead: _Ahead[T]) -> T:
        """Commit in a larger map what the journal has and the map had no room for. Its function does not run again."""
        trees = trees_of(self._tables)
        try:
            while True:
                try:
                    if self._map_bytes < self._max_map_bytes:
                        self._grow()
                    with self._environment.begin(write=True) as txn:
                        ahead.delta.apply(txn, trees)
                        self._put_head(txn, ahead.head)
                    break
                except lmdb.MapFullError:
                    if self._map_bytes >= self._max_map_bytes:
                        raise
        except (*FOREIGN, EbbtideError) as error:
            self._fall_behind_if_ahead(error)
        self._note_committed()
        return ahead.done

    @property
    def is_behind(self) -> bool:
        """Whether the store refuses everything, because its file may lack what the journal has.

        An append or a commit in progress does not count: other threads read this at any time.
        """
        return self._is_behind

    def _fall_behind_if_ahead(self, error: Exception | None = None) -> None:
        """Refuse this and every later operation if the file may lack what the journal has."""
        if self._ahead is not None and not self._is_behind:
            self._is_behind = True
            self.on_behind()
        if self._is_behind:
            raise _behind() from error

    def _give_up(self) -> NoReturn:
        """Refuse a write: the open file is not the one at the path. The next call opens the file at the path."""
        self._fall_behind_if_ahead()
        self._is_lost = True
        self.on_reopened()
        raise file_moved()

    def _written_alone(self, fn: Callable[[WriteTransaction], T], error: Exception) -> T:
        """Run `fn` in a map that cannot grow, after the copies that still use freed pages have ended."""
        full = _full(self._max_map_bytes)
        # A copy of the latest commit uses no freed page and may continue.
        if not any(seen < self._environment.info()["last_txnid"] for seen in list(self._seen_by_copies)):
            raise full from error
        try:
            with self._copies.standstill():
                return self._committed(fn)
        except lmdb.MapFullError as again:
            self._fall_behind_if_ahead(again)
            raise full from again
        except FOREIGN as failure:
            self._fall_behind_if_ahead(failure)
            self._recover()
            raise translated(failure, self.path) from failure

    def _assert_open(self) -> None:
        self._fall_behind_if_ahead()
        if self._is_lost and not self._closed:
            self._reopen()
        self._refuse_closed()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Unavailable("The agent was closed. Retry.", reason="AGENT_CLOSING", retry_after_s=1.0)
        if self._is_lost:
            raise Unavailable(
                "The agent's store is being opened again. Retry.",
                reason="STORE_UNAVAILABLE",
                retry_after_s=1.0,
            )

    # --- recovery and growth -----------------------------------------------------------------------

    def _recover(self) -> None:
        """Open the environment again where a failed commit has left it unusable."""
        try:
            self._environment.begin().abort()
        except lmdb.PanicError:
            self._is_lost = True
            # The commit may be on disk although it failed, so state in memory may be stale.
            self.on_reopened()
            # Where this fails too, the next call tries again.
            with contextlib.suppress(EbbtideError):
                self._reopen()
        except FOREIGN:
            return

    def _reopen(self) -> None:
        """Open the environment again. After a failure the next call tries again."""
        with self._copies.standstill():
            self._presence.confirm()
            self._environment.close()
            self._environment = open_environment(
                self.path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes, new=False
            )
            self._presence.note()
            self._map_bytes, self._is_lost = self._environment.info()["map_size"], False
            try:
                self._tables = open_tables(self._environment)
            except (lmdb.Error, OSError) as error:
                self._is_lost = True
                raise translated(error, self.path) from error

    def _grow(self) -> None:
        larger = min(self._map_bytes * 2, self._max_map_bytes)
        with self._copies.standstill():
            try:
                self._environment.set_mapsize(larger)
            except FOREIGN as error:
                # LMDB has unmapped the file before it failed to map it again.
                self._is_lost = True
                with contextlib.suppress(EbbtideError):
                    self._reopen()
                raise translated(error, self.path) from error
            self._map_bytes = larger

    # --- copying -----------------------------------------------------------------------------------

    def copy(self, into: Path, is_given_up: Callable[[], bool], pause: Pause) -> bool:
        """Copy the current state of the store into an empty directory, while the agent remains available.

        `pause` is called between two pieces. Return False once `is_given_up` returns True. The copy starts again when
        the map has to grow; after too many attempts it fails with STORE_UNAVAILABLE. It is not durable.
        """

        def may_go_on() -> bool:
            pause()
            return not (self._copies.must_end or is_given_up())

        for _ in range(MAX_COPY_ATTEMPTS):
            if is_given_up():
                return False
            for left in into.iterdir():
                left.unlink()
            try:
                with self._copies.copying():
                    self._refuse_closed()
                    if self._copy_into(into / DATA_FILE, may_go_on):
                        return True
            except FOREIGN as error:
                raise translated(error, into) from error
        raise Unavailable(
            "The agent's store is nearly full and too busy to be copied. Retry later.",
            reason="STORE_UNAVAILABLE",
            retry_after_s=10.0,
        )

    def digests(self) -> Digests:
        """Return the digests of the content."""
        self._assert_open()
        trees = trees_of(self._tables)
        with self._environment.begin() as txn:
            head = ReadTransaction(txn, self._tables, self._seal, self.sources_of).meta.journal_head
            return Digests(head.number, head.hash, Delta.of_content(txn, trees).digests())

    def compact(self) -> None:
        """Write the store into a new file without any deleted data, and replace the old file.

        LMDB keeps deleted data until it reuses the page, and its own copy includes the unused bytes within pages. So
        entries are written one by one: every byte of the new file belongs to an entry. A rename replaces the old
        file, so after a kill one of the two is there, whole.

        With a journal, the content is appended to it first and all entries before are erased.
        """
        self._assert_open()
        if self._journal is not None:
            self._rewrite_journal(self._journal)
        self._compact_file()

    def _rewrite_journal(self, journal: Journal) -> None:
        """Replace the journal by the content. Until the file is compacted, its notes ask for another attempt."""
        trees = trees_of(self._tables)
        try:
            with self._environment.begin() as txn:
                content = Delta.of_content(txn, trees).encoded()
            # An error here leaves the store usable: nothing was appended.
            entry = journal.placed(content)
            rewritten = self._appended(lambda: self._rewritten(journal, entry))
        except FOREIGN as error:
            self._fall_behind_if_ahead(error)
            raise translated(error, self.path) from error
        self._head = rewritten.head
        journal.erase_before(rewritten.start)

    def _rewritten(self, journal: Journal, entry: bytes) -> Rewritten:
        rewritten = journal.rewrite(entry)
        with self._environment.begin(write=True) as txn:
            self._put_head(txn, rewritten.head, rewritten.start)
        return rewritten

    def _compact_file(self) -> None:
        fresh = self.path / FRESH_FILE
        try:
            fresh.unlink(missing_ok=True)
            self._copy_into(fresh, lambda: True)
            sync_file(fresh)
            self._replace_file(fresh)
        except FOREIGN as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise translated(error, self.path) from error

    def trim(self) -> None:
        """Compact a small file of which more than a sixth is free.

        Each commit writes the pages that it changes to other places, so the file of an agent with few memories has
        more free pages than used ones. A file that an erasure has marked is left to the compaction of the agent, which
        also removes what this one does not know.
        """
        size = (self.path / DATA_FILE).stat().st_size
        if size <= TRIMMED_BYTES:
            used, is_marked = self.read(
                lambda txn: (txn.tables.used_bytes(), any(map(txn.meta.value_of, layout.NOTES_OF_FILE)))
            )
            free = size - used - PAGES_OF_ALL_STORES * self._environment.stat()["psize"]
            if free > size // 6 and not is_marked:
                self._compact_file()

    def _copy_into(self, file: Path, may_go_on: Callable[[], bool]) -> bool:
        """Write every entry into a new file, not durably. Return False once `may_go_on` returns False."""
        info = self._environment.info()
        # Twice the present size, since pages may be filled differently. The file only takes what is used.
        map_bytes = 2 * (info["last_pgno"] + 1) * self._environment.stat()["psize"]
        fresh = fresh_environment(file, map_bytes)
        try:
            return self._copy_entries(fresh, may_go_on)
        finally:
            fresh.close()

    def _copy_entries(self, fresh: Any, may_go_on: Callable[[], bool]) -> bool:
        shared = layout.SHARED_TREE.decode()
        with self._environment.begin() as txn:
            seen = txn.id()
            self._seen_by_copies.append(seen)
            try:
                trees = trees_of(self._tables)
                entries = {name: txn.cursor(db=tree).iternext() for name, tree in trees.items()}
                entries[shared] = _without_notes(entries[shared])
                return write_trees(fresh, layout.VALUE_SIZES, entries, may_go_on)
            finally:
                self._seen_by_copies.remove(seen)

    def _replace_file(self, fresh: Path) -> None:
        with self._copies.standstill():
            self._environment.close()
            # The map starts with the size of the new file.
            self._is_lost, self._map_bytes = True, 0
            try:
                fresh.replace(self.path / DATA_FILE)
                sync_directory(self.path)
            finally:
                self._reopen()


def _without_notes(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Return entries of the shared tree without those that describe the file: the copy is another file."""
    notes = {layout.META.prefix + entry.name for entry in layout.NOTES_OF_FILE}
    return (entry for entry in entries if entry[0] not in notes)


def _full(max_map_bytes: int) -> Exhausted:
    return Exhausted(
        f"The agent's store has reached max_map_bytes = {max_map_bytes}. Nothing was stored.",
        reason="STORE_FULL",
    )


def _behind() -> Unavailable:
    return Unavailable(
        "The agent's file on this node lacks a commit that the log has. The agent is being opened again. Retry.",
        reason="STORE_BEHIND",
        retry_after_s=1.0,
    )


def _fingerprint(txn: ReadTransaction) -> str:
    """Return the fingerprint of the key that encrypts a store. Raise FORMAT_TOO_NEW or FORMAT_TOO_OLD."""
    identity = txn.meta.identity
    refuse_other_format(layout.FORMAT_VERSION if identity is None else identity.format_version)
    return txn.meta.sealed_with
