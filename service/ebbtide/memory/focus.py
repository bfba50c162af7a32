"""The focus: up to `focus_limit` nodes that the agent attends to, newest first.

While a node is in focus its links count 1.0 and it is never scanned, so the current topic and everything linked to it
is protected. Policy `nodes`: the newest nodes of a batch move to the front, and the oldest leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.ids import NodeId
from ebbtide.memory.draft import Draft


def moved_focus(focus: Sequence[NodeId], new_nodes: Sequence[NodeId], limit: int) -> tuple[NodeId, ...]:
    """Return the focus after a batch created `new_nodes` (oldest first)."""
    newest = list(reversed(new_nodes))[:limit]
    return tuple(newest + list(focus))[:limit]


def trim_focus(draft: Draft, limit: int) -> None:
    """Remove the oldest nodes from a focus that exceeds a lowered limit."""
    if len(draft.focus) > limit:
        draft.set_focus(draft.focus[:limit])
