"""focus: what the agent attends to, read and changed by hand, and pins (memory model, section 4).

Focusing a node moves it to the front of its list, as if it had just been mentioned. Unfocusing removes it. A pinned
memory is neither shortened nor forgotten. Each change is one commit with its events; an unchanged state writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from ebbtide.errors import InvalidRequest
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, parse_node_id
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.entities import EntityInfo, entity_info
from ebbtide.verbs.inspect import NodeDetail, NodeInfo, NodeRequest, node_detail, node_info, not_alive
from ebbtide.verbs.profile import pin_statement
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import AgentRequest, Response, refuse
from ebbtide.verbs.service import Service


class FocusInfo(Response):
    """The agent's focus."""

    nodes: list[NodeInfo] = Field(description="Memories in focus, newest first.")
    entities: list[EntityInfo] = Field(description="Entities in focus, newest first.")


async def get_focus(service: ReadingService, request: AgentRequest) -> FocusInfo:
    """Return the memories and the entities in focus, newest first."""
    async with service.fleet.using(request.owner) as agent:
        return await agent.run(lambda: _focus(agent.workspace))


async def focus_node(service: Service, request: NodeRequest) -> FocusInfo:
    """Move a memory or an entity to the front of the focus, as if it had just been mentioned.

    INVALID_VALUE for a statement, and for an entity while `focus_policy` is `nodes`. NODE_FORGOTTEN if it existed once,
    NODE_NOT_FOUND otherwise.
    """

    def focus(workspace: Workspace, node_id: NodeId) -> None:
        if node_id in workspace.network.entities and workspace.parameters.focus_policy == "nodes":
            allowed = "the id of a memory while focus_policy is nodes; this is an entity"
            refuse("node_id", request.node_id, allowed)
        if workspace.network.is_statement(node_id):
            refuse("node_id", request.node_id, "a memory or an entity; pin a statement to keep it")
        workspace.focus_by_hand(node_id)

    return await _change_focus(service, request, focus)


async def unfocus_node(service: Service, request: NodeRequest) -> FocusInfo:
    """Remove a memory or an entity from the focus. Its links decay from its next scan; its content stays as it is.

    NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND otherwise.
    """
    return await _change_focus(service, request, lambda workspace, one: workspace.unfocus_by_hand(one))


async def pin_node(service: Service, request: NodeRequest) -> NodeDetail:
    """Pin a memory: it is neither shortened nor forgotten until it is unpinned. Lost text does not come back.

    The pin of a statement is a ruling, as by GiveFeedback, and `max_pinned` does not count it.
    TOO_MANY_PINNED if the agent has `max_pinned` pinned memories. NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND
    otherwise.
    """
    return await _change_pin(service, request, "pin", _pin)


def _pin(workspace: Workspace, node_id: NodeId) -> None:
    if not workspace.pin_by_hand(node_id):
        most = workspace.parameters.max_pinned
        raise InvalidRequest(
            f"The agent has as many pinned memories as max_pinned allows ({most}). Unpin one first.",
            reason="TOO_MANY_PINNED",
            metadata={"max_pinned": str(most)},
        )


async def unpin_node(service: Service, request: NodeRequest) -> NodeDetail:
    """Unpin a memory. Its links with entities decay from now on.

    NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND otherwise.
    """
    return await _change_pin(service, request, "unpin", lambda workspace, one: workspace.unpin_by_hand(one))


Action = Callable[[Workspace, NodeId], None]


async def _change_focus(service: Service, request: NodeRequest, change: Action) -> FocusInfo:
    node_id = parse_node_id(request.node_id)
    async with service.fleet.using(request.owner) as agent:

        def job() -> FocusInfo:
            workspace = agent.workspace
            if node_id not in workspace.network:
                raise not_alive(workspace, node_id)
            change(workspace, node_id)
            return _focus(workspace)

        return await agent.run(job)


async def _change_pin(service: Service, request: NodeRequest, action: str, change: Action) -> NodeDetail:
    node_id = parse_node_id(request.node_id)
    async with service.fleet.using(request.owner) as agent:
        is_statement = await agent.run(lambda: agent.workspace.network.is_statement(node_id))
        if is_statement:
            await pin_statement(service, agent, node_id, action)

        def job() -> NodeDetail:
            workspace = agent.workspace
            if node_id not in workspace.network:
                raise not_alive(workspace, node_id)
            if node_id in workspace.network.entities:
                refuse("node_id", request.node_id, "the id of a memory; this is an entity")
            if not is_statement:
                change(workspace, node_id)
            return workspace.store.read(lambda txn: _detail(txn, workspace, node_id))

        return await agent.run(job)


def _detail(txn: ReadTransaction, workspace: Workspace, node_id: NodeId) -> NodeDetail:
    node = txn.nodes.get(node_id)
    assert node is not None, "network and store contain the same nodes"
    return node_detail(txn, workspace, node)


def _focus(workspace: Workspace) -> FocusInfo:
    def read(txn: ReadTransaction) -> list[NodeInfo]:
        nodes = [txn.nodes.get(node_id) for node_id in workspace.network.focus]
        return [node_info(txn, workspace, node) for node in nodes if node is not None]

    entities = [entity_info(workspace, entity_id) for entity_id in workspace.network.entity_focus]
    return FocusInfo(nodes=workspace.store.read(read), entities=entities)
