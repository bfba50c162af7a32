"""The focus: up to `focus_limit` nodes the agent is attending to, newest first.

While a node is in focus its links count 1.0 and it is never scanned; so what is being talked about, and what
that touches, is safe. Policy `nodes`: the newest nodes of a batch move to the front, the oldest fall off.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.ids import NodeId
from ebbtide.memory.draft import Draft


def moved_focus(focus: Sequence[NodeId], new_nodes: Sequence[NodeId], limit: int) -> tuple[NodeId, ...]:
    """The focus after a batch made `new_nodes` (oldest first): newest first, at most `limit`."""
    newest = list(reversed(new_nodes))[:limit]
    return tuple(newest + list(focus))[:limit]


def trim_focus(draft: Draft, limit: int) -> None:
    """Take the oldest nodes out of a focus that is longer than a limit lowered meanwhile."""
    if len(draft.focus) > limit:
        draft.set_focus(draft.focus[:limit])
