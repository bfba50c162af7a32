"""remember: a batch of messages is stored durably and acknowledged; its digestion follows later.

The steps: open or create the agent. Redact or tag personal data (`verbs/pii_policy.py`). Leave out what a recall has
just returned (`fleet/state/recall_filter.py`). Then one job and one durable commit: the idempotency receipt, the
inbox entry, message records and texts. No step waits for a language model. If the PII policy changes while a batch
waits for its job, the batch is prepared again.

The hash stored with an idempotency key is that of the redacted request, before anything was left out: what a recall
returned in the meantime must not make the same request look like another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ebbtide.fleet.archive.archive import passages_of
from ebbtide.fleet.ingest.admission import MESSAGE_WEIGHT, UNBOUNDED, IncomingBatch, PolicyChanged, Quota
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.recall_filter import RecallFilter
from ebbtide.ids import batch_text_id
from ebbtide.offload.pool import MAX_INLINE_CHARS
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, Identity, MessageRecord, PersonalSpan
from ebbtide.store.layout import text_key
from ebbtide.verbs.attachments import Attachments, with_captions
from ebbtide.verbs.chat_messages import (
    MAX_CALLS,
    MAX_ID_CHARS,
    MAX_PARTS,
    READ,
    BadMessage,
    is_chat_message,
    plain_message,
)
from ebbtide.verbs.limits import FlatMetadata, MaxChars, MaxItems, Metadata, Name, NotEmpty, Several, Time
from ebbtide.verbs.metadata import merged_json, metadata_json
from ebbtide.verbs.pii_policy import PiiPolicy
from ebbtide.verbs.requests import AgentRequest, Fields, Response, requiring, violation
from ebbtide.verbs.service import Service

READING_COST = 8
"""How much longer a text takes if it is searched for personal data or recalled lines."""


@dataclass(frozen=True, slots=True)
class _SentAs:
    """The annotation of a field that clients send in other types than `Message` has after reading it."""

    kind: Any

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        sent = handler(TypeAdapter(self.kind).core_schema)
        limits = {name: value for name, value in handler(schema).items() if name not in ("type", "const")}
        if limits:
            sent["anyOf"][0] |= limits
        return sent


def _as_sent(schema: dict[str, Any]) -> None:
    """Let the schema of a message say what `plain_message` allows."""
    schema["required"].remove("content")
    del schema["properties"]["content"]["maxLength"]
    del schema["properties"]["tool_calls"]["default"]


class ContentPart(Fields):
    """A part of the content of a message."""

    model_config = ConfigDict(extra="allow")

    type: str = Field("text", description="`text`; other parts are stored as their type, such as `[image]`.")
    text: str | None = Field(None, description="The text of a part of the type `text`.")


class CalledFunction(Fields):
    """The name and the arguments of a call."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(description="Name of the function.", examples=["get_weather"])
    arguments: str | dict[str, Any] | None = Field(
        None, description="The arguments, as JSON.", examples=['{"city": "Lisbon"}']
    )


class CalledTool(Fields):
    """The name and the input of a call of a custom tool."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(description="Name of the tool.", examples=["run_code"])
    input: str | dict[str, Any] | None = Field(None, description="The input.", examples=["print(1)"])


class ToolCall(Fields):
    """A call of a tool by the assistant."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(None, description="Id of the call; stored as metadata.", examples=["call_1"])
    type: Literal["function", "custom"] | None = Field(
        None, description="Which of the two fields it has; `function` if it is missing."
    )
    function: CalledFunction | None = Field(None, description="The function that is called.")
    custom: CalledTool | None = Field(None, description="The custom tool that is called.")


SentContent = str | Annotated[list[ContentPart], MaxItems(MAX_PARTS)] | None
SentCalls = Annotated[list[ToolCall], MaxItems(MAX_CALLS)] | None


