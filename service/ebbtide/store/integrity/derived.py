"""What must be true of an entry that is derived, given what it is derived from.

The checker finds with it what is off, the rebuild drops or counts anew by it: both ask here, so that what one of them
calls wrong the other does not take for right. Pure functions; no transaction is read or written here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ebbtide.bounds import LENGTH_TOLERANCE
from ebbtide.records import EmbeddedMessage, MessageRecord, Node, PassageEntry
from ebbtide.store import layout
from ebbtide.store.codec import UNDECODABLE


def references(records: Iterable[MessageRecord], nodes: Iterable[Node]) -> Counter[bytes]:
    """How often each chunk is referred to."""
    records = list(records)
    counts: Counter[bytes] = Counter(record.text_key for record in records if record.text_key)
    counts.update(node.first_key for node in nodes if node.first_key)
    counts.update(record.metadata_key for record in records if record.metadata_key)
    return counts


def citing(nodes: Iterable[Node]) -> dict[int, set[int]]:
    """Message to the memories that cite some of its words."""
    found: dict[int, set[int]] = {}
    for node in nodes:
        for source in filter(lambda one: one.length, node.sources):
            found.setdefault(source.message, set()).add(node.id)
    return found


def told_by(value: bytes) -> set[int]:
    """The memories by which the passages of a message without its text are told."""
    entries = layout.decode(value, type=list[PassageEntry])
    return {node_id for entry in entries for node_id in entry.told_by}


def passages_fit(value: bytes, length: int | None) -> int | None:
    """How many passages these are, if they cover a text of a length from begin to end, with terms in order.

    None where they do not. The end of a text that is gone is not known.
    """
    try:
        entries = layout.decode(value, type=list[PassageEntry])
    except UNDECODABLE:
        return None
    place = 0
    for entry in entries:
        terms = np.frombuffer(entry.terms, dtype="<u4") if len(entry.terms) % 4 == 0 else None
        if terms is None or len(terms) != len(entry.counts) or entry.begin != place:
            return None
        if np.any(terms[1:] <= terms[:-1]):
            return None
        place += entry.length
    return len(entries) if length in (None, place) else None


def are_vectors_of(value: bytes, passage_count: int | None, newest_stamp: int) -> bool:
    """Whether these are vectors for each passage, of one size, under a stamp that was given; older ones may wait."""
    try:
        embedded = layout.decode(value, type=EmbeddedMessage)
    except UNDECODABLE:
        return False
    if embedded.stamp != newest_stamp:
        return 0 < embedded.stamp < newest_stamp
    vectors = [vector for vector in embedded.vectors if vector]
    if len({len(vector) for vector in vectors}) > 1 or any(len(vector) % 2 for vector in vectors):
        return False
    rows = np.frombuffer(b"".join(vectors), dtype="<f2").astype(np.float32)
    rows = rows.reshape(len(vectors), len(vectors[0]) // 2 if vectors else 0)
    squares = np.einsum("ij,ij->i", rows, rows)
    are_directions = bool(np.all(np.abs(squares - 1) <= LENGTH_TOLERANCE))
    return are_directions and passage_count in (None, len(embedded.vectors))
