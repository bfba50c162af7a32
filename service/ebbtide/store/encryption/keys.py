"""The wrapped data keys of a data directory: one small file for each agent, which no backup contains.

    DATA_DIR/keys/<directory>          the data keys of one agent, encrypted ("wrapped") with the master key
    DATA_DIR/keys/.master              the fingerprint of the current master key

A key is stored durably before it encrypts anything, and removed once nothing needs it. So a store that is readable
stays readable after a crash. A file has two keys only while a store is rewritten. Without its file an agent cannot be
read, even from a copy of all other files: destroying the file erases the agent.

After the first start with a master key, a daemon with another one or without one does not start: it would store data
unencrypted, or create keys that the right master key cannot unwrap.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator, Set
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ebbtide.errors import Corrupted, EbbtideError, Precondition
from ebbtide.store.codec import make_known
from ebbtide.store.durable import (
    fresh_files,
    overwrite_and_remove,
    overwrite_and_unlink,
    replace_file,
    sync_directory,
)
from ebbtide.store.presence import Confirm, is_missing, nothing_to_confirm, opened
from ebbtide.store.translation import translated
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.settings import EncryptionSettings
    from ebbtide.store.encryption.seal import MasterKey, Seal

_MASTER_FILE = ".master"


class WrappedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """One wrapped data key of an agent."""

    id: int
    wrapped: bytes
    staged: bool = False
    """Whether its store is not installed yet."""
    arriving: str = ""
    """Its fingerprint, set just before its store is installed."""


class WrappedKeys(msgspec.Struct, frozen=True):
    """The file of one agent: its keys, oldest first."""

    master: str
    keys: list[WrappedKey]


make_known(WrappedKeys)


def master_key_of(settings: EncryptionSettings) -> MasterKey | None:
    """Return the configured master key, or None. Raise MASTER_KEY_REFUSED if it is invalid."""
    text = settings.master_key.get_secret_value()
    if settings.master_key_file:
        return read_master_key(Path(settings.master_key_file))
    if not text:
        return None
    from ebbtide.store.encryption.seal import parse_master_key

    return parse_master_key(text)


def read_master_key(path: Path) -> MasterKey:
    """Read a master key from a file. Raise MASTER_KEY_REFUSED if that fails."""
    from ebbtide.store.encryption.seal import parse_master_key

    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise Precondition(
            f"The master key file {path} cannot be read: {why}.", reason="MASTER_KEY_REFUSED"
        ) from error
    return parse_master_key(text)


def is_open_to_all(path: Path) -> bool:
    """Return whether every user of the machine may read or write a file. Access for its group is allowed."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IROTH | stat.S_IWOTH))


