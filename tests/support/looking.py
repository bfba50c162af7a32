"""Inspect an agent in process: complete lists of nodes, links and batches, through the public operations."""

from __future__ import annotations

from ebbtide.fleet.runtime.agent import Agent
from ebbtide.verbs.agents import AgentInfo, get_agent
from ebbtide.verbs.batches import BatchInfo, BatchRequest, ListBatchesRequest, get_batch, list_batches
from ebbtide.verbs.inspect import LinkInfo, ListNodesRequest, NodeInfo, list_links, list_nodes
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service


async def nodes(service: Service, agent: str) -> list[NodeInfo]:
    """Return every living memory, oldest first."""
    page = await list_nodes(service, ListNodesRequest(agent_id=agent, page_size=1000))
    assert not page.next_page_token
    return page.nodes


async def links(service: Service, agent: str) -> list[LinkInfo]:
    """Return every live link."""
    page = await list_links(service, AgentPageRequest(agent_id=agent, page_size=1000))
    assert not page.next_page_token
    return page.links


async def batches(service: Service, agent: str, state: str | None = None) -> list[BatchInfo]:
    """Return every known batch, or those of one state."""
    page = await list_batches(service, ListBatchesRequest(agent_id=agent, state=state, page_size=1000))
    assert not page.next_page_token
    return page.batches


async def batch(service: Service, agent: str, batch_id: str) -> BatchInfo:
    """Return one batch."""
    return await get_batch(service, BatchRequest(agent_id=agent, batch_id=batch_id))


async def info(service: Service, agent: str) -> AgentInfo:
    """Return the agent's description."""
    return await get_agent(service, AgentRequest(agent_id=agent))


def opened_agent(service: Service, agent: str) -> Agent:
    """Return the open agent with this id, without counting as its user."""
    return next(found for found in service.fleet.open_agents if found.id == agent)
