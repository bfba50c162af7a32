"""Read an agent in process: complete lists of nodes, links and batches, by the public operations."""

from __future__ import annotations

from ebbtide.fleet.runtime.agent import Agent
from ebbtide.verbs.agents import AgentInfo, get_agent
from ebbtide.verbs.batches import BatchInfo, get_batch, list_batches
from ebbtide.verbs.inspect import LinkInfo, NodeInfo, list_links, list_nodes
from ebbtide.verbs.service import Service


async def nodes(service: Service, agent: str) -> list[NodeInfo]:
    """Return every node, oldest first."""
    page = await list_nodes(service, agent, 1000, "")
    assert not page.next_page_token
    return page.nodes


async def links(service: Service, agent: str) -> list[LinkInfo]:
    """Return every link."""
    page = await list_links(service, agent, 1000, "")
    assert not page.next_page_token
    return page.links


async def batches(service: Service, agent: str, state: str | None = None) -> list[BatchInfo]:
    """Return every batch, or every batch of one state."""
    page = await list_batches(service, agent, state, 1000, "")
    assert not page.next_page_token
    return page.batches


async def batch(service: Service, agent: str, batch_id: str) -> BatchInfo:
    """Return one batch."""
    return await get_batch(service, agent, batch_id)


async def info(service: Service, agent: str) -> AgentInfo:
    """Return the agent's parameters and counts."""
    return await get_agent(service, agent)


def opened_agent(service: Service, agent: str) -> Agent:
    """Return the open agent with this id, without marking it as used."""
    return next(found for found in service.fleet.open_agents if found.id == agent)
