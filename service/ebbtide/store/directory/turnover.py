"""How agents' directories go and are replaced: each time one rename decides, and a start finishes what is left.

    agents/.erasing-<directory>     erased; not told in the log of erased agents yet
    agents/.erased-<directory>      erased and told; on its way out
    agents/.replaced-<directory>    put aside for another one that takes its place; once that is there, to be told of

The rule guarded here: cut off at any moment, an agent is there, whole, or it is gone, does not come back, and is told
of once in the log of erased agents. What
cannot be finished, for want of room perhaps, harms no other agent: it is told in the log, and tried again at the next
start, and before the name is used again. Whose directory it is, its lock and its markers are for `data_directory.py`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import partial
from pathlib import Path

import msgspec

from ebbtide.actor import NO_ACTOR
from ebbtide.errors import EbbtideError
from ebbtide.ids import AgentId
from ebbtide.store.audit.erased_agents import REPLACED, ErasedAgents, last_words
from ebbtide.store.audit.succession import Legacy, begin_life, last_event_by, legacy_in
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

LAST_WILL = "erasing.json"
"""Who erased or replaced an agent and when, in its directory: what a start tells where the process ended too soon."""

BY_NOBODY = AuditEntry(0, NO_ACTOR, RESTORED, {})
"""Who puts an agent into its place, and when, where nobody says so."""


class LastWill(msgspec.Struct, frozen=True):
    """Who erased or replaced an agent, and when; how many records the log of erased agents had then."""

    agent_id: str
    at_ms: int
    actor: str
    action: str
    records_before: int = 0


make_known(LastWill)


class Turnover:
    """The directories of one data directory's agents, by name. Methods block; one at a time for a name."""

    def __init__(self, agents: Path, keys: DataKeys, erased: ErasedAgents, max_map_bytes: int) -> None:
        self._agents = agents
        self._keys = keys
        self._erased = erased
        self._max_map_bytes = max_map_bytes

    def finish_all(self) -> None:
        """Finish erasures that were cut off, undo or finish replacements. OSError if nothing can be looked at."""
        for entry in list(os.scandir(self._agents)):
            try:
                self._finish(Path(entry.path))
            except (OSError, EbbtideError) as error:
                get_log("store").error("left for the next start", directory=entry.name, exc_info=error)

    def _finish(self, path: Path) -> None:
        if path.name.startswith(_ERASING):
            if not self._keys.are_locked:
                # Without its key nobody could tell what is erased: that waits for a start with it.
                self._finish_erasure(path)
        elif path.name.startswith(_ERASED):
            shutil.rmtree(path)
        elif path.name.startswith(_REPLACED):
            name = path.name.removeprefix(_REPLACED)
            if self.is_put_aside(name) or not self._keys.are_locked:
                self._settle_replacement(name)

    # --- erasing -----------------------------------------------------------------------------------

    def is_being_erased(self, name: str) -> bool:
        """Whether an erasure was begun and could not be finished yet."""
        return (self._agents / f"{_ERASING}{name}").exists()

    def erase(self, name: str, agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
        """Remove an agent's directory; the record of it. It does not come back, also after a crash.

        The rename is what erases; a start tells and finishes what a crash cut off behind it. Where the agent was
        erased already, that is finished.
        """
        place, doomed = self._agents / name, self._agents / f"{_ERASING}{name}"
        record = None
        try:
            will = LastWill(agent_id, entry.at_ms, entry.actor, entry.action, self._erased.head().number)
            # Of an erasure or a replacement that failed half-way.
            if doomed.exists():
                if not (place.exists() or (doomed / LAST_WILL).exists()):
                    replace_file(doomed / LAST_WILL, msgspec.json.encode(will))
                record = self._finish_erasure(doomed)
                will = msgspec.structs.replace(will, records_before=self._erased.head().number)
            if self.is_replaced(name):
                self._settle_replacement(name)
                will = msgspec.structs.replace(will, records_before=self._erased.head().number)
            if record is None or place.exists():
                replace_file(place / LAST_WILL, msgspec.json.encode(will))
                place.rename(doomed)
                sync_directory(self._agents)
                record = self._finish_erasure(doomed)
        except OSError as error:
            raise translated(error, self._agents) from error
        assert record is not None, "who erases has said so"
        return record

    def finish_erasure(self, name: str) -> None:
        """Finish what is left of an earlier agent of this name, before there is another."""
        doomed = self._agents / f"{_ERASING}{name}"
        if doomed.exists():
            self._finish_erasure(doomed)

    def _finish_erasure(self, doomed: Path) -> AuditRecord | None:
        """Tell in the log of erased agents what goes, then let it go. None where nobody said who erased it."""
        name = doomed.name.removeprefix(_ERASING)
        record = self._told(doomed, name)
        if not (self._agents / name).exists():
            # Another agent of this name would need its own, which lies in the same file.
            self._keys.destroy(name)
        self._let_go(doomed, name)
        return record

    def _let_go(self, doomed: Path, name: str) -> None:
        """Remove a directory that was told of; cut off, it is not told of again."""
        erased = doomed.with_name(f"{_ERASED}{name}")
        if erased.exists():
            shutil.rmtree(erased)
        doomed.rename(erased)
        sync_directory(self._agents)
        shutil.rmtree(erased)
        sync_directory(self._agents)

    def _told(self, doomed: Path, name: str) -> AuditRecord | None:
        """Tell of what goes, unless nobody said who lets it go."""
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            content = (doomed / LAST_WILL).read_bytes()
            return self._tell(doomed, name, msgspec.json.decode(content, type=LastWill))
        return None

    def _tell(self, doomed: Path, name: str, will: LastWill) -> AuditRecord:
        entry, key = AuditEntry(will.at_ms, will.actor, will.action, {"readable": False}), b""
        # A damaged store is erased as any other; then nobody can tell what it held.
        with contextlib.suppress(EbbtideError):
            store = self._opened(doomed, name)
            try:
                entry, key = last_words(store, entry)
            finally:
                store.close()
        return self._erased.tell(entry, will.agent_id, key, after=will.records_before)

    # --- replacing ---------------------------------------------------------------------------------

    def is_replaced(self, name: str) -> bool:
        """Whether another agent took the place of one that is not told of yet: what that is sealed with is needed."""
        return (self._agents / f"{_REPLACED}{name}").exists() and (self._agents / name).exists()

    def is_put_aside(self, name: str) -> bool:
        """Whether an agent lies beside its place, which a replacement that was cut off has left empty."""
        return (self._agents / f"{_REPLACED}{name}").exists() and not (self._agents / name).exists()

    def bring_back(self, name: str) -> None:
        """Put an agent back into its place where a replacement that was cut off has left it empty."""
        if self.is_put_aside(name):
            try:
                self._settle_replacement(name)
            except OSError as error:
                raise translated(error, self._agents) from error

    def _settle_replacement(self, name: str) -> None:
        """Where a replacement was cut off, the old agent is back; where it was done, that one is told of and goes."""
        aside, place = self._agents / f"{_REPLACED}{name}", self._agents / name
        if place.exists():
            self._told(aside, name)
            self._let_go(aside, name)
        else:
            aside.rename(place)
            sync_directory(self._agents)

    def install(
        self, name: str, staged: Path, fingerprint: str, agent_id: AgentId, entry: AuditEntry
    ) -> None:
        """Put the directory `staged` into its place, and whatever is there out of it; for who has closed it.

        `entry` says who does it, and when; the new agent's log tells it, and that of erased agents what is gone. Its
        store is sealed with the key of this fingerprint, if with any. Cut off at any moment, the old agent or the new
        one is there, whole, after the next start.
        """
        place, aside = self._agents / name, self._agents / f"{_REPLACED}{name}"
        self.bring_back(name)
        try:
            if self.is_replaced(name):
                # Left by a replacement that was done, but for this.
                self._settle_replacement(name)
            self._settle_beginning(name, staged, entry)
            sync_directory(staged)
            self._keys.arrive(name, fingerprint)
            if place.exists():
                self._put_aside(place, aside, agent_id, entry)
            try:
                staged.rename(place)
            except OSError:
                if aside.exists():
                    aside.rename(place)
                raise
            self._keys.take_up(name, fingerprint)
            sync_directory(self._agents)
            if aside.exists():
                try:
                    self._settle_replacement(name)
                except (OSError, EbbtideError) as error:
                    # It is done: what cannot be told or removed now is at a start, or before the name is used so again.
                    get_log("store").error("left for the next start", directory=aside.name, exc_info=error)
                    return
            self.drop_other_keys(name, fingerprint)
        except OSError as error:
            raise translated(error, self._agents) from error

    def drop_other_keys(self, name: str, fingerprint: str) -> None:
        """Remove the keys that the store in its place does not need; where that fails the next opening tries again.

        While an agent that it replaced is not in the log of erased agents yet, the keys of that one stay too.
        """
        if self.is_replaced(name):
            return
        with contextlib.suppress(EbbtideError):
            if fingerprint:
                self._keys.keep_only(name, fingerprint)
            elif self._keys.has_keys(name):
                self._keys.keep_staged(name)

    def _settle_beginning(self, name: str, staged: Path, entry: AuditEntry) -> None:
        """Let a store that is about to take its place go on from what is there now. DATA_KEY_MISSING."""
        former, place = Legacy(), self._agents / name
        if _holds_agent(place):
            former = legacy_in(place, max_map_bytes=self._max_map_bytes, at_ms=entry.at_ms)
        beyond = max(self._erased.last_event(), last_event_by(entry.at_ms))
        store = self._opened(staged, name)
        try:
            begin_life(store, former, beyond, entry)
        finally:
            store.close()

    def _opened(self, path: Path, name: str) -> LmdbStore:
        """A store that has no place, or no longer one, with the keys that its agent has under this name."""
        seal_of = partial(self._keys.seal_of, name)
        return LmdbStore.open(path, map_bytes=0, max_map_bytes=self._max_map_bytes, seal_of=seal_of)

    def _put_aside(self, place: Path, aside: Path, agent_id: AgentId, entry: AuditEntry) -> None:
        if _holds_agent(place):
            will = LastWill(agent_id, entry.at_ms, entry.actor, REPLACED, self._erased.head().number)
            replace_file(place / LAST_WILL, msgspec.json.encode(will))
        place.rename(aside)
        sync_directory(self._agents)


def _holds_agent(place: Path) -> bool:
    """Whether an agent is in a directory, perhaps damaged; not where its creation was cut off."""
    if (place / "meta.json").exists():
        return True
    try:
        return (place / "data.mdb").exists() and not LmdbStore.is_blank(place)
    except EbbtideError:
        return True
