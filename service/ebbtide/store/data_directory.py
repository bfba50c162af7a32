"""The data directory: one daemon's files, held by one process at a time.

    DATA_DIR/lock                      held (flock) for the life of the process
    DATA_DIR/agents/<directory>/       data.mdb lock.mdb meta.json
    DATA_DIR/work/<directory>          empty marker: this agent may have work in hand
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
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ebbtide.errors import Corrupted, EbbtideError, Precondition
from ebbtide.store import layout
from ebbtide.store.codec import make_known
from ebbtide.store.durable import sync_directory
from ebbtide.store.keys import DataKeys
from ebbtide.store.lmdb_store import LmdbStore, translated
from ebbtide.store.port import Identity
from ebbtide.vocabulary import AgentCounts, AgentId

if TYPE_CHECKING:
    from ebbtide.store.seal import MasterKey, Seal

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ERASING = ".erasing-"
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


make_known(AgentMeta)


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
        self.keys = DataKeys(root / "keys", master_key)
        self._initial_map_bytes = initial_map_bytes
        self._max_map_bytes = max_map_bytes
        self._lock: int | None = None

    # --- the lock ----------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Hold the directory for this process. DATA_DIRECTORY_LOCKED, naming the holder, when another does."""
        try:
            for path in (self.root, self.agents, self.work):
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
        """Finish erasures that were cut off."""
        for entry in os.scandir(self.agents):
            if entry.name.startswith(_ERASING):
                self.keys.destroy(entry.name.removeprefix(_ERASING))
                shutil.rmtree(entry.path)

    # --- agents ------------------------------------------------------------------------------------

    def has_files(self, agent_id: AgentId) -> bool:
        """Whether there is a directory for the agent. Opens nothing, so it may be asked at any time."""
        return (self.agents / directory_name(agent_id) / "data.mdb").exists()

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
            path, map_bytes=self._initial_map_bytes, max_map_bytes=self._max_map_bytes
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
            max_map_bytes=self._max_map_bytes,
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
            max_map_bytes=self._max_map_bytes,
            seal=seal,
        )

    def write_meta(self, identity: Identity, counts: AgentCounts, sealed_with: str | None = None) -> None:
        """Replace an agent's `meta.json`, atomically and durably. Without `sealed_with` its key is as it was."""
        path = self.agents / directory_name(AgentId(identity.agent_id))
        if sealed_with is None:
            before = self.meta(path.name)
            sealed_with = "" if before is None else before.key_fingerprint
        meta = AgentMeta(
            identity.agent_id,
            identity.format_version,
            layout.LMDB_ENGINE,
            identity.created_at_ms,
            counts,
            bool(sealed_with),
            sealed_with,
        )
        fresh = path / "meta.json.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(meta), indent=2))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path / "meta.json")
        sync_directory(path)

    def meta(self, directory: str) -> AgentMeta | None:
        """What is told of the agent in `directory`; None when nothing readable is."""
        try:
            content = (self.agents / directory / "meta.json").read_bytes()
            return msgspec.json.decode(content, type=AgentMeta)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise translated(error, self.agents) from error

    def directories(self, after: str = "") -> Iterator[str]:
        """Directory names of agents in order, from the one following `after`."""
        names = (e.name for e in os.scandir(self.agents) if not e.name.startswith("."))
        return iter(sorted(name for name in names if name > after))

    def erase(self, agent_id: AgentId) -> None:
        """Remove an agent's files. Once this returns they do not come back, also after a crash."""
        name = directory_name(agent_id)
        doomed = self.agents / f"{_ERASING}{name}"
        try:
            (self.agents / name).rename(doomed)
            sync_directory(self.agents)
            self.keys.destroy(name)
            shutil.rmtree(doomed)
            sync_directory(self.agents)
        except OSError as error:
            raise translated(error, self.agents) from error
        self.unmark(agent_id)

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

    def free_bytes(self) -> int:
        """Room left on the disk under the data directory."""
        return shutil.disk_usage(self.root).free
