"""The codec of stores, and what it must know before there are threads.

msgspec works out how to read a type when it first meets it. Two threads that meet one for the first time together
crash the process: the second one uses what the first one has not finished (seen with 0.22; at a start with several
agents to open). So every type that is read from a store is met here, when the module is imported.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ebbtide.bounds import DecayRate, Focus, Overrides
from ebbtide.events import EventRecord
from ebbtide.records import (
    Batch,
    EmbeddedMessage,
    EmbeddingState,
    MessageRecord,
    Node,
    NodeText,
    PassageEntry,
    PassState,
    Receipt,
)
from ebbtide.store.chain import AuditRecord
from ebbtide.store.port import Identity

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not what they should be."""

encode = msgspec.msgpack.encode
decode = msgspec.msgpack.decode

KNOWN: tuple[Any, ...] = (
    AuditRecord,
    Batch,
    EmbeddedMessage,
    EmbeddingState,
    EventRecord,
    Identity,
    MessageRecord,
    Node,
    NodeText,
    PassState,
    PassageEntry,
    Receipt,
    list[PassageEntry],
    dict[str, object],
    Focus,
    DecayRate,
    Overrides,
)


def make_known(*kinds: Any) -> None:
    """Let the codec meet types; on import, that is on one thread."""
    for kind in kinds:
        msgspec.msgpack.Decoder(kind)
        msgspec.json.Decoder(kind)


make_known(*KNOWN)
