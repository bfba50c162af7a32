"""memories: what is there is changed or taken away by whoever it belongs to.

The story of a deletion: one job, one commit → the memory goes with every link at either end, leaves the focus, and
what it was made from is withdrawn from the archive (`fleet/withdrawal.py`). A digest or a pass under way goes on: a
batch whose relations were named for a focus that moved names them anew, and a pass passes over what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from pydantic import Field

from ebbtide.errors import NotFound
from ebbtide.fleet import withdrawal
from ebbtide.fleet.withdrawal import Deletion
from ebbtide.fleet.workspace import Workspace
from ebbtide.verbs.forms import Answer
from ebbtide.verbs.service import Service
from ebbtide.vocabulary import NodeId, node_text_id, parse_agent_id, parse_node_id


class DeletedNode(Answer):
    """What went with a memory."""

    node_id: str = Field(description="The memory that is gone.", examples=["n1"])
    links_removed: int = Field(description="Links that started or ended at it.")
    bytes_withdrawn: int = Field(
        description="Bytes of messages it was made from that are gone from the archive."
    )


async def delete_node(service: Service, agent_id: str, node_id: str) -> DeletedNode:
    """Delete one memory with its links and what it was made from. NODE_NOT_FOUND when it does not live."""
    async with service.fleet.using(parse_agent_id(agent_id)) as agent:
        done = await agent.run(partial(_delete, agent.workspace, [parse_node_id(node_id)]))
    [outcome] = done.outcomes
    if outcome is None:
        _refuse_missing(node_id)
    return DeletedNode(
        node_id=node_text_id(outcome.node_id),
        links_removed=outcome.links_removed,
        bytes_withdrawn=outcome.bytes_withdrawn,
    )


def _delete(
    workspace: Workspace, node_ids: Sequence[NodeId], is_time_up: Callable[[], bool] = lambda: False
) -> Deletion:
    return workspace.amend(lambda txn: withdrawal.delete(txn, node_ids, is_time_up))


def _refuse_missing(node_id: str) -> NoReturn:
    raise NotFound(f"there is no node {node_id[:40]}", reason="NODE_NOT_FOUND")
