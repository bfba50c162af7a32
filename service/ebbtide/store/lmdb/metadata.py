"""Metadata as it is stored: a JSON object as text, no larger and no deeper than a request may send it."""

from __future__ import annotations

import msgspec

from ebbtide.bounds import MAX_METADATA_CHARS, MAX_METADATA_DEPTH
from ebbtide.store.codec import UNDECODABLE


def is_metadata(text: str) -> bool:
    """Whether a text is a JSON object within the bounds of metadata."""
    if len(text) > MAX_METADATA_CHARS:
        return False
    try:
        found: object = msgspec.json.decode(text, type=dict[str, object])
    except UNDECODABLE:
        return False
    return _depth(found) <= MAX_METADATA_DEPTH


def _depth(value: object) -> int:
    """How many objects and lists are within each other; one more than the bound where there are more."""
    level, depth = [value], 0
    while level and depth <= MAX_METADATA_DEPTH:
        inner = [one for one in level if isinstance(one, dict | list)]
        depth += bool(inner)
        level = [one for held in inner for one in (held.values() if isinstance(held, dict) else held)]
    return depth
