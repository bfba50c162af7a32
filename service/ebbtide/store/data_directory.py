"""The data directory: one daemon's files, held by one process at a time.

    DATA_DIR/lock                      held (flock) for the life of the process
    DATA_DIR/agents/<directory>/       data.mdb lock.mdb meta.json
    DATA_DIR/work/<directory>          empty marker: this agent may have work in hand
    DATA_DIR/audit/                    what is left of erased agents: see erased_agents.py
    DATA_DIR/transfers/                what is on its way in or out; nothing at a start
    DATA_DIR/keys/<directory>          the wrapped keys of an agent that is sealed: see keys.py

A marker is made, and its directory synced, before an agent goes from idle to busy; so a start looks at one
directory and opens only agents with work, however many there are. A stale marker is harmless, a missing one is
not. `meta.json` tells about an agent without opening it; what it says of counts is as of the last close.

Names: an id of `[a-z0-9][a-z0-9_-]{0,63}` is its own directory name; any other id becomes `~` + lower-case
base32 of the SHA-256 of its UTF-8. Two ids never share a directory, on any file system.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
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

import msgspec

from ebbtide.errors import Corrupted, EbbtideError, Precondition
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry, AuditRecord
from ebbtide.store.codec import make_known
from ebbtide.store.durable import replace_file, sync_directory
from ebbtide.store.erased_agents import ErasedAgents, is_told, last_words
from ebbtide.store.keys import DataKeys
from ebbtide.store.lmdb_store import LmdbStore
from ebbtide.store.port import Identity
from ebbtide.store.translation import translated
from ebbtide.vocabulary import AgentCounts, AgentId

if TYPE_CHECKING:
    from ebbtide.store.seal import MasterKey, Seal

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ERASING = ".erasing-"
"""What the directory of an agent is called from the moment it is erased until it is told in the log."""
_ERASED = ".erased-"
"""What it is called from then on until it is gone."""
_LAST_WILL = "erasing.json"
"""Who erased an agent and when, in its directory: what a start tells where the process ended too soon."""
_REPLACED = ".replaced-"
REWRITTEN = "rewritten"
"""Where, in an agent's directory, its store is written anew under another key; nothing once that is done."""


class AgentMeta(msgspec.Struct, frozen=True):
    """What `meta.json` says of an agent. `counts` is as of the last close; the key is the one it is sealed with."""

    agent_id: str
    format_version: int
    lmdb_engine: str
    created_at_ms: int
    counts: AgentCounts = AgentCounts()
    encrypted: bool = False
    key_fingerprint: str = ""


class LastWill(msgspec.Struct, frozen=True):
    """Who erased an agent, and when."""

    agent_id: str
    at_ms: int
    actor: str
    action: str


