"""The data directory: one daemon's files, held by one process at a time.

    DATA_DIR/lock                      held (flock) for the life of the process
    DATA_DIR/agents/<directory>/       data.mdb lock.mdb meta.json
    DATA_DIR/work/<directory>          empty marker: this agent may have work in hand
    DATA_DIR/audit/                    what is left of erased agents: see erased_agents.py
    DATA_DIR/transfers/                what is on its way in or out; nothing at a start
    DATA_DIR/keys/<directory>          the wrapped keys of an agent that is sealed: see keys.py

How directories of agents go and are replaced is in turnover.py.

Work markers are in work_markers.py, the lock is in directory_lock.py, what `meta.json` says is in agent_meta.py.

Names: an id of `[a-z0-9][a-z0-9_-]{0,63}` is its own directory name; any other id becomes `~` + lower-case
base32 of the SHA-256 of its UTF-8. Two ids never share a directory, on any file system.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.errors import Corrupted, EbbtideError, Precondition
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts
from ebbtide.store import layout
from ebbtide.store.audit.erased_agents import ErasedAgents
from ebbtide.store.chain import AuditEntry, AuditRecord
from ebbtide.store.directory.agent_meta import AgentMeta, read_meta, write_meta
from ebbtide.store.directory.directory_lock import DirectoryLock
from ebbtide.store.directory.turnover import BY_NOBODY, LAST_WILL, Turnover
from ebbtide.store.directory.work_markers import WorkMarkers
from ebbtide.store.durable import remove_fresh_files, sync_directory
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.opening import Beginning, begin_empty
from ebbtide.store.port import Identity
from ebbtide.store.translation import translated
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import MasterKey, Seal

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
STAGED = "agent"
"""Where, in the directory of a transfer, an agent is made before it takes its place."""

REWRITTEN = "rewritten"
"""Where, in an agent's directory, its store is written anew under another key; nothing once that is done."""


def directory_name(agent_id: AgentId) -> str:
    """The directory of an agent's files."""
    if _PLAIN.fullmatch(agent_id):
        return agent_id
    digest = hashlib.sha256(agent_id.encode()).digest()
    return "~" + base64.b32encode(digest).decode().rstrip("=").lower()


