"""Deletion and replacement of agents' directories: one rename decides, and the next start finishes the rest.

    agents/.erasing-<directory>     deleted, not yet in the log of erased agents
    agents/.erased-<directory>      deleted and logged; its files are being removed
    agents/.replaced-<directory>    set aside for its successor; logged once the successor is in place

After an interruption at any moment, an agent is either complete, or deleted permanently with one record in the log of
erased agents. A deletion or replacement that cannot be finished, perhaps for lack of disk space, affects no other
agent. It is logged, and finished at the next start or before the name is used again.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from ebbtide.actor import NO_ACTOR
from ebbtide.errors import EbbtideError
from ebbtide.ids import AgentId
from ebbtide.store.audit.erased_agents import REPLACED, ErasedAgents, deletion_record
from ebbtide.store.audit.predecessor import Predecessor, continue_from, highest_event_by, read_predecessor
from ebbtide.store.chain import RESTORED, AuditEntry, AuditRecord
from ebbtide.store.codec import make_known
from ebbtide.store.durable import replace_file, sync_directory
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.translation import translated
from ebbtide.telemetry import get_log

_ERASING = ".erasing-"
_ERASED = ".erased-"
_REPLACED = ".replaced-"
_INTERRUPTED = re.compile(rf"^(?:{re.escape(_ERASING)}|{re.escape(_ERASED)}|{re.escape(_REPLACED)})")

PENDING_DELETION = "erasing.json"
"""The file in an agent's directory from which a start finishes an interrupted deletion or replacement."""

UNKNOWN_CALLER = AuditEntry(0, NO_ACTOR, RESTORED, {})
"""The audit entry of a replacement without a known caller and time."""


class PendingDeletion(msgspec.Struct, frozen=True):
    """The deletion or replacement of an agent: its caller and time, and the length of the log when it began."""

    agent_id: str
    at_ms: int
    actor: str
    action: str
    records_before: int = 0


make_known(PendingDeletion)


