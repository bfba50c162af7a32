"""memories: correcting and deleting existing memories.

A correction reads the memory in a job, computes its summary and keywords with the built-in rules on another thread, and
commits the memory and its own source in the archive in one job. A correction and a deletion are items of one executor
(`fleet/deletion/executor.py`).

A deletion is one job and one commit. The memory is removed with every link at either end, leaves the focus, and its
source text is withdrawn from the archive. Text without a living memory is deleted by
the id that search returns, which is that of its message. Many deletions run in steps of a few milliseconds, so that
other requests of the agent are not delayed. A running digest or pass continues: a batch whose relations were named
for an old focus names them again, and a pass skips what is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from ebbtide.actor import actor
from ebbtide.errors import EbbtideError, InvalidRequest, NotFound, Precondition, no_node
from ebbtide.fleet.archive.reading import living_nodes
from ebbtide.fleet.deletion.removal import (
    Correction,
    Deleted,
    Item,
    Memory,
    Outcome,
    Removal,
    Tally,
    Uncited,
    Undigested,
)
from ebbtide.fleet.ingest.admission import PolicyChanged
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import (
    NodeId,
    batch_text_id,
    message_number,
    message_text_id,
    node_text_id,
    parse_node_id,
)
from ebbtide.language.port import BadReply, TextTooComplex
from ebbtide.offload.pool import text_too_complex, worker_killed
from ebbtide.parameters import AgentParameters
from ebbtide.records import Node
from ebbtide.verbs.inspect import NodeDetail, NodeRequest, is_concept, node_detail, not_alive
from ebbtide.verbs.limits import FlatMetadata, MaxChars, MaxItems, NotBlank, OneLine, Several
from ebbtide.verbs.metadata import merged_json
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.requests import AgentRequest, Response, refuse, requiring, shown, unnamed, violation
from ebbtide.verbs.service import Service

MAX_DELETED = 1000
"""Most memories in one request."""


def _not_empty(node_ids: list[str]) -> list[str]:
    if not node_ids:
        raise violation("INVALID_VALUE", f"empty; allowed: 1-{MAX_DELETED} ids")
    return node_ids


class UpdateNodeRequest(NodeRequest):
    """What to change about a memory."""

    content: (
        Annotated[str, MaxChars("max_message_chars"), NotBlank("a text; DELETE removes a memory")] | None
    ) = Field(None, description="The new content.", examples=["I moved to Porto in May."])
    keywords: Annotated[
        list[Annotated[str, MaxChars("max_keyword_chars"), NotBlank("a word"), OneLine()]],
        Several,
        MaxItems("max_keywords"),
    ] = Field(
        default_factory=list,
        description="The new keywords. Default: those of the new content; if content is omitted, they are unchanged.",
    )
    metadata: FlatMetadata | None = Field(
        None, description="The new metadata, which replaces the old; flat, at most 4 KiB."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.content is None and not self.keywords and self.metadata is None:
            raise violation("MISSING_FIELD", "required; give content, keywords or metadata", "content")
        return self


class DeleteNodesRequest(AgentRequest):
    """Which memories to delete."""

    model_config = requiring("node_ids")

    node_ids: Annotated[list[str], Several, MaxItems(MAX_DELETED), AfterValidator(_not_empty)] = Field(
        [],
        validate_default=True,
        description="Ids of nodes, or of messages as search returns them; 1-1000.",
        examples=[["n1", "n2"]],
    )


class DeletedNode(Response):
    """The items deleted with a memory, or from a message."""

    node_id: str = Field(description="The id from the request.", examples=["n1"])
    links_removed: int = Field(description="Number of links from or to it.")
    bytes_withdrawn: int = Field(description="Bytes of source text removed from the archive.")
    cited_by: list[str] = Field(
        description="Ids of other memories that cite its source text, which stays for them; at most 5. Delete these "
        "too to remove the text."
    )


class NodeDeletion(DeletedNode):
    """The result for one of many memories."""

    deleted: bool = Field(description="Whether it existed and was deleted.")
    reason: str = Field(
        description="Why it was not deleted: NODE_NOT_FOUND, BATCH_NOT_DIGESTED or INVALID_VALUE (a concept); "
        "else empty."
    )


class DeletedNodes(Response):
    """The result for each memory, in the order of the request."""

    results: list[NodeDeletion] = Field(description="One result for each id, in the order of the request.")
    deleted_count: int = Field(description="How many were deleted.")


# --- correcting ------------------------------------------------------------------------------------------


async def update_node(service: Service, request: UpdateNodeRequest) -> NodeDetail:
    """Correct a memory. INVALID_VALUE for a statement or a concept, NODE_NOT_FOUND if it is not a living memory."""
    async with service.fleet.using(request.owner) as agent:
        # An empty list of keywords is how gRPC says that none were given.
        given = {
            "content": request.content,
            "keywords": request.keywords or None,
            "metadata": request.metadata,
        }
        changed = [name for name, value in given.items() if value is not None]
        details: dict[str, object] = {"node": request.node_id, "fields": changed}
        now_ms, asker = service.clock.now_ms(), actor()
        while True:
            parameters = agent.workspace.parameters
            change = await _correction(agent, request, parameters)
            try:
                return await agent.amend(
                    partial(_correct, agent.workspace, change, details, parameters.pii, now_ms, asker)
                )
            except PolicyChanged:
                continue


async def _correction(agent: Agent, request: UpdateNodeRequest, parameters: AgentParameters) -> Correction:
    """Return the correction with all that follows from its content."""
    node_id = parse_node_id(request.node_id)
    texts = agent.workspace.texts
    if node_id in agent.workspace.network.entities:
        raise _is_entity(request.node_id, "Correct the memories that name it.")
    node = await agent.run(partial(_living, agent.workspace, node_id))
    policy = PiiPolicy(parameters, agent.workspace.identity)
    request = request.model_copy(
        update={
            # A caller may send a memory as recall shows it; the label is no part of its content.
            "content": request.content
            and await texts.run(
                len(request.content),
                policy.words,
                request.content.removeprefix(node.label) or request.content,
            ),
            "metadata": policy.metadata(request.metadata),
        }
    )
    metadata = None if request.metadata is None else merged_json(None, request.metadata)
    keywords = tuple(policy.words(keyword) for keyword in request.keywords) or None
    if request.content is None:
        return Correction(node_id, keywords=keywords, metadata=metadata)
    try:
        by_rules = await agent.builtin_model.process(request.content)
    except TextTooComplex:
        raise text_too_complex() from None
    except BadReply:
        raise worker_killed() from None
    personal = await texts.run(len(request.content), policy.tagged, request.content)
    return Correction(
        node_id, request.content, by_rules.phrase, keywords or by_rules.keywords, metadata, personal
    )


def _correct(
    workspace: Workspace, change: Correction, details: Mapping[str, object], pii: str, now_ms: int, asker: str
) -> NodeDetail:
    if workspace.parameters.pii != pii:
        raise PolicyChanged
    _living(workspace, change.node_id)
    removal = Removal([change], "corrected", lambda *_: dict(details))
    node = workspace.remove(removal, lambda: False, now_ms, asker).node
    assert node is not None, "the memory was corrected"
    return workspace.store.read(lambda txn: node_detail(txn, workspace, node))


def _living(workspace: Workspace, node_id: NodeId) -> Node:
    """Return the living memory with this id. Raise NODE_NOT_FOUND if there is none, INVALID_VALUE for a statement."""
    if workspace.network.is_statement(node_id):
        # Its content is made from its fields, and its source would be replaced.
        allowed = "the id of a memory; PATCH statements/{node_id} (CorrectStatement) corrects a statement"
        refuse("node_id", node_text_id(node_id), allowed)
    node = workspace.store.read(lambda txn: txn.nodes.get(node_id))
    if node is None:
        error = not_alive(workspace, node_id)
        raise error if isinstance(error, InvalidRequest) else no_node()
    return node


# --- deleting --------------------------------------------------------------------------------------------


async def delete_node(service: Service, request: NodeRequest) -> DeletedNode:
    """Delete one memory with its links and its source text, or the rest of a message without memories. Irreversible.

    NODE_NOT_FOUND if it is not a living memory or nothing is left of it; BATCH_NOT_DIGESTED if it may still change.
    """
    node_id = request.node_id
    async with service.fleet.using(request.owner) as agent:
        message = message_number(node_id)
        target = Memory(parse_node_id(node_id)) if message is None else Uncited(message)
        [outcome] = (await agent.remove(_deletion([target]), actor())).outcomes
        if outcome is None:
            raise await agent.run(partial(_not_there, target, node_id, agent.workspace))
    if isinstance(outcome, Undigested):
        raise Precondition(
            f"The batch {batch_text_id(outcome.batch)} of {node_id} is not digested yet. Flush, then delete again.",
            reason="BATCH_NOT_DIGESTED",
        )
    return DeletedNode.model_validate({"node_id": node_id, **_counts(outcome)})


MAX_CITING = 5
"""Most citing memories that a response or an error names."""


def _is_entity(text: str, step: str) -> NotFound:
    return NotFound(f"The node {text} is an entity. {step}", reason="NODE_NOT_FOUND")


def _not_there(target: Memory | Uncited, text: str, workspace: Workspace) -> EbbtideError:
    why = ""
    if isinstance(target, Uncited):
        citing = workspace.store.read(lambda txn: living_nodes(txn, txn.citings.of(target.message)))
        if not citing:
            why = f"Nothing of {text} is left to delete: no message has this id, or it was deleted."
        else:
            named = [node_text_id(node.id) for node in citing]
            more = f" and {len(named) - MAX_CITING} more" if len(named) > MAX_CITING else ""
            why = (
                f"Nothing of {text} is left to delete: its text is cited by {', '.join(named[:MAX_CITING])}{more}. "
                "Delete these by their ids; the text is deleted with them."
            )
    elif target.node in workspace.network.entities:
        return _is_entity(text, "It is deleted with the last memory that names it.")
    elif (error := not_alive(workspace, target.node)).reason != "NODE_FORGOTTEN":
        return error
    else:
        why = (
            f"The node {text} is already forgotten or deleted. Its source text may still be in the archive: "
            "delete it by the id that search returns, or forget the node with its text."
        )
    return NotFound(why, reason="NODE_NOT_FOUND") if why else no_node()


async def delete_nodes(service: Service, request: DeleteNodesRequest) -> DeletedNodes:
    """Delete many memories, a few at a time, and report the outcome of each. Irreversible.

    If a later step is refused (STORE_FULL, REQUEST_TIMED_OUT), earlier deletions remain: send the request again.
    """
    targets = [_named(text) for text in request.node_ids]
    removal, outcomes = _deletion(targets), list[Outcome]()
    async with service.fleet.using(request.owner) as agent:
        while not removal.is_done:
            outcomes += (await agent.remove(removal, actor())).outcomes
        left = [
            one.node
            for one, done in zip(targets, outcomes, strict=True)
            if isinstance(one, Memory) and not done
        ]
        concepts = await agent.run(lambda: {one for one in left if is_concept(agent.workspace, one)})
    # A memory that was deleted in a later step of the same request cites nothing any more.
    gone = {
        one.node
        for one, done in zip(targets, outcomes, strict=True)
        if isinstance(one, Memory) and isinstance(done, Deleted)
    }
    for done in outcomes:
        if isinstance(done, Deleted):
            done.cited_by -= gone
    named = [
        _shown(text) if target == _NOTHING else text
        for text, target in zip(request.node_ids, targets, strict=True)
    ]
    results = [
        _result(text, outcome, isinstance(one, Memory) and one.node in concepts)
        for text, one, outcome in zip(named, targets, outcomes, strict=True)
    ]
    return DeletedNodes(results=results, deleted_count=sum(one.deleted for one in results))


_NOTHING = Memory(0)
"""No node has this id."""


def _named(text: str) -> Memory | Uncited:
    """Return a memory or a message by its id; `_NOTHING` if the text is the id of neither."""
    message = message_number(text)
    if message is not None:
        return Uncited(message)
    try:
        return Memory(parse_node_id(text))
    except NotFound:
        return _NOTHING


def _shown(text: str) -> str:
    """Return a text that is no id in a form safe to echo: it may contain personal data."""
    return shown(str(unnamed(text)))


def _result(text: str, outcome: Outcome, is_concept: bool) -> NodeDeletion:
    if isinstance(outcome, Deleted):
        return NodeDeletion.model_validate(
            {"node_id": text, **_counts(outcome), "deleted": True, "reason": ""}
        )
    not_there = "INVALID_VALUE" if is_concept else "NODE_NOT_FOUND"
    reason = not_there if outcome is None else "BATCH_NOT_DIGESTED"
    nothing = _counts(Deleted(links_removed=0))
    return NodeDeletion.model_validate({"node_id": text, **nothing, "deleted": False, "reason": reason})


def _counts(outcome: Deleted) -> dict[str, object]:
    return {
        "links_removed": outcome.links_removed,
        "bytes_withdrawn": outcome.bytes_withdrawn,
        "cited_by": [node_text_id(one) for one in sorted(outcome.cited_by)[:MAX_CITING]],
    }


def _deletion(targets: Sequence[Memory | Uncited]) -> Removal:
    return Removal(targets, "deleted", _details)


def _details(_: Tally, items: Sequence[Item], outcomes: Sequence[Outcome]) -> dict[str, object]:
    gone = [(one, done) for one, done in zip(items, outcomes, strict=False) if isinstance(done, Deleted)]
    return {
        "ids": [
            message_text_id(one.message) if isinstance(one, Uncited) else node_text_id(one.node)
            for one, _ in gone
            if isinstance(one, Memory | Uncited)
        ],
        "links": sum(done.links_removed for _, done in gone),
        "bytes": sum(done.bytes_withdrawn for _, done in gone),
    }
