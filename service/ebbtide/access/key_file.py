"""`DATA_DIR/keys.json`: the keys as they are kept, read by the daemon, changed by the command line.

It never holds a secret. It is replaced whole: written beside, synced, renamed, so whoever reads sees the one or the
other; changes take turns by a lock file of their own (`keys.lock`), since the daemon holds the directory's lock.
What cannot be read is KEY_FILE_UNUSABLE and is left as it is: nothing is guessed about who may call.
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

MOST_KEYS = 10_000
"""Most keys that count."""

KEPT_REVOKED = 1000
"""Revoked keys that are still listed, the latest ones."""

MOST_FILE_BYTES = 64 << 20

_ID = re.compile(rf"[a-z0-9]{{{ID_LENGTH}}}")
_HASH = re.compile(r"[0-9a-f]{64}")

Stamp = tuple[int, int, int]
"""What tells one version of the file from another: its inode, its size and when it was written."""


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in the file."""

    version: int
    keys: tuple[Key, ...]


_DECODER = msgspec.json.Decoder(Document)
# Made here, on one thread: see `store/codec.py`.


class KeyFile:
    """The keys of one data directory. Methods block."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / NAME

    def stamp(self) -> Stamp | None:
        """Which version is there; None when there is no file. KEY_FILE_UNUSABLE when it cannot be looked at."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error.strerror or "it cannot be read") from error
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def read(self) -> tuple[Key, ...]:
        """The keys; none when there is no file. KEY_FILE_UNUSABLE for what is no such file."""
        try:
            with self.path.open("rb") as file:
                content = file.read(MOST_FILE_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(error.strerror or "it cannot be read") from error
        if len(content) > MOST_FILE_BYTES:
            raise self._unusable("it is too large")
        try:
            document = _DECODER.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("it is not as this Ebbtide writes it") from error
        fault = _fault(document)
        if fault:
            raise self._unusable(fault)
        return document.keys

    @property
    def is_open_to_others(self) -> bool:
        """Whether someone else than its owner may read or write the file."""
        with contextlib.suppress(OSError):
            return bool(self.path.stat().st_mode & 0o077)
        return False

    def change(self, alter: Callable[[Sequence[Key]], tuple[list[Key], T]]) -> T:
        """Replace the keys by what `alter` makes of them, durably; what it gives beside them.

        Two changes at once take turns, so that neither is lost. QUOTA_REACHED beyond MOST_KEYS.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            keys, told = alter(self.read())
            self._write(_kept(keys))
        return told

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
        """What root makes belongs to whose directory it is, or the daemon there could not read it."""
        if os.geteuid() == 0:
            owner = self.path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)

    def _unusable(self, why: str) -> Precondition:
        return Precondition(
            f"the file of API keys {self.path} cannot be used: {why}", reason="KEY_FILE_UNUSABLE"
        )


def _kept(keys: Sequence[Key]) -> list[Key]:
    """Keys that count, and the latest of those that were revoked."""
    revoked = sorted(
        (key for key in keys if key.revoked_at_ms is not None), key=lambda key: key.revoked_at_ms or 0
    )
    dropped = {key.id for key in revoked[:-KEPT_REVOKED]}
    kept = [key for key in keys if key.id not in dropped]
    if len(kept) - min(len(revoked), KEPT_REVOKED) > MOST_KEYS:
        raise Exhausted(
            f"there are {MOST_KEYS} keys already; revoke some",
            reason="QUOTA_REACHED",
            metadata={"quota": "keys", "limit": str(MOST_KEYS)},
        )
    return kept


def _fault(document: Document) -> str:
    """What is wrong with a file that can be read; empty when nothing is."""
    if document.version != VERSION:
        return f"it has version {document.version}, this Ebbtide knows {VERSION}"
    if len(document.keys) > MOST_KEYS + KEPT_REVOKED:
        return "it holds too many keys"
    if len({key.id for key in document.keys}) != len(document.keys):
        return "two keys have one id"
    for index, key in enumerate(document.keys):
        is_whole = _ID.fullmatch(key.id) and _HASH.fullmatch(key.secret_sha256)
        if not is_whole or not key.scopes or not set(key.scopes) <= set(SCOPES):
            return f"its key {index + 1} is damaged"
        # An empty prefix would be every agent without saying so.
        if not all((*key.agents, *key.agent_prefixes)):
            return f"its key {index + 1} is bound to an empty name"
        if key.requests_per_s is not None and key.requests_per_s <= 0:
            return f"its key {index + 1} has no rate"
        if key.max_agents is not None and key.max_agents < 0:
            return f"its key {index + 1} has a bound below 0"
    return ""
