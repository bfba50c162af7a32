"""forget: erase messages with everything derived from them, and records, permanently, also from the agent's files.

The steps: resolve the selection in short jobs (`fleet/deletion/selection.py`); a `dry_run` ends here. Erase it, a few
milliseconds at a time, each step one commit with its own audit record (`fleet/deletion/executor.py`). Then rewrite the
store without the erased data in one job (`compact` in `store/lmdb/lmdb_store.py`). Other requests of the agent run
between the steps; only the rewrite delays them, for a time that depends on the size of the store.

An erasure that has started completes even if the client disconnects. If the daemon is killed, what is erased stays
erased, the rewrite is repeated at the next start, and the same request finds the rest.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Annotated, Self

import msgspec
from pydantic import AfterValidator, Field, model_validator

from ebbtide.actor import actor
from ebbtide.errors import Exhausted, Unavailable
from ebbtide.fleet.deletion.removal import Tally
from ebbtide.fleet.deletion.selection import OffloadedTopic, Selection, SelectionSearch
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.shared import Budget
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId, message_number, message_text_id, node_text_id, parse_node_id
from ebbtide.privacy.spans import redacted
from ebbtide.retrieval.topic import Topic
from ebbtide.store.chain import AuditRecord
from ebbtide.telemetry import get_log, in_background
from ebbtide.verbs.limits import MaxChars, MaxItems, Name, NotBlank, Several
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.recall import TimeRange
from ebbtide.verbs.records import Key, Labels
from ebbtide.verbs.requests import AgentRequest, Fields, Response, invalid, refuse, violation
from ebbtide.verbs.service import Service

MAX_NAMED = 1000
"""Most nodes, messages, conversations or speakers in one request."""

MAX_LISTED = 1000
"""Most ids and proofs that a response lists; it counts all of them."""


def _is_message(text: str) -> str:
    if message_number(text) is None:
        raise invalid(text, "ids such as m1, from search or a dry run")
    return text


def _has_label(labels: list[str]) -> list[str]:
    if not labels:
        raise violation("MISSING_FIELD", "empty; give at least one label")
    return labels


def _is_topic(words: str) -> str:
    try:
        Topic(words)
    except ValueError:
        raise invalid(words, "at least one word") from None
    return words


class RecordSelection(Fields):
    """A record, or all records in a namespace and below it."""

    namespace: Annotated[Labels, AfterValidator(_has_label)] = Field(
        default_factory=list,
        validate_default=True,
        description="Its place; 1-16 labels.",
        examples=[["users"]],
    )
    key: Key | None = Field(None, description="Its name; default: all records there.")


_Named = Annotated[Name, NotBlank("a name; an empty one would select everything without one")]


class ForgetRequest(AgentRequest):
    """What to forget permanently."""

    nodes: Annotated[list[str], Several, MaxItems(MAX_NAMED)] = Field(
        default_factory=list, description="These memories.", examples=[["n1"]]
    )
    messages: Annotated[list[Annotated[str, AfterValidator(_is_message)]], Several, MaxItems(MAX_NAMED)] = (
        Field(
            default_factory=list,
            description="These messages, by ids such as m1, from search results without a living memory or a dry run.",
            examples=[["m1"]],
        )
    )
    topic: Annotated[str, MaxChars("max_keyword_chars"), AfterValidator(_is_topic)] | None = Field(
        None, description="Every sentence, memory and record that names this.", examples=["Project Heron"]
    )
    time_range: TimeRange | None = Field(
        None, description="Messages of this period, and records that were created or updated in it."
    )
    conversations: Annotated[list[_Named], Several, MaxItems(MAX_NAMED)] = Field(
        default_factory=list, description="Messages of these conversations."
    )
    speakers: Annotated[list[_Named], Several, MaxItems(MAX_NAMED)] = Field(
        default_factory=list, description="Messages of these speakers."
    )
    records: Annotated[list[RecordSelection], Several, MaxItems(MAX_NAMED)] = Field(
        default_factory=list, description="These records."
    )
    dry_run: bool = Field(False, description="Only report what would be forgotten.")

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        time = self.time_range
        if time is not None and time.begin is None and time.end is None:
            raise invalid(
                {}, "begin, end, or both; to delete everything, delete the agent", field="time_range"
            )
        by_id = self.nodes or self.messages or self.records
        if not (by_id or self.topic or time or self.conversations or self.speakers):
            needed = (
                "selects nothing; give nodes, messages, topic, time_range, conversations, speakers or records"
            )
            raise violation("MISSING_FIELD", needed, "the body")
        return self


class ForgetCounts(Response):
    """The amount of erased data; in a dry run, of data that would be erased."""

    nodes: int = Field(description="Memories.")
    links: int = Field(description="Links from or to them; 0 in a dry run.")
    messages: int = Field(description="Messages erased as a whole.")
    batches: int = Field(description="Batches erased as a whole; 0 in a dry run.")
    bytes: int = Field(description="Bytes of message text.")
    relations: int = Field(
        description="Links that remain but lose their name, since the name reveals the topic."
    )
    records: int = Field(description="Records.")


class ForgetProof(Response):
    """The proof: records of the audit log, and keyed hashes of the erased texts."""

    first_record: int = Field(description="Number of the first record; 0 if nothing was erased.")
    last_record: int = Field(description="Number of the last record.")
    record_hash: str = Field(description="Hash of the last record, in hexadecimal.")
    hmacs: list[str] = Field(description="HMAC-SHA256 of each erased text, in hexadecimal; the first 1000.")
    hmac_count: int = Field(description="The total number.")


class RecordName(Response):
    """A record by its place and name."""

    namespace: list[str] = Field(description="Its place, from the outermost label on.")
    key: str = Field(description="Its name in the namespace.")


class Forgotten(Response):
    """The erased items; in a dry run, the items that would be erased."""

    dry_run: bool = Field(description="Whether this was a dry run, which erases nothing.")
    counts: ForgetCounts = Field(description="The amount of erased data.")
    nodes: list[str] = Field(description="The memories; the first 1000.")
    messages: list[str] = Field(description="The messages erased as a whole; the first 1000.")
    partly: list[str] = Field(description="The messages of which only sentences are erased; the first 1000.")
    records: list[RecordName] = Field(
        description="In a dry run the records, whose names may reveal the topic; the first 1000."
    )
    also_found_in: list[str] = Field(
        description="Memories and messages that also mention it and remain; the first 1000."
    )
    also_found_count: int = Field(description="The total number.")
    proof: ForgetProof = Field(description="The records of the audit log that prove the erasure.")
    compacted: bool = Field(description="Whether the files no longer contain any byte of it.")


async def forget_memories(service: Service, request: ForgetRequest) -> Forgotten:
    """Forget a selection permanently: memories, their sources and the bytes on disk. Irreversible.

    Items that no longer exist are skipped. So repeating the request is harmless, and retries a compaction that failed.
    """
    owner, selection = request.owner, _selection(request)
    asker = actor()
    if request.dry_run:
        async with service.fleet.using(owner) as agent:
            look = await _looked_up(service, agent, selection, request)
            relation_count = await agent.run(partial(agent.workspace.unnamed_count, look))
            found = Tally(
                len(look.nodes),
                messages=len(look.gone_whole),
                bytes=look.byte_count,
                relations=relation_count,
                records=len(look.records),
            )
            return _forgotten(look, _Outcome(found), is_dry=True)
    erasing = in_background(_forget(service, owner, selection, request, asker))
    # An erasure that has started completes: no caller wants half a selection erased.
    erasing.add_done_callback(lambda task: None if task.cancelled() else task.exception())
    return await asyncio.shield(erasing)


def _selection(request: ForgetRequest) -> Selection:
    time = request.time_range or TimeRange()
    return Selection(
        nodes=frozenset(map(parse_node_id, request.nodes)),
        messages=frozenset(
            number for text in request.messages if (number := message_number(text)) is not None
        ),
        conversations=frozenset(request.conversations),
        speakers=frozenset(request.speakers),
        begin_ms=time.begin,
        end_ms=time.end,
        topic=None if request.topic is None else Topic(request.topic),
        records=frozenset((tuple(one.namespace), one.key or "") for one in request.records),
    )


async def _looked_up(
    service: Service, agent: Agent, selection: Selection, request: ForgetRequest
) -> SelectionSearch:
    """Resolve the selection. INVALID_VALUE if it only matches texts that redaction made equal to others."""
    workspace, shared = agent.workspace, service.fleet.shared
    stored = await agent.run(partial(_as_stored, workspace, selection, request))
    look = SelectionSearch(stored, await agent.run(partial(workspace.named_by, stored)))
    while not look.is_done:
        await agent.run_step(partial(workspace.search_step, look, Budget(service.clock, shared.priority)))
    if look.redacted_count and look.is_empty:
        field = "speakers" if look.selection.redacted_speakers else "topic"
        refuse(
            field,
            getattr(request, field),
            f"the redacted form (which others may share), or the messages, such as {look.elsewhere[0]}",
        )
    return look


def _as_stored(workspace: Workspace, selection: Selection, request: ForgetRequest) -> Selection:
    """Return a selection that also finds redacted texts: the policy may have been another one before.

    A redacted id still identifies its owner. A speaker or a topic does not: several may have become `[email]`.
    INVALID_VALUE for an entity, which is erased with what names it.
    """
    for node_id in selection.nodes:
        if node_id in workspace.network.entities:
            allowed = "ids of memories; this is an entity. To forget a name, pass it as topic"
            refuse("nodes", node_text_id(node_id), allowed)
    policy = PiiPolicy(workspace.parameters, workspace.identity)
    speakers = frozenset(map(redacted, request.speakers)) - selection.speakers
    topic = None if request.topic is None else redacted(request.topic)
    return replace(
        selection,
        conversations=frozenset(form for one in request.conversations for form in policy.forms(one)),
        records=selection.records
        | frozenset(
            (tuple(map(policy.name, namespace)), policy.name(key)) for namespace, key in selection.records
        ),
        topic=selection.topic and OffloadedTopic(selection.topic, workspace.texts),
        about=workspace.statements_about(selection),
        redacted_speakers=speakers,
        redacted_topic=None
        if topic is None or topic == request.topic
        else OffloadedTopic(Topic(topic), workspace.texts),
    )


@dataclass(slots=True)
class _Outcome:
    """The erased items."""

    tally: Tally = field(default_factory=Tally)
    records: list[AuditRecord] = field(default_factory=list)
    is_compacted: bool = False


async def _forget(
    service: Service, owner: AgentId, selection: Selection, request: ForgetRequest, asker: str
) -> Forgotten:
    async with service.fleet.using(owner) as agent:
        look = await _looked_up(service, agent, selection, request)
        removal = await agent.run(partial(agent.workspace.found, look))
        done = _Outcome()
        while not removal.is_done:
            step = await agent.remove(removal, asker)
            done.tally.add(step.tally)
            done.records += [step.record] if step.record is not None else []
        # Also if nothing was found: what was deleted before cannot be found, but the file may still contain it.
        if await agent.run(agent.workspace.holds_leftovers):
            done.is_compacted = await _compacted(agent)
        if done.tally.messages and agent.embedding is not None:
            agent.embedding.notice()
    return _forgotten(look, done)


async def _compacted(agent: Agent) -> bool:
    """Rewrite the store. Return whether there was room for it; otherwise it stays due."""
    try:
        await agent.compact()
    except (Exhausted, Unavailable) as error:
        get_log("forget").warning("compaction waits", agent_id=agent.id, reason=error.reason)
        return False
    return True


def _forgotten(look: SelectionSearch, done: _Outcome, *, is_dry: bool = False) -> Forgotten:
    hmacs = [proof.hex() for record in done.records for proof in record.proofs]
    first, last = (done.records[0], done.records[-1]) if done.records else (None, None)
    return Forgotten(
        dry_run=is_dry,
        counts=ForgetCounts(**msgspec.structs.asdict(done.tally)),
        nodes=list(map(node_text_id, islice(look.nodes, MAX_LISTED))),
        messages=list(map(message_text_id, islice(look.gone_whole, MAX_LISTED))),
        partly=list(map(message_text_id, islice(look.partially_erased, MAX_LISTED))),
        records=[
            RecordName(namespace=list(one.namespace), key=one.key)
            for one in islice(look.records if is_dry else (), MAX_LISTED)
        ],
        also_found_in=look.elsewhere,
        also_found_count=look.elsewhere_count,
        proof=ForgetProof(
            first_record=0 if first is None else first.number,
            last_record=0 if last is None else last.number,
            record_hash="" if last is None else last.hash.hex(),
            hmacs=hmacs[:MAX_LISTED],
            hmac_count=len(hmacs),
        ),
        compacted=done.is_compacted,
    )
