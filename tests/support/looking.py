"""Looking at an agent in process: whole lists of nodes, links and batches, by the verbs everyone uses."""

from __future__ import annotations

from ebbtide.fleet.runtime.agent import Agent
from ebbtide.verbs.agents import AgentInfo, get_agent
from ebbtide.verbs.batches import BatchInfo, BatchRequest, ListBatchesRequest, get_batch, list_batches
from ebbtide.verbs.inspect import LinkInfo, NodeInfo, list_links, list_nodes
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service


async def nodes(service: Service, agent: str) -> list[NodeInfo]:
    """Every living memory, oldest first."""
    page = await list_nodes(service, AgentPageRequest(agent_id=agent, page_size=1000))
    assert not page.next_page_token
    return page.nodes


async def links(service: Service, agent: str) -> list[LinkInfo]:
    """Every live link."""
    page = await list_links(service, AgentPageRequest(agent_id=agent, page_size=1000))
    assert not page.next_page_token
    return page.links


async def batches(service: Service, agent: str, state: str | None = None) -> list[BatchInfo]:
    """Every known batch, of one state if one is named."""
    page = await list_batches(service, ListBatchesRequest(agent_id=agent, state=state, page_size=1000))
    assert not page.next_page_token
    return page.batches


async def batch(service: Service, agent: str, batch_id: str) -> BatchInfo:
    """One batch."""
    return await get_batch(service, BatchRequest(agent_id=agent, batch_id=batch_id))


async def info(service: Service, agent: str) -> AgentInfo:
    """The agent itself."""
    return await get_agent(service, AgentRequest(agent_id=agent))


def opened_agent(service: Service, agent: str) -> Agent:
    """The open agent of this id, without counting as its user."""
    return next(found for found in service.fleet.open_agents if found.id == agent)