class Message(Fields):
    """One message of a conversation, also as a client of OpenAI's chat completions holds it."""

    model_config = ConfigDict(json_schema_extra=_as_sent)

    role: Literal["user", "assistant", "system", "developer", "tool", "function"] = Field(
        description="Role of the speaker. `developer` means `system`; `function` means `tool`."
    )
    content: Annotated[str, MaxChars("max_message_chars"), _SentAs(SentContent)] = Field(
        description="The text of the message, or its parts. Not required if there are calls of tools.",
        examples=["I moved to Lisbon in May."],
    )
    timestamp: Time | None = Field(
        None, description="When it was said: ms since the epoch, or ISO 8601 with a time zone."
    )
    id: Name | None = Field(None, description="The caller's own id, returned with sources.")
    speaker: Name | None = Field(
        None, description="Name of the speaker, where the role does not say enough.", examples=["Ann"]
    )
    metadata: FlatMetadata | None = Field(
        None,
        description="Flat fields stored with the message, over those of its batch; at most 4 KiB as JSON.",
        examples=[{"topic": "travel"}],
    )
    attachments: Attachments = Field(
        default_factory=list,
        description="Small files that belong to the message, at most 16. Queries find them by their captions.",
    )

    name: Annotated[None, _SentAs(Name | None)] = Field(
        None, description="Same as `speaker`, as OpenAI names it.", examples=["Ann"]
    )
    tool_calls: Annotated[str, _SentAs(SentCalls)] = Field(
        "", description="Calls of tools, at most 128, stored as `name(arguments)` after the content."
    )
    tool_call_id: Annotated[None, _SentAs(Annotated[str, MaxChars(MAX_ID_CHARS)] | None)] = Field(
        None, description="Id of the call that a tool answers; stored as metadata."
    )
    function_call: Annotated[None, _SentAs(CalledFunction | None)] = Field(
        None, description="A call, as OpenAI had it before `tool_calls`."
    )
    refusal: Annotated[None, _SentAs(Annotated[str, MaxChars("max_message_chars")] | None)] = Field(
        None, description="The refusal of a model, in place of content; stored as text."
    )

    @property
    def size(self) -> int:
        """Characters of its text, with captions and calls."""
        captions = sum(len(text) for one in self.attachments for text in one.captions)
        return len(self.content) + captions + len(self.tool_calls)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any, info: ValidationInfo) -> Any:
        """Read the forms that clients of OpenAI send. After this, `content` and `tool_calls` are texts.

        A message from another process of the daemon, without limits, has been read already.
        """
        if not isinstance(given, dict) or not is_chat_message(given):
            return given
        if info.context is None and isinstance(given.get("tool_calls"), str):
            return given
        try:
            return plain_message(given)
        except BadMessage as fault:
            raise violation(fault.reason, fault.description, fault.field) from None

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        """Captions and calls are part of the text, so they count."""
        is_longer = self.size > len(self.content)
        if is_longer and info.context is not None and self.size > info.context.max_message_chars:
            most = info.context.max_message_chars
            description = f"{self.size} characters with captions and calls; allowed: at most {most}"
            raise violation("TEXT_TOO_LONG", description, "content")
        return self


def _not_empty(messages: list[Message], info: ValidationInfo) -> list[Message]:
    if not messages:
        allowed = "at least 1" if info.context is None else f"1-{info.context.max_messages}"
        raise violation("EMPTY_MESSAGES", f"empty; allowed: {allowed} messages")
    return messages


class RememberRequest(AgentRequest):
    """A batch: one unit of the memory's time."""

    model_config = requiring("messages")

    messages: Annotated[
        list[Message], Several, MaxItems("max_messages", "TOO_MANY_MESSAGES"), AfterValidator(_not_empty)
    ] = Field([], validate_default=True, description="The messages, in order; 1-1000.")
    conversation_id: Name | None = Field(None, description="Groups the batches of one conversation.")
    metadata: Metadata | None = Field(
        None, description="Free fields stored with the batch; at most 4 KiB as JSON."
    )
    idempotency_key: Annotated[Name, NotEmpty("a text that is not empty")] | None = Field(
        None, description="Repeating a request with the same key and body has no further effect."
    )


class Remembered(Response):
    """The batch is stored durably."""

    batch_id: str = Field(description="Id of the batch, for its status.", examples=["b1"])
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[1])
    pii: dict[str, int] = Field(
        description="Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy.",
        examples=[{}],
    )
    dropped_recalled: int = Field(
        description="Lines left out because a recall had just returned them.", examples=[0]
    )
    collapsed: int = Field(description="Messages left out because they repeat an earlier one.", examples=[0])


async def remember(service: Service, request: RememberRequest) -> Remembered:
    """Store a batch of messages durably and acknowledge it. Its memories are made soon after.

    Raise QUEUE_FULL if the inbox is full, STORE_FULL if there is no room, QUOTA_REACHED if the agent or the key has
    reached its quota, IDEMPOTENCY_KEY_REUSED for another body under a known key. In each case nothing is stored.
    """
    now_ms = service.clock.now_ms()
    size = sum(message.size + MESSAGE_WEIGHT for message in request.messages)
    async with service.fleet.using(request.owner, create=True, agent_quota=service.agent_quota) as agent:
        while True:
            arrival = await _admitted(service, agent.workspace, request, size, now_ms)
            try:
                accepted = await agent.accept(arrival)
                break
            except PolicyChanged:
                continue
    batch = accepted.batch
    return Remembered(
        batch_id=batch_text_id(batch.number),
        pending_batches=accepted.pending_batches,
        pii=batch.personal,
        dropped_recalled=batch.dropped_recalled,
        collapsed=batch.collapsed,
    )


