"""The wrapped data keys of a data directory: one small file an agent, apart from everything that is backed up.

    DATA_DIR/keys/<directory>          the data keys of one agent, wrapped under the master key
    DATA_DIR/keys/.master              fingerprint of the master key in force

A key is there, durably, before anything is sealed with it, and goes when nothing is any more; so a store that can be
read can be read after a crash, too. Two keys lie in a file only while a store is rewritten. Without its file an agent
cannot be read by anybody, whoever has a copy of the rest: to destroy the file is to erase the agent.

Once there was a master key, a daemon without it, or with another, does not start: it would keep in plain what was
meant to be sealed, or make keys that nobody else can unwrap.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator, Set
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
from ebbtide.store.presence import Confirm, nothing_to_confirm
from ebbtide.store.translation import translated
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.settings import EncryptionSettings
    from ebbtide.store.encryption.seal import MasterKey, Seal

_MASTER_FILE = ".master"


class WrappedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """One data key of an agent, wrapped."""

    id: int
    wrapped: bytes
    staged: bool = False
    """Whether its store has no place yet."""
    arriving: str = ""
    """Its fingerprint, from before its store takes its place on."""


class WrappedKeys(msgspec.Struct, frozen=True):
    """The file of one agent's keys, oldest first."""

    master: str
    keys: list[WrappedKey]


make_known(WrappedKeys)


def master_key_of(settings: EncryptionSettings) -> MasterKey | None:
    """The master key that is set, None when there is none. MASTER_KEY_REFUSED when it cannot be had."""
    text = settings.master_key.get_secret_value()
    if settings.master_key_file:
        return read_master_key(Path(settings.master_key_file))
    if not text:
        return None
    from ebbtide.store.encryption.seal import parse_master_key

    return parse_master_key(text)


def read_master_key(path: Path) -> MasterKey:
    """The master key in a file. MASTER_KEY_REFUSED when it cannot be read or is none."""
    from ebbtide.store.encryption.seal import parse_master_key

    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Precondition(
            f"the file of the master key {path} cannot be read: {why}", reason="MASTER_KEY_REFUSED"
        ) from error
    return parse_master_key(text)


