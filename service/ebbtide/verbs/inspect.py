"""inspect: reading the memory network: focus, nodes, links."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pydantic import Field

from ebbtide.errors import NotFound
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import batch_text_id, node_text_id, parse_node_id
from ebbtide.memory.draft import Draft
from ebbtide.records import MessageRecord, Node, Source
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.paging import AgentPageRequest, from_token, number_from_token, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service


class PersonalData(Response):
    """Personal data in a message that was stored under the policy `tag`: a slice in UTF-8 bytes."""

    kind: str = Field(description="email, phone, national_id, card, iban, ip or secret.", examples=["email"])
    offset: int = Field(description="Offset of its first byte in the message's UTF-8.")
    length: int = Field(description="Its length in bytes.")


class SourceInfo(Response):
    """The source of a memory: a slice of a message, in UTF-8 bytes."""

    message_id: str = Field(description="The caller's own id of the message, empty if none was given.")
    batch_id: str
    message_index: int = Field(description="Position of the message in its batch.")
    offset: int = Field(description="Offset of the slice in the message's UTF-8.")
    length: int = Field(description="Length of the slice in bytes.")
    role: str
    speaker: str
    timestamp: int | None = Field(
        description="When it was said, if the caller gave a time; ms since the epoch."
    )
    conversation_id: str
    metadata: dict[str, Any] = Field(description="The message's metadata, over that of its batch.")
    pii: list[PersonalData] = Field(
        description="Personal data in the slice, if the message was stored under the policy `tag`."
    )


class RewriteInfo(Response):
    """One rewrite, which shortened a memory."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int
    model: str


class NodeInfo(Response):
    """The current state of a memory."""

    id: str = Field(examples=["n1"])
    kind: str = Field(examples=["episode"])
    content: str
    phrase: str = Field(description="Summary of 10-20 characters, or up to 8 words.")
    keywords: list[str]
    created_at: int = Field(description="Creation time, ms since the epoch.")
    scan_count: int = Field(description="Compression scans so far.")
    original_length: int = Field(description="Length of the original content, in characters.")
    importance: float = Field(
        description="Support from other memories: at 1 it keeps its length, at 0 it is forgotten."
    )
    in_focus: bool
    sources: list[SourceInfo]
    rewrites: list[RewriteInfo] = Field(description="The latest rewrites.")


class LinkOut(Response):
    """A link to another memory."""

    target: str
    relation: str
    strength: float = Field(description="Current strength; 1 while its source is in focus.")


class LinkIn(Response):
    """A link from another memory."""

    source: str
    relation: str
    strength: float = Field(description="Current strength; 1 while its source is in focus.")


class NodeDetail(NodeInfo):
    """A memory with its live links."""

    links_in: list[LinkIn]
    links_out: list[LinkOut]
    dangling: list[LinkOut] = Field(description="Links to forgotten memories.")


class NodePage(Response):
    """A page of nodes."""

    nodes: list[NodeInfo]
    next_page_token: str = Field(description="Empty on the last page.")


class LinkInfo(Response):
    """A live link."""

    source: str
    target: str
    relation: str
    strength: float = Field(description="Current strength; 1 while its source is in focus.")
    dangling: bool = Field(description="Whether its target is forgotten.")


class LinkPage(Response):
    """A page of links."""

    links: list[LinkInfo]
    next_page_token: str = Field(description="Empty on the last page.")


class FocusInfo(Response):
    """The agent's focus."""

    nodes: list[NodeInfo] = Field(description="Nodes in focus, newest first.")


class NodeRequest(AgentRequest):
    """A request that names a memory."""

    node_id: str = Field(description="The memory.", examples=["n1"])


async def get_focus(service: Service, request: AgentRequest) -> FocusInfo:
    """Return the memories in focus, newest first."""
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace

        def read(txn: ReadTransaction) -> list[NodeInfo]:
            nodes = [txn.nodes.get(node_id) for node_id in workspace.network.focus]
            return [_info(txn, workspace, node) for node in nodes if node is not None]

        return FocusInfo(nodes=await agent.run(lambda: workspace.store.read(read)))


async def list_nodes(service: Service, request: AgentPageRequest) -> NodePage:
    """List living memories by id."""
    start, size = number_from_token(request.page_token, "nodes"), request.size
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace

        def read(txn: ReadTransaction) -> list[NodeInfo]:
            return [_info(txn, workspace, node) for node in islice(txn.nodes.all(start), size + 1)]

        found = await agent.run(lambda: workspace.store.read(read))
    token = to_token(found[size].id[1:], "nodes") if len(found) > size else ""
    return NodePage(nodes=found[:size], next_page_token=token)


