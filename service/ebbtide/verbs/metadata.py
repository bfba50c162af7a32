"""Metadata: the caller's own fields, stored with messages and usable as filters.

A batch's metadata is any JSON object. That of a message, and that of a filter, is flat: a text, a number or a truth
value under each name. A message's metadata overrides its batch's. The limits are in `verbs/limits.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.records import MessageRecord
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.pii_policy import PiiPolicy

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def metadata_json(metadata: Mapping[str, Any] | None) -> str:
    """Return the metadata as JSON; empty for none."""
    return "" if metadata is None else _JSON.encode(metadata)


def merged_json(of_batch: Mapping[str, Any] | None, own: Mapping[str, Any] | None) -> str:
    """Return the metadata that a message is stored with: its own over its batch's; empty for none."""
    merged = {**(of_batch or {}), **(own or {})}
    return _JSON.encode(merged) if merged else ""


def message_filter(
    txn: ReadTransaction, workspace: Workspace, wanted: Mapping[str, Any] | None
) -> Callable[[MessageRecord], bool]:
    """Return whether a message was stored with each of the wanted values: the filter of queries, for listings.

    As in a query, 1 and 1.0 are equal, 1 and true are not, and personal data is compared as the policy stored it.
    Many messages share the metadata of their batch, so each distinct value is read once.
    """
    policy = PiiPolicy(workspace.parameters, workspace.identity)
    expected = {_comparable(name, value) for name, value in (policy.metadata(wanted) or {}).items()}

    @cache
    def matches(key: bytes) -> bool:
        stored = txn.messages.metadata_under(key)
        return expected <= {
            _comparable(name, value) for name, value in stored.items() if isinstance(value, str | int | float)
        }

    return lambda record: not expected or matches(record.metadata_key)


def _comparable(name: str, value: Any) -> tuple[str, bool, Any]:
    return name, isinstance(value, bool), value