make_known(AgentMeta, LastWill)


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
        self.keys = DataKeys(root / "keys", master_key)
        self._initial_map_bytes = initial_map_bytes
        self.max_map_bytes = max_map_bytes
        self.erased = ErasedAgents(root)
        self._telling = threading.Lock()
        """Agents are erased side by side, and the log is one."""
        self._lock: int | None = None

    # --- the lock ----------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Hold the directory for this process. DATA_DIRECTORY_LOCKED, naming the holder, when another does."""
        try:
            for path in (self.root, self.agents, self.work, self.transfers):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync_directory(self.root)
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise translated(error, self.root) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise Precondition(
                f"the data directory {self.root} is held by {holder}; "
                "stop it, or choose another directory with --data-dir",
                reason="DATA_DIRECTORY_LOCKED",
            ) from error
        self._lock = descriptor
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()}\n".encode())
            os.fsync(descriptor)
            self._sweep()
        except OSError as error:
            self.release()
            raise translated(error, self.root) from error

    def release(self) -> None:
        """Let go of the directory. Idempotent."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _sweep(self) -> None:
        """Finish erasures that were cut off, undo or finish replacements, drop what was on its way."""
        for entry in list(os.scandir(self.agents)):
            if entry.name.startswith(_ERASING):
                if not self.keys.are_locked:
                    # Without its key nobody could tell what is erased: that waits for a start with it.
                    self._finish_erasure(Path(entry.path))
            elif entry.name.startswith(_ERASED):
                shutil.rmtree(entry.path)
            elif entry.name.startswith(_REPLACED):
                self._settle_replacement(entry.name.removeprefix(_REPLACED))
        for entry in list(os.scandir(self.transfers)):
            shutil.rmtree(entry.path)

    def _settle_replacement(self, name: str) -> None:
        """Where a replacement was cut off, the old agent is back; where it was done, the old one goes."""
        aside, place = self.agents / f"{_REPLACED}{name}", self.agents / name
        if place.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(place)
        sync_directory(self.agents)

    # --- agents ------------------------------------------------------------------------------------

    def has_files(self, agent_id: AgentId) -> bool:
        """Whether there is a directory for the agent. Opens nothing, so it may be asked at any time."""
        return (self.agents / directory_name(agent_id) / "data.mdb").exists()

    def has_meta(self, agent_id: AgentId) -> bool:
        """Whether there is an agent, as far as can be told without opening anything."""
        return self.meta(directory_name(agent_id)) is not None

    def exists(self, agent_id: AgentId) -> bool:
        """Whether the agent was ever created and not erased since. A lost `meta.json` is made anew.

        May open the store, and a store is opened once at a time: only for who opens or erases the agent.
        """
        name = directory_name(agent_id)
        if self.meta(name) is not None:
            return True
        if not (self.agents / name / "data.mdb").exists():
            return False
        return self._recovered(name) is not None

    def _recovered(self, directory: str) -> AgentId | None:
        """Whose the store in a directory without a readable `meta.json` is; the file is made anew."""
        path = self.agents / directory
        if LmdbStore.is_blank(path):
            # A creation that was cut off before anything could be accepted.
            return None
        identity, counts, sealed_with = LmdbStore.glance(
            path, map_bytes=self._initial_map_bytes, max_map_bytes=self.max_map_bytes
        )
        if identity is None:
            return None
        self.write_meta(identity, counts, sealed_with)
        return AgentId(identity.agent_id)

    def open_store(self, agent_id: AgentId) -> LmdbStore:
        """Open an existing agent's store, after comparing whose it is.

        One that is sealed needs its key: where that cannot be had, no file of the agent was touched.
        """
        path = self.agents / directory_name(agent_id)
        meta = self.meta(path.name)
        if meta is not None and meta.format_version > layout.FORMAT_VERSION:
            raise Precondition(
                f"the data has format {meta.format_version}, this Ebbtide reads up to "
                f"{layout.FORMAT_VERSION}; use a newer Ebbtide",
                reason="FORMAT_TOO_NEW",
            )
        if meta is not None and meta.key_fingerprint:
            self.keys.seal_of(path.name, meta.key_fingerprint)
        store = LmdbStore.open(
            path,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal_of=partial(self.keys.seal_of, path.name),
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

    def _settle_rewriting(self, store: LmdbStore, identity: Identity, meta: AgentMeta | None) -> None:
        """Bring to its end a rewriting that was cut off: the store is the old one or the new one, whole."""
        if (store.path / REWRITTEN).exists():
            shutil.rmtree(store.path / REWRITTEN, ignore_errors=True)
        if meta is not None and meta.key_fingerprint != store.sealed_with:
            self.write_meta(identity, meta.counts, store.sealed_with)
        if store.sealed_with:
            self.keys.keep_only(store.path.name, store.sealed_with)

    def create_store(self, identity: Identity) -> LmdbStore:
        """Make a new agent's store. It exists once `meta.json` does, which is written last."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        try:
            if path.exists():
                # A creation that was cut off before anything could be accepted.
                shutil.rmtree(path)
            path.mkdir(mode=0o700)
            seal = self.keys.begin(path.name) if self.keys.seals_new_agents else None
            store = self.create_beside(path, identity, seal)
            self.write_meta(identity, AgentCounts(), store.sealed_with)
            sync_directory(self.agents)
        except OSError as error:
            raise translated(error, path) from error
        return store

    def create_beside(self, path: Path, identity: Identity, seal: Seal | None) -> LmdbStore:
        """Make a store in a directory of its own, sealed if there is a seal."""
        return LmdbStore.create(
            path,
            identity,
            map_bytes=self._initial_map_bytes,
            max_map_bytes=self.max_map_bytes,
            seal=seal,
        )

    def write_meta(self, identity: Identity, counts: AgentCounts, sealed_with: str | None = None) -> None:
        """Replace an agent's `meta.json`, atomically and durably. Without `sealed_with` its key is as it was."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        if sealed_with is None:
            before = self.meta(path.name)
            sealed_with = "" if before is None else before.key_fingerprint
        self.write_meta_in(path, identity, counts, sealed_with)

    def write_meta_in(self, path: Path, identity: Identity, counts: AgentCounts, sealed_with: str) -> None:
        """Replace the `meta.json` of the agent in a directory, atomically and durably."""
        meta = AgentMeta(
            identity.agent_id,
            identity.format_version,
            layout.LMDB_ENGINE,
            identity.created_at_ms,
            counts,
            bool(sealed_with),
            sealed_with,
        )
        replace_file(path / "meta.json", msgspec.json.format(msgspec.json.encode(meta), indent=2))

    def meta(self, directory: str) -> AgentMeta | None:
        """What is told of the agent in `directory`; None when nothing readable is."""
        return self._meta_in(self.agents / directory)

    def _meta_in(self, path: Path) -> AgentMeta | None:
        try:
            content = (path / "meta.json").read_bytes()
            return msgspec.json.decode(content, type=AgentMeta)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise translated(error, self.agents) from error

    def directories(self, after: str = "") -> Iterator[str]:
        """Directory names of agents in order, from the one following `after`."""
        names = (e.name for e in os.scandir(self.agents) if not e.name.startswith("."))
        return iter(sorted(name for name in names if name > after))

    def erase(self, agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
        """Remove an agent's files; the record of it. They do not come back, also after a crash.

        The rename is what erases; a start tells and finishes what a crash cut off behind it.
        """
        name = directory_name(agent_id)
        doomed = self.agents / f"{_ERASING}{name}"
        will = LastWill(agent_id, entry.at_ms, entry.actor, entry.action)
        try:
            # Of an erasure or a replacement that failed half-way.
            if doomed.exists():
                self._finish_erasure(doomed)
            if (aside := self.agents / f"{_REPLACED}{name}").exists():
                shutil.rmtree(aside)
            replace_file(self.agents / name / _LAST_WILL, msgspec.json.encode(will))
            (self.agents / name).rename(doomed)
            sync_directory(self.agents)
            record = self._finish_erasure(doomed)
        except OSError as error:
            raise translated(error, self.agents) from error
        self.unmark(agent_id)
        assert record is not None, "who erases has said so"
        return record

    def _finish_erasure(self, doomed: Path) -> AuditRecord | None:
        """Tell in the log of erased agents what goes, then let it go. None where nobody said who erased it."""
        record = None
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            content = (doomed / _LAST_WILL).read_bytes()
            record = self._tell(doomed, msgspec.json.decode(content, type=LastWill))
        name = doomed.name.removeprefix(_ERASING)
        if not (self.agents / name).exists():
            # Another agent of this name would need its own, which lies in the same file.
            self.keys.destroy(name)
        erased = doomed.with_name(doomed.name.replace(_ERASING, _ERASED, 1))
        if erased.exists():
            shutil.rmtree(erased)
        doomed.rename(erased)
        sync_directory(self.agents)
        shutil.rmtree(erased)
        sync_directory(self.agents)
        return record

    def _tell(self, doomed: Path, will: LastWill) -> AuditRecord:
        with self._telling:
            return self._told_once(doomed, will)

    def _told_once(self, doomed: Path, will: LastWill) -> AuditRecord:
        entry, key = AuditEntry(will.at_ms, will.actor, will.action, {"readable": False}), b""
        # A damaged store is erased as any other; then nobody can tell what it held.
        with contextlib.suppress(EbbtideError):
            name = directory_name(AgentId(will.agent_id))
            store = LmdbStore.open(
                doomed,
                map_bytes=0,
                max_map_bytes=self.max_map_bytes,
                seal_of=partial(self.keys.seal_of, name),
            )
            try:
                entry, key = last_words(store, entry)
            finally:
                store.close()
        told = list(self.erased.records())
        if told and is_told(told[-1:], entry, will.agent_id):
            return told[-1]
        return self.erased.append(entry, will.agent_id, key)

    # --- on the way in and out ---------------------------------------------------------------------

    def make_transfer(self) -> Path:
        """An empty directory for what comes in or goes out; whoever made it removes it, at the latest a start."""
        try:
            return Path(tempfile.mkdtemp(dir=self.transfers))
        except OSError as error:
            raise translated(error, self.transfers) from error

    def drop_transfer(self, folder: Path) -> None:
        """Let go of what came in or was to go out, with keys of what has taken no place."""
        # What cannot be removed now is removed by the next start.
        with contextlib.suppress(EbbtideError):
            self.keys.give_up(folder)
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

    def install(self, agent_id: AgentId, staged: Path) -> None:
        """Put the agent made in `staged` into its place, and whatever is there out of it; for who has closed it.

        Cut off at any moment, the old agent or the new one is there, whole, once the directory was acquired again.
        """
        name = directory_name(agent_id)
        place, aside = self.agents / name, self.agents / f"{_REPLACED}{name}"
        # It may come with batches that wait; a marker too many is harmless.
        self.mark(agent_id)
        try:
            sync_directory(staged)
            told = self._meta_in(staged)
            if told is not None and told.key_fingerprint:
                self.keys.take_up(name, told.key_fingerprint)
            if place.exists():
                self._put_aside(place, aside)
            try:
                staged.rename(place)
            except OSError:
                if aside.exists():
                    aside.rename(place)
                raise
            sync_directory(self.agents)
            if aside.exists():
                # It is done: what cannot be removed now is removed by the next start, or erasure.
                with contextlib.suppress(OSError):
                    shutil.rmtree(aside)
                    sync_directory(self.agents)
            self._drop_keys_of_before(name, told)
        except OSError as error:
            raise translated(error, self.agents) from error

    def _drop_keys_of_before(self, name: str, told: AgentMeta | None) -> None:
        """Let go of keys that what has taken a place does not need; what fails is done by the next opening."""
        with contextlib.suppress(EbbtideError):
            if told is not None and told.key_fingerprint:
                self.keys.keep_only(name, told.key_fingerprint)
            elif self.keys.has_keys(name):
                self.keys.keep_staged(name)

    def _put_aside(self, place: Path, aside: Path) -> None:
        if aside.exists():
            # Left by a replacement that was done, but for this.
            shutil.rmtree(aside)
        place.rename(aside)
        sync_directory(self.agents)

    # --- work markers ------------------------------------------------------------------------------

    def mark(self, agent_id: AgentId) -> None:
        """Note durably that the agent may have work in hand."""
        try:
            (self.work / directory_name(agent_id)).touch(mode=0o600)
            sync_directory(self.work)
        except OSError as error:
            raise translated(error, self.work) from error

    def unmark(self, agent_id: AgentId) -> None:
        """Note that the agent is idle. Not synced: a stale marker is harmless."""
        with contextlib.suppress(OSError):
            (self.work / directory_name(agent_id)).unlink(missing_ok=True)

    def marked(self) -> list[AgentId]:
        """The agents that may have work in hand. Only markers of agents that are gone are removed."""
        found = []
        for name in sorted(os.listdir(self.work)):
            if not (self.agents / name / "data.mdb").exists():
                (self.work / name).unlink(missing_ok=True)
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
        """Whether agents can be made and written: not on a disk that was mounted anew for reading only."""
        is_read_only = os.statvfs(self.root).f_flag & os.ST_RDONLY
        return not is_read_only and all(
            os.access(path, os.W_OK | os.X_OK) for path in (self.root, self.agents, self.work)
        )

    def free_bytes(self) -> int:
        """Room left on the disk under the data directory."""
        return shutil.disk_usage(self.root).free