async def get_node(service: ReadingService, request: NodeRequest) -> NodeDetail:
    """Return one memory with its links. NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND otherwise."""
    async with service.fleet.using(request.owner) as agent:
        number = parse_node_id(request.node_id)
        workspace = agent.workspace

        def read(txn: ReadTransaction) -> NodeDetail | None:
            node = txn.nodes.get(number)
            return None if node is None else node_detail(txn, workspace, node)

        found = await agent.run(lambda: workspace.store.read(read))
        if found is not None:
            return found
        if number < workspace.network.next_node_id:
            raise NotFound(f"node {request.node_id} is forgotten", reason="NODE_FORGOTTEN")
        raise NotFound(f"there is no node {request.node_id}", reason="NODE_NOT_FOUND")


async def list_links(service: Service, request: AgentPageRequest) -> LinkPage:
    """List live links by source, with their current strength."""
    position = from_token(request.page_token, "links") or "0-0"
    source, _, skipped = position.partition("-")
    start = number_from_token(to_token(source, "links"), "links")
    skip = number_from_token(to_token(skipped, "links"), "links")
    async with service.fleet.using(request.owner) as agent:
        return await agent.run(lambda: _links(agent.workspace, start, skip, request.size))


def _links(workspace: Workspace, start: int, skip: int, size: int) -> LinkPage:
    network = workspace.network
    found: list[LinkInfo] = []
    for source in network.node_ids(start, with_entities=True):
        for index, (target, relation, strength) in enumerate(sorted(network.links_from(source))):
            if source == start and index < skip:
                continue
            if len(found) == size:
                return LinkPage(links=found, next_page_token=to_token(f"{source}-{index}", "links"))
            found.append(
                LinkInfo(
                    source=node_text_id(source),
                    target=node_text_id(target),
                    relation=relation,
                    strength=strength,
                    dangling=target not in network,
                )
            )
    return LinkPage(links=found, next_page_token="")


def _info(txn: ReadTransaction, workspace: Workspace, node: Node) -> NodeInfo:
    return NodeInfo(**_fields(txn, workspace, node))


def node_detail(txn: ReadTransaction, workspace: Workspace, node: Node) -> NodeDetail:
    """A memory with its live links."""
    network = workspace.network
    outgoing = [
        (LinkOut(target=node_text_id(target), relation=relation, strength=strength), target)
        for target, relation, strength in sorted(network.links_from(node.id))
    ]
    return NodeDetail(
        **_fields(txn, workspace, node),
        links_in=[
            LinkIn(source=node_text_id(source), relation=relation, strength=strength)
            for source, relation, strength in sorted(network.links_to(node.id))
        ],
        links_out=[link for link, target in outgoing if target in network],
        dangling=[link for link, target in outgoing if target not in network],
    )


def _fields(txn: ReadTransaction, workspace: Workspace, node: Node) -> dict[str, object]:
    network = workspace.network
    return {
        "id": node_text_id(node.id),
        "kind": node.kind,
        "content": node.content,
        "phrase": node.phrase,
        "keywords": list(node.keywords),
        "created_at": node.created_at_ms,
        "scan_count": network.scan_count(node.id),
        "original_length": node.original_length,
        "importance": Draft(network).importance(node.id),
        "in_focus": node.id in network.focus,
        "sources": [_source(txn, source) for source in node.sources],
        "rewrites": [
            RewriteInfo(
                pass_number=rewrite.pass_number,
                importance=rewrite.importance,
                length_before=rewrite.length_before,
                length_after=rewrite.length_after,
                model=rewrite.model,
            )
            for rewrite in node.rewrites
        ],
    }


def _source(txn: ReadTransaction, source: Source) -> SourceInfo:
    record = txn.messages.get(source.message)
    assert record is not None, "a source names a message that is kept"
    return source_info(record, source.offset, source.length, txn.messages.metadata(record))


def source_info(
    record: MessageRecord, offset: int, length: int, metadata: Mapping[str, object]
) -> SourceInfo:
    """A slice of a message as a source."""
    return SourceInfo(
        message_id=record.caller_id,
        batch_id=batch_text_id(record.batch),
        message_index=record.index,
        offset=offset,
        length=length,
        role=record.role,
        speaker=record.speaker,
        timestamp=record.timestamp_ms,
        conversation_id=record.conversation_id,
        metadata=dict(metadata),
        pii=[
            PersonalData(kind=span.kind, offset=span.offset, length=span.length)
            for span in record.personal
            if span.offset < offset + length and offset < span.offset + span.length
        ],
    )
