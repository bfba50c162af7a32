"""links: links between two nodes, and the strength of the links that support a node, set by the caller."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from ebbtide.changes import Change
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, node_text_id, parse_node_id
from ebbtide.memory.draft import Draft
from ebbtide.memory.network import Network
from ebbtide.records import Link
from ebbtide.verbs.inspect import LinkInfo, NodeRequest, not_alive
from ebbtide.verbs.limits import MaxChars, NotBlank, OneLine
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.requests import AgentRequest, Response, refuse
from ebbtide.verbs.service import Service

MAX_REWRITTEN = 256
"""Most links whose strength one request sets, the strongest first."""


class CreateLinkRequest(AgentRequest):
    """A link between two living nodes."""

    source: str = Field(description="The node that the link comes from.", examples=["n1"])
    target: str = Field(description="The node that it leads to.", examples=["n2"])
    relation: Annotated[str, MaxChars("max_relation_chars"), NotBlank("a name such as causes"), OneLine()] = (
        Field(
            description="causes, caused_by, supports, contradicts, references, based_on, related, or another name.",
            examples=["causes"],
        )
    )
    strength: Annotated[float, Field(gt=0, le=1)] = Field(0.6, description="Its strength now, above 0 to 1.")


class SetImportanceRequest(NodeRequest):
    """How important a node is."""

    importance: Annotated[float, Field(ge=0, le=1)] = Field(
        description="Strength of the links between the node and its entities, 0-1.", examples=[0.8]
    )


class NodeImportance(Response):
    """The importance of a node after a change."""

    node_id: str = Field(description="Id of the node.", examples=["n1"])
    links_changed: int = Field(description="Number of links whose strength was set.")
    importance: float = Field(description="Support from other memories and entities now.")


async def create_link(service: Service, request: CreateLinkRequest) -> LinkInfo:
    """Create a link between two living nodes, or set its strength. It decays like every other link.

    Raise NODE_FORGOTTEN if a node existed once, NODE_NOT_FOUND otherwise.
    """
    source, target = parse_node_id(request.source), parse_node_id(request.target)
    if source == target:
        refuse("target", request.target, "another node than the source")
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace
        policy = PiiPolicy(workspace.parameters, workspace.identity)
        job = partial(_link, workspace, source, target, policy.words(request.relation), request.strength)
        return await agent.run(job)


def _link(workspace: Workspace, source: NodeId, target: NodeId, relation: str, strength: float) -> LinkInfo:
    network = workspace.network
    for node_id in (source, target):
        if node_id not in network:
            raise not_alive(workspace, node_id)
    link = Link(source, target, relation, strength, network.scan_count(source))
    workspace.commit(Change(links=[link]))
    return LinkInfo(
        source=node_text_id(source),
        target=node_text_id(target),
        relation=relation,
        strength=strength,
        dangling=False,
    )


async def set_importance(service: Service, request: SetImportanceRequest) -> NodeImportance:
    """Set the strength of the links between a memory or a statement and its entities.

    Links that the focus or a pin holds keep the strength 1 while they are held. Raise INVALID_VALUE for an
    entity, NODE_FORGOTTEN if the node existed once, NODE_NOT_FOUND otherwise.
    """
    node_id = parse_node_id(request.node_id)
    async with service.fleet.using(request.owner) as agent:
        return await agent.run(partial(_weigh, agent.workspace, node_id, request.importance))


def _weigh(workspace: Workspace, node_id: NodeId, importance: float) -> NodeImportance:
    network = workspace.network
    if node_id not in network:
        raise not_alive(workspace, node_id)
    if node_id in network.entities:
        refuse("node_id", node_text_id(node_id), "the id of a memory or a statement; this is an entity")
    links = _links_with_entities(network, node_id)[:MAX_REWRITTEN]
    changed = [
        Link(one.source, one.target, one.relation, importance, network.scan_count(one.source))
        for one in links
    ]
    if changed:
        workspace.commit(Change(links=changed))
    # Read again: the commit has changed the network.
    total = Draft(workspace.network).importance(node_id)
    return NodeImportance(node_id=node_text_id(node_id), links_changed=len(changed), importance=total)


def _links_with_entities(network: Network, node_id: NodeId) -> list[Link]:
    slot = network.slot_of(node_id)
    found = [*network.as_links(network.rows_from(slot)), *network.as_links(network.rows_to(slot))]
    return sorted(
        (one for one in found if {one.source, one.target} & network.entities.keys()),
        key=lambda one: -one.strength,
    )
