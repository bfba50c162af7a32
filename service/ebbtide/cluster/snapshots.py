"""Contents of stores as objects in S3, to which the logs of their agents refer. No network code.

Three rules make it safe to delete objects without any lock, also on a node that was deposed:

1. The name of an object has the record that was the last one of the agent before it was stored. A reference to it can
   only be appended after that record.
2. Once a log has a rebase, none of the objects that were named before it can get a reference any more, because their
   append is refused. They are deleted, but for the one that this rebase refers to.
3. Objects are deleted before the records that referred to them. So records that are left say that objects may be left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from ebbtide.errors import Corrupted, Unavailable
from ebbtide.store.codec import INVALID, make_known

REFERENCE: Final = b"\2"
"""The first byte of a body that is a reference. It is no form of an entry: earlier versions raise FORMAT_TOO_NEW."""


class Objects(Protocol):
    """Named objects. Every call blocks, has a deadline, and may raise SNAPSHOTS_UNAVAILABLE."""

    def put(self, key: str, content: bytes) -> None:
        """Store an object, durably."""
        ...

    def get(self, key: str, size: int) -> bytes | None:
        """Return an object of about this size; None if there is none."""
        ...

    def keys(self, folder: str) -> Sequence[str]:
        """Return the keys of all objects that begin with `folder` and a slash."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. One that is missing already is no error."""
        ...


class Reference(msgspec.Struct, array_like=True, frozen=True):
    """Where the content of a store is. The hash chain of the log covers it."""

    last: int
    """The last record of the agent before the object was stored."""
    size: int
    sha256: bytes

    @property
    def name(self) -> str:
        """The name of the object in the folder of its agent."""
        return f"{self.last:020}-{self.sha256.hex()}"


make_known(Reference)


class Snapshots:
    """The objects of all agents."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put(self, subject: str, last: int, content: bytes) -> bytes:
        """Store the content of an agent and read it back. Return the body that refers to it.

        `last` is the last record of the agent.
        """
        reference = Reference(last, len(content), hashlib.sha256(content).digest())
        self._objects.put(_key(subject, reference.name), content)
        if self._read(subject, reference) is None:
            raise unavailable("S3 returns something else than was stored there.")
        return REFERENCE + msgspec.msgpack.encode(reference)

    def get(self, subject: str, body: bytes) -> bytes | Corrupted:
        """Return the content that a body refers to, or the error if there is none with that checksum."""
        reference = reference_in(body)
        assert reference is not None
        content = self._read(subject, reference)
        if content is not None:
            return content
        return Corrupted(
            f"The log of the agent refers to the object {_key(subject, reference.name)} in S3, which is missing or "
            "has another checksum.",
            reason="LOG_BEHIND",
        )

    def _read(self, subject: str, reference: Reference) -> bytes | None:
        content = self._objects.get(_key(subject, reference.name), reference.size)
        is_equal = content is not None and hashlib.sha256(content).digest() == reference.sha256
        return content if is_equal else None

    def erase_before(self, subject: str, start: int, kept: bytes) -> None:
        """Delete every object of an agent that is older than the rebase or deletion `start`.

        `kept` is the body of that record, which may refer to one of them.
        """
        self.delete(subject, [name for name in self.names(subject) if _last_in(name) < start], kept)

    def names(self, subject: str) -> list[str]:
        """Return the names of all objects of an agent, in its folder."""
        return [key.rpartition("/")[2] for key in self._objects.keys(_folder(subject))]

    def delete(self, subject: str, names: Sequence[str], kept: bytes) -> None:
        """Delete objects of an agent, but the one that the body `kept` refers to, if it does."""
        reference = reference_in(kept)
        keys = [_key(subject, name) for name in names if reference is None or name != reference.name]
        if keys:
            self._objects.delete(keys)


def reference_in(body: bytes) -> Reference | None:
    """Return the reference that a body is; None for another body."""
    if body[:1] != REFERENCE:
        return None
    try:
        return msgspec.msgpack.decode(body[1:], type=Reference)
    except INVALID as error:
        raise ValueError("The bytes are not a reference.") from error


def unavailable(message: str) -> Unavailable:
    """Return the error for objects that cannot be read or stored at the moment."""
    return Unavailable(message, reason="SNAPSHOTS_UNAVAILABLE", retry_after_s=5.0)


def _folder(subject: str) -> str:
    """Return the folder of the agent that has a subject: the name of the cluster, and the agent's directory."""
    parts = subject.split(".")
    return f"{parts[0]}/{parts[-1]}"


def _key(subject: str, name: str) -> str:
    return f"{_folder(subject)}/{name}"


def _last_in(name: str) -> int:
    """Return the record in the name of an object; beyond all records for the name of anything else."""
    digits = name.partition("-")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else 1 << 64