class AgentReplacement:
    """Deletes and replaces the agents of one data directory, by directory name. One call at a time for a name."""

    def __init__(self, agents: Path, keys: DataKeys, erased: ErasedAgents, max_map_bytes: int) -> None:
        self._agents = agents
        self._keys = keys
        self._erased = erased
        self._max_map_bytes = max_map_bytes

    def finish_all(self, owns: Callable[[str], bool]) -> None:
        """Finish interrupted deletions; undo or finish interrupted replacements. Raise OSError if none can be read.

        Only those of directories that `owns` accepts.
        """
        for entry in list(os.scandir(self._agents)):
            name = _INTERRUPTED.sub("", entry.name)
            if name == entry.name or not owns(name):
                continue
            try:
                self._finish(Path(entry.path))
            except (OSError, EbbtideError) as error:
                get_log("store").error("left for the next start", directory=entry.name, exc_info=error)

    def _finish(self, path: Path) -> None:
        if path.name.startswith(_ERASING):
            if not self._keys.are_locked:
                # The log needs the texts, so a locked agent waits for a start with its key.
                self._finish_deletion(path)
        elif path.name.startswith(_ERASED):
            shutil.rmtree(path)
        elif path.name.startswith(_REPLACED):
            name = path.name.removeprefix(_REPLACED)
            if self.is_set_aside(name) or not self._keys.are_locked:
                self._settle_replacement(name)

    # --- deletion ----------------------------------------------------------------------------------

    def is_being_erased(self, name: str) -> bool:
        """Return whether a deletion has begun and is not finished."""
        return (self._agents / f"{_ERASING}{name}").exists()

    def erase(self, name: str, agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
        """Delete an agent's directory for good, or finish an earlier deletion. Return its record.

        The rename is the deletion: a start finishes one that was interrupted after it.
        """
        place, doomed = self._agents / name, self._agents / f"{_ERASING}{name}"
        record = None
        try:
            if doomed.exists():
                # An earlier deletion or replacement has failed half-way.
                if not (place.exists() or (doomed / PENDING_DELETION).exists()):
                    self._note(doomed, agent_id, entry, entry.action)
                record = self._finish_deletion(doomed)
            if self.is_replaced(name):
                self._settle_replacement(name)
            if record is None or place.exists():
                self._note(place, agent_id, entry, entry.action)
                place.rename(doomed)
                sync_directory(self._agents)
                record = self._finish_deletion(doomed)
        except OSError as error:
            raise translated(error, self._agents) from error
        assert record is not None, "a noted deletion has a record"
        return record

    def finish_deletion(self, name: str) -> None:
        """Finish the deletion of an earlier agent of this name, before the next one is created."""
        doomed = self._agents / f"{_ERASING}{name}"
        if doomed.exists():
            self._finish_deletion(doomed)

    def _note(self, place: Path, agent_id: AgentId, entry: AuditEntry, action: str) -> None:
        """Write durably that the agent in a directory is about to be deleted or replaced."""
        pending = PendingDeletion(agent_id, entry.at_ms, entry.actor, action, self._erased.head().number)
        replace_file(place / PENDING_DELETION, msgspec.json.encode(pending))

    def _finish_deletion(self, doomed: Path) -> AuditRecord | None:
        """Log a deletion, then remove the files. Return None where no caller was noted."""
        name = doomed.name.removeprefix(_ERASING)
        record = self._log(doomed, name)
        if not (self._agents / name).exists():
            # A successor of this name would have its key in the same file.
            self._keys.destroy(name)
        self._remove(doomed, name)
        return record

    def _remove(self, doomed: Path, name: str) -> None:
        """Remove a directory that was logged. The rename keeps a start from logging it again."""
        erased = doomed.with_name(f"{_ERASED}{name}")
        if erased.exists():
            shutil.rmtree(erased)
        doomed.rename(erased)
        sync_directory(self._agents)
        shutil.rmtree(erased)
        sync_directory(self._agents)

    def _log(self, doomed: Path, name: str) -> AuditRecord | None:
        """Add a deleted agent to the log of erased agents, unless no caller was noted."""
        note = doomed / PENDING_DELETION
        try:
            content = note.read_bytes()
        except FileNotFoundError:
            # The directory may have been away for a moment.
            if doomed.is_dir() and not note.exists():
                return None
            raise
        with contextlib.suppress(msgspec.DecodeError):
            pending = msgspec.json.decode(content, type=PendingDeletion)
            entry, key = AuditEntry(pending.at_ms, pending.actor, pending.action, {"readable": False}), b""
            # A damaged store is deleted like any other, without details of its content.
            with contextlib.suppress(EbbtideError):
                store = self._open(doomed, name)
                try:
                    entry, key = deletion_record(store, entry)
                finally:
                    store.close()
            return self._erased.ensure(entry, pending.agent_id, key, after=pending.records_before)
        return None

    # --- replacement -------------------------------------------------------------------------------

    def is_replaced(self, name: str) -> bool:
        """Return whether a replaced agent of this name is not logged yet. Its keys are still needed."""
        return (self._agents / f"{_REPLACED}{name}").exists() and (self._agents / name).exists()

    def is_set_aside(self, name: str) -> bool:
        """Return whether an interrupted replacement has set an agent aside without a successor."""
        return (self._agents / f"{_REPLACED}{name}").exists() and not (self._agents / name).exists()

    def bring_back(self, name: str) -> None:
        """Undo an interrupted replacement that has set an agent aside without a successor."""
        if self.is_set_aside(name):
            try:
                self._settle_replacement(name)
            except OSError as error:
                raise translated(error, self._agents) from error

    def _settle_replacement(self, name: str) -> None:
        """Undo a replacement without a successor; else log the replaced agent and remove its files."""
        aside, place = self._agents / f"{_REPLACED}{name}", self._agents / name
        if place.exists():
            self._log(aside, name)
            self._remove(aside, name)
        else:
            aside.rename(place)
            sync_directory(self._agents)

    def install(
        self,
        name: str,
        staged: Path,
        fingerprint: str,
        agent_id: AgentId,
        entry: AuditEntry,
        on_prepared: Callable[[], None] = lambda: None,
    ) -> None:
        """Move the directory `staged` into place, and replace an agent that is there. Both must be closed.

        The audit log of the new agent gets `entry`; the log of erased agents gets the replaced one. `fingerprint`
        identifies the key that encrypts the new store, if there is one. `on_prepared` is called when the content of the
        new store is complete. After an interruption at any moment the next start has the old agent or the new one,
        whole.
        """
        place, aside = self._agents / name, self._agents / f"{_REPLACED}{name}"
        self.bring_back(name)
        try:
            if self.is_replaced(name):
                # An earlier replacement is complete but not logged.
                self._settle_replacement(name)
            self._prepare(name, staged, entry)
            on_prepared()
            sync_directory(staged)
            self._keys.mark_arriving(name, fingerprint)
            if place.exists():
                if _holds_agent(place):
                    self._note(place, agent_id, entry, REPLACED)
                place.rename(aside)
                sync_directory(self._agents)
            try:
                staged.rename(place)
            except OSError:
                if aside.exists():
                    aside.rename(place)
                raise
            self._keys.unstage(name, fingerprint)
            sync_directory(self._agents)
            if aside.exists():
                try:
                    self._settle_replacement(name)
                except (OSError, EbbtideError) as error:
                    # The replacement is done. A start finishes the rest, or the next use of the name.
                    get_log("store").error("left for the next start", directory=aside.name, exc_info=error)
                    return
            self.drop_other_keys(name, fingerprint)
        except OSError as error:
            raise translated(error, self._agents) from error

    def drop_other_keys(self, name: str, fingerprint: str) -> None:
        """Remove the keys that the store in place does not need. After a failure the next opening tries again.

        The keys of a replaced agent stay until it is logged.
        """
        if self.is_replaced(name):
            return
        with contextlib.suppress(EbbtideError):
            if fingerprint:
                self._keys.keep_only(name, fingerprint)
            elif self._keys.has_keys(name):
                self._keys.keep_staged(name)

    def _prepare(self, name: str, staged: Path, entry: AuditEntry) -> None:
        """Let a staged store continue the numbers of the agent that it replaces. Raise DATA_KEY_MISSING."""
        predecessor, place = Predecessor(), self._agents / name
        if _holds_agent(place):
            predecessor = read_predecessor(place, max_map_bytes=self._max_map_bytes, at_ms=entry.at_ms)
        beyond = max(self._erased.last_event(), highest_event_by(entry.at_ms))
        store = self._open(staged, name)
        try:
            continue_from(store, predecessor, beyond, entry)
        finally:
            store.close()

    def _open(self, path: Path, name: str) -> LmdbStore:
        """Open a store that is not in place, with the keys of this name."""
        seal_of = partial(self._keys.seal_of, name)
        return LmdbStore.open(path, map_bytes=0, max_map_bytes=self._max_map_bytes, seal_of=seal_of)


def _holds_agent(place: Path) -> bool:
    """Return whether a directory has an agent, perhaps damaged, and not an interrupted creation."""
    if (place / "meta.json").exists():
        return True
    try:
        return (place / "data.mdb").exists() and not LmdbStore.is_blank(place)
    except EbbtideError:
        return True
