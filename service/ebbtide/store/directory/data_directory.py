"""The data directory: the files of one daemon, locked by one process at a time.

    DATA_DIR/lock                      locked (flock) for the life of the process
    DATA_DIR/agents/<directory>/       data.mdb lock.mdb meta.json
    DATA_DIR/work/<directory>          an empty marker: this agent may have work to do
    DATA_DIR/audit/                    the log of erased agents: see erased_agents.py
    DATA_DIR/transfers/                backups and exports in progress; empty at a start
    DATA_DIR/keys/<directory>          the wrapped keys of an encrypted agent: see keys.py

An id that matches `[a-z0-9][a-z0-9_-]{0,63}` is its own directory name. Any other id becomes `~` and the lower-case
base32 of the SHA-256 of its UTF-8. Two ids never share a directory, on any file system.

A start reads one directory of work markers and opens only these agents, however many there are. A stale marker is
harmless; a missing one is not. So a marker is on disk before the work is.
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

from ebbtide.errors import Corrupted, EbbtideError, Precondition, agent_moving
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts, Identity
from ebbtide.shard import WHOLE, Shard
from ebbtide.store.audit.erased_agents import ErasedAgents
from ebbtide.store.chain import AuditEntry, AuditRecord
from ebbtide.store.directory.agent_meta import AgentMeta, read_meta, write_meta
from ebbtide.store.directory.agent_replacement import PENDING_DELETION, UNKNOWN_CALLER, AgentReplacement
from ebbtide.store.directory.directory_lock import DirectoryLock
from ebbtide.store.durable import remove_fresh_files, replace_file, sync_directory
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.lmdb.environment import DATA_FILE, refuse_other_format
from ebbtide.store.lmdb.lmdb_store import Beginning, LmdbStore, begin_empty
from ebbtide.store.lmdb.replica import Replica
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction
from ebbtide.store.process_lock import ProcessLock
from ebbtide.store.translation import translated
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import MasterKey, Seal
    from ebbtide.store.journal import Journal, Position
    from ebbtide.store.replication import Log, Replication

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
STAGED = "agent"
"""The directory of a staged agent, in that of its transfer."""

CLUSTER = "cluster"
"""The file with the name of the cluster to which the directory of a node belongs."""

REWRITTEN = "rewritten"
"""The directory of a store that is being rewritten under another key, in that of its agent."""


def directory_name(agent_id: AgentId) -> str:
    """Return the name of an agent's directory."""
    if _PLAIN.fullmatch(agent_id):
        return agent_id
    digest = hashlib.sha256(agent_id.encode()).digest()
    return "~" + base64.b32encode(digest).decode().rstrip("=").lower()


def agent_in(directory: str) -> AgentId | None:
    """Return the id of the agent in a directory; None if the name does not reveal it."""
    return None if directory.startswith("~") else AgentId(directory)


