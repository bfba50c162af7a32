"""remember: a batch of messages is stored durably and acknowledged; the digest comes later.

The story: check limits → open (or create) the agent → the door: what is personal is redacted or tagged
(`verbs/door.py`), what a recall has just told is left out (`fleet/state/recall_filter.py`) → job *accept*:
idempotency receipt or inbox entry, message records and chunks, one durable commit → acknowledged. Nothing waits for a
language model here. Where the policy at the door was changed while a batch waited for its turn, it goes through the
door anew.

What stands for a request beside its idempotency key is its hash as it was redacted, before anything was left out: what
a recall told meanwhile must not make another request of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from pydantic import Field

from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.fleet.archive.archive import passages_of
from ebbtide.fleet.ingest.admission import MESSAGE_WEIGHT, UNBOUNDED, IncomingBatch, PolicyChanged, Quota
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.recall_filter import RecallFilter
from ebbtide.ids import batch_text_id, parse_agent_id
from ebbtide.offload.pool import MAX_INLINE_CHARS
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, Identity, MessageRecord, PersonalSpan
from ebbtide.settings import LimitSettings
from ebbtide.store.layout import text_key
from ebbtide.verbs.door import Door
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.metadata import check_flat, merged_json, metadata_json
from ebbtide.verbs.service import Service

READING_COST = 8
"""How much longer a text takes where it is looked through, for personal data or for echoes."""

NO_BOUND = 1 << 30
"""Of what was checked as it came: `[national_id]` may be longer than what it stands for."""


class MessageForm(Form):
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"] = Field(description="Who speaks.")
    content: str = Field(description="What was said.", examples=["I moved to Lisbon in May."])
    timestamp: int | None = Field(None, description="When it was said, ms since the epoch, UTC.")
    id: str | None = Field(None, description="The caller's own id, given back with sources.")
    speaker: str | None = Field(
        None, description="Who speaks, where the role does not say enough.", examples=["Ann"]
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Flat fields kept with the message, over those of its batch; at most 4 KiB as JSON.",
        examples=[{"topic": "travel"}],
    )


class RememberCommand(Form):
    """A batch: one unit of the memory's time."""

    messages: Several[MessageForm] = Field(description="The messages, in order; 1-1000.")
    conversation_id: str | None = Field(None, description="Groups batches of one conversation.")
    metadata: dict[str, Any] | None = Field(
        None, description="Free fields kept with the batch; at most 4 KiB as JSON."
    )
    idempotency_key: str | None = Field(
        None, description="The same key with the same body does the work once."
    )

    def check(self, limits: LimitSettings) -> None:
        """Refuse what is outside the limits."""
        check_command(self, limits)


class Remembered(Answer):
    """The batch is on disk."""

    batch_id: str = Field(description="The batch, for its status.", examples=["b1"])
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[1])
    pii: dict[str, int] = Field(
        description="Personal data found in it, by kind: tagged or redacted, as the agent's `pii` says.",
        examples=[{}],
    )
    dropped_recalled: int = Field(description="Lines left out: a recall had just told them.", examples=[0])
    collapsed: int = Field(description="Messages left out: they repeated an earlier one.", examples=[0])


async def remember(service: Service, agent_id: str, command: RememberCommand) -> Remembered:
    """Store a batch durably and return; memories come into being as the digest works it off.

    Raises InvalidRequest for a bad id or a value outside its limits, QUEUE_FULL when the inbox is full,
    STORE_FULL when there is no room, QUOTA_REACHED when the agent or the key holds as much as it may,
    IDEMPOTENCY_KEY_REUSED for another body under a known key. In each case nothing is stored.
    """
    owner = parse_agent_id(agent_id)
    now_ms, limits = service.clock.now_ms(), service.settings.limits
    size = sum(len(message.content) + MESSAGE_WEIGHT for message in command.messages)
    await service.offload(size, partial(check_command, command, limits))
    async with service.fleet.using(owner, create=True, agent_quota=service.agent_quota) as agent:
        while True:
            arrival = await _through_door(service, agent.workspace, command, size, now_ms)
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


