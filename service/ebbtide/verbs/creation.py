"""creation: a memory that the caller supplies, without segmentation and without a language model.

It is stored as a message of its own, whose batch becomes exactly this memory in the same commit
(`Inbox.supply` in `fleet/ingest/inbox.py`). So it can be found, cited, corrected, exported and erased as any other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ebbtide.errors import FieldViolation, InvalidRequest, Precondition
from ebbtide.fleet.archive.unembedded import GivenVector, check_dimension
from ebbtide.fleet.ingest.admission import MESSAGE_WEIGHT, IncomingBatch, PolicyChanged, TargetGone
from ebbtide.fleet.ingest.inbox import SuppliedMemory
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.ids import NodeId, parse_node_id
from ebbtide.language.port import BadReply, Processed, TextTooComplex
from ebbtide.memory.digestion import NewMemory, OwnLink
from ebbtide.memory.wording import speaker_labels
from ebbtide.offload.pool import text_too_complex, worker_killed
from ebbtide.parameters import AgentParameters
from ebbtide.records import EPISODE
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.inspect import RESERVED_KINDS, NodeDetail, node_detail, not_alive
from ebbtide.verbs.limits import (
    FlatMetadata,
    Kind,
    MaxChars,
    MaxItems,
    Name,
    NotBlank,
    NotEmpty,
    OneLine,
    Several,
    Time,
)
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.remember import Message, RememberRequest, Stamp, arrival_of, screen
from ebbtide.verbs.requests import AgentRequest, Fields, invalid
from ebbtide.verbs.search import Vector, unit_vector
from ebbtide.verbs.service import Service

MAX_OWN_LINKS = 64
"""Most links that a memory is created with."""


def in_unit(strength: float) -> float:
    """Return the strength of a live link. Refuse another number."""
    if not 0 < strength <= 1:
        raise invalid(strength, "above 0, at most 1")
    return strength


class NewLink(Fields):
    """A link of a new memory or statement with a living node, both ways."""

    target: str = Field(description="The memory or entity.", examples=["n1"])
    relation: Annotated[str, MaxChars("max_relation_chars"), NotBlank("a name such as about"), OneLine()] = (
        Field(description="Name of the relation, in both directions.", examples=["about"])
    )
    strength: Annotated[float, AfterValidator(in_unit)] | None = Field(
        None, description="Its strength now, above 0 to 1; default: 1."
    )


OwnLinks = Annotated[list[NewLink], Several, MaxItems(MAX_OWN_LINKS)]


class CreateNodeRequest(AgentRequest):
    """The memory to create."""

    content: Annotated[str, MaxChars("max_message_chars"), NotBlank("a text")] = Field(
        description="The text of the memory, which is not split.", examples=["Ann is allergic to nuts."]
    )
    kind: Annotated[str, Kind(RESERVED_KINDS)] = Field(
        EPISODE, description="Its kind: a word of your own, by which lists and queries can be filtered."
    )
    role: Literal["user", "assistant", "system"] = Field("user", description="Role of the speaker.")
    speaker: Name | None = Field(
        None, description="Name of the speaker, where the role does not say enough.", examples=["Ann"]
    )
    timestamp: Time | None = Field(
        None, description="When it was said: ms since the epoch, or ISO 8601 with a time zone."
    )
    message_id: Name | None = Field(None, description="The caller's own id, returned with sources.")
    conversation_id: Name | None = Field(None, description="The conversation that it belongs to.")
    keywords: Annotated[
        list[Annotated[str, MaxChars("max_keyword_chars"), NotBlank("a word"), OneLine()]],
        Several,
        MaxItems("max_keywords"),
    ] = Field(default_factory=list, description="Its keywords. Default: those of the content.")
    metadata: FlatMetadata | None = Field(
        None, description="Flat fields stored with it; at most 4 KiB as JSON."
    )
    links: OwnLinks = Field(
        default_factory=list,
        description="Its links, instead of those with the memories in focus, which it then does not join; at most 64.",
    )
    vector: Vector = Field(
        default_factory=list,
        description="Its vector of the current embedding model. Default: computed in the background.",
    )
    idempotency_key: Annotated[Name, NotEmpty("a text that is not empty")] | None = Field(
        None, description="Repeating a request with the same key and body has no further effect."
    )


async def create_node(service: Service, request: CreateNodeRequest) -> NodeDetail:
    """Create one memory from the given text, at once and without a language model.

    NODE_NOT_FOUND or NODE_FORGOTTEN if a link leads to no living node. VECTORS_UNAVAILABLE for a vector without an
    embedding model. Otherwise refused as a batch of messages is (QUEUE_FULL, QUOTA_REACHED, IDEMPOTENCY_KEY_REUSED).
    """
    async with service.fleet.using(request.owner, create=True, agent_quota=service.agent_quota) as agent:
        check_vector(agent, request.vector)
        while True:
            parameters = agent.workspace.parameters
            supplied = await _supplied(service, agent, request, parameters)
            try:
                return await agent.supply(supplied, partial(_detail, agent))
            except PolicyChanged:
                continue
            except TargetGone as error:
                raise await agent.run(partial(not_alive, agent.workspace, error.node_id)) from None


def check_vector(agent: Agent, vector: Sequence[float]) -> None:
    """Refuse the caller's vector if no embedding model is configured, or if its vectors have another size."""
    if not vector:
        return
    if agent.embedding is None:
        raise Precondition(
            "there is no embedding model that this vector could be of; set embedding.model, or leave out vector",
            reason="VECTORS_UNAVAILABLE",
        )
    check_dimension(len(vector), agent.embedding.dimension)


