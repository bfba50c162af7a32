"""`DATA_DIR/keys.json`: the stored API keys. The daemon reads the file, the command line changes it.

The file never contains a secret. A change writes a new file, syncs it and renames it over the old one, so a reader sees
one or the other. Writers take a lock of their own (`keys.lock`), since the daemon has the lock of the directory. An
unreadable file is KEY_FILE_UNUSABLE and stays as it is: access is never guessed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ebbtide.access.keys import ID_LENGTH, Key
from ebbtide.access.requirements import SCOPES
from ebbtide.errors import Exhausted, Precondition
from ebbtide.store.durable import replace_file

T = TypeVar("T")

NAME = "keys.json"
LOCK_NAME = "keys.lock"
VERSION = 1

MAX_KEYS = 10_000
"""Most keys that are not revoked."""

KEPT_REVOKED = 1000
"""Most revoked keys that stay in the file; the oldest are dropped."""

MAX_FILE_BYTES = 64 << 20

_ID = re.compile(rf"[a-z0-9]{{{ID_LENGTH}}}")
_HASH = re.compile(r"[0-9a-f]{64}")

Stamp = tuple[int, int, int]
"""Identifies a version of the file: inode, size and modification time."""


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    version: int
    keys: tuple[Key, ...]


_DECODER = msgspec.json.Decoder(Document)
# Created here, on one thread: see `store/codec.py`.


class KeyFile:
    """The keys of one data directory. Methods block."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / NAME

    def stamp(self) -> Stamp | None:
        """Return the version of the file; None without one. KEY_FILE_UNUSABLE if it cannot be read."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error.strerror or "it cannot be read") from error
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def read(self) -> tuple[Key, ...]:
        """Return the keys; none without a file. KEY_FILE_UNUSABLE for an invalid file."""
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(error.strerror or "it cannot be read") from error
        if len(content) > MAX_FILE_BYTES:
            raise self._unusable("it is too large")
        try:
            document = _DECODER.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("it does not have the format of this version") from error
        fault = _fault(document)
        if fault:
            raise self._unusable(fault)
        return document.keys

    @property
    def is_open_to_others(self) -> bool:
        """Return whether users other than the owner may read or write the file."""
        with contextlib.suppress(OSError):
            return bool(self.path.stat().st_mode & 0o077)
        return False

    def change(self, alter: Callable[[Sequence[Key]], tuple[list[Key], T]]) -> T:
        """Replace the keys with those that `alter` returns, durably. Return its second result.

        Two changes at once take turns, so that neither is lost. QUOTA_REACHED beyond MOST_KEYS.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            keys, result = alter(self.read())
            self._write(_kept(keys))
        return result

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self.path.parent / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._give(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, keys: Sequence[Key]) -> None:
        content = msgspec.json.format(msgspec.json.encode(Document(VERSION, tuple(keys))), indent=2)
        replace_file(self.path, content, b"\n", adopt=self._give)

    def _give(self, descriptor: int) -> None:
        """Give the file to the owner of its directory: the daemon could not read a file of root's."""
        if os.geteuid() == 0:
            owner = self.path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)

    def _unusable(self, why: str) -> Precondition:
        return Precondition(
            f"the file of API keys {self.path} cannot be used: {why}", reason="KEY_FILE_UNUSABLE"
        )


def _kept(keys: Sequence[Key]) -> list[Key]:
    """Return the valid keys and the latest revoked ones."""
    revoked = sorted(
        (key for key in keys if key.revoked_at_ms is not None), key=lambda key: key.revoked_at_ms or 0
    )
    dropped = {key.id for key in revoked[:-KEPT_REVOKED]}
    kept = [key for key in keys if key.id not in dropped]
    if len(kept) - min(len(revoked), KEPT_REVOKED) > MAX_KEYS:
        raise Exhausted(
            f"There are {MAX_KEYS} keys already. Revoke some.",
            reason="QUOTA_REACHED",
            metadata={"quota": "keys", "limit": str(MAX_KEYS)},
        )
    return kept


def _fault(document: Document) -> str:
    """Return what is wrong with a readable file; empty if nothing is."""
    if document.version != VERSION:
        return f"it has version {document.version}, this version reads {VERSION}"
    if len(document.keys) > MAX_KEYS + KEPT_REVOKED:
        return "it has too many keys"
    if len({key.id for key in document.keys}) != len(document.keys):
        return "two keys have the same id"
    for index, key in enumerate(document.keys):
        is_whole = _ID.fullmatch(key.id) and _HASH.fullmatch(key.secret_sha256)
        if not is_whole or not key.scopes or not set(key.scopes) <= set(SCOPES):
            return f"its key {index + 1} is damaged"
        # An empty prefix would mean every agent.
        if not all((*key.agents, *key.agent_prefixes)):
            return f"its key {index + 1} is bound to an empty name"
        if key.requests_per_s is not None and key.requests_per_s <= 0:
            return f"its key {index + 1} has no rate"
        if key.max_agents is not None and key.max_agents < 0:
            return f"its key {index + 1} has a bound below 0"
    return ""