class DataDirectory:
    """The files of one daemon. Methods block; they run in the daemon's thread pool."""

    def __init__(
        self,
        root: Path,
        *,
        initial_map_bytes: int,
        max_map_bytes: int,
        master_key: MasterKey | None = None,
    ) -> None:
        self.root = root
        self.agents = root / "agents"
        self.work = root / "work"
        self.transfers = root / "transfers"
        self._lock = DirectoryLock(root)
        self.keys = DataKeys(root / "keys", master_key, self._lock.confirm)
        self._initial_map_bytes = initial_map_bytes
        self.max_map_bytes = max_map_bytes
        self.erased = ErasedAgents(root, self._lock.confirm)
        self._turnover = Turnover(self.agents, self.keys, self.erased, max_map_bytes)
        self._markers = WorkMarkers(self.work)
        self._recovering = threading.Lock()  # LMDB opens a path once per process

    # --- the lock ----------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Hold the directory for this process. DATA_DIRECTORY_LOCKED, naming the holder, when another does."""
        try:
            for path in (self.root, self.agents, self.work, self.transfers):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync_directory(self.root)
            self._lock.acquire()
            self._sweep()
        except OSError as error:
            self.release()
            raise translated(error, self.root) from error

    def release(self) -> None:
        """Let go of the directory. Idempotent."""
        self._lock.release()

    def _sweep(self) -> None:
        """Finish what the process before left half done, drop what was on its way; no agent stops another."""
        self.keys.remove_leftovers()
        remove_fresh_files(self.erased.path)
        self._turnover.finish_all()
        self._remove_unborn()
        cut_off = list(os.scandir(self.transfers))
        if cut_off:
            metas = [read_meta(Path(entry.path) / STAGED) for entry in cut_off]
            self.keys.drop_staged({meta.key_fingerprint for meta in metas if meta is not None} - {""})
        for entry in cut_off:
            self.end_transfer(Path(entry.path))
            if os.path.lexists(entry.path):
                get_log("store").error("left for the next start", directory=entry.name)

    def _remove_unborn(self) -> None:
        """Remove what is left of agents whose creation was cut off before there was anything to keep."""
        for name in self._markers.names():
            path = self.agents / name
            try:
                if path.is_dir() and not (path / "meta.json").exists() and self._is_unborn(path):
                    self.keys.destroy(name)
                    shutil.rmtree(path)
            except (OSError, EbbtideError) as error:
                get_log("store").error("left for the next start", directory=name, exc_info=error)

    @staticmethod
    def _is_unborn(path: Path) -> bool:
        return not (path / "data.mdb").exists() or LmdbStore.is_blank(path)

    # --- agents ------------------------------------------------------------------------------------

    def has_files(self, agent_id: AgentId) -> bool:
        """Whether there is a directory for the agent. Opens nothing, so it may be asked at any time."""
        return (self.agents / directory_name(agent_id) / "data.mdb").exists()

    def has_meta(self, agent_id: AgentId) -> bool:
        """Whether there is an agent, as far as can be told without opening anything."""
        self._lock.confirm()
        return self.meta(directory_name(agent_id)) is not None

    def exists(self, agent_id: AgentId) -> bool:
        """Whether the agent was ever created and not erased since. A lost `meta.json` is made anew.

        May open the store, and a store is opened once at a time: only for who opens or erases the agent.
        """
        name = directory_name(agent_id)
        self._lock.confirm()
        self._turnover.bring_back(name)
        if self.meta(name) is not None:
            return True
        if not (self.agents / name / "data.mdb").exists():
            return False
        return self._recovered(name) is not None

    def _recovered(self, directory: str) -> AgentId | None:
        """Write a lost `meta.json` again; return whose store it is. AGENT_ID_MISMATCH where it is another agent's."""
        with self._recovering:
            found = self.meta(directory)
            return AgentId(found.agent_id) if found else self._recover(directory)

    def _recover(self, directory: str) -> AgentId | None:
        path = self.agents / directory
        if LmdbStore.is_blank(path):
            # A creation that was cut off before anything could be accepted.
            return None
        identity, counts, sealed_with = LmdbStore.look(
            path,
            lambda txn: (txn.identity(), txn.counts(), txn.sealed_with()),
            max_map_bytes=self.max_map_bytes,
        )
        if identity is None:
            return None
        if directory_name(AgentId(identity.agent_id)) != directory:
            # A copy made by hand: nothing is written, in neither of the two.
            raise Corrupted("the directory belongs to another agent", reason="AGENT_ID_MISMATCH")
        self.write_meta(identity, counts, sealed_with)
        return AgentId(identity.agent_id)

    def open_store(self, agent_id: AgentId) -> LmdbStore:
        """Open an existing agent's store, after comparing whose it is.

        One that is sealed needs its key: where that cannot be had, no file of the agent was touched.
        """
        path = self.agents / directory_name(agent_id)
        self._lock.confirm()
        meta = self.meta(path.name)
        if meta is not None and meta.format_version > layout.FORMAT_VERSION:
            raise Precondition(
                f"the data has format {meta.format_version}, this Ebbtide reads up to "
                f"{layout.FORMAT_VERSION}; use a newer Ebbtide",
                reason="FORMAT_TOO_NEW",
            )
        if meta is not None and meta.key_fingerprint:
            self.keys.seal_of(path.name, meta.key_fingerprint)
        self._remove_leftovers(path)
        store = LmdbStore.open(
            path,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal_of=partial(self.keys.seal_of, path.name),
            confirm=self._lock.confirm,
        )
        try:
            identity = store.read(lambda txn: txn.identity())
            if identity is None or identity.agent_id != agent_id:
                raise Corrupted("the directory belongs to another agent", reason="AGENT_ID_MISMATCH")
            self._settle_rewriting(store, identity, meta)
        except BaseException:
            store.close()
            raise
        return store

    def _remove_leftovers(self, path: Path) -> None:
        """Remove from an agent's directory what work that was cut off left there; the agent does not need it."""
        with contextlib.suppress(OSError):
            remove_fresh_files(path)
            (path / LAST_WILL).unlink(missing_ok=True)
            if (path / REWRITTEN).exists():
                shutil.rmtree(path / REWRITTEN)

    def _settle_rewriting(self, store: LmdbStore, identity: Identity, meta: AgentMeta | None) -> None:
        """Bring to its end a rewriting that was cut off: the store is the old one or the new one, whole."""
        if meta is not None and meta.key_fingerprint != store.sealed_with:
            self.write_meta(identity, meta.counts, store.sealed_with)
        self._turnover.drop_other_keys(store.path.name, store.sealed_with)

    def create_store(self, identity: Identity, begin: Beginning = begin_empty) -> LmdbStore:
        """Create a new agent's store, with what `begin` writes, in one commit; then its `meta.json`."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        try:
            # A start removes what is left where this is cut off.
            with self.marking(AgentId(identity.agent_id)):
                # Its key goes with it, and must not be the new agent's.
                self._turnover.finish_erasure(path.name)
                if path.exists():
                    shutil.rmtree(path)
                path.mkdir(mode=0o700)
                seal = self.keys.begin(path.name) if self.keys.seals_new_agents else None
                beyond = self.erased.last_event()
                store = self.create_beside(path, identity, seal, events_beyond=beyond, begin=begin)
                self.write_meta(identity, AgentCounts(), store.sealed_with)
                sync_directory(self.agents)
        except OSError as error:
            raise translated(error, path) from error
        return store

    def create_beside(
        self,
        path: Path,
        identity: Identity,
        seal: Seal | None,
        *,
        events_beyond: int = 0,
        begin: Beginning = begin_empty,
    ) -> LmdbStore:
        """Make a store in a directory of its own, sealed if there is a seal, with numbers of events beyond one."""
        return LmdbStore.create(
            path,
            identity,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal=seal,
            events_beyond=events_beyond,
            begin=begin,
            confirm=self._lock.confirm,
        )

    def write_meta(self, identity: Identity, counts: AgentCounts, sealed_with: str | None = None) -> None:
        """Replace an agent's `meta.json`, atomically and durably. Without `sealed_with` its key is as it was."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        if sealed_with is None:
            before = self.meta(path.name)
            sealed_with = "" if before is None else before.key_fingerprint
        write_meta(path, identity, counts, sealed_with)

    def meta(self, directory: str) -> AgentMeta | None:
        """What is told of the agent in `directory`; None when nothing readable is."""
        return read_meta(self.agents / directory)

    def directories(self, after: str = "") -> Iterator[str]:
        """Directory names of agents in order, from the one following `after`."""
        self._lock.confirm()
        names = (e.name for e in os.scandir(self.agents) if not e.name.startswith("."))
        return iter(sorted(name for name in names if name > after))

    def is_being_erased(self, agent_id: AgentId) -> bool:
        """Whether the agent was erased and something of it is left: `erase` goes on with that."""
        return self._turnover.is_being_erased(directory_name(agent_id))

    def erase(self, agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
        """Remove an agent's files; the record of it. They do not come back, also after a crash."""
        self._lock.confirm()
        record = self._turnover.erase(directory_name(agent_id), agent_id, entry)
        self.unmark(agent_id)
        return record

    # --- on the way in and out ---------------------------------------------------------------------

    def make_transfer(self) -> Path:
        """An empty directory for what comes in or goes out; whoever made it ends it, at the latest a start."""
        self._lock.confirm()
        try:
            return Path(tempfile.mkdtemp(dir=self.transfers))
        except OSError as error:
            raise translated(error, self.transfers) from error

    def end_transfer(self, folder: Path) -> None:
        """Remove a directory of `make_transfer`, and the keys of stores made in it that took nobody's place.

        Where a key cannot be removed the directory stays: it tells the next start which key that is.
        """
        try:
            self.keys.give_up(folder)
        except EbbtideError as error:
            get_log("store").warning("left for the next start", transfer=folder.name, exc_info=error)
            return
        shutil.rmtree(folder, ignore_errors=True)

    def create_copy(self, path: Path, identity: Identity, owner: AgentId) -> LmdbStore:
        """Make a store in a directory that has no place yet, sealed as new agents are, for whom it is to be.

        The key comes beside those that its owner has: these go when the owner's store is opened in its place.
        """
        seal = self.keys.stage(directory_name(owner), path) if self.keys.seals_new_agents else None
        return self.create_beside(path, identity, seal)

    def open_copy(
        self, path: Path, owner: AgentId, before_opening: Callable[[], None] = lambda: None
    ) -> LmdbStore:
        """Open a store in a directory that has no place yet, with the keys of whose it is.

        `before_opening` is called where it is sealed, before a key is looked for; it may refuse.
        """

        def seal_of(fingerprint: str) -> Seal:
            before_opening()
            return self.keys.seal_of(directory_name(owner), fingerprint)

        return LmdbStore.open(
            path,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal_of=seal_of,
        )

    def install(self, agent_id: AgentId, staged: Path, entry: AuditEntry = BY_NOBODY) -> None:
        """Put the agent made in `staged` into its place, and whatever is there out of it; for who has closed it.

        `entry` says who does it, and when. Cut off at any moment, the old agent or the new one is there, whole, once
        the directory was acquired again.
        """
        # It may come with batches that wait; a marker too many is harmless.
        self.mark(agent_id)
        told = read_meta(staged)
        fingerprint = "" if told is None else told.key_fingerprint
        self._turnover.install(directory_name(agent_id), staged, fingerprint, agent_id, entry)

    # --- work markers ------------------------------------------------------------------------------

    def mark(self, agent_id: AgentId) -> None:
        """Note durably that the agent may have work in hand."""
        self._lock.confirm()
        self._markers.put(directory_name(agent_id))

    def unmark(self, agent_id: AgentId) -> None:
        """Note that the agent is idle."""
        self._markers.remove(directory_name(agent_id))

    @contextlib.contextmanager
    def marking(self, agent_id: AgentId) -> Iterator[None]:
        """Mark the agent for a block: if the block is cut off, a start opens the agent, which removes what is left."""
        was_marked = self._markers.has(directory_name(agent_id))
        self.mark(agent_id)
        yield
        if not was_marked:
            self.unmark(agent_id)

    def marked(self) -> list[AgentId]:
        """The agents that may have work in hand. Only markers of agents that are gone are removed."""
        found = []
        for name in self._markers.names():
            if not (self.agents / name / "data.mdb").exists():
                if not self._turnover.is_put_aside(name):
                    self._markers.remove(name)
                continue
            meta = self.meta(name)
            if meta is not None:
                found.append(AgentId(meta.agent_id))
                continue
            with contextlib.suppress(EbbtideError):
                owner = self._recovered(name)
                if owner is not None:
                    found.append(owner)
        return found

    def is_writable(self) -> bool:
        """Whether agents can be created and written: not on a disk that was remounted for reading only.

        STORE_UNAVAILABLE where the directory is not there any more.
        """
        self._lock.confirm()
        is_read_only = os.statvfs(self.root).f_flag & os.ST_RDONLY
        return not is_read_only and all(
            os.access(path, os.W_OK | os.X_OK) for path in (self.root, self.agents, self.work)
        )

    def free_bytes(self) -> int:
        """Room left on the disk under the data directory."""
        return shutil.disk_usage(self.root).free
