"""statements: what an agent knows about the user and others: state it, read it, correct it.

A statement says one thing about a subject: a topic and a value, from when to when. The current ones are computed by
replaying all of them in order (`memory/statements.py`), so each answer can be given as of an earlier time, and as it
was known at an earlier time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import AfterValidator, Field

from ebbtide.actor import actor
from ebbtide.clock import offset_of
from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.fleet.archive.archive import passages_of
from ebbtide.fleet.consolidation.tiers import tier
from ebbtide.fleet.ingest.admission import IncomingBatch, PolicyChanged, TargetGone
from ebbtide.fleet.ingest.declaring import Supplied, Told, is_for_period
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, batch_text_id, node_number, node_text_id, parse_node_id, ruling_text_id
from ebbtide.language.builtin.negation import denial_of, denies_allergy, is_denied
from ebbtide.memory.declaration import Declaration, corrected
from ebbtide.memory.digestion import OwnLink
from ebbtide.memory.namesakes import Namesakes
from ebbtide.memory.relatives import Relatives
from ebbtide.memory.slot_names import DATES, SLOTS, canonical, slot_of
from ebbtide.memory.statements import DAY_MS, MAX_EVIDENCE, MAX_RIVALS, Replay, Version
from ebbtide.memory.subjects import ASSISTANT, USER, subject_name, unqualified
from ebbtide.memory.values import (
    canonical_value,
    is_done,
    normalised,
    reports_change,
    tells_of_past,
    tells_of_plan,
)
from ebbtide.memory.versions import Conflicts
from ebbtide.memory.wording import word_statement
from ebbtide.normalisation import is_invisible
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, MessageRecord
from ebbtide.retrieval.time_rules import Reading
from ebbtide.retrieval.times import Offset, not_ahead, stated_time
from ebbtide.settings import SearchSettings
from ebbtide.statements import (
    KINDS,
    MAX_ATTRIBUTE_CHARS,
    MAX_ATTRIBUTE_NAME_CHARS,
    MAX_ATTRIBUTES,
    Assertion,
    Ruling,
)
from ebbtide.store.chain import AuditEntry
from ebbtide.store.layout import text_key
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.creation import OwnLinks, check_vector, own_links, own_vector
from ebbtide.verbs.inspect import not_alive
from ebbtide.verbs.limits import (
    Between,
    FlatMetadata,
    MaxChars,
    Name,
    NotBlank,
    NotEmpty,
    OneLine,
    OneOf,
    PlainText,
    Several,
    Time,
)
from ebbtide.verbs.metadata import message_filter, metadata_json
from ebbtide.verbs.paging import AgentPageRequest, from_token, number_of, to_token
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.remember import Stamp
from ebbtide.verbs.requests import AgentRequest, Request, Response, invalid, refuse
from ebbtide.verbs.search import Vector
from ebbtide.verbs.service import Service

T = TypeVar("T")

MODALITIES = ("asserted", "reported", "planned")
SCOPES = ("private", "team", "public")
STATES = (
    "current",
    "contested",
    "planned",
    "superseded",
    "ended",
    "corrected",
    "retracted",
    "forgotten",
)
CURRENT = ("current", "contested", "planned")

AN_ENTITY = "the name or id of an entity of GET /v1/agents/{agent_id}/entities (ListEntities)"
"""The allowed names of entities, in errors."""

MAX_SUBJECT_CHARS = 200
MAX_TOPIC_CHARS = 64
MAX_OBJECT_CHARS = 500
MAX_REASON_CHARS = 500
MAX_KEYWORDS = 12
DEFAULT_CONFIDENCE = 0.9


def _attributes(given: dict[str, str]) -> dict[str, str]:
    if len(given) > MAX_ATTRIBUTES:
        raise invalid(given, f"at most {MAX_ATTRIBUTES} attributes")
    for name in given:
        if not 0 < len(name) <= MAX_ATTRIBUTE_NAME_CHARS:
            raise invalid(name, f"names of 1-{MAX_ATTRIBUTE_NAME_CHARS} characters")
        if any(map(is_invisible, name)):
            raise invalid(name, "names that are visible on one line")
    return given


Reason = Annotated[str, MaxChars(MAX_REASON_CHARS), PlainText()]
Unit = Annotated[float, Between(0, 1)]


class CreateStatementRequest(AgentRequest):
    """A statement to store."""

    subject: Annotated[str, MaxChars(MAX_SUBJECT_CHARS), NotBlank("a name, or I"), OneLine()] = Field(
        description="The person or thing that it is about: a name, or I, user, 我 for the user.",
        examples=["user"],
    )
    topic: Annotated[str, MaxChars(MAX_TOPIC_CHARS), NotBlank("a topic such as residence"), OneLine()] = (
        Field(
            description="The property of the subject, in one to three words: residence, job, allergy, 住址.",
            examples=["residence"],
        )
    )
    object: Annotated[str, MaxChars(MAX_OBJECT_CHARS), PlainText()] = Field(
        "", description="The value; at most 500 characters.", examples=["Porto"]
    )
    kind: Annotated[str, OneOf(KINDS)] = Field(
        "fact", description="fact, event, relation, opinion, preference, task or reflection."
    )
    content: Annotated[str, MaxChars("max_message_chars"), PlainText()] = Field(
        "",
        description="The sentence to store. Default: subject, topic and object. It is searched and cited.",
        examples=["I moved to Porto in May."],
    )
    attributes: Annotated[
        dict[str, Annotated[str, MaxChars(MAX_ATTRIBUTE_CHARS), PlainText()]], AfterValidator(_attributes)
    ] = Field(
        default_factory=dict,
        description="At most 16 further fields; names up to 64 characters, values up to 500.",
        examples=[{"since": "May"}],
    )
    importance: Unit = Field(0.5, description="Strength of its links, 0-1.")
    negated: bool | None = Field(
        None,
        description="Whether the statement denies the value. Default: whether content says that it is so no longer. "
        "Required if content denies something else, such as not.",
    )
    modality: Annotated[str, OneOf(MODALITIES)] | None = Field(
        None,
        description="asserted; reported (passed on by another person); planned. Default: planned if content says what "
        "will be, else asserted.",
    )
    since: Time | None = Field(
        None, description="From when it is true; default: the time that content states, else now."
    )
    until: Time | None = Field(None, description="Until when it is true; default: open.")
    timestamp: Time | None = Field(None, description="When it was said; default: now.")
    replaces: str = Field(
        "", description="Id of a statement on the same topic that this one ends.", examples=["n12"]
    )
    scope: Annotated[str, OneOf(SCOPES)] = Field("private", description="private, team or public; a filter.")
    valence: Annotated[float, Between(-1, 1)] | None = Field(
        None, description="How pleasant it is to the subject, -1 to 1."
    )
    arousal: Unit | None = Field(None, description="How much it moves the subject, 0-1.")
    metadata: FlatMetadata | None = Field(
        None, description="Flat fields stored with its message; at most 4 KiB as JSON."
    )
    links: OwnLinks = Field(
        default_factory=list,
        description="Its links with living nodes, in addition to those with its subject and value; at most 64.",
    )
    vector: Vector = Field(
        default_factory=list,
        description="The vector of its content, of the current embedding model. Default: computed in the background.",
    )
    idempotency_key: Annotated[Name, NotEmpty("a text that is not empty")] | None = Field(
        None, description="Repeating a request with the same key and body has no further effect."
    )


class StatementRequest(AgentRequest):
    """A request that names a statement."""

    node_id: str = Field(description="Id of the statement.", examples=["n1"])


class GetStatementRequest(StatementRequest):
    """Which statement to return, and at which time."""

    as_of: Time | None = Field(None, description="The time for which to answer; default: now.")
    known_at: Time | None = Field(
        None, description="Answer with what was known at this time; default: everything."
    )


class ListStatementsRequest(AgentPageRequest):
    """Which statements to list, and at which time."""

    subject: Annotated[str, MaxChars(MAX_SUBJECT_CHARS)] = Field(
        "", description="Only those about this entity: a name, I, or an id.", examples=["user"]
    )
    topic: Annotated[str, MaxChars(MAX_TOPIC_CHARS)] = Field(
        "", description="Only those on this topic.", examples=["residence"]
    )
    kinds: Annotated[list[Annotated[str, OneOf(KINDS)]], Several] = Field(
        default_factory=list, description="Only those of these kinds. Over REST separated by commas."
    )
    states: Annotated[list[Annotated[str, OneOf(STATES)]], Several] = Field(
        default_factory=list,
        description="Only those in these states; default: current, contested and planned.",
    )
    as_of: Time | None = Field(None, description="The time for which to answer; default: now.")
    known_at: Time | None = Field(
        None, description="Answer with what was known at this time; default: everything."
    )
    metadata: FlatMetadata | None = Field(
        None,
        description="Only those that a message with each of these values supports. Over REST as JSON.",
    )


class CorrectStatementRequest(StatementRequest):
    """The right fields of a statement."""

    object: Annotated[str, MaxChars(MAX_OBJECT_CHARS), PlainText()] | None = Field(
        None, description="The right value.", examples=["Porto"]
    )
    since: Time | None = Field(None, description="The right time from which it is true.")
    until: Time | None = Field(None, description="The right time until which it is true.")
    negated: bool | None = Field(None, description="Whether the statement denies the value.")
    replaces: str | None = Field(
        None,
        description="Id of a statement on the same topic that this one ends; empty for none. Default: as before.",
        examples=["n12"],
    )
    reason: Reason = Field("", description="Why, for the audit of the agent's knowledge.")


class RetractStatementRequest(StatementRequest):
    """Which statement was never true, and why."""

    reason: Reason = Field("", description="Why, for the audit of the agent's knowledge.")


class Quote(Response):
    """Words that support a statement."""

    text: str = Field(description="The words; empty once they have expired.")
    message_id: str = Field(description="The caller's own id of the message; empty if none was given.")
    batch_id: str = Field(description="Id of the batch of the message.")
    message_index: int = Field(description="Position of the message in its batch.")
    offset: int = Field(description="Offset of the words in the message's UTF-8.")
    length: int = Field(description="Length of the words in bytes.")
    role: str = Field(description="Role of the speaker; tool for the words of a statement itself.")
    said_at: int = Field(description="Time of the message, ms since the epoch.")


class StatementInfo(Response):
    """A statement at a time."""

    id: str = Field(description="Id of its node.", examples=["n1"])
    subject: str = Field(description="Name of the entity that it is about.", examples=["user"])
    subject_id: str = Field(description="Id of that entity.", examples=["n2"])
    slot: str = Field(description="The known topic, or the caller's topic.", examples=["residence"])
    object: str = Field(description="The value.", examples=["Porto"])
    object_id: str = Field(description="Id of the entity that is the value; empty if none is.")
    kind: str = Field(description="fact, event, relation, opinion, preference, task or reflection.")
    negated: bool = Field(description="Whether it denies the value.")
    modality: str = Field(description="asserted, reported or planned.")
    state: str = Field(
        description="current, contested, planned, superseded, ended, corrected, retracted or forgotten."
    )
    status: str = Field(
        description="staged (new), consolidated, or archived (forgotten).", examples=["staged"]
    )
    since: int = Field(description="From when it is true, ms since the epoch.")
    until: int | None = Field(description="Until when it is true, exclusive; null if open.")
    time_words: str = Field(description="The words that give the time; empty if none do.")
    told_at: int = Field(description="When it was said last, ms since the epoch.")
    known_at: int = Field(description="When it was stored first, ms since the epoch.")
    superseded_by: str = Field(description="Id of the statement that ended it; empty if none did.")
    conflicts_with: list[str] = Field(
        description="Ids of the statements that contradict it at this time, oldest first; at most 16."
    )
    confidence: float = Field(description="Confidence of the evidence, 0-1; further messages raise it.")
    importance: float = Field(description="The importance that was declared for it, 0-1.")
    priority: float = Field(description="Order among statements that contradict each other.")
    weight: float = Field(
        description="How much it matters now: its importance, how often and when it was said, feeling and votes."
    )
    pinned: bool = Field(description="Whether it is pinned.")
    author: str = Field(description="user, tool:KEY, rules@N or model:NAME.")
    scope: str = Field(description="private, team or public.")
    tier: str = Field(
        description="How firmly it is known: short (new), middle or long (said in several conversations).",
        examples=["short"],
    )
    attributes: dict[str, str] = Field(description="Further fields.")
    content: str = Field(description="The sentence; empty once the statement is forgotten.")
    quotes: list[Quote] = Field(description="The words that support it, oldest first; at most 16.")


class StatementPage(Response):
    """A page of statements."""

    statements: list[StatementInfo] = Field(
        description="The statements of this page: those that are or were true, then planned ones, each by id."
    )
    next_page_token: str = Field(description="Empty on the last page.")


class CreatedStatement(StatementInfo):
    """A stored statement, and what it changed."""

    created: bool = Field(
        description="False if an earlier statement already said it; its confidence has grown."
    )
    superseded: list[str] = Field(description="Ids of the statements that it has ended.")


class StatementHistory(Response):
    """All versions of the topic of a statement."""

    statements: list[StatementInfo] = Field(description="The versions, by the time from which they are true.")


class StoredRuling(Response):
    """A stored ruling."""

    ruling_id: str = Field(description="Id of the ruling, to undo it.", examples=["r1"])


# --- writing ---------------------------------------------------------------------------------------------


async def create_statement(service: Service, request: CreateStatementRequest) -> CreatedStatement:
    """Store a statement. It is durable and searchable at once; the agent is created if it does not exist.

    Raise TOO_MANY_STATEMENTS at the agent's limit, NODE_NOT_FOUND or NODE_FORGOTTEN if a link leads to no living node,
    VECTORS_UNAVAILABLE for a vector without an embedding model, and the errors of remember. In each case nothing is
    stored.
    """
    now_ms = service.clock.now_ms()
    return await create(service, request, now_ms, author="user", trust=1.0, confidence=DEFAULT_CONFIDENCE)


async def create(
    service: Service,
    request: CreateStatementRequest,
    now_ms: int,
    *,
    author: str,
    trust: float,
    confidence: float,
) -> CreatedStatement:
    """Store a statement of an author."""
    has_id = node_number(request.subject.strip()) is not None
    subject = "" if has_id else subject_name(request.subject)
    if subject is None:
        refuse("subject", request.subject, "a name of 1-200 characters with a letter or a digit, or I")
    size = len(request.content)
    request, slot = await service.texts.run(size, _with_meaning, request)
    async with service.fleet.using(request.owner, create=True, agent_quota=service.agent_quota) as agent:
        check_vector(agent, request.vector)
        while True:
            workspace, about = agent.workspace, 0
            if has_id:
                about = await agent.run(partial(_entity, workspace, request.subject))
                subject = workspace.network.entities[about].name
            replaced = await _replaced(
                agent, request.replaces, subject, slot, (request.subject, request.topic)
            )
            draft = Declaration(
                subject=subject,
                slot=slot,
                content=content_of(request, subject),
                about=about if replaced is None else replaced.first.subject,
                replaces=0 if replaced is None else replaced.statement,
                confidence=confidence,
                trust=trust,
                author=author,
            )
            stamp = Stamp(workspace.parameters, workspace.identity, now_ms, service.quota)
            one, words, links = await service.texts.run(size, _arriving, request, draft, stamp)
            vector = own_vector(agent, request.vector, len(words.passages[0]))
            supplied = Supplied(links, vector)
            try:
                declare = partial(workspace.declaring.declare, words, one, now_ms, supplied)
                created = await agent.amend(partial(_created, workspace, declare, now_ms, one.replaces))
                break
            except PolicyChanged:
                continue
            except TargetGone as error:
                raise await agent.run(partial(not_alive, workspace, error.node_id)) from None
        agent.recount()
        return created


def _with_meaning(request: CreateStatementRequest) -> tuple[CreateStatementRequest, str]:
    """Return a request with what its sentence says of denial and plan, where the caller says nothing, and its topic."""
    slot = canonical(request.topic)
    if not slot:
        refuse("topic", request.topic, "a topic such as residence")
    negated, modality = request.negated, request.modality
    if negated is None:
        may_deny = slot in SLOTS and slot != "dislikes" and request.kind != "task"
        if slot == "allergy":
            # "I can't eat nuts" does not deny the allergy.
            may_deny = denies_allergy(request.content)
        if _has_denied_value(slot, request.object):
            raise _undecided(
                "the value is denied: true with the value alone, false if the denial is part of it"
            )
        denial = denial_of(request.content, request.object) if may_deny else "none"
        if denial == "unclear":
            raise _undecided("the sentence denies something: true if the value is not true, false if it is")
        negated = denial == "over"
    if modality is None:
        modality = "planned" if tells_of_plan(request.content) else "asserted"
    _check(slot, request.object, request.since, request.until, negated=negated)
    return request.model_copy(update={"negated": negated, "modality": modality}), slot


def _has_denied_value(slot: str, value: str) -> bool:
    """Return whether a value denies another one in a topic with one or few values. "Not married" is a value itself."""
    is_known = slot in SLOTS and slot_of(slot).cardinality != "many"
    return is_known and is_denied(value) and canonical_value(value) == normalised(value)


def _undecided(reason: str) -> InvalidRequest:
    """Return the refusal of a request that does not say whether it denies the value."""
    needed = f"required, since {reason}"
    return InvalidRequest(
        f"negated: {needed}", reason="MISSING_FIELD", violations=[FieldViolation("negated", needed)]
    )


def _arriving(
    request: CreateStatementRequest, draft: Declaration, stamp: Stamp
) -> tuple[Declaration, IncomingBatch, tuple[OwnLink, ...]]:
    """Return a new statement, its message with the caller's metadata, and the caller's links, redacted."""
    policy = PiiPolicy(stamp.parameters, stamp.identity)
    one = replace(
        draft,
        subject=policy.words(draft.subject),
        slot=policy.words(draft.slot),
        content=policy.words(draft.content),
        kind=request.kind,  # type: ignore[arg-type]
        object=policy.words(request.object.strip()),
        attributes={policy.name(name): policy.words(text) for name, text in request.attributes.items()},
        negated=bool(request.negated),
        modality=request.modality,  # type: ignore[arg-type]
        reports_change=reports_change(f"{request.topic} {request.content}", negated=bool(request.negated)),
        since_ms=request.since,
        until_ms=request.until,
        importance=request.importance,
        valence=request.valence,
        arousal=request.arousal,
        scope=request.scope,  # type: ignore[arg-type]
    )
    offset = offset_of(stamp.parameters.time_zone)
    one = with_stated_time(replace(one, keywords=keywords_of(one)), offset, request.timestamp or stamp.now_ms)
    _check(draft.slot, request.object, one.since_ms, one.until_ms, one.time_words, negated=one.negated)
    words = message(
        stamp.parameters,
        policy,
        one.content,
        stamp.now_ms,
        role="tool",
        key=request.idempotency_key,
        body=request,
        said_ms=request.timestamp,
    )
    words = replace(_with_metadata(words, policy, request.metadata), quota=stamp.quota)
    return one, words, own_links(policy, request.links)


def _with_metadata(
    words: IncomingBatch, policy: PiiPolicy, given: Mapping[str, object] | None
) -> IncomingBatch:
    if not given:
        return words
    metadata = metadata_json(policy.metadata(given))
    record = msgspec.structs.replace(words.records[0], metadata_key=text_key(metadata))
    return replace(words, records=[record], metadata={text_key(metadata): metadata})


def _check(
    slot: str,
    value: str,
    since: int | None,
    until: int | None,
    time_words: str = "",
    *,
    negated: bool,
    had_value: bool = False,
) -> None:
    """Refuse a statement, new or corrected, that says nothing: without a value, or true at no time.

    A topic with one or few values needs a value, unless it is denied ("no employer"). Another topic may say all by
    itself ("retired"), but a correction does not remove a value (`had_value`).
    """
    needs_value = had_value or slot_of(slot).cardinality != "many"
    if not value.strip() and not negated and needs_value:
        refuse("object", value, f"a value, which the topic {slot} has")
    if since is not None and until is not None and until <= since:
        refuse("until", until, "a time after since" + (f" ({time_words})" if time_words else ""))


def content_of(request: CreateStatementRequest, subject: str) -> str:
    """Return the sentence to store. It has every word of the fields, so that a search or an erasure finds them all."""
    full = sentence(request, subject)
    if not request.content.strip():
        return full
    said = request.content.casefold()
    words = [request.object, *request.attributes, *request.attributes.values()]
    words += [] if subject in (USER, ASSISTANT) else [subject]
    words += [] if canonical(request.topic) in SLOTS else [request.topic]
    return (
        request.content
        if all(one.strip().casefold() in said for one in words)
        else f"{request.content} ({full})"
    )


def sentence(request: CreateStatementRequest, subject: str) -> str:
    """Return the sentence of a statement: subject, topic, value and attributes."""
    topic, value = request.topic.strip(), request.object.strip()
    return word_statement(subject, topic, value, negated=bool(request.negated), attributes=request.attributes)


def with_stated_time(one: Declaration, offset: Offset, now_ms: int) -> Declaration:
    """Return a statement with the time that its words state, if they state one. Given times are kept."""
    if one.slot in DATES:
        return one
    reading: Reading = "plan" if one.modality == "planned" or one.kind == "task" else "event"
    found = stated_time(one.content, now_ms, reading, offset)
    is_over = _was_true(one)
    until_ms = one.until_ms
    if is_over or is_for_period(one, found):
        until_ms = now_ms if found is None else found.until_ms
    if one.since_ms is not None:
        # Words without a time, or of an earlier one, do not end what the caller dates.
        is_later = found is not None and until_ms is not None and until_ms > one.since_ms
        return replace(one, until_ms=until_ms) if is_later else one
    one = replace(
        one, until_ms=until_ms, reports_change=one.reports_change and not (is_over and until_ms is not None)
    )
    if found is None:
        return one
    if one.modality != "planned" and one.kind != "task" and is_done(one.content):
        found = not_ahead(found, now_ms, offset)
    return replace(one, since_ms=found.since_ms, granularity=found.granularity, time_words=found.time_words)


def _was_true(one: Declaration) -> bool:
    """Return whether the words say that a state is over: "In 2019 I lived in Rome"."""
    is_state = slot_of(one.slot).cardinality != "many" and one.modality != "planned"
    return is_state and not one.negated and one.until_ms is None and tells_of_past(one.content)


def keywords_of(one: Declaration) -> tuple[str, ...]:
    """Return the words by which an associative recall finds a statement."""
    return tuple(dict.fromkeys(word for word in (one.object, one.subject, one.slot) if word))[:MAX_KEYWORDS]


def message(
    parameters: AgentParameters,
    policy: PiiPolicy,
    text: str,
    now_ms: int,
    *,
    role: str,
    key: str | None = None,
    body: Request | None = None,
    said_ms: int | None = None,
) -> IncomingBatch:
    """Return the message that has the words of a statement or a reason, as a batch of its own."""
    digest = (
        hashlib.sha256(body.model_dump_json(exclude={"idempotency_key"}).encode()).digest() if body else b""
    )
    stored_key = policy.name(key) if key else ""
    batch = Batch(
        number=0,
        accepted_at_ms=now_ms,
        first_message=0,
        message_count=1,
        idempotency_key=stored_key,
        personal=dict(policy.counts),
    )
    record = MessageRecord(
        number=0,
        batch=0,
        index=0,
        role=role,  # type: ignore[arg-type]
        speaker="",
        caller_id="",
        timestamp_ms=said_ms,
        accepted_at_ms=now_ms,
        conversation_id="",
        text_key=text_key(text),
        personal=policy.tagged(text),
    )
    passages = [passages_of(text, "")]
    return IncomingBatch(batch, [record], [text], digest, passages, pii=parameters.pii)


async def _replaced(
    agent: Agent, replaces: str | None, subject: str, slot: str, given: tuple[str, str] | None = None
) -> Version | None:
    """Return the statement that another one replaces, or its correction; refuse another subject or topic.

    `given` are the words of the caller for subject and topic. Without them `replaces` is at fault.
    """
    if not replaces:
        return None
    number, workspace = parse_node_id(replaces), agent.workspace
    version = await agent.run(lambda: _newest_version(workspace, number))
    if version is None:
        raise not_a_statement(workspace, number)
    entity = workspace.network.entities.get(version.first.subject)
    names = [] if entity is None else [entity.name, unqualified(entity.name)[0]]
    about, known = names[0] if names else "the same subject", version.first.slot
    is_other_subject = subject.casefold() not in map(str.casefold, names)
    if given is None and (known != slot or is_other_subject):
        refuse("replaces", replaces, f"a statement about {subject} with the topic {slot}")
    if given is not None and known != slot:
        refuse("topic", given[1], f"{known} or a name of it, the topic of {replaces} in replaces")
    if given is not None and is_other_subject:
        refuse("subject", given[0], f"{about}, the subject of {replaces} in replaces")
    return version


def not_a_statement(workspace: Workspace, number: NodeId) -> Exception:
    """Return the error for a node that is no statement."""
    error = not_alive(workspace, number)
    if number in workspace.network or error.reason == "INVALID_VALUE":
        return InvalidRequest(
            f"The node {node_text_id(number)} is not a statement; "
            "list them with GET /v1/agents/{agent_id}/statements (ListStatements).",
            reason="NOT_A_STATEMENT",
        )
    return error


def _created(
    workspace: Workspace, store: Callable[[], Told], now_ms: int, replaces: NodeId = 0
) -> CreatedStatement:
    """Store a statement and return it. `replaces` is the statement that it replaces; 0 for none."""
    told = store()

    def read(txn: ReadTransaction) -> CreatedStatement:
        view = View(txn, workspace, now_ms, None, now_ms)
        version = view.replay.version_of(told.statement)
        if version is None:
            raise not_a_statement(workspace, told.statement)
        replaced = version.replay.versions_of(replaces)
        ended = [
            node_text_id(other.statement)
            for other in view.replay.versions(version.first.subject, version.first.slot)
            if other.retired_by == version.statement and (told.is_new or other in replaced)
        ]
        return CreatedStatement(**view.fields(version), created=told.is_new, superseded=ended)

    return workspace.store.read(read)


async def correct_statement(service: Service, request: CorrectStatementRequest) -> CreatedStatement:
    """Correct a statement. The old one stays in the history as corrected. An old id means the last correction.

    The correction has the metadata of the old statement. A retracted statement is refused, since it was never true.
    Raise NOT_A_STATEMENT for a memory or an entity, NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND otherwise.
    """
    given = (request.object, request.since, request.until, request.negated, request.replaces)
    if all(value is None for value in given):
        raise InvalidRequest(
            "object: required; give object, since, until, negated or replaces", reason="MISSING_FIELD"
        )
    now_ms = service.clock.now_ms()
    async with service.fleet.using(request.owner) as agent:
        while True:
            workspace = agent.workspace
            old, withdrawn = await agent.run(partial(_newest, workspace, parse_node_id(request.node_id)))
            if withdrawn == "retracted":
                refuse("node_id", request.node_id, "a statement that was not retracted; add a new statement")
            policy = PiiPolicy(workspace.parameters, workspace.identity)
            one = _corrected(workspace, old, request, policy)
            _check(
                one.slot,
                one.object,
                one.since_ms,
                one.until_ms,
                one.time_words,
                negated=one.negated,
                had_value=bool(old.object),
            )
            replaced = await _replaced(agent, request.replaces, one.subject, one.slot)
            if request.replaces is not None:
                one = replace(one, replaces=0 if replaced is None else replaced.statement)
            metadata = await agent.run(partial(_metadata_of, workspace, old))
            words = message(workspace.parameters, policy, one.content, now_ms, role="user")
            words = _with_metadata(words, policy, metadata)
            wrong = Ruling(
                1, "correct", old.statement, now_ms, reason=policy.words(request.reason), author=actor()
            )
            entry = AuditEntry(
                now_ms, actor(), "ruled", {"kind": "correct", "node": node_text_id(old.statement)}
            )
            correct = partial(workspace.declaring.correct, words, one, wrong, old.told_at_ms, now_ms, entry)
            try:
                return await agent.amend(partial(_created, workspace, correct, now_ms))
            except PolicyChanged:
                continue


def _newest_version(workspace: Workspace, number: NodeId) -> Version | None:
    """Return the version of a statement, or of its last correction; None for another node."""
    replay = workspace.ledger.known()
    return replay.version_of(replay.newest(number))


def newest_statement(workspace: Workspace, number: NodeId) -> NodeId:
    """Return the last correction of a statement; the statement itself if none corrects it.

    Raise NOT_A_STATEMENT for another node, NODE_FORGOTTEN or NODE_NOT_FOUND.
    """
    newest: NodeId = workspace.ledger.known().newest(number)
    if not workspace.ledger.is_said(newest):
        raise not_a_statement(workspace, number)
    return newest


def _metadata_of(workspace: Workspace, one: Assertion) -> dict[str, object]:
    """Return the metadata of the message of an assertion; empty if the message is deleted."""

    def read(txn: ReadTransaction) -> dict[str, object]:
        record = txn.messages.get(one.source.message)
        return {} if record is None else txn.messages.metadata(record)

    return workspace.store.read(read)


def _newest(workspace: Workspace, number: NodeId) -> tuple[Assertion, str]:
    """Return the oldest assertion of a statement, or of its last correction, in its last version.

    The second value says whether the version is corrected or retracted; it is empty if neither.
    """
    newest = newest_statement(workspace, number)
    version = workspace.ledger.known().version_of(newest)
    assert version is not None, "a statement supports a version"
    return next(one for one in version.assertions if one.statement == newest), version.withdrawn


def _corrected(
    workspace: Workspace, old: Assertion, request: CorrectStatementRequest, policy: PiiPolicy
) -> Declaration:
    """Return a statement with the right fields, and everything else as in the wrong one."""
    entity = workspace.network.entities.get(old.subject)
    subject = entity.name if entity is not None else USER
    value = old.object if request.object is None else policy.words(request.object.strip())
    negated = old.negated if request.negated is None else request.negated
    said = workspace.ledger.assertions_of(old.statement)
    content = word_statement(subject, old.slot.replace("_", " "), value, negated=negated)
    one = replace(
        corrected(old, subject, content, value),
        negated=negated,
        replaces=next((each.replaces for each in reversed(said) if each.replaces), 0),
        until_ms=old.until_ms if request.until is None else request.until,
    )
    if request.since is not None:
        one = replace(one, since_ms=request.since, granularity="", time_words="")
    return replace(one, keywords=keywords_of(one))


async def retract_statement(service: Service, request: RetractStatementRequest) -> StoredRuling:
    """Retract a statement: it was never true, and a statement that it ended is current again. It stays in the history.

    If it was retracted before, nothing changes, and the response has the earlier ruling. An old id means the last
    correction. Raise NOT_A_STATEMENT for a memory or an entity, NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND
    otherwise.
    """
    async with service.fleet.using(request.owner) as agent:
        old, _ = await agent.run(partial(_newest, agent.workspace, parse_node_id(request.node_id)))
        earlier = await agent.run(partial(last_ruling, agent.workspace, [old.statement], ("retract",)))
        if earlier is not None and earlier.entry > old.entry:
            return StoredRuling(ruling_id=ruling_text_id(earlier.entry))
        ruling = Ruling(1, "retract", old.statement, service.clock.now_ms())
        details: dict[str, object] = {"node": node_text_id(old.statement)}
        return await store_ruling(service, agent, ruling, request.reason, details)


def last_ruling(workspace: Workspace, about: Collection[NodeId], kinds: Collection[str]) -> Ruling | None:
    """Return the last ruling of some kinds about a statement, or about two nodes in either order.

    Rulings that were undone do not count. Return None if there is none.
    """
    rulings = reversed(workspace.ledger.rulings())
    nodes = set(about)
    return next(
        (one for one in rulings if one.kind in kinds and {one.target, one.other} - {0} == nodes), None
    )


async def store_ruling(
    service: Service, agent: Agent, ruling: Ruling, reason: str, details: dict[str, object]
) -> StoredRuling:
    """Store a ruling with its reason, which is a message of its own."""
    now_ms, workspace = service.clock.now_ms(), agent.workspace
    while True:
        policy = PiiPolicy(workspace.parameters, workspace.identity)
        said = policy.words(reason)
        placed = msgspec.structs.replace(ruling, author=actor(), reason=said)
        words = message(workspace.parameters, policy, said, now_ms, role="user") if said.strip() else None
        entry = AuditEntry(now_ms, actor(), "ruled", {"kind": ruling.kind, **details})
        try:
            told = await agent.amend(partial(workspace.declaring.rule, placed, words, now_ms, entry))
        except PolicyChanged:
            continue
        return StoredRuling(ruling_id=f"r{told.ruling}")


# --- reading ---------------------------------------------------------------------------------------------


async def get_statement(service: Service, request: GetStatementRequest) -> StatementInfo:
    """Return a statement with its evidence.

    Raise NOT_A_STATEMENT for a memory or an entity, NODE_FORGOTTEN if it existed once, NODE_NOT_FOUND otherwise.
    """
    return await read_at(
        service, request.owner, request.as_of, request.known_at, partial(_one, request.node_id)
    )


async def get_statement_history(service: Service, request: GetStatementRequest) -> StatementHistory:
    """Return all versions of the topic of a statement: what was true when, and what was corrected or retracted."""
    return await read_at(
        service, request.owner, request.as_of, request.known_at, partial(_history, request.node_id)
    )


async def list_statements(service: Service, request: ListStatementsRequest) -> StatementPage:
    """List statements by id, planned ones last, at a time, as they were known at a time."""
    start, size = _first_of_page(request.page_token), request.size

    def read(view: View) -> StatementPage:
        found = list(islice(_listed(view, request, start), size + 1))
        token = to_token(found[size][0], "statements") if len(found) > size else ""
        return StatementPage(statements=[one for _, one in found[:size]], next_page_token=token)

    return await read_at(service, request.owner, request.as_of, request.known_at, read)


PLANNED = "planned-"
"""The beginning of a position among the planned statements, which a list has last."""


def _first_of_page(token: str) -> tuple[bool, NodeId]:
    """Return whether a page begins among the planned statements, and the first statement that may be on it."""
    position = from_token(token, "statements")
    number = position.removeprefix(PLANNED)
    return position != number, number_of(number)


class View:
    """The statements of an agent at a time, as they were known at a time, within one read transaction."""

    def __init__(
        self, txn: ReadTransaction, workspace: Workspace, as_of_ms: int, known_at_ms: int | None, now_ms: int
    ) -> None:
        self.txn = txn
        self.workspace = workspace
        self.replay = workspace.ledger.known(known_at_ms)
        self.as_of_ms = as_of_ms
        self.now_ms = now_ms
        self._shown: dict[Version, NodeId] = {}
        self._message = cache(txn.messages.get)
        self._conflicts_in = cache(lambda slot: Conflicts(slot, as_of_ms))
        self._shown_id = cache(lambda version: node_text_id(self.shown(version)))
        self._pinned = self.replay.pinned()
        self._consolidated_up_to = txn.meta.consolidation.consolidated_up_to

    def shown(self, version: Version) -> NodeId:
        """Return the node of a version: of its oldest assertion whose node lives, else of its oldest."""
        if len(version.assertions) == 1:
            return version.statement
        if version not in self._shown:
            network = self.workspace.network
            alive = (one.statement for one in version.assertions if one.statement in network)
            self._shown[version] = next(alive, version.statement)
        return self._shown[version]

    def entity(self, words: str, field: str) -> NodeId | None:
        """Return the entity that a name, I or an id means; None if no entity has this name."""
        return entity_meant(self.workspace, words, field)

    def info(self, version: Version) -> StatementInfo:
        """Return a version of a statement."""
        return StatementInfo(**self.fields(version))

    def fields(self, version: Version) -> dict[str, Any]:
        """Return the fields of a version of a statement."""
        first, replay, now_ms, workspace = version.first, self.replay, self.now_ms, self.workspace
        statement = self.shown(version)
        node = self.txn.nodes.get(statement)
        state: str = replay.state(version, self.as_of_ms)
        if node is None and state in CURRENT:
            state = "forgotten"
        subject = workspace.network.entities.get(first.subject)
        conflicts = self._conflicts_in(version.replay) if state == "contested" else None
        rivals = [] if conflicts is None else conflicts.rivals(version, MAX_RIVALS)
        is_pinned = any(one.statement in self._pinned for one in version.assertions)
        was_found = workspace.statement_uses.of(statement) > 0
        return {
            "id": node_text_id(statement),
            "subject": "" if subject is None else subject.name,
            "subject_id": node_text_id(first.subject),
            "slot": first.slot,
            "object": first.object,
            "object_id": node_text_id(first.object_entity) if first.object_entity else "",
            "kind": first.kind,
            "negated": first.negated,
            "modality": first.modality,
            "state": state,
            "status": self._status(first, is_forgotten=node is None),
            "since": version.since_ms,
            "until": version.until_ms,
            "time_words": first.time_words,
            "told_at": version.told_at_ms,
            "known_at": first.known_at_ms,
            "superseded_by": node_text_id(version.retired_by) if version.retired_by else "",
            "conflicts_with": list(map(self._shown_id, rivals)),
            "confidence": round(version.confidence, 4),
            "importance": first.importance,
            "priority": round(replay.priority(version, now_ms, len(rivals)), 4),
            "weight": round(weight(version, replay, workspace.search, is_pinned=is_pinned, now_ms=now_ms), 4),
            "pinned": is_pinned,
            "author": first.author,
            "scope": first.scope,
            "tier": tier(self._message, version, now_ms, was_found=was_found),
            "attributes": dict(first.attributes),
            "content": "" if node is None else node.content,
            "quotes": self._quotes(version.assertions),
        }

    def _status(self, first: Assertion, *, is_forgotten: bool) -> str:
        if is_forgotten:
            return "archived"
        return "staged" if first.entry > self._consolidated_up_to else "consolidated"

    def messages_of(self, version: Version) -> Iterable[MessageRecord]:
        """Yield the messages that support a version."""
        found = (self._message(one.source.message) for one in version.assertions)
        return (record for record in found if record is not None)

    def _quotes(self, assertions: Sequence[Assertion]) -> list[Quote]:
        """Return the words of the oldest assertions."""
        found = []
        for one in assertions[:MAX_EVIDENCE]:
            record = self._message(one.source.message)
            if record is None:
                continue
            text = self.txn.messages.text(record) or ""
            begin, length = one.source.offset, one.source.length
            found.append(
                Quote(
                    text=_slice(text, begin, length),
                    message_id=record.caller_id,
                    batch_id=batch_text_id(record.batch),
                    message_index=record.index,
                    offset=begin,
                    length=length,
                    role=record.role,
                    said_at=record.time_ms,
                )
            )
        return found


async def read_at(
    service: Service, owner: Any, as_of: int | None, known_at: int | None, read: Callable[[View], T]
) -> T:
    """Run a read of statements at a time."""
    now_ms = service.clock.now_ms()
    async with service.fleet.using(owner) as agent:
        workspace = agent.workspace

        def job() -> T:
            as_of_ms = now_ms if as_of is None else as_of
            return workspace.store.read(lambda txn: read(View(txn, workspace, as_of_ms, known_at, now_ms)))

        # Read before the transaction, which cannot be nested.
        await agent.run(lambda: len(workspace.ledger))
        return await agent.run(job)


def entity_meant(workspace: Workspace, words: str, field: str) -> NodeId | None:
    """Return the entity that a name, I or an id means; None if no entity has this name.

    A text with the form of an id means that node. NODE_FORGOTTEN or NODE_NOT_FOUND if there is none, INVALID_VALUE if
    it is no entity.
    """
    number = node_number(words.strip())
    if number in workspace.network.entities:
        return number
    if number is not None:
        if number in workspace.network:
            refuse(field, words, AN_ENTITY)
        raise not_alive(workspace, number)
    name = subject_name(words)
    if name is None:
        return None
    network, ledger = workspace.network, workspace.ledger
    return Namesakes(network, ledger).meant(name).entity or Relatives(network, ledger).meant(name) or None


def _entity(workspace: Workspace, words: str) -> NodeId:
    """Return the entity that an id means."""
    found = entity_meant(workspace, words, "subject")
    assert found is not None, "an id means a node, or is refused"
    return found


def _one(text: str, view: View) -> StatementInfo:
    number = parse_node_id(text)
    version = view.replay.version_of(number)
    if version is None:
        raise not_a_statement(view.workspace, number)
    return view.info(version)


def _history(text: str, view: View) -> StatementHistory:
    number = parse_node_id(text)
    versions = view.replay.history(number)
    if not versions:
        raise not_a_statement(view.workspace, number)
    return StatementHistory(statements=[view.info(one) for one in versions])


def _listed(
    view: View, request: ListStatementsRequest, start: tuple[bool, NodeId]
) -> Iterator[tuple[str, StatementInfo]]:
    """Yield the statements of a list from a position on, each with its position."""
    begins_planned, number = start
    if not begins_planned:
        yield from _listed_by_id(view, request, number, are_planned=False)
    yield from _listed_by_id(view, request, number if begins_planned else 0, are_planned=True)


def _listed_by_id(
    view: View, request: ListStatementsRequest, start: NodeId, *, are_planned: bool
) -> Iterator[tuple[str, StatementInfo]]:
    subjects: Collection[NodeId] | None = None
    if request.subject:
        entity = view.entity(request.subject, "subject")
        if entity is None:
            return
        subjects = view.replay.merged_with(entity)
    matches = message_filter(view.txn, view.workspace, request.metadata)
    slot, states = canonical(request.topic) if request.topic else "", request.states or CURRENT
    for number in view.workspace.ledger.statements:
        version = view.replay.version_of(number) if number >= start else None
        if version is None or view.shown(version) != number:
            continue
        first = version.first
        if (
            (subjects is not None and first.subject not in subjects)
            or (slot and first.slot != slot)
            or (request.kinds and first.kind not in request.kinds)
            or (view.replay.state(version, view.as_of_ms) == "planned") != are_planned
            or (request.metadata and not any(matches(one) for one in view.messages_of(version)))
        ):
            continue
        one = view.info(version)
        if one.state in states:
            yield f"{PLANNED if are_planned else ''}{number}", one


def recency(version: Version, settings: SearchSettings, now_ms: int) -> float:
    """Return how recent a version is, 1 when it was said last and less each day. A task begins when it is due."""
    last_ms, kind = version.told_at_ms, version.assertions[0].kind
    if kind == "task":
        last_ms = max(last_ms, version.since_ms)
    days = max(0, now_ms - last_ms) / DAY_MS
    return math.exp(-settings.decay_per_day(kind) * days)


def weight(
    version: Version, replay: Replay, settings: SearchSettings, *, is_pinned: bool, now_ms: int
) -> float:
    """Return how much a version matters now.

    0.4 importance + 0.15 frequency + 0.2 recency + 0.05 arousal |valence| + 0.15 vote - 0.05 if it is old. The
    frequency is 1 - 1/2^n for n messages. The vote is the balance of the votes, and 1 for a pin. A statement is old if
    its recency is below e^-3.
    """
    first, recent = version.first, recency(version, settings, now_ms)
    supports, contradicts = replay.votes(version.statement)
    vote = 1.0 if is_pinned else (supports - contradicts) / max(1, supports + contradicts)
    return (
        0.4 * first.importance
        + 0.15 * (1 - 0.5**version.message_count)
        + 0.2 * recent
        + 0.05 * (first.arousal or 0.0) * abs(first.valence or 0.0)
        + 0.15 * vote
        - 0.05 * (recent < math.exp(-3))
    )


def _slice(text: str, begin: int, length: int) -> str:
    """Return a range of UTF-8 bytes of a text."""
    if text.isascii():
        return text[begin : begin + length]
    return text.encode()[begin : begin + length].decode(errors="replace")