async def _admitted(
    service: Service, workspace: Workspace, request: RememberRequest, size: int, now_ms: int
) -> IncomingBatch:
    parameters = workspace.parameters
    is_read = parameters.pii != "off" or (parameters.drop_recalled and workspace.recall_filter.are_known)
    weight = size * READING_COST if is_read else size
    stamp = Stamp(parameters, workspace.identity, now_ms, service.quota)
    if all(message.size <= MAX_INLINE_CHARS for message in request.messages):
        return await service.offload(weight, partial(prepared, request, stamp, workspace.recall_filter))
    # Work on the texts alone runs in a worker process; the recall filter is only here.
    screened = await service.texts.run(size, screen, request, stamp)
    filtered = await service.offload(
        weight, partial(without_recalled, screened, stamp, workspace.recall_filter)
    )
    return await service.texts.run(size, arrival_of, filtered, stamp)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of the agent and the time that a batch depends on."""

    parameters: AgentParameters
    identity: Identity
    now_ms: int
    quota: Quota = UNBOUNDED


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of a batch: its index, and its personal data; None if that must be searched again."""

    index: int
    message: Message
    personal: tuple[PersonalSpan, ...] | None = ()
    keeps_attachments: bool = True
    """Whether the contents of its attachments are stored."""


@dataclass(frozen=True, slots=True)
class Screened:
    """A request after the PII policy, with what was found and left out."""

    request: RememberRequest
    spoken: Sequence[Spoken]
    counts: Mapping[str, int]
    body_hash: bytes
    dropped: int = 0


def prepared(request: RememberRequest, stamp: Stamp, recall_filter: RecallFilter) -> IncomingBatch:
    """Return the batch of a request, ready to be stored."""
    return arrival_of(without_recalled(screen(request, stamp), stamp, recall_filter), stamp)


def screen(request: RememberRequest, stamp: Stamp) -> Screened:
    """Redact or tag personal data by the agent's policy."""
    policy = PiiPolicy(stamp.parameters, stamp.identity)
    request, spoken = _guarded(request, policy)
    hashed = body_hash(request) if request.idempotency_key else b""
    return Screened(request, spoken, dict(policy.counts), hashed)


def arrival_of(screened: Screened, stamp: Stamp) -> IncomingBatch:
    """Return the batch with its passages, ready to be stored."""
    parameters, request, now_ms = stamp.parameters, screened.request, stamp.now_ms
    policy = PiiPolicy(parameters, stamp.identity)
    spoken = [
        replace(one, personal=policy.tagged(one.message.content)) if one.personal is None else one
        for one in screened.spoken
    ]
    if parameters.kept_days == 0:
        # Their captions become memories; nothing else of them would outlive the digest.
        spoken = [replace(one, keeps_attachments=False) for one in spoken]
    kept = _without_repeats(spoken) if parameters.collapse_repeats else spoken
    batch = Batch(
        number=0,
        accepted_at_ms=now_ms,
        first_message=0,
        message_count=len(kept),
        conversation_id=request.conversation_id or "",
        metadata=metadata_json(request.metadata),
        idempotency_key=request.idempotency_key or "",
        personal=dict(screened.counts),
        dropped_recalled=screened.dropped,
        collapsed=len(spoken) - len(kept),
    )
    held = [merged_json(request.metadata, one.message.metadata) for one in kept]
    records, texts = [], []
    contents: dict[bytes, bytes] = {}
    for one, metadata in zip(kept, held, strict=True):
        text, attachments = with_captions(one.message.content, one.message.attachments)
        tools_from = 0 if one.message.role == "tool" else None
        if one.message.tool_calls:
            tools_from = len(text.encode())
            text = "\n".join(filter(None, (text, one.message.tool_calls)))
        texts.append(text)
        if one.keeps_attachments:
            contents |= {attached.digest: attached.bytes for attached in one.message.attachments}
        else:
            attachments = ()
        record = _record(one, text, request.conversation_id or "", now_ms, metadata)
        personal = (*record.personal, *_personal_beyond(text, one.message, policy))
        records.append(
            msgspec.structs.replace(record, personal=personal, attachments=attachments, tools_from=tools_from)
        )
    by_key = {text_key(text): text for text in set(held) if text}
    passages = [passages_of(text, record.speaker) for text, record in zip(texts, records, strict=True)]
    return IncomingBatch(
        batch, records, texts, screened.body_hash, passages, by_key, contents, stamp.quota, parameters.pii
    )


