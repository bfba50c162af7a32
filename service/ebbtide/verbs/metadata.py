"""Metadata: fields of the caller's own that are kept with what was said, and by which it is found again.

A batch's metadata is any JSON object. That of a message, and whatever is looked for, is flat: a text, a number or a
truth value under each name. A message has its own over its batch's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ebbtide.privacy.spans import redacted
from ebbtide.settings import LimitSettings
from ebbtide.verbs.forms import check_text, refuse, shown

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def metadata_json(field: str, metadata: Mapping[str, Any] | None, most: int) -> str:
    """The metadata as JSON, written no further than it may go; empty for none."""
    if metadata is None:
        return ""
    parts: list[str] = []
    size = 0
    try:
        for part in _JSON.iterencode(metadata):
            parts.append(part)
            size += len(part.encode())
            if size > most:
                refuse(field, f"more than {most} bytes", f"at most {most} bytes", "METADATA_TOO_LARGE")
    except ValueError:
        refuse(field, "infinity", "numbers that JSON can write")
    return "".join(parts)


def check_flat(field: str, metadata: Mapping[str, Any] | None, limits: LimitSettings) -> None:
    """Refuse what is not flat, or too large."""
    metadata_json(field, metadata, limits.max_metadata_bytes)
    for name, value in (metadata or {}).items():
        if not name:
            refuse(field, name, "names that are not empty")
        check_text(field, name, limits.max_name_chars)
        if not isinstance(value, str | int | float):
            refuse(f"{field}.{shown(redacted(name))}", value, "a text, a number, true or false", "WRONG_TYPE")


def merged_json(of_batch: Mapping[str, Any] | None, own: Mapping[str, Any] | None) -> str:
    """The metadata that a message is stored with: its own over its batch's; empty for none."""
    merged = {**(of_batch or {}), **(own or {})}
    return _JSON.encode(merged) if merged else ""