def own_vector(agent: Agent, vector: Sequence[float], passage_count: int) -> GivenVector | None:
    """Return the caller's vector of a message; None if none is given. Refuse one for several passages."""
    if not vector:
        return None
    if passage_count != 1:
        description = "not allowed with a content of several passages; leave out vector, or shorten content"
        raise InvalidRequest(
            f"vector: {description}",
            reason="INVALID_VALUE",
            violations=[FieldViolation("vector", description)],
        )
    assert agent.embedding is not None, "check_vector refused it"
    return GivenVector(unit_vector(vector), agent.embedding.model, agent.embedding.dimension)


def own_links(policy: PiiPolicy, links: Sequence[NewLink]) -> tuple[OwnLink, ...]:
    """Return the caller's links, redacted."""
    return tuple(
        OwnLink(
            parse_node_id(one.target),
            policy.words(one.relation),
            1.0 if one.strength is None else one.strength,
        )
        for one in links
    )


async def _supplied(
    service: Service, agent: Agent, request: CreateNodeRequest, parameters: AgentParameters
) -> SuppliedMemory:
    """Return the memory of a request, redacted, with what follows from its text."""
    now_ms, texts = service.clock.now_ms(), service.texts
    stamp = Stamp(parameters, agent.workspace.identity, now_ms, service.quota)
    size = len(request.content) + MESSAGE_WEIGHT
    said = await texts.run(size, _said, request, stamp)
    incoming = said.incoming
    vector = own_vector(agent, request.vector, len(incoming.passages[0]))
    by_rules = await _processed(agent, incoming.texts[0])
    record = incoming.records[0]
    spoken = [(record.role, record.speaker, incoming.texts[0])]
    memory = NewMemory(
        content=incoming.texts[0],
        phrase=by_rules.phrase,
        keywords=said.keywords or by_rules.keywords,
        created_at_ms=record.time_ms,
        label=speaker_labels(spoken, parameters.speaker_prefix, parameters.locale)[0],
        speaker=record.speaker,
        is_from_user=record.role == "user",
        kind=request.kind,
    )
    return SuppliedMemory(incoming, memory, said.links, vector)


async def _processed(agent: Agent, content: str) -> Processed:
    try:
        return await agent.builtin_model.process(content)
    except TextTooComplex:
        raise text_too_complex() from None
    except BadReply:
        raise worker_killed() from None


@dataclass(frozen=True, slots=True)
class _Said:
    """A request after the PII policy."""

    incoming: IncomingBatch
    keywords: tuple[str, ...]
    links: tuple[OwnLink, ...]


def _said(request: CreateNodeRequest, stamp: Stamp) -> _Said:
    # The fields are validated already.
    message = Message.model_construct(
        role=request.role,
        content=request.content,
        timestamp=request.timestamp,
        id=request.message_id,
        speaker=request.speaker,
        metadata=request.metadata,
    )
    batch = RememberRequest.model_construct(
        agent_id=request.agent_id,
        messages=[message],
        conversation_id=request.conversation_id,
        metadata=None,
        idempotency_key=request.idempotency_key,
    )
    incoming = arrival_of(screen(batch, stamp), stamp)
    policy = PiiPolicy(stamp.parameters, stamp.identity)
    keywords = tuple(map(policy.words, request.keywords))
    links = own_links(policy, request.links)
    if incoming.body_hash:
        links_given = [(one.other, one.relation, one.strength) for one in links]
        given = [keywords, links_given, request.vector, *([request.kind] if request.kind != EPISODE else ())]
        hashed = hashlib.sha256(incoming.body_hash + b"node" + json.dumps(given).encode())
        incoming = replace(incoming, body_hash=hashed.digest())
    return _Said(incoming, keywords, links)


def _detail(agent: Agent, node_id: NodeId) -> NodeDetail:
    workspace = agent.workspace

    def read(txn: ReadTransaction) -> NodeDetail | None:
        node = txn.nodes.get(node_id)
        return None if node is None else node_detail(txn, workspace, node)

    found = workspace.store.read(read)
    if found is None:
        # A repeated request, whose memory was forgotten or deleted since.
        raise not_alive(workspace, node_id)
    return found
