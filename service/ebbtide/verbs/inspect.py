"""inspect: reading the memory network: nodes and links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from heapq import merge
from operator import attrgetter
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from ebbtide.errors import EbbtideError, FieldViolation, InvalidRequest, NotFound, no_node
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, batch_text_id, node_number, node_text_id, parse_node_id
from ebbtide.memory.draft import Draft
from ebbtide.records import Concept, Entity, MessageRecord, Node, Source, StoredPin
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.attachments import CitedAttachment, cited_attachment
from ebbtide.verbs.limits import FlatMetadata, Kind, MaxItems, Several
from ebbtide.verbs.metadata import message_filter
from ebbtide.verbs.paging import AgentPageRequest, from_token, number_from_token, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import AgentRequest, Response, invalid, violation
from ebbtide.verbs.service import Service

AnyNode = Node | Entity | Concept

MEMBER = "contains"
"""The name of the links of a concept to its members."""

ENTITY = "entity"
CONCEPT = "concept"
MEMORY, RECORD = "memory", "record"
"""Kinds in a query that no single memory has: memories of all kinds, and records."""
RESERVED_KINDS: Final = (ENTITY, CONCEPT, MEMORY, RECORD, *sorted(STATEMENT_KINDS))
"""The kinds of nodes that the daemon gives."""

MAX_IDS = 100
"""Most ids of one request for nodes."""

MAX_LOOKED_AT = 4000
"""Messages that one page of a filtered listing looks at. Then it ends, even without an item."""


class PersonalData(Response):
    """Personal data in a message that was stored under the policy `tag`: a slice in UTF-8 bytes."""

    kind: str = Field(description="email, phone, national_id, card, iban, ip or secret.", examples=["email"])
    offset: int = Field(description="Offset of its first byte in the message's UTF-8.")
    length: int = Field(description="Its length in bytes.")


class SourceInfo(Response):
    """The source of a memory: a slice of a message, in UTF-8 bytes."""

    message_id: str = Field(description="The caller's own id of the message, empty if none was given.")
    batch_id: str = Field(description="Id of the batch of the message.")
    message_index: int = Field(description="Position of the message in its batch.")
    offset: int = Field(description="Offset of the slice in the message's UTF-8.")
    length: int = Field(description="Length of the slice in bytes.")
    role: str = Field(description="Role of the speaker.")
    speaker: str = Field(description="Name of the speaker; empty if none was given.")
    timestamp: int | None = Field(
        description="When it was said, if the caller gave a time; ms since the epoch."
    )
    conversation_id: str = Field(description="The conversation of the message; empty if none was given.")
    metadata: dict[str, Any] = Field(description="The message's metadata, over that of its batch.")
    pii: list[PersonalData] = Field(
        description="Personal data in the slice, if the message was stored under the policy `tag`."
    )
    attachment: CitedAttachment | None = Field(
        description="The attachment whose caption the slice quotes; null for the message's own words."
    )


class RewriteInfo(Response):
    """One rewrite, which shortened a memory."""

    pass_number: int = Field(description="The compression pass that made it.")
    importance: float = Field(description="Importance of the memory at that time.")
    length_before: int = Field(description="Characters before.")
    length_after: int = Field(description="Characters after.")
    model: str = Field(description="The language model that wrote the new text.")


class EntityLink(Response):
    """An entity that a live link joins with a memory."""

    id: str = Field(description="Id of the entity.", examples=["n2"])
    name: str = Field(description="Its name, as it was first said.", examples=["Lisbon"])
    relation: str = Field(description="Name of the relation.", examples=["about"])
    strength: float = Field(
        description="Current strength of the stronger of the two links between the memory and the entity."
    )


class NodeInfo(Response):
    """The current state of a memory, or of an entity."""

    id: str = Field(description="Id of the node.", examples=["n1"])
    kind: str = Field(
        description="episode: made from what was said; entity: a name, which has no content; concept: keywords that "
        "a group of statements and entities share; else a statement's kind, or the caller's own.",
        examples=["episode"],
    )
    label: str = Field(description="The speaker, as shown before the content; not part of the content.")
    content: str = Field(description="The current text of the memory; empty for an entity.")
    phrase: str = Field(description="Summary of 10-20 characters, or up to 8 words; the name of an entity.")
    keywords: list[str] = Field(description="Words by which an associative recall finds it.")
    created_at: int | None = Field(description="Creation time, ms since the epoch; null for an entity.")
    scan_count: int = Field(description="Compression scans so far.")
    original_length: int = Field(description="Length of the original content, in characters.")
    importance: float = Field(
        description="Support from other memories: at 1 it keeps its length, at 0 it is forgotten."
    )
    in_focus: bool = Field(description="Whether it is in focus.")
    pinned: StoredPin = Field(
        description="Whether the memory is pinned: none, by_hand, or by_request (the user asked to remember it)."
    )
    entities: list[EntityLink] = Field(description="The entities that it is linked with, strongest first.")
    sources: list[SourceInfo] = Field(description="The slices of messages that it was made from.")
    rewrites: list[RewriteInfo] = Field(description="The latest rewrites.")


class LinkOut(Response):
    """A link to another node."""

    target: str = Field(description="Id of the node that the link leads to.")
    relation: str = Field(description="Name of the relation.")
    strength: float = Field(description="Current strength; 1 while it is held.")


class LinkIn(Response):
    """A link from another node."""

    source: str = Field(description="Id of the node that the link comes from.")
    relation: str = Field(description="Name of the relation.")
    strength: float = Field(description="Current strength; 1 while it is held.")


class NodeDetail(NodeInfo):
    """A memory with its first content and its live links."""

    first_content: str | None = Field(
        description="The content when the memory was made; null if it was deleted or is not retained."
    )
    links_in: list[LinkIn] = Field(description="Links from other nodes.")
    links_out: list[LinkOut] = Field(description="Links to living nodes.")
    dangling: list[LinkOut] = Field(description="Links to forgotten memories.")


class NodePage(Response):
    """A page of nodes."""

    nodes: list[NodeInfo] = Field(
        description="The nodes of this page, in the order of their ids, or that of `ids`."
    )
    next_page_token: str = Field(description="Empty on the last page.")
    details: list[NodeDetail] = Field(
        default_factory=list,
        description="With `details`: the nodes with their first content and links; `nodes` is empty then.",
    )


class LinkInfo(Response):
    """A live link."""

    source: str = Field(description="Id of the node that the link comes from.")
    target: str = Field(description="Id of the node that the link leads to.")
    relation: str = Field(description="Name of the relation.")
    strength: float = Field(description="Current strength; 1 while it is held.")
    dangling: bool = Field(description="Whether its target is forgotten.")


class LinkPage(Response):
    """A page of links."""

    links: list[LinkInfo] = Field(description="The links of this page.")
    next_page_token: str = Field(description="Empty on the last page.")


def checked_node_id(text: str) -> str:
    """Return a text that is the id of a node. INVALID_VALUE otherwise."""
    if node_number(text) is None:
        raise invalid(text, "ids of nodes, such as n1")
    return text


_FILTERS = {"kinds", "metadata", "newest_first", "page_token"}
"""Options that do not go with `ids`."""


class ListNodesRequest(AgentPageRequest):
    """Which page of nodes to list, and of which kinds."""

    kinds: Annotated[list[Annotated[str, Kind()]], Several, MaxItems("max_keywords", is_counted=False)] = (
        Field(
            default_factory=list,
            description="Only nodes of these kinds: episode, entity, concept, kinds of statements, or your own; "
            "default: episode and your own. Over REST separated by commas.",
        )
    )
    metadata: FlatMetadata | None = Field(
        None,
        description="Only memories of a message that was stored with each of these values. Over REST as JSON.",
    )
    newest_first: bool = Field(False, description="Whether the newest are listed first; memories only.")
    ids: Annotated[
        list[Annotated[str, AfterValidator(checked_node_id)]], Several, MaxItems(MAX_IDS, is_counted=False)
    ] = Field(
        default_factory=list,
        description="These nodes of any kind, in this order, at most 100; not with other options, and `page_size` "
        "has no effect. Those that are forgotten, deleted or unknown are left out. Over REST separated by commas.",
    )
    details: bool = Field(
        False, description="Whether to return the nodes as GetNode does, in `details`; only with `ids`."
    )

    @model_validator(mode="after")
    def _names_nodes_alone(self) -> Self:
        for name in sorted(self.model_fields_set & _FILTERS) if self.ids else ():
            if getattr(self, name):
                raise violation("INVALID_VALUE", "not allowed with ids", name)
        return self

    @model_validator(mode="after")
    def _names_nodes_in_detail(self) -> Self:
        if self.details and not self.ids:
            raise violation("INVALID_VALUE", "not allowed without ids", "details")
        return self

    @model_validator(mode="after")
    def _lists_memories(self) -> Self:
        if self.newest_first and not {ENTITY, CONCEPT}.isdisjoint(self.kinds):
            raise violation("INVALID_VALUE", "not allowed with kinds entity or concept", "newest_first")
        return self


class NodeRequest(AgentRequest):
    """A request that names a node."""

    node_id: str = Field(description="The node.", examples=["n1"])


async def list_nodes(service: ReadingService, request: ListNodesRequest) -> NodePage:
    """List living memories by id, entities, concepts, or several of them; or the nodes with given ids."""
    start = number_from_token(request.page_token, "nodes")
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace
        if request.details:
            # An entity may have many links, so each node is a job of its own.
            jobs = (partial(_detail, workspace, parse_node_id(text)) for text in dict.fromkeys(request.ids))
            found = [await agent.run(job) for job in jobs]
            return NodePage(nodes=[], next_page_token="", details=[one for one in found if one is not None])
        return await agent.run(
            lambda: workspace.store.read(lambda txn: _node_page(txn, workspace, request, start))
        )


def _node_page(
    txn: ReadTransaction, workspace: Workspace, request: ListNodesRequest, start: NodeId
) -> NodePage:
    if request.ids:
        named = (node_of(txn, parse_node_id(text)) for text in dict.fromkeys(request.ids))
        infos = [node_info(txn, workspace, node) for node in named if node is not None]
        return NodePage(nodes=infos, next_page_token="")
    matches = message_filter(txn, workspace, request.metadata)
    found: list[NodeInfo] = []
    looked_at = 0
    kinds = request.kinds or {*workspace.network.kinds} - STATEMENT_KINDS
    nodes = _newest(txn, workspace, kinds, start) if request.newest_first else _nodes(txn, kinds, start)
    for node in nodes:
        if len(found) == request.size or looked_at >= MAX_LOOKED_AT:
            return NodePage(nodes=found, next_page_token=to_token(str(node.id), "nodes"))
        if request.metadata:
            sources = {source.message for source in node.sources} if isinstance(node, Node) else set()
            looked_at += 1 + len(sources)
            if not any(matches(record) for record in map(txn.messages.get, sources) if record is not None):
                continue
        found.append(node_info(txn, workspace, node))
    return NodePage(nodes=found, next_page_token="")


def _nodes(txn: ReadTransaction, kinds: Collection[str], start: NodeId) -> Iterator[AnyNode]:
    """Yield the nodes of these kinds by id."""
    has_memories = any(kind not in (ENTITY, CONCEPT) for kind in kinds)
    memories = (one for one in txn.nodes.all(start) if one.kind in kinds) if has_memories else ()
    entities = txn.entities.all(start) if ENTITY in kinds else ()
    concepts = txn.concepts.all(start) if CONCEPT in kinds else ()
    return merge(memories, entities, concepts, key=attrgetter("id"))


def _newest(
    txn: ReadTransaction, workspace: Workspace, kinds: Collection[str], start: NodeId
) -> Iterator[AnyNode]:
    """Yield the memories of these kinds from the highest id down; `start` 0 is the newest."""
    for node_id in reversed(workspace.network.node_ids()):
        node = txn.nodes.get(node_id) if not start or node_id <= start else None
        if node is not None and node.kind in kinds:
            yield node


async def get_node(service: ReadingService, request: NodeRequest) -> NodeDetail:
    """Return a memory, an entity or a concept with its links. NODE_FORGOTTEN if it existed once, or NODE_NOT_FOUND."""
    async with service.fleet.using(request.owner) as agent:
        number = parse_node_id(request.node_id)
        workspace = agent.workspace
        found = await agent.run(partial(_detail, workspace, number))
        if found is None:
            raise not_alive(workspace, number)
        return found


def _detail(workspace: Workspace, node_id: NodeId) -> NodeDetail | None:
    """Return a node with its links, or None if there is none with this id."""

    def read(txn: ReadTransaction) -> NodeDetail | None:
        node = node_of(txn, node_id)
        return None if node is None else node_detail(txn, workspace, node)

    return workspace.store.read(read)


def node_of(txn: ReadTransaction, node_id: NodeId) -> AnyNode | None:
    """Return a living memory, an entity or a concept; None if there is none with this id."""
    return txn.nodes.get(node_id) or txn.entities.get(node_id) or txn.concepts.get(node_id)


def is_concept(workspace: Workspace, node_id: NodeId) -> bool:
    """Return whether a node is a concept."""
    return workspace.store.read(lambda txn: txn.concepts.get(node_id)) is not None


def not_alive(workspace: Workspace, node_id: NodeId) -> EbbtideError:
    """Return the error for a node that is no memory, statement or entity.

    INVALID_VALUE for a concept, NODE_FORGOTTEN if the node existed once, NODE_NOT_FOUND otherwise.
    """
    if is_concept(workspace, node_id):
        text = node_text_id(node_id)
        return InvalidRequest(
            f"The node {text} is a concept, which can only be read: consolidation groups its members again. It is "
            f"deleted with any of them; GET /v1/agents/{{agent_id}}/nodes/{text} (GetNode) lists them.",
            reason="INVALID_VALUE",
            violations=[FieldViolation("node_id", f"{text} is a concept; allowed: any other node")],
        )
    if 0 < node_id < workspace.network.next_node_id:
        return NotFound(
            f"The node {node_text_id(node_id)} was forgotten or deleted. A search of the archive may still "
            "find the text of a forgotten one.",
            reason="NODE_FORGOTTEN",
        )
    return no_node()


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


def node_info(txn: ReadTransaction, workspace: Workspace, node: AnyNode) -> NodeInfo:
    """Return the current state of a memory, an entity or a concept."""
    return NodeInfo(**_fields(txn, workspace, node))


def node_detail(txn: ReadTransaction, workspace: Workspace, node: AnyNode) -> NodeDetail:
    """Return a memory, an entity or a concept with its live links."""
    network = workspace.network
    if isinstance(node, Concept):
        return _concept_detail(txn, workspace, node)
    outgoing = [
        (LinkOut(target=node_text_id(target), relation=relation, strength=strength), target)
        for target, relation, strength in sorted(network.links_from(node.id))
    ]
    return NodeDetail(
        **_fields(txn, workspace, node),
        first_content=txn.nodes.first_content(node) if isinstance(node, Node) else None,
        links_in=[
            LinkIn(source=node_text_id(source), relation=relation, strength=strength)
            for source, relation, strength in sorted(network.links_to(node.id))
        ],
        links_out=[link for link, target in outgoing if target in network],
        dangling=[link for link, target in outgoing if target not in network],
    )


def _concept_detail(txn: ReadTransaction, workspace: Workspace, node: Concept) -> NodeDetail:
    """Return a concept with a link to each member."""
    network = workspace.network
    links = [(LinkOut(target=node_text_id(one), relation=MEMBER, strength=1.0), one) for one in node.members]
    return NodeDetail(
        **_fields(txn, workspace, node),
        first_content=None,
        links_in=[],
        links_out=[link for link, target in links if target in network],
        dangling=[link for link, target in links if target not in network],
    )


def _concept_fields(node: Concept) -> dict[str, Any]:
    return {
        "id": node_text_id(node.id),
        "kind": CONCEPT,
        "content": node.content,
        "phrase": node.content,
        "keywords": list(node.keywords),
        "created_at": node.created_at_ms,
        "original_length": len(node.content),
        "in_focus": False,
        "pinned": "none",
        "label": "",
        **dict.fromkeys(("scan_count", "importance"), 0),
        **{name: [] for name in ("entities", "sources", "rewrites")},
    }


def _pin(txn: ReadTransaction, workspace: Workspace, node: Node) -> str:
    """Return how a memory is pinned. The pin of a statement is a ruling."""
    if not workspace.network.is_statement(node.id):
        return node.pinned
    return "by_hand" if node.id in workspace.ledger_in(txn).known().pinned() else "none"


def _fields(txn: ReadTransaction, workspace: Workspace, node: AnyNode) -> dict[str, Any]:
    if isinstance(node, Concept):
        return _concept_fields(node)
    network = workspace.network
    shared = {
        "id": node_text_id(node.id),
        "scan_count": network.scan_count(node.id),
        "importance": Draft(network).importance(node.id),
    }
    if isinstance(node, Entity):
        return {
            **shared,
            "kind": ENTITY,
            "phrase": node.name,
            "in_focus": node.id in network.entity_focus,
            "pinned": "none",
            **dict.fromkeys(("label", "content"), ""),
            **{name: [] for name in ("keywords", "entities", "sources", "rewrites")},
            "created_at": None,
            "original_length": 0,
        }
    return {
        **shared,
        "kind": node.kind,
        "label": node.label,
        "content": node.content,
        "phrase": node.phrase,
        "keywords": list(node.keywords),
        "created_at": node.created_at_ms,
        "original_length": node.original_length,
        "in_focus": node.id in network.focus,
        "pinned": _pin(txn, workspace, node),
        "entities": _entities(workspace, node.id),
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


def _entities(workspace: Workspace, node_id: NodeId) -> list[EntityLink]:
    """Return the entities that a live link joins with a memory, either way, strongest first."""
    network = workspace.network
    strongest: dict[NodeId, tuple[float, str]] = {}
    for other, relation, strength in (*network.links_from(node_id), *network.links_to(node_id)):
        if other in network.entities and strength > strongest.get(other, (-1.0, ""))[0]:
            strongest[other] = (strength, relation)
    return [
        EntityLink(
            id=node_text_id(entity_id),
            name=network.entities[entity_id].name,
            relation=relation,
            strength=strength,
        )
        for entity_id, (strength, relation) in sorted(
            strongest.items(), key=lambda item: (-item[1][0], item[0])
        )
    ]


def _source(txn: ReadTransaction, source: Source) -> SourceInfo:
    record = txn.messages.get(source.message)
    assert record is not None, "a source names a message that is kept"
    place = record.attachment_at(source.offset, source.length)
    text = "" if place is None else txn.messages.text(record) or ""
    return SourceInfo(
        **source_fields(
            record,
            source.offset,
            source.length,
            txn.messages.metadata(record),
            cited_attachment(record, place, text),
        )
    )


def source_fields(
    record: MessageRecord,
    offset: int,
    length: int,
    metadata: Mapping[str, object],
    attachment: CitedAttachment | None,
) -> dict[str, Any]:
    """Return the fields of a source."""
    return {
        "message_id": record.caller_id,
        "batch_id": batch_text_id(record.batch),
        "message_index": record.index,
        "offset": offset,
        "length": length,
        "role": record.role,
        "speaker": record.speaker,
        "timestamp": record.timestamp_ms,
        "conversation_id": record.conversation_id,
        "metadata": dict(metadata),
        "pii": [
            PersonalData(kind=span.kind, offset=span.offset, length=span.length)
            for span in record.personal
            if span.offset < offset + length and offset < span.offset + span.length
        ],
        "attachment": attachment,
    }
