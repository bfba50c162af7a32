"""entities: the names that memories are linked with, and how much is still known of each.

An entity is a node that is only a name (memory model, section 1). It has an id from the counter of memories and links
like theirs, but no content: it is never a result of a recall.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
from pydantic import Field

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, node_text_id
from ebbtide.memory.network import Network
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.paging import AgentPageRequest, number_from_token, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import Response


class EntityInfo(Response):
    """The current state of an entity: a name that memories are linked with."""

    id: str = Field(description="Id of the node.", examples=["n2"])
    name: str = Field(description="The name, as it was first said.", examples=["Lisbon"])
    living_count: int = Field(description="Living memories that a live link joins with it.")
    forgotten_count: int = Field(description="Forgotten memories that it still has a live link to.")
    in_focus: bool = Field(description="Whether it is in focus.")
    scan_count: int = Field(description="Compression scans so far.")


class EntityPage(Response):
    """A page of entities."""

    entities: list[EntityInfo] = Field(description="The entities of this page, in the order of their ids.")
    next_page_token: str = Field(description="Empty on the last page.")


async def list_entities(service: ReadingService, request: AgentPageRequest) -> EntityPage:
    """List entities by id: name, and how many memories of each live and are forgotten."""
    start, size = number_from_token(request.page_token, "entities"), request.size
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace

        def read(txn: ReadTransaction) -> list[EntityInfo]:
            found = islice(txn.entities.all(start), size + 1)
            return [entity_info(workspace, entity.id) for entity in found]

        found = await agent.run(lambda: workspace.store.read(read))
    token = to_token(found[size].id[1:], "entities") if len(found) > size else ""
    return EntityPage(entities=found[:size], next_page_token=token)


def entity_info(workspace: Workspace, entity_id: NodeId) -> EntityInfo:
    """Return the current state of an entity of the network."""
    network = workspace.network
    living, forgotten = _memory_counts(network, entity_id)
    return EntityInfo(
        id=node_text_id(entity_id),
        name=network.entities[entity_id].name,
        living_count=living,
        forgotten_count=forgotten,
        in_focus=entity_id in network.entity_focus,
        scan_count=network.scan_count(entity_id),
    )


def _memory_counts(network: Network, entity_id: NodeId) -> tuple[int, int]:
    """Return how many living memories a live link joins with an entity, and to how many forgotten ones it has one."""
    table, alive = network.links.rows, network.slots["alive"]
    slot = network.slot_of(entity_id)
    own, others = network.rows_from(slot), network.rows_to(slot)
    targets = table["target"][own[network.is_live(own)]]
    sources = table["source"][others[network.is_live(others)]]
    living = np.unique(np.concatenate([targets[alive[targets]], sources]))
    return len(living), len(np.unique(targets[~alive[targets]]))