class DataKeys:
    """The data keys of one data directory. Methods block."""

    def __init__(self, path: Path, master: MasterKey | None, confirm: Confirm = nothing_to_confirm) -> None:
        self.path = path
        self._confirm = confirm
        self._master = master
        self.fetch: Callable[[str], bytes | None] = lambda _: None
        """Returns the file of an agent's wrapped keys on other nodes of a cluster."""
        self._changing = threading.RLock()
        self._staged: dict[tuple[str, str], Path] = {}
        """The path of each staged store, by the directory of its owner and the fingerprint of its key."""

    @property
    def are_locked(self) -> bool:
        """Whether agents here are encrypted and this process has no master key."""
        return self._master is None and bool(self.master_fingerprint())

    @property
    def seals_new_agents(self) -> bool:
        """Whether new agents are encrypted."""
        return self._master is not None

    def admit(self) -> None:
        """Raise MASTER_KEY_REFUSED unless the master key is the current one of this directory, or its first."""
        with self._changing:
            self._admit()

    def _admit(self) -> None:
        known = self.master_fingerprint()
        if self._master is None:
            if known:
                raise Precondition(
                    f"Agents in this data directory are encrypted with the master key {known}. Set "
                    "encryption.master_key_file, or remove keys/.master to store new agents unencrypted.",
                    reason="MASTER_KEY_REFUSED",
                )
        elif not known:
            self._write(_MASTER_FILE, self._master.fingerprint.encode())
        elif known != self._master.fingerprint:
            raise Precondition(
                f"This data directory uses the master key {known}, not {self._master.fingerprint}. "
                "`ebbtide encryption rotate-master` changes it, and resumes an interrupted change.",
                reason="MASTER_KEY_REFUSED",
            )

    def follow(self) -> None:
        """Replace the files by those on other nodes of a cluster, after its master key was rotated.

        This master key is that of the cluster. A file that the other nodes do not have stays as it is.
        """
        known = self.master_fingerprint()
        if self._master is None or known in ("", self._master.fingerprint):
            return
        for directory in self.directories():
            content = self.fetch(directory)
            if content is not None:
                self.put(directory, content)
        self._write(_MASTER_FILE, self._master.fingerprint.encode())

    @property
    def own_fingerprint(self) -> str:
        """The fingerprint of the master key of this process; empty without one."""
        return "" if self._master is None else self._master.fingerprint

    def master_fingerprint(self) -> str:
        """Return the fingerprint of the current master key, or an empty string."""
        return (self._read(_MASTER_FILE) or b"").decode(errors="replace").strip()

    # --- the keys of one agent ---------------------------------------------------------------------

    def has_keys(self, directory: str) -> bool:
        """Return whether the agent of a directory has keys."""
        return (self.path / directory).exists()

    def content(self, directory: str) -> bytes | None:
        """Return the file of an agent's wrapped keys; None without one."""
        return self._read(directory)

    def master_of(self, directory: str) -> str:
        """Return the fingerprint of the master key with which the keys of an agent are wrapped."""
        return self._file(directory).master or self.master_fingerprint()

    def put(self, directory: str, content: bytes) -> None:
        """Replace the file of an agent's wrapped keys, durably."""
        with self._changing:
            self._write(directory, content)

    def seal_of(self, directory: str, fingerprint: str) -> Seal:
        """Return the seal of the agent's key with this fingerprint. Raise DATA_KEY_MISSING if there is none."""
        refusal: Precondition | None = None
        for content in (read(directory) for read in (self._read, self.fetch)):
            try:
                for seal in self._seals(_parsed(content), directory):
                    if seal.fingerprint == fingerprint:
                        return seal
                refusal = refusal if content is None else None
            except Precondition as error:
                # The file may be a copy from before the master key of the cluster was rotated.
                refusal = error
        raise refusal or Precondition(
            f"The key {fingerprint} of this agent is missing: it was destroyed, or its file in keys/ was not "
            "copied.",
            reason="DATA_KEY_MISSING",
        )

    def begin(self, directory: str) -> Seal:
        """Create the key of a new agent. Destroy the keys of an earlier agent of this name, except staged ones."""
        with self._changing:
            self.keep_staged(directory)
            return self.add(directory)

    def stage(self, directory: str, store: Path) -> Seal:
        """Create the key of a staged store, in addition to the keys of the agent that it will replace."""
        with self._changing:
            seal = self.add(directory, staged=True)
            self._staged[directory, seal.fingerprint] = store
            return seal

    def mark_arriving(self, directory: str, fingerprint: str) -> None:
        """Note that a staged store is about to be installed: a start keeps its key unless the store is still staged."""
        with self._changing:
            if (directory, fingerprint) in self._staged:
                file = self._file(directory)
                seals = zip(file.keys, self._seals(file, directory), strict=True)
                keys = [
                    replace(key, staged=False, arriving=fingerprint)
                    if seal.fingerprint == fingerprint
                    else key
                    for key, seal in seals
                ]
                self._keep(directory, WrappedKeys(file.master, keys))

    def unstage(self, directory: str, fingerprint: str) -> None:
        """Note that a staged store was installed: its key is now one of the agent's keys."""
        with self._changing:
            self._staged.pop((directory, fingerprint), None)

    def drop_staged_in(self, folder: Path) -> None:
        """Remove the keys of staged stores in a folder that will not be installed."""
        with self._changing:
            for (directory, fingerprint), store in list(self._staged.items()):
                if store.is_relative_to(folder):
                    own = [seal.fingerprint for seal in self._seals(self._file(directory), directory)]
                    del self._staged[directory, fingerprint]
                    try:
                        if fingerprint in own:
                            self._drop_but(directory, set(own) - {fingerprint})
                    except EbbtideError:
                        self._staged[directory, fingerprint] = store
                        raise

    def drop_staged(self, unplaced: Set[str], owns: Callable[[str], bool] = lambda _: True) -> None:
        """Remove, at a start, the keys of stores that were not installed. Needs no master key.

        `unplaced` has the fingerprints of the stores that are still staged. Only directories that `owns` accepts.
        """
        for directory in filter(owns, self.directories()):
            try:
                file = self._file(directory)
                kept = [key for key in file.keys if not (key.staged or key.arriving in unplaced)]
                if len(kept) < len(file.keys):
                    self._cut(directory, file, kept)
            except EbbtideError as error:
                get_log("store").warning("key not removed", directory=directory, exc_info=error)

    def add(self, directory: str, *, staged: bool = False) -> Seal:
        """Add a key to an agent's keys, durably."""
        from ebbtide.store.encryption.seal import MAX_KEY_ID, Seal, new_data_key

        self.admit()
        with self._changing:
            file = self._file(directory)
            kept, master = file.keys, self._master_for(file)
            key_id = kept[-1].id % MAX_KEY_ID + 1 if kept else 1
            data_key = new_data_key()
            fresh = WrappedKey(key_id, master.wrap(directory, key_id, data_key), staged)
            self._keep(directory, WrappedKeys(master.fingerprint, [*kept, fresh]))
            return Seal(key_id, data_key)

    def keep_only(self, directory: str, fingerprint: str) -> None:
        """Remove the other keys of an agent, except staged ones."""
        with self._changing:
            self._drop_but(directory, {fingerprint})

    def keep_staged(self, directory: str) -> None:
        """Remove the keys of an agent that is no longer encrypted, except staged ones."""
        with self._changing:
            if any(owner == directory for owner, _ in self._staged):
                self._drop_but(directory, set())
            else:
                self.destroy(directory)

    def _drop_but(self, directory: str, fingerprints: set[str]) -> None:
        file = self._file(directory)
        staged = {own for owner, own in self._staged if owner == directory}
        seals = zip(file.keys, self._seals(file, directory), strict=True)
        # A key in use belongs to an installed store.
        kept = [
            replace(key, arriving="") if seal.fingerprint in fingerprints else key
            for key, seal in seals
            if seal.fingerprint in fingerprints | staged
        ]
        assert kept or not fingerprints, "the key in use is among them"
        self._cut(directory, file, kept)

    def _cut(self, directory: str, file: WrappedKeys, kept: list[WrappedKey]) -> None:
        if not kept:
            self.destroy(directory)
        elif kept != file.keys:
            self._keep(directory, WrappedKeys(file.master, kept))

    def destroy(self, directory: str) -> bool:
        """Overwrite and remove the keys of an agent. Return whether it had any. Needs no master key."""
        path = self.path / directory
        try:
            with self._changing:
                self._confirm()
                is_removed = overwrite_and_remove(path)
                if not is_removed and not is_missing(path, self._confirm):
                    raise FileNotFoundError(ENOENT, "The disk was away for a moment", str(path))
                return is_removed
        except OSError as error:
            raise translated(error, self.path) from error

    def remove_leftovers(self) -> None:
        """Finish interrupted removals and remove partly written files, at a start."""
        for path in fresh_files(self.path):
            overwrite_and_unlink(path)

    # --- another master key ------------------------------------------------------------------------

    def rotate_master(self, new: MasterKey) -> int:
        """Wrap every key with another master key. Return the number of agents that still had the old one.

        After an interruption, run it again with the same two keys: finished agents are skipped.
        """
        known = self.master_fingerprint()
        if self._master is None or known not in (self._master.fingerprint, new.fingerprint):
            raise Precondition(
                f"The keys of this data directory are wrapped with the master key {known or '(none)'}.",
                reason="MASTER_KEY_REFUSED",
            )
        rotated = 0
        for directory in self.directories():
            content = self._read(directory) or b""
            wrapped = wrapped_again(content, directory, self._master, new)
            if wrapped != content:
                self._write(directory, wrapped)
                rotated += 1
        self._write(_MASTER_FILE, new.fingerprint.encode())
        return rotated

    def directories(self) -> Iterator[str]:
        """Yield the directories of agents that have keys, in order."""
        if self.path.is_dir():
            names = (path.name for path in self.path.iterdir())
            yield from sorted(name for name in names if "." not in name)

    # --- files -------------------------------------------------------------------------------------

    def _seals(self, file: WrappedKeys, directory: str) -> Iterator[Seal]:
        from ebbtide.store.encryption.seal import Seal

        for key in file.keys:
            yield Seal(key.id, self._unwrapped(file, directory, key))

    def _unwrapped(self, file: WrappedKeys, directory: str, key: WrappedKey) -> bytes:
        return self._master_for(file).unwrap(directory, key.id, key.wrapped)

    def _master_for(self, file: WrappedKeys) -> MasterKey:
        if self._master is None:
            raise Precondition(
                "This agent is encrypted. Set encryption.master_key_file to the master key "
                f"{file.master or self.master_fingerprint() or 'of this data directory'}.",
                reason="MASTER_KEY_REFUSED",
            )
        if file.master not in ("", self._master.fingerprint):
            raise Precondition(
                f"The key of this agent is wrapped with the master key {file.master}, "
                f"not with {self._master.fingerprint}.",
                reason="MASTER_KEY_REFUSED",
            )
        return self._master

    def _file(self, directory: str) -> WrappedKeys:
        return _parsed(self._read(directory))

    def _keep(self, directory: str, file: WrappedKeys) -> None:
        self._write(directory, _formatted(file))

    def _read(self, name: str) -> bytes | None:
        try:
            file = opened(self.path / name, self._confirm)
            if file is None:
                return None
            with file:
                return file.read()
        except OSError as error:
            raise translated(error, self.path) from error

    def _write(self, name: str, content: bytes) -> None:
        self._confirm()
        try:
            if not self.path.is_dir():
                self.path.mkdir(mode=0o700)
                sync_directory(self.path.parent)
            replace_file(self.path / name, content)
        except OSError as error:
            raise translated(error, self.path) from error