async def _through_door(
    service: Service, workspace: Workspace, command: RememberCommand, size: int, now_ms: int
) -> IncomingBatch:
    parameters = workspace.parameters
    is_read = parameters.pii != "off" or (parameters.drop_recalled and workspace.recall_filter.are_known)
    weight = size * READING_COST if is_read else size
    stamp = Stamp(parameters, workspace.identity, now_ms, service.quota)
    if all(len(message.content) <= MAX_INLINE_CHARS for message in command.messages):
        return await service.offload(weight, partial(prepared, command, stamp, workspace.recall_filter))
    # What depends on the texts alone is done in a worker process; what recalls told is known here only.
    screened = await service.texts.run(size, screen, command, stamp)
    filtered = await service.offload(
        weight, partial(without_recalled, screened, stamp, workspace.recall_filter)
    )
    return await service.texts.run(size, arrival_of, filtered, stamp)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What of its agent, and of the moment, a batch depends on."""

    parameters: AgentParameters
    identity: Identity
    now_ms: int
    quota: Quota = UNBOUNDED


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of a batch: its index there, and the personal data in it; None where that is to be found again."""

    index: int
    message: MessageForm
    personal: tuple[PersonalSpan, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Screened:
    """A command under the agent's policy on personal data, and what was found and left out."""

    command: RememberCommand
    spoken: Sequence[Spoken]
    counts: Mapping[str, int]
    body_hash: bytes
    dropped: int = 0


def prepared(command: RememberCommand, stamp: Stamp, recall_filter: RecallFilter) -> IncomingBatch:
    """A command as it goes to its agent; its limits were checked before."""
    return arrival_of(without_recalled(screen(command, stamp), stamp, recall_filter), stamp)


def screen(command: RememberCommand, stamp: Stamp) -> Screened:
    """Redact or tag personal data, as the agent's policy says."""
    door = Door(stamp.parameters, stamp.identity)
    command, spoken = _guarded(command, door)
    hashed = body_hash(command) if command.idempotency_key else b""
    return Screened(command, spoken, dict(door.counts), hashed)


def arrival_of(screened: Screened, stamp: Stamp) -> IncomingBatch:
    """The batch with its passages, ready to be stored."""
    parameters, command, now_ms = stamp.parameters, screened.command, stamp.now_ms
    door = Door(parameters, stamp.identity)
    spoken = [
        replace(one, personal=door.tagged(one.message.content)) if one.personal is None else one
        for one in screened.spoken
    ]
    kept = _without_repeats(spoken) if parameters.collapse_repeats else spoken
    batch = Batch(
        number=0,
        accepted_at_ms=now_ms,
        first_message=0,
        message_count=len(kept),
        conversation_id=command.conversation_id or "",
        metadata=metadata_json("metadata", command.metadata, NO_BOUND),
        idempotency_key=command.idempotency_key or "",
        personal=dict(screened.counts),
        dropped_recalled=screened.dropped,
        collapsed=len(spoken) - len(kept),
    )
    held = [merged_json(command.metadata, one.message.metadata) for one in kept]
    records = [
        _record(one, command.conversation_id or "", now_ms, metadata)
        for one, metadata in zip(kept, held, strict=True)
    ]
    by_key = {text_key(text): text for text in set(held) if text}
    texts = [one.message.content for one in kept]
    passages = [passages_of(text, record.speaker) for text, record in zip(texts, records, strict=True)]
    return IncomingBatch(
        batch, records, texts, screened.body_hash, passages, by_key, stamp.quota, parameters.pii
    )


def _guarded(command: RememberCommand, door: Door) -> tuple[RememberCommand, list[Spoken]]:
    """The command as it may be stored, and its messages with what is personal in them."""
    if door.is_open:
        return command, [Spoken(index, message) for index, message in enumerate(command.messages)]
    spoken = []
    for index, message in enumerate(command.messages):
        content, personal = door.text(message.content)
        changed = {
            "content": content,
            "speaker": message.speaker and door.words(message.speaker),
            "id": message.id and door.name(message.id),
            "metadata": door.metadata(message.metadata),
        }
        spoken.append(Spoken(index, message.model_copy(update=changed), personal))
    guarded = {
        "messages": [one.message for one in spoken],
        "conversation_id": command.conversation_id and door.name(command.conversation_id),
        "metadata": door.metadata(command.metadata),
        "idempotency_key": command.idempotency_key and door.name(command.idempotency_key),
    }
    return command.model_copy(update=guarded), spoken


def without_recalled(screened: Screened, stamp: Stamp, recall_filter: RecallFilter) -> Screened:
    """The batch without lines that a recall has just returned; messages of nothing else are left out."""
    if not stamp.parameters.drop_recalled:
        return screened
    kept, dropped = [], 0
    for one in screened.spoken:
        text, count = recall_filter.without(one.message.content, one.message.role)
        dropped += count
        if count and text:
            # The offsets of personal data have changed.
            one = Spoken(one.index, one.message.model_copy(update={"content": text}), None)
        if text or not count:
            kept.append(one)
    return replace(screened, spoken=kept, dropped=dropped)


def _without_repeats(spoken: Sequence[Spoken]) -> list[Spoken]:
    first = {(one.message.role, one.message.speaker, one.message.content): one for one in reversed(spoken)}
    return [one for one in spoken if first[one.message.role, one.message.speaker, one.message.content] is one]


def check_command(command: RememberCommand, limits: LimitSettings) -> None:
    """Refuse what is outside the limits."""
    if not command.messages:
        refuse("messages", [], f"1-{limits.max_messages} messages", "EMPTY_MESSAGES")
    check_count("messages", len(command.messages), limits.max_messages, "TOO_MANY_MESSAGES")
    for index, message in enumerate(command.messages):
        check_text(f"messages[{index}].content", message.content, limits.max_message_chars)
        check_text(f"messages[{index}].id", message.id or "", limits.max_name_chars)
        check_text(f"messages[{index}].speaker", message.speaker or "", limits.max_name_chars)
        check_flat(f"messages[{index}].metadata", message.metadata, limits)
        time_ms = message.timestamp
        if time_ms is not None and not EARLIEST_MS <= time_ms <= LATEST_MS:
            refuse(f"messages[{index}].timestamp", time_ms, "ms since the epoch, years 1-9999")
    check_text("conversation_id", command.conversation_id or "", limits.max_name_chars)
    if command.idempotency_key is not None:
        if not command.idempotency_key:
            refuse("idempotency_key", "", f"1-{limits.max_name_chars} characters")
        check_text("idempotency_key", command.idempotency_key, limits.max_name_chars)
    metadata_json("metadata", command.metadata, limits.max_metadata_bytes)


def _record(one: Spoken, conversation_id: str, now_ms: int, metadata: str) -> MessageRecord:
    message = one.message
    return MessageRecord(
        number=0,
        batch=0,
        index=one.index,
        role=message.role,
        speaker=message.speaker or "",
        caller_id=message.id or "",
        timestamp_ms=message.timestamp,
        accepted_at_ms=now_ms,
        conversation_id=conversation_id,
        text_key=text_key(message.content),
        metadata_key=text_key(metadata) if metadata else b"",
        personal=one.personal or (),
    )


def body_hash(command: RememberCommand) -> bytes:
    """What stands for a command beside its idempotency key: a hash of its JSON, fields sorted, without the key.

    It is kept with the receipt, so it may not change from version to version. Taken message by message: the JSON
    of a large one in one go would hold everybody up.
    """
    digest = hashlib.sha256(
        f'{{"conversation_id": {json.dumps(command.conversation_id)}, "messages": ['.encode()
    )
    for index, message in enumerate(command.messages):
        digest.update((", " if index else "").encode() + _sorted_json(_dumped(message)))
    digest.update(b'], "metadata": ' + _sorted_json(command.metadata) + b"}")
    return digest.digest()


def _dumped(message: MessageForm) -> dict[str, Any]:
    # A message without metadata hashes as it did before there was any.
    return message.model_dump(exclude={"metadata"} if message.metadata is None else None)


def _sorted_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
