"""get_map: living nodes and their links as columns of numbers, for a picture of a whole memory.

One job reads a page, so everything on it belongs to one moment. It only copies arrays that are in memory; they are
encoded outside the job (`verbs/columns.py`).

Memories, statements and entities are rows of one table: all of them have an importance, links lead to all of them, and
the column `kind` tells them apart. The names of kinds and relations are those that the page uses, because the network
keeps names of what was deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import Field

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.draft import Draft
from ebbtide.memory.network import Network
from ebbtide.verbs.columns import Columnar, Floats, Integers
from ebbtide.verbs.inspect import ENTITY
from ebbtide.verbs.limits import Between, OneOf
from ebbtide.verbs.paging import AgentPageRequest, from_token, number_of, to_token
from ebbtide.verbs.reading import ReadingService

DEFAULT_NODES: Final = 20_000
MAX_NODES: Final = 100_000
"""Nodes on a page."""

MAX_LINKS: Final = 250_000
"""Most links on a page. A page with more ends early, if necessary within the links of a node."""

DIGITS: Final = 3
"""Decimal places of importances and strengths."""


class GetMapRequest(AgentPageRequest):
    """Which page of the map to return, and whether with links."""

    page_size: Annotated[int, Between(1, MAX_NODES, "INVALID_PAGE")] | None = Field(
        None, description=f"Most nodes on the page, 1-{MAX_NODES}; default {DEFAULT_NODES}."
    )
    links: Annotated[str, OneOf(("none", "all"))] = Field(
        "none", description="none, or all: also the live links from the nodes of the page."
    )

    @property
    def size(self) -> int:
        """Most nodes on the page."""
        return DEFAULT_NODES if self.page_size is None else self.page_size


class MapNodes(Columnar):
    """Columns with one entry for each node, by id."""

    id: Integers = Field(description="Number of the node: 17 is n17.")
    kind: Integers = Field(description="Its kind, as a position in `kinds`.")
    importance: Floats = Field(description="Its importance, rounded to 3 digits.")
    length: Integers = Field(description="Characters that it has now; 0 for an entity.")
    original_length: Integers = Field(description="Characters that it had at first; 0 for an entity.")
    scans: Integers = Field(description="Compression scans so far.")
    created_at: Integers = Field(description="Creation time, ms since the epoch; 0 for an entity.")


class MapLinks(Columnar):
    """Columns with one entry for each live link, by source."""

    source: Integers = Field(description="Number of the node that the link comes from.")
    target: Integers = Field(
        description="Number of the node that the link leads to. If no page has this node, it is forgotten."
    )
    relation: Integers = Field(description="Its relation, as a position in `relations`.")
    strength: Floats = Field(description="Current strength, rounded to 3 digits; 1 while it is held.")


class AgentMap(Columnar):
    """Living nodes and their links, as columns."""

    pass_number: int = Field(description="Completed compression passes since creation.")
    last_event: int = Field(
        description="Number of the latest event that the page reflects. Follow the events after that of the first page."
    )
    first_event: int = Field(
        description="Number of the oldest stored event, or of the next one if none is stored."
    )
    next_node: int = Field(
        description="Number of the next new node. Lower ones that no page has are forgotten."
    )
    focus: list[int] = Field(
        description="Numbers of the nodes in focus: memories, then entities, newest first."
    )
    kinds: list[str] = Field(
        description="Kinds of the nodes: episode or your own for memories, entity, and the kinds of statements.",
        examples=[["episode", "fact", "entity"]],
    )
    nodes: MapNodes = Field(description="Living memories, statements and entities.")
    relations: list[str] = Field(description="Names of the relations of the links.", examples=[["", "next"]])
    links: MapLinks = Field(description="The live links from the nodes; empty unless requested.")
    next_page_token: str = Field(description="Empty on the last page.")


class _Place(NamedTuple):
    """Where a page begins: at a node, after some of its links."""

    node: NodeId
    links_before: int


async def get_map(service: ReadingService, request: GetMapRequest) -> AgentMap:
    """Return living nodes and their links as columns of numbers, for a picture of the whole memory."""
    node, _, links_before = (from_token(request.page_token, "map") or "0-0").partition("-")
    place = _Place(number_of(node), number_of(links_before))
    async with service.fleet.using(request.owner) as agent:
        return await agent.run(lambda: _map(agent.workspace, request, place))


def _map(workspace: Workspace, request: GetMapRequest, place: _Place) -> AgentMap:
    network, slots = workspace.network, workspace.network.slots
    first = int(np.searchsorted(slots["id"], place.node))
    living = first + np.flatnonzero(slots["alive"][first:])
    page, following = living[: request.size], living[request.size : request.size + 1]
    then = "".join(f"{node_id}-0" for node_id in slots["id"][following].tolist())
    is_continued = len(page) > 0 and place.links_before > 0 and int(slots["id"][page[0]]) == place.node
    rows = np.zeros(0, dtype=np.int64)
    if request.links == "all":
        before = place.links_before if is_continued else 0
        rows = network.live_rows_from(page)[before:]
        if len(rows) > MAX_LINKS:
            page, rows, then = _cut(network, page, rows, before)
    kinds, nodes = _nodes(network, page[is_continued:])
    relations, links = _links(network, rows)
    passes, following_event, first_event = workspace.store.read(
        lambda txn: (txn.meta.finished_passes, txn.meta.next_event, txn.events.first_number())
    )
    return AgentMap(
        pass_number=passes,
        last_event=following_event - 1,
        first_event=first_event,
        next_node=network.next_node_id,
        focus=[*network.focus, *network.entity_focus],
        kinds=kinds,
        nodes=nodes,
        relations=relations,
        links=links,
        next_page_token=to_token(then, "map") if then else "",
    )


def _cut(network: Network, page: Array, rows: Array, before: int) -> tuple[Array, Array, str]:
    """Return a page and the rows of its links without those beyond MAX_LINKS, and where the next page begins."""
    sources = network.links.rows["source"][rows]
    last = int(sources[MAX_LINKS])
    sent = MAX_LINKS - int(np.searchsorted(sources, last))
    skipped = sent + (before if last == page[0] else 0)
    page = page[: np.searchsorted(page, last, side="right" if skipped else "left")]
    return page, rows[:MAX_LINKS], f"{network.slots['id'][last]}-{skipped}"


def _nodes(network: Network, chosen: Array) -> tuple[list[str], MapNodes]:
    slots = network.slots
    numbers = np.where(slots["is_entity"][chosen], len(network.kinds), slots["kind"][chosen])
    kinds, kind = _used([*network.kinds, ENTITY], numbers)
    return kinds, MapNodes(
        id=slots["id"][chosen],
        kind=kind,
        importance=Draft(network).importances_now(chosen).round(DIGITS),
        length=slots["content_length"][chosen],
        original_length=slots["original_length"][chosen],
        scans=slots["scan_count"][chosen],
        created_at=slots["created_at_ms"][chosen],
    )


def _links(network: Network, rows: Array) -> tuple[list[str], MapLinks]:
    table, ids = network.links.rows, network.slots["id"]
    relations, relation = _used(network.relations, table["relation"][rows])
    return relations, MapLinks(
        source=ids[table["source"][rows]],
        target=ids[table["target"][rows]],
        relation=relation,
        strength=table["now"][rows].round(DIGITS),
    )


def _used(names: Sequence[str], numbers: Array) -> tuple[list[str], Array]:
    """Return the names that are used, and the positions of these numbers among them."""
    used = np.flatnonzero(np.bincount(numbers, minlength=len(names)))
    places = np.zeros(len(names), dtype=np.int32)
    places[used] = np.arange(len(used))
    return [names[number] for number in used.tolist()], places[numbers]
