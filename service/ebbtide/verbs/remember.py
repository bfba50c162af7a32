"""remember: a batch of messages is stored durably and acknowledged; the digest comes later.

The story: check limits → open (or create) the agent → job *accept*: idempotency receipt or inbox entry, message
records and chunks, one durable commit → acknowledged. Nothing waits for a language model here.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any, Literal

from pydantic import Field

from ebbtide.fleet.archive import passages_of
from ebbtide.fleet.arrivals import MESSAGE_WEIGHT, UNBOUNDED, Arrival, Quota
from ebbtide.settings import LimitSettings
from ebbtide.store.layout import text_key
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.metadata import check_flat, merged_json, metadata_json
from ebbtide.verbs.service import Service
from ebbtide.vocabulary import Batch, MessageRecord, batch_text_id, parse_agent_id

EARLIEST_MS = -62_135_596_800_000
LATEST_MS = 253_402_300_799_999
"""The years 1 to 9999: what a protobuf Timestamp can say."""


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


class Remembered(Answer):
    """The batch is on disk."""

    batch_id: str = Field(description="The batch, for its status.", examples=["b1"])
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[1])


async def remember(service: Service, agent_id: str, command: RememberCommand) -> Remembered:
    """Store a batch durably and return; memories come into being as the digest works it off.

    Raises InvalidRequest for a bad id or a value outside its limits, QUEUE_FULL when the inbox is full,
    STORE_FULL when there is no room, QUOTA_REACHED when the agent or the key holds as much as it may,
    IDEMPOTENCY_KEY_REUSED for another body under a known key. In each case nothing is stored.
    """
    owner = parse_agent_id(agent_id)
    size = sum(len(message.content) + MESSAGE_WEIGHT for message in command.messages)
    arrival = await service.at_desk(
        size, partial(prepared, command, service.settings.limits, service.clock.now_ms(), service.quota)
    )
    async with service.fleet.using(owner, create=True, allowance=service.allowance) as agent:
        accepted = await agent.accept(arrival)
    return Remembered(batch_id=batch_text_id(accepted.batch.number), pending_batches=accepted.pending_batches)


def prepared(
    command: RememberCommand, limits: LimitSettings, now_ms: int, quota: Quota = UNBOUNDED
) -> Arrival:
    """A command as it goes to its agent; refused when it is outside the limits."""
    metadata = check_command(command, limits)
    batch = Batch(
        number=0,
        accepted_at_ms=now_ms,
        first_message=0,
        message_count=len(command.messages),
        conversation_id=command.conversation_id or "",
        metadata=metadata,
        idempotency_key=command.idempotency_key or "",
    )
    held = [merged_json(command.metadata, message.metadata) for message in command.messages]
    records = [
        _record(message, index, command.conversation_id or "", now_ms, held[index])
        for index, message in enumerate(command.messages)
    ]
    by_key = {text_key(text): text for text in set(held) if text}
    texts = [message.content for message in command.messages]
    passages = [passages_of(text, record.speaker) for text, record in zip(texts, records, strict=True)]
    hashed = body_hash(command) if command.idempotency_key else b""
    return Arrival(batch, records, texts, hashed, passages, by_key, quota)


def check_command(command: RememberCommand, limits: LimitSettings) -> str:
    """Refuse what is outside the limits; the metadata as JSON."""
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
    return metadata_json("metadata", command.metadata, limits.max_metadata_bytes)


def _record(
    message: MessageForm, index: int, conversation_id: str, now_ms: int, metadata: str
) -> MessageRecord:
    return MessageRecord(
        number=0,
        batch=0,
        index=index,
        role=message.role,
        speaker=message.speaker or "",
        caller_id=message.id or "",
        timestamp_ms=message.timestamp,
        accepted_at_ms=now_ms,
        conversation_id=conversation_id,
        text_key=text_key(message.content),
        metadata_key=text_key(metadata) if metadata else b"",
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
