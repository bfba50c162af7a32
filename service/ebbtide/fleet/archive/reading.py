"""Reads that several jobs share."""

from __future__ import annotations

from collections.abc import Iterable

from ebbtide.ids import NodeId
from ebbtide.records import MessageRecord, Node
from ebbtide.store.lmdb.transaction import ReadTransaction


def message_with_text(txn: ReadTransaction, number: int) -> tuple[MessageRecord, str] | None:
    """Return a message and its text; None if either was deleted."""
    record = txn.messages.get(number)
    text = None if record is None else txn.messages.text(record)
    return None if record is None or text is None else (record, text)


def text_of(txn: ReadTransaction, number: int) -> str:
    """Return the text of a message; empty if it was deleted."""
    found = message_with_text(txn, number)
    return "" if found is None else found[1]


def living_nodes(txn: ReadTransaction, node_ids: Iterable[NodeId]) -> list[Node]:
    """Return the living ones of these nodes, in order."""
    return [node for node in map(txn.nodes.get, node_ids) if node is not None]
