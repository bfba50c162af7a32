"""The log of erased agents of a cluster: one document on the log servers for each record, by number.

A record is written only if there is none with its number, so all nodes have one chain. Nothing here is ever deleted.
"""

from __future__ import annotations

import hashlib

import msgspec

from ebbtide.cluster.log import NoAnswer, Refused, Timing, not_enough_servers
from ebbtide.cluster.membership import Documents
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.store.audit.erased_agents import SharedRecord
from ebbtide.store.codec import make_known

PIECE_BYTES = 512 << 10
"""Largest piece of a record: an agent may have a million keyed hashes."""


class _Document(msgspec.Struct, frozen=True, array_like=True):
    """The last piece of a record, and the name and number of the pieces before."""

    piece: bytes
    name: str
    pieces_before: int


make_known(_Document)


class ErasedLog:
    """The log as one node uses it. Calls block, and raise NOT_ENOUGH_LOG_SERVERS without an answer."""

    def __init__(self, documents: Documents, names: Names, timing: Timing | None = None) -> None:
        self._documents = documents
        self._names = names
        self._timing = timing or Timing()

    def record(self, number: int) -> SharedRecord | None:
        """Return the record with a number; None if there is none yet."""
        last = self._read(self._names.erased(number))
        if last is None:
            return None
        document = msgspec.msgpack.decode(last, type=_Document)
        pieces = [
            self._read(self._names.erased_piece(document.name, place)) or b""
            for place in range(document.pieces_before)
        ]
        return msgspec.msgpack.decode(b"".join((*pieces, document.piece)), type=SharedRecord)

    def claim(self, number: int, record: SharedRecord) -> bool:
        """Write a record. Return False if another one has this number."""
        body = msgspec.msgpack.encode(record)
        pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]
        name = hashlib.sha256(body).hexdigest()
        for place, piece in enumerate(pieces[:-1]):
            self._write(self._names.erased_piece(name, place), piece)
        document = msgspec.msgpack.encode(_Document(pieces[-1], name, len(pieces) - 1))
        return self._write(self._names.erased(number), document)

    def _read(self, subject: str) -> bytes | None:
        found = answered(lambda: self._documents.read(subject), self._timing)
        return None if found is None else found[0]

    def _write(self, subject: str, content: bytes) -> bool:
        """Write a document that does not exist. Return False if another one does."""
        for _ in self._timing.attempts():
            try:
                self._documents.write(subject, content, 0)
                return True
            except NoAnswer:
                continue
            except Refused:
                # By another node, or by an earlier attempt.
                found = self._read(subject)
                if found is not None:
                    return found == content
        raise not_enough_servers()