def wrapped_again(content: bytes, directory: str, old: MasterKey, new: MasterKey) -> bytes:
    """Return the file of an agent's keys, wrapped with another master key; the same if it is already.

    Raise MASTER_KEY_REFUSED for keys that neither of the two has wrapped, and STORE_CORRUPTED.
    """
    file = _parsed(content)
    if file.master == new.fingerprint:
        return content
    if file.master != old.fingerprint:
        raise Precondition(
            f"The key of this agent is wrapped with the master key {file.master}, not with {old.fingerprint}.",
            reason="MASTER_KEY_REFUSED",
        )
    unwrapped = [(key, old.unwrap(directory, key.id, key.wrapped)) for key in file.keys]
    keys = [replace(key, wrapped=new.wrap(directory, key.id, own)) for key, own in unwrapped]
    return _formatted(WrappedKeys(new.fingerprint, keys))


def _formatted(file: WrappedKeys) -> bytes:
    return msgspec.json.format(msgspec.json.encode(file), indent=2)


def _parsed(content: bytes | None) -> WrappedKeys:
    """Return the keys in a file; none without one. Raise STORE_CORRUPTED."""
    if content is None:
        return WrappedKeys("", [])
    try:
        return msgspec.json.decode(content, type=WrappedKeys)
    except msgspec.DecodeError as error:
        raise Corrupted("The agent's key file cannot be read.", reason="STORE_CORRUPTED") from error