def _personal_beyond(text: str, message: Message, policy: PiiPolicy) -> list[PersonalSpan]:
    """Return the places of personal data in captions and calls, which follow the content of a message."""
    own = len(message.content)
    if len(text) == own:
        return []
    before = len(text[:own].encode())
    return [PersonalSpan(one.kind, before + one.offset, one.length) for one in policy.tagged(text[own:])]


def _guarded(request: RememberRequest, policy: PiiPolicy) -> tuple[RememberRequest, list[Spoken]]:
    """Return the request as it may be stored, and its messages with their personal data."""
    if policy.is_off:
        return request, [Spoken(index, message) for index, message in enumerate(request.messages)]
    spoken = []
    for index, message in enumerate(request.messages):
        content, personal = policy.text(message.content)
        changed = {
            "content": content,
            "speaker": message.speaker and policy.words(message.speaker),
            "tool_calls": policy.words(message.tool_calls),
            "id": message.id and policy.name(message.id),
            "metadata": policy.metadata(message.metadata),
            "attachments": [one.described(policy.words) for one in message.attachments],
        }
        spoken.append(Spoken(index, message.model_copy(update=changed), personal))
    guarded = {
        "messages": [one.message for one in spoken],
        "conversation_id": request.conversation_id and policy.name(request.conversation_id),
        "metadata": policy.metadata(request.metadata),
        "idempotency_key": request.idempotency_key and policy.name(request.idempotency_key),
    }
    return request.model_copy(update=guarded), spoken


def without_recalled(screened: Screened, stamp: Stamp, recall_filter: RecallFilter) -> Screened:
    """Leave out lines that a recall has just returned, and messages that have no other lines."""
    if not stamp.parameters.drop_recalled:
        return screened
    kept, dropped = [], 0
    for one in screened.spoken:
        text, count = recall_filter.without(one.message.content, one.message.role)
        dropped += count
        if count and text:
            # The offsets of personal data have changed.
            one = Spoken(one.index, one.message.model_copy(update={"content": text}), None)
        if text or not count or one.message.attachments or one.message.tool_calls:
            kept.append(one)
    return replace(screened, spoken=kept, dropped=dropped)


def _without_repeats(spoken: Sequence[Spoken]) -> list[Spoken]:
    first = {_said(one.message): one for one in reversed(spoken)}
    return [one for one in spoken if first[_said(one.message)] is one]


def _said(message: Message) -> Hashable:
    attached = [_sorted_json(one.identity()) for one in message.attachments]
    return message.role, message.speaker, message.content, message.tool_calls, *attached


def _record(one: Spoken, text: str, conversation_id: str, now_ms: int, metadata: str) -> MessageRecord:
    message = one.message
    return MessageRecord(
        number=0,
        batch=0,
        index=one.index,
        role=message.role,  # type: ignore[arg-type] # Of the six, `plain_message` leaves four.
        speaker=message.speaker or "",
        caller_id=message.id or "",
        timestamp_ms=message.timestamp,
        accepted_at_ms=now_ms,
        conversation_id=conversation_id,
        text_key=text_key(text),
        metadata_key=text_key(metadata) if metadata else b"",
        personal=one.personal or (),
    )


def body_hash(request: RememberRequest) -> bytes:
    """Return the hash stored with an idempotency key: of the JSON of the body, fields sorted, without the key.

    It is stored with the receipt, so it must not change between versions. It is computed message by message: the JSON
    of a large request at once would delay other requests.
    """
    digest = hashlib.sha256(
        f'{{"conversation_id": {json.dumps(request.conversation_id)}, "messages": ['.encode()
    )
    for index, message in enumerate(request.messages):
        digest.update((", " if index else "").encode() + _sorted_json(_dumped(message)))
    digest.update(b'], "metadata": ' + _sorted_json(request.metadata) + b"}")
    return digest.digest()


def _dumped(message: Message) -> dict[str, Any]:
    # A message without metadata, attachments or calls has the hash that it had before messages could have any.
    later = {"metadata": message.metadata is None, "tool_calls": not message.tool_calls}
    absent = {name for name, is_absent in later.items() if is_absent}
    fields = message.model_dump(exclude={"attachments", *(READ - {"audio", "tool_calls"}), *absent})
    attached = [one.identity() for one in message.attachments]
    return {**fields, **({"attachments": attached} if attached else {})}


def _sorted_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