class DataDirectory:
    """The files of one daemon. Methods block; call them on a worker thread."""

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
        self._replacement = AgentReplacement(self.agents, self.keys, self.erased, max_map_bytes)
        self._recovering = threading.Lock()  # LMDB opens a path once per process
        self.shard = WHOLE
        """The agents that this process opens."""
        self.replication: Replication | None = None
        """The log of the cluster, if this node belongs to one."""
        self.creating = ProcessLock(self.agents)
        """Locked while a quota of agents is checked and a new agent is created."""

    # --- the lock ----------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Lock the directory for this process. Raise DATA_DIRECTORY_LOCKED, naming the process that has the lock."""
        try:
            for path in (self.root, self.agents, self.work, self.transfers):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync_directory(self.root)
            self._lock.acquire()
            self._clean_up()
        except OSError as error:
            self.release()
            raise translated(error, self.root) from error

    # --- its cluster -------------------------------------------------------------------------------

    @property
    def cluster(self) -> str:
        """The name of the cluster whose logs complete the files; empty without one."""
        try:
            return (self.root / CLUSTER).read_text()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise translated(error, self.root) from error

    def refuse_other_cluster(self, name: str) -> None:
        """Raise CLUSTER_UNUSABLE for the files of another cluster; without a name, for those of any.

        A commit that is not in the log would be lost, and the file would differ from its log without notice.
        """
        belongs_to = self.cluster
        if belongs_to and belongs_to != name:
            raise Precondition(
                f"The files in {self.root} are copies of the logs of the cluster {belongs_to}. Only its nodes may use "
                "them. Elsewhere, import or restore the agents.",
                reason="CLUSTER_UNUSABLE",
            )

    def join_cluster(self, name: str) -> None:
        """Note, for each later start, that the files are copies of the logs of a cluster."""
        self.refuse_other_cluster(name)
        if not self.cluster:
            try:
                replace_file(self.root / CLUSTER, name.encode())
            except OSError as error:
                raise translated(error, self.root) from error

    @property
    def life(self) -> str:
        """A random id of the process that has locked the directory."""
        return self._lock.life

    @property
    def previous_life(self) -> str:
        """That of the process before it, which has ended; empty if there was none."""
        return self._lock.previous_life

    def release(self) -> None:
        """Unlock the directory. Idempotent."""
        self._lock.release()

    def share(self, shard: Shard, *, cleans_up: bool) -> None:
        """Open only the agents of a shard, in a worker that has inherited the lock.

        `cleans_up` finishes what an earlier worker with this shard was interrupted in.
        """
        self.shard = shard
        self._lock.is_shared = True
        if cleans_up:
            self._clean_up()

    def owns(self, agent_id: AgentId) -> bool:
        """Return whether this process may open the agent: LMDB environments have one owner."""
        return self.owns_directory(directory_name(agent_id))

    def owns_directory(self, name: str) -> bool:
        """Return whether this process may open the agent in a directory."""
        return self.shard.owns(name) and (self.replication is None or self.replication.owns(name))

    def _clean_up(self) -> None:
        """Finish what the previous process was interrupted in, and remove its transfers. One error stops no other."""
        if self.shard is WHOLE:
            self.keys.remove_leftovers()
            remove_fresh_files(self.erased.path)
        self._replacement.finish_all(self.shard.owns)
        self._remove_incomplete_agents()
        prefix = self._transfer_prefix
        transfers = [entry for entry in os.scandir(self.transfers) if entry.name.startswith(prefix)]
        if transfers:
            metas = [read_meta(Path(entry.path) / STAGED) for entry in transfers]
            unplaced = {meta.key_fingerprint for meta in metas if meta is not None} - {""}
            self.keys.drop_staged(unplaced, self.shard.owns)
        for entry in transfers:
            self.end_transfer(Path(entry.path))
            if os.path.lexists(entry.path):
                get_log("store").error("left for the next start", directory=entry.name)

    def _remove_incomplete_agents(self) -> None:
        """Remove the files of agents whose creation was interrupted before their first commit."""
        for name in self._marked_directories():
            path = self.agents / name
            try:
                if path.is_dir() and not (path / "meta.json").exists() and self._is_incomplete(path):
                    self.keys.destroy(name)
                    shutil.rmtree(path)
            except (OSError, EbbtideError) as error:
                get_log("store").error("left for the next start", directory=name, exc_info=error)

    @staticmethod
    def _is_incomplete(path: Path) -> bool:
        return not (path / DATA_FILE).exists() or LmdbStore.is_blank(path)

    # --- agents ------------------------------------------------------------------------------------

    def has_files(self, agent_id: AgentId) -> bool:
        """Return whether the agent has a store file. Opens nothing, so it is safe at any time."""
        return (self.agents / directory_name(agent_id) / DATA_FILE).exists()

    def has_meta(self, agent_id: AgentId) -> bool:
        """Return whether the agent has a `meta.json`. Opens nothing."""
        self._lock.confirm()
        return self.meta(directory_name(agent_id)) is not None

    def exists(self, agent_id: AgentId, *, shortens: bool = False) -> bool:
        """Return whether the agent exists. Recover a lost `meta.json`.

        In a cluster, take the agent: complete its file from the log, and shorten a long log if asked.
        May open the store, so only the caller that opens or deletes the agent may call it.
        """
        name = directory_name(agent_id)
        self._lock.confirm()
        self._replacement.bring_back(name)
        if self.replication is not None:
            if not self.replication.take(agent_id, self.agents / name, shortens=shortens):
                return False
            if self._note_taken(name, self.replication):
                self.mark(agent_id)
        if self.meta(name) is not None:
            return True
        if not (self.agents / name / DATA_FILE).exists():
            return False
        return self._recovered(name) is not None

    def copy(self, agent_id: AgentId) -> None:
        """Complete the closed file of an agent of another node from the log."""
        name = directory_name(agent_id)
        self._lock.confirm()
        if self.replication is not None and self.replication.copy(agent_id, self.agents / name):
            self._note_taken(name, self.replication)

    def _note_taken(self, directory: str, replication: Replication) -> bool:
        """Write the keys and `meta.json` after the log has completed a file. Return whether the agent has work."""
        keys = replication.data_keys(directory)
        if keys is not None and keys != self.keys.content(directory):
            self.keys.put(directory, keys)
        with self._recovering:
            agent_id = self._recover(directory)
        meta = self.meta(directory)
        if agent_id is None or meta is None:
            return False
        return bool(meta.counts.pending_batches or meta.counts.owed_passes)

    def position(self, agent_id: AgentId) -> Position:
        """Return where the file of an agent of another node of a cluster ends. Raise AGENT_MOVING if it may be open."""
        if self.replication is None:
            raise agent_moving()
        return self.replication.position(self.agents / directory_name(agent_id))

    def share_keys(self, agent_id: AgentId) -> None:
        """Give the other nodes of a cluster the wrapped keys of an agent, as they are here."""
        if self.replication is not None:
            directory = directory_name(agent_id)
            content = self.keys.content(directory)
            if content != self.replication.data_keys(directory):
                self.replication.put_data_keys(agent_id, content)

    def append_content(self, agent_id: AgentId, path: Path) -> int:
        """In a cluster, replace the log of an agent by the content of the closed store at `path`.

        Return the number of the first entry that has it. The entries before are not erased yet.
        """
        log = self._log_of(agent_id)
        if log is None:
            return 0
        copy = Replica(path, map_bytes=self._initial_map_bytes, max_map_bytes=self.max_map_bytes)
        rewritten = log.rewrite(log.placed(copy.content()))
        copy.apply([], rewritten.head, rewritten.start, [log.mark])
        return rewritten.start

    def _log_of(self, agent_id: AgentId) -> Log | None:
        return None if self.replication is None else self.replication.log(agent_id)

    def _recovered(self, directory: str) -> AgentId | None:
        """Write a lost `meta.json` again and return the agent's id. Raise AGENT_ID_MISMATCH for another agent's."""
        with self._recovering:
            found = self.meta(directory)
            return AgentId(found.agent_id) if found else self._recover(directory)

    def _recover(self, directory: str) -> AgentId | None:
        path = self.agents / directory
        if LmdbStore.is_blank(path):
            # The creation was interrupted before its first commit.
            return None
        identity, counts, sealed_with = LmdbStore.peek(
            path,
            lambda txn: (txn.meta.identity, txn.counts(), txn.meta.sealed_with),
            max_map_bytes=self.max_map_bytes,
        )
        if identity is None:
            return None
        if directory_name(AgentId(identity.agent_id)) != directory:
            # Copied by hand: neither of the two directories is changed.
            raise _another_agent()
        self.write_meta(identity, counts, sealed_with)
        return AgentId(identity.agent_id)

    def open_store(self, agent_id: AgentId) -> LmdbStore:
        """Open an existing agent's store, after checking its identity.

        An encrypted store needs its key. Where the key is missing, no file of the agent is touched.
        """
        path = self.agents / directory_name(agent_id)
        self._lock.confirm()
        meta = self.meta(path.name)
        if meta is not None:
            refuse_other_format(meta.format_version)
            if meta.key_fingerprint:
                self.keys.seal_of(path.name, meta.key_fingerprint)
        self._remove_leftovers(path)
        store = LmdbStore.open(
            path,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal_of=partial(self.keys.seal_of, path.name),
            confirm=self._lock.confirm,
            journal=self._log_of(agent_id),
        )
        try:
            identity = store.read(lambda txn: txn.meta.identity)
            if identity is None or identity.agent_id != agent_id:
                raise _another_agent()
            is_current = meta is None or meta.format_version == identity.format_version
            if meta is not None and (meta.key_fingerprint != store.sealed_with or not is_current):
                # The store was upgraded, or a rewrite was interrupted: it is the old one or the new one, whole.
                self.write_meta(identity, meta.counts, store.sealed_with)
            known = self.keys.content(path.name)
            self._replacement.drop_other_keys(path.name, store.sealed_with)
            if self.keys.content(path.name) != known:
                self.share_keys(agent_id)
        except BaseException:
            store.close()
            raise
        return store

    def _remove_leftovers(self, path: Path) -> None:
        """Remove what interrupted work has left in an agent's directory; the agent does not need it."""
        with contextlib.suppress(OSError):
            remove_fresh_files(path)
            (path / PENDING_DELETION).unlink(missing_ok=True)
            if (path / REWRITTEN).exists():
                shutil.rmtree(path / REWRITTEN)

    def create_store(self, identity: Identity, begin: Beginning = begin_empty) -> LmdbStore:
        """Create a new agent's store with the content that `begin` writes, in one commit; then its `meta.json`."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        try:
            # After an interruption the marker lets a start remove the files.
            with self.marking(AgentId(identity.agent_id)):
                # A pending deletion would destroy the new agent's key.
                self._replacement.finish_deletion(path.name)
                if path.exists():
                    shutil.rmtree(path)
                path.mkdir(mode=0o700)
                seal = self.keys.begin(path.name) if self.keys.seals_new_agents else None
                beyond = self.erased.last_event()

                def begin_beyond(txn: WriteTransaction) -> None:
                    if beyond:
                        txn.events.restart_beyond(beyond)
                    begin(txn)

                self.share_keys(AgentId(identity.agent_id))
                log = self._log_of(AgentId(identity.agent_id))
                store = self.create_unplaced(path, identity, seal, begin_beyond, log)
                self.write_meta(identity, AgentCounts(), store.sealed_with)
                sync_directory(self.agents)
        except OSError as error:
            raise translated(error, path) from error
        return store

    def create_unplaced(
        self,
        path: Path,
        identity: Identity,
        seal: Seal | None,
        begin: Beginning = begin_empty,
        journal: Journal | None = None,
    ) -> LmdbStore:
        """Create a store in a given directory, encrypted if there is a seal."""
        return LmdbStore.create(
            path,
            identity,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal=seal,
            begin=begin,
            confirm=self._lock.confirm,
            journal=journal,
        )

    def write_meta(self, identity: Identity, counts: AgentCounts, sealed_with: str | None = None) -> None:
        """Replace an agent's `meta.json`, atomically and durably. Without `sealed_with` its key stays the same."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        if sealed_with is None:
            before = self.meta(path.name)
            sealed_with = "" if before is None else before.key_fingerprint
        write_meta(path, identity, counts, sealed_with)

    def meta(self, directory: str) -> AgentMeta | None:
        """Return the `meta.json` of an agent's directory, or None if it is missing or cannot be read."""
        return read_meta(self.agents / directory)

    def has_log(self, directory: str) -> bool:
        """Return whether a closed agent belongs to a cluster: its file is a copy of its log."""
        return self._peek(directory, lambda txn: txn.meta.journal_head.number > 0)

    def is_encrypted(self, directory: str) -> bool:
        """Return whether the file of a closed agent is encrypted. `meta.json` may be outdated."""
        return self._peek(directory, lambda txn: bool(txn.meta.sealed_with))

    def _peek(self, directory: str, fn: Callable[[ReadTransaction], bool]) -> bool:
        path = self.agents / directory
        if not (path / DATA_FILE).exists() or LmdbStore.is_blank(path):
            return False
        return LmdbStore.peek(path, fn, max_map_bytes=self.max_map_bytes)

    def master_of(self, directory: str) -> str:
        """Return the fingerprint of the master key of a closed agent; empty for an unencrypted one."""
        return self.keys.master_of(directory) if self.is_encrypted(directory) else ""

    def directories(self, after: str = "") -> Iterator[str]:
        """Yield the names of agents' directories in order, after the name `after`."""
        self._lock.confirm()
        names = (e.name for e in os.scandir(self.agents) if not e.name.startswith("."))
        return iter(sorted(name for name in names if name > after))

    def is_being_erased(self, agent_id: AgentId) -> bool:
        """Return whether a deletion of the agent has begun and is not finished: `erase` continues it."""
        return self._replacement.is_being_erased(directory_name(agent_id))

    def erase(self, agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
        """Delete an agent's files for good, also across a crash. Return the record in the log of erased agents."""
        self._lock.confirm()
        log = self._log_of(agent_id)
        if log is not None:
            # First: otherwise the log would bring the agent back after an interruption.
            log.append_gone()
        record = self._replacement.erase(directory_name(agent_id), agent_id, entry)
        self.share_keys(agent_id)
        self.unmark(agent_id)
        return record

    def discard_copies(self, most_bytes: int) -> int:
        """Delete obsolete copies of agents that other nodes of a cluster own. Return how many were deleted.

        Then delete those that were written longest ago, until the others have at most `most_bytes`; 0: any number.
        """
        replication = self.replication
        if replication is None:
            return 0
        discarded, kept = 0, list[tuple[float, int, str]]()
        for name in list(self.directories()):
            if self.owns_directory(name):
                continue
            if replication.discard(name, self.agents / name, only_obsolete=True):
                self._forget_copy(name)
                discarded += 1
                continue
            with contextlib.suppress(FileNotFoundError):
                state = (self.agents / name / DATA_FILE).stat()
                kept.append((state.st_mtime, state.st_size, name))
        excess = sum(size for _, size, _ in kept) - most_bytes if most_bytes else 0
        for _, size, name in sorted(kept):
            if excess <= 0:
                break
            if replication.discard(name, self.agents / name, only_obsolete=False):
                self._forget_copy(name)
                discarded += 1
                excess -= size
        return discarded

    def _forget_copy(self, directory: str) -> None:
        """Remove what belongs to a copy that was deleted. The agent may get another key, so this one must not stay."""
        if not self.owns_directory(directory):
            self.keys.destroy(directory)
            self._remove_marker(directory)

    # --- transfers ---------------------------------------------------------------------------------

    @property
    def _transfer_prefix(self) -> str:
        """The beginning of the names of this process's transfers."""
        return "" if self.shard is WHOLE else f"worker{self.shard.index}-"

    def make_transfer(self) -> Path:
        """Create an empty directory for a transfer. The caller ends it; a start removes the rest."""
        self._lock.confirm()
        try:
            return Path(tempfile.mkdtemp(dir=self.transfers, prefix=self._transfer_prefix))
        except OSError as error:
            raise translated(error, self.transfers) from error

    def end_transfer(self, folder: Path) -> None:
        """Remove the directory of a transfer, and the keys of its stores that were not installed.

        Where a key cannot be removed the directory stays: from it the next start finds the key.
        """
        try:
            self.keys.drop_staged_in(folder)
        except EbbtideError as error:
            get_log("store").warning("left for the next start", transfer=folder.name, exc_info=error)
            return
        shutil.rmtree(folder, ignore_errors=True)

    def create_staged(self, path: Path, identity: Identity, owner: AgentId) -> LmdbStore:
        """Create a staged store, encrypted as new agents are, for its future owner.

        Its key is added to those of the owner, which are removed when the store is opened in place.
        """
        seal = self.keys.stage(directory_name(owner), path) if self.keys.seals_new_agents else None
        return self.create_unplaced(path, identity, seal)

    def open_unplaced(
        self, path: Path, owner: AgentId, before_opening: Callable[[], None] = lambda: None
    ) -> LmdbStore:
        """Open a store outside `agents/` with the keys of its owner.

        `before_opening` is called before the key of an encrypted store is read; it may raise.
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

    def install(self, agent_id: AgentId, staged: Path, entry: AuditEntry = UNKNOWN_CALLER) -> None:
        """Move the staged agent into place, and replace an agent that is there. Both must be closed.

        `entry` has the caller and the time. After an interruption at any moment the next start has the old agent or
        the new one, whole.
        """
        # It may have waiting batches. An unneeded marker is harmless.
        self.mark(agent_id)
        meta = read_meta(staged)
        fingerprint = "" if meta is None else meta.key_fingerprint
        log = self._log_of(agent_id)

        def append_content() -> None:
            if log is not None:
                self.share_keys(agent_id)
                log.erase_before(self.append_content(agent_id, staged))

        self._replacement.install(
            directory_name(agent_id), staged, fingerprint, agent_id, entry, append_content
        )
        self.share_keys(agent_id)

    # --- work markers ------------------------------------------------------------------------------

    def mark(self, agent_id: AgentId) -> None:
        """Note durably that the agent may have work to do."""
        self._lock.confirm()
        try:
            (self.work / directory_name(agent_id)).touch(mode=0o600)
            sync_directory(self.work)
        except OSError as error:
            raise translated(error, self.work) from error

    def is_marked(self, agent_id: AgentId) -> bool:
        """Return whether the agent may have work to do."""
        return (self.work / directory_name(agent_id)).exists()

    def unmark(self, agent_id: AgentId) -> None:
        """Note that the agent is idle. Not synced: a stale marker is harmless."""
        self._remove_marker(directory_name(agent_id))

    @contextlib.contextmanager
    def marking(self, agent_id: AgentId) -> Iterator[None]:
        """Mark the agent during a block: after an interruption a start opens it, which removes what is left."""
        was_marked = (self.work / directory_name(agent_id)).exists()
        self.mark(agent_id)
        yield
        if not was_marked:
            self.unmark(agent_id)

    def marked(self) -> list[AgentId]:
        """Return the agents that may have work to do, and remove the markers of missing agents."""
        found = []
        for name in self._marked_directories():
            if not (self.agents / name / DATA_FILE).exists():
                if not self._replacement.is_set_aside(name):
                    self._remove_marker(name)
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

    def _marked_directories(self) -> list[str]:
        return sorted(filter(self.shard.owns, os.listdir(self.work)))

    def _remove_marker(self, directory: str) -> None:
        with contextlib.suppress(OSError):
            (self.work / directory).unlink(missing_ok=True)

    # --- the disk ----------------------------------------------------------------------------------

    def is_writable(self) -> bool:
        """Return whether the disk is writable. Raise STORE_UNAVAILABLE where the directory is missing."""
        self._lock.confirm()
        is_read_only = os.statvfs(self.root).f_flag & os.ST_RDONLY
        return not is_read_only and all(
            os.access(path, os.W_OK | os.X_OK) for path in (self.root, self.agents, self.work)
        )

    def free_bytes(self) -> int:
        """Return the free space of the disk."""
        return shutil.disk_usage(self.root).free


def _another_agent() -> Corrupted:
    return Corrupted("The directory belongs to another agent.", reason="AGENT_ID_MISMATCH")
