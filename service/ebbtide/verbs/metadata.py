"""Metadata: the caller's own fields, stored with messages and usable as filters.

A batch's metadata is any JSON object. That of a message, and that of a filter, is flat: a text, a number or a truth
value under each name. A message's metadata overrides its batch's. The limits are in `verbs/limits.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def metadata_json(metadata: Mapping[str, Any] | None) -> str:
    """Return the metadata as JSON; empty for none."""
    return "" if metadata is None else _JSON.encode(metadata)


def merged_json(of_batch: Mapping[str, Any] | None, own: Mapping[str, Any] | None) -> str:
    """Return the metadata that a message is stored with: its own over its batch's; empty for none."""
    merged = {**(of_batch or {}), **(own or {})}
    return _JSON.encode(merged) if merged else ""
