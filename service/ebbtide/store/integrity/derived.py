"""Rules for derived entries: what must hold, given the entries that they are derived from.

The checker and the rebuild both use these functions, so they agree on which entries are wrong. Pure functions: no
transaction is read or written here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from ebbtide.bounds import (
    LENGTH_TOLERANCE,
    MAX_METADATA_CHARS,
    MAX_METADATA_DEPTH,
    MAX_RECORD_BYTES,
    MAX_RECORD_DEPTH,
    REDACTION_GROWTH,
)
from ebbtide.records import Life, MessageRecord, Node
from ebbtide.store.codec import UNDECODABLE
from ebbtide.store.layout import PASSAGES, VECTORS


def references(records: Iterable[MessageRecord], nodes: Iterable[Node]) -> Counter[bytes]:
    """Return the number of references to each chunk."""
    counts: Counter[bytes] = Counter(node.first_key for node in nodes if node.first_key)
    for record in records:
        counts.update(key for key in (record.text_key, record.metadata_key) if key)
        counts.update(one.sha256 for one in record.attachments)
    return counts


def life_fault(life: Life, node: Node | None, current_pass: int) -> str:
    """Return what is wrong with the life of a memory; `node` is None for one that does not live."""
    if life.after >= current_pass or life.forgotten_in > current_pass:
        return "is of a pass that has not begun"
    if node is None:
        return "" if life.forgotten_in > life.after else "has no end, but its memory is missing"
    if life.forgotten_in:
        return "has an end, but its memory lives"
    return "" if life.length == node.original_length else "has another length than its memory"


Citation = tuple[int, int, int]
"""A memory that cites a message: its node id, and the offset and length of the cited bytes."""


def citations(nodes: Iterable[Node]) -> dict[int, set[Citation]]:
    """Return the memories that cite each message, with the cited bytes."""
    found: dict[int, set[Citation]] = {}
    for node in nodes:
        for source in filter(lambda one: one.length, node.sources):
            found.setdefault(source.message, set()).add((node.id, source.offset, source.length))
    return found


def citings(nodes: Iterable[Node]) -> dict[int, tuple[int, ...]]:
    """Return the ascending ids of the nodes whose sources name each message."""
    found: dict[int, set[int]] = {}
    for node in nodes:
        for source in node.sources:
            found.setdefault(source.message, set()).add(node.id)
    return {message: tuple(sorted(ids)) for message, ids in found.items()}


def are_passages_of(value: bytes, cited: set[Citation]) -> bool:
    """Return whether each passage of a withdrawn message names exactly the memories that cite bytes of it.

    Every citing memory must be named by a passage: one that is not would be lost at the next change of the message.
    """
    entries = PASSAGES.value.decode(value)
    ends = [entry.begin + entry.length for entry in entries]
    expected: list[set[int]] = [set() for _ in entries]
    named: set[int] = set()
    left = sum(len(entry.told_by) for entry in entries)
    for node, offset, length in cited:
        place = bisect_right(ends, offset)
        while place < len(entries) and entries[place].begin < offset + length:
            if node not in expected[place]:
                expected[place].add(node)
                left -= 1
            if left < 0:
                # More than the passages name: the work stays in proportion to what is stored.
                return False
            named.add(node)
            place += 1
    are_equal = all(set(entry.told_by) == nodes for entry, nodes in zip(entries, expected, strict=True))
    return are_equal and named == {node for node, _, _ in cited}


def passages_fit(value: bytes, length: int | None) -> int | None:
    """Return the number of passages if they cover a text of a length without gaps, with terms in order; else None.

    The length of a withdrawn text is unknown: pass None.
    """
    try:
        entries = PASSAGES.value.decode(value)
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
    """Return whether these are unit vectors of one size, one for each passage, under a stamp that was used.

    Vectors under an older stamp wait to be replaced; only their stamp is checked.
    """
    try:
        embedded = VECTORS.value.decode(value)
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
    are_unit = bool(np.all(np.abs(squares - 1) <= LENGTH_TOLERANCE))
    return are_unit and passage_count in (None, len(embedded.vectors))


def is_metadata(text: str) -> bool:
    """Return whether a text is a JSON object within the bounds of metadata."""
    return len(text) <= MAX_METADATA_CHARS and _is_object(text, MAX_METADATA_DEPTH)


def is_record_value(text: str | bytes) -> bool:
    """Return whether a text is a JSON object within the bounds of the value of a record."""
    return len(text) <= REDACTION_GROWTH * MAX_RECORD_BYTES and _is_object(text, MAX_RECORD_DEPTH)


def _is_object(text: str | bytes, most: int) -> bool:
    try:
        found: object = msgspec.json.decode(text, type=dict[str, object])
    except UNDECODABLE:
        return False
    return depth_of(found, most) <= most


def depth_of(value: object, most: int) -> int:
    """Return the depth of nested objects and lists; at most one more than a bound."""
    level, depth = [value], 0
    while level and depth <= most:
        inner = [one for one in level if isinstance(one, dict | list)]
        depth += bool(inner)
        level = [one for held in inner for one in (held.values() if isinstance(held, dict) else held)]
    return depth