def is_open_to_all(path: Path) -> bool:
    """Whether the mode of a file lets every user of the machine read or write it. A group is its owner's own choice."""
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
        self._changing = threading.RLock()
        self._staged: dict[tuple[str, str], Path] = {}
        """Where the store of a key lies that has no place yet, by directory and fingerprint: nobody else lets it go."""

    @property
    def are_locked(self) -> bool:
        """Whether agents are sealed here under a master key that nobody has shown."""
        return self._master is None and bool(self.master_fingerprint())

    @property
    def seals_new_agents(self) -> bool:
        """Whether agents made from now on are sealed."""
        return self._master is not None

    def admit(self) -> None:
        """MASTER_KEY_REFUSED unless the master key is the one that this directory is used with, or the first."""
        known = self.master_fingerprint()
        if self._master is None:
            if known:
                raise Precondition(
                    f"agents in this data directory are sealed under the master key {known}; set "
                    "encryption.master_key_file, or remove keys/.master to keep new agents in plain",
                    reason="MASTER_KEY_REFUSED",
                )
        elif not known:
            self._write(_MASTER_FILE, self._master.fingerprint.encode())
        elif known != self._master.fingerprint:
            raise Precondition(
                f"this data directory is used with the master key {known}, not with "
                f"{self._master.fingerprint}; `ebbtide encryption rotate-master` changes it, "
                "and goes on where it was cut off",
                reason="MASTER_KEY_REFUSED",
            )

    def master_fingerprint(self) -> str:
        """The fingerprint of the master key this directory is used with; empty where there never was one."""
        return (self._read(_MASTER_FILE) or b"").decode(errors="replace").strip()

    # --- the keys of one agent ---------------------------------------------------------------------

    def has_keys(self, directory: str) -> bool:
        """Whether there are keys for the agent in a directory."""
        return (self.path / directory).exists()

    def seal_of(self, directory: str, fingerprint: str) -> Seal:
        """The seal of the agent's key with this fingerprint. DATA_KEY_MISSING when there is none."""
        for seal in self._seals(self._file(directory), directory):
            if seal.fingerprint == fingerprint:
                return seal
        raise Precondition(
            f"the key {fingerprint} that this agent is sealed with is not there: it was destroyed, or its file "
            "in keys/ was not brought along",
            reason="DATA_KEY_MISSING",
        )

    def begin(self, directory: str) -> Seal:
        """A key for a new agent; whatever key an agent of this name had is destroyed, unless it is to be its next."""
        with self._changing:
            self.keep_staged(directory)
            return self.add(directory)

    def stage(self, directory: str, store: Path) -> Seal:
        """A key for a store that is to take the place of an agent's, beside those that are there."""
        with self._changing:
            seal = self.add(directory, staged=True)
            self._staged[directory, seal.fingerprint] = store
            return seal

    def arrive(self, directory: str, fingerprint: str) -> None:
        """The store of a key is about to take its place: a start keeps the key unless it finds the store elsewhere."""
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

    def take_up(self, directory: str, fingerprint: str) -> None:
        """The store of a key has taken its place: the key goes when no store needs it any more, and not before."""
        with self._changing:
            self._staged.pop((directory, fingerprint), None)

    def give_up(self, folder: Path) -> None:
        """Let go of keys whose stores lie in a folder and take no place any more."""
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

    def drop_staged(self, unplaced: Set[str]) -> None:
        """Remove, at a start, the keys of stores that did not take their place. Needs no master key.

        `unplaced` are the fingerprints that stores are sealed with which still lie where they were made.
        """
        for directory in self.directories():
            try:
                file = self._file(directory)
                kept = [key for key in file.keys if not (key.staged or key.arriving in unplaced)]
                if len(kept) < len(file.keys):
                    self._cut(directory, file, kept)
            except EbbtideError as error:
                get_log("store").warning("key not removed", directory=directory, exc_info=error)

    def add(self, directory: str, *, staged: bool = False) -> Seal:
        """One more key for an agent, kept durably before this returns."""
        from ebbtide.store.encryption.seal import MOST_KEY_IDS, Seal, new_data_key

        self.admit()
        with self._changing:
            file = self._file(directory)
            kept, master = file.keys, self._master_for(file)
            key_id = kept[-1].id % MOST_KEY_IDS + 1 if kept else 1
            data_key = new_data_key()
            fresh = WrappedKey(key_id, master.wrap(directory, key_id, data_key), staged)
            self._keep(directory, WrappedKeys(master.fingerprint, [*kept, fresh]))
            return Seal(key_id, data_key)

    def keep_only(self, directory: str, fingerprint: str) -> None:
        """Let the other keys of an agent go: nothing is sealed with them any more."""
        with self._changing:
            self._drop_but(directory, {fingerprint})

    def keep_staged(self, directory: str) -> None:
        """Let the keys of an agent go that is not sealed any more, but for those of what is on its way."""
        with self._changing:
            if any(owner == directory for owner, _ in self._staged):
                self._drop_but(directory, set())
            else:
                self.destroy(directory)

    def _drop_but(self, directory: str, fingerprints: set[str]) -> None:
        file = self._file(directory)
        staged = {own for owner, own in self._staged if owner == directory}
        seals = zip(file.keys, self._seals(file, directory), strict=True)
        # What is in use has arrived.
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
        """Overwrite and remove the keys of an agent; whether there were any. Needs no master key."""
        try:
            with self._changing:
                self._confirm()
                return overwrite_and_remove(self.path / directory)
        except OSError as error:
            raise translated(error, self.path) from error

    def remove_leftovers(self) -> None:
        """Finish, at a start, what was cut off: keys that were to be destroyed, and files not written to their end."""
        for path in fresh_files(self.path):
            overwrite_and_unlink(path)

    # --- another master key ------------------------------------------------------------------------

    def rotate_master(self, new: MasterKey) -> int:
        """Wrap every key under another master key; how many agents were still under the old one.

        Cut off, it is to be run again with the same two keys: what is done already is passed over.
        """
        known = self.master_fingerprint()
        if self._master is None or known not in (self._master.fingerprint, new.fingerprint):
            raise Precondition(
                f"the keys of this data directory are wrapped under the master key {known or '(none)'}",
                reason="MASTER_KEY_REFUSED",
            )
        rotated = 0
        for directory in self.directories():
            file = self._file(directory)
            if file.master == new.fingerprint:
                continue
            unwrapped = [(key, self._unwrapped(file, directory, key)) for key in file.keys]
            keys = [replace(key, wrapped=new.wrap(directory, key.id, own)) for key, own in unwrapped]
            self._keep(directory, WrappedKeys(new.fingerprint, keys))
            rotated += 1
        self._write(_MASTER_FILE, new.fingerprint.encode())
        return rotated

    def directories(self) -> Iterator[str]:
        """Directories of agents that have keys, in order."""
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
                "this agent is sealed; set encryption.master_key_file to the master key "
                f"{file.master or self.master_fingerprint() or 'of this data directory'}",
                reason="MASTER_KEY_REFUSED",
            )
        if file.master not in ("", self._master.fingerprint):
            raise Precondition(
                f"the key of this agent is wrapped under the master key {file.master}, "
                f"not under {self._master.fingerprint}",
                reason="MASTER_KEY_REFUSED",
            )
        return self._master

    def _file(self, directory: str) -> WrappedKeys:
        content = self._read(directory)
        if content is None:
            return WrappedKeys("", [])
        try:
            return msgspec.json.decode(content, type=WrappedKeys)
        except msgspec.DecodeError as error:
            raise Corrupted(
                "the file of the agent's keys cannot be read", reason="STORE_CORRUPTED"
            ) from error

    def _keep(self, directory: str, file: WrappedKeys) -> None:
        self._write(directory, msgspec.json.format(msgspec.json.encode(file), indent=2))

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            # There is no key, or the whole directory is gone.
            self._confirm()
            return None
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
