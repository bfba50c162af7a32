"""messages: what the caller stored, as it was said: the archive, listed and filtered by metadata."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import batch_text_id, message_text_id
from ebbtide.records import MessageRecord
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.attachments import AttachmentInfo, attachment_infos
from ebbtide.verbs.inspect import MAX_LOOKED_AT, PersonalData
from ebbtide.verbs.limits import FlatMetadata
from ebbtide.verbs.metadata import message_filter
from ebbtide.verbs.paging import AgentPageRequest, number_from_token, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import Response

MAX_PAGE_CHARS = 1 << 20
"""A page ends after this many characters of text, so that gRPC clients accept it by default."""


class MessageInfo(Response):
    """A stored message."""

    id: str = Field(description="Id of the message, which `forget` and deletions take.", examples=["m1"])
    message_id: str = Field(description="The caller's own id of the message, empty if none was given.")
    batch_id: str = Field(description="Id of the batch of the message.")
    message_index: int = Field(description="Position of the message in its batch.")
    role: str = Field(description="Role of the speaker.")
    speaker: str = Field(description="Name of the speaker; empty if none was given.")
    timestamp: int | None = Field(
        description="When it was said, if the caller gave a time; ms since the epoch."
    )
    accepted_at: int = Field(description="When it was accepted, ms since the epoch.")
    conversation_id: str = Field(description="The conversation of the message; empty if none was given.")
    metadata: dict[str, Any] = Field(description="The message's metadata, over that of its batch.")
    content: str | None = Field(
        description="The text of the message, with the captions of its attachments; null if it is deleted."
    )
    pii: list[PersonalData] = Field(
        description="Personal data in the text, if the message was stored under the policy `tag`."
    )
    attachments: list[AttachmentInfo] = Field(
        description="Its attachments, without their content; none once the text is deleted."
    )


class MessagePage(Response):
    """A page of messages."""

    messages: list[MessageInfo] = Field(description="The messages of this page, in the order of arrival.")
    next_page_token: str = Field(
        description="Empty on the last page. A page may have few messages, or none, before the last."
    )


class ListMessagesRequest(AgentPageRequest):
    """Which page of messages to list, and which messages."""

    metadata: FlatMetadata | None = Field(
        None,
        description="Only messages that were stored with each of these values. Over REST as JSON.",
    )


async def list_messages(service: ReadingService, request: ListMessagesRequest) -> MessagePage:
    """List stored messages in the order of arrival. Erased messages are left out."""
    start = number_from_token(request.page_token, "messages")
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace
        return await agent.run(
            lambda: workspace.store.read(lambda txn: _page(txn, workspace, request, start))
        )


def _page(
    txn: ReadTransaction, workspace: Workspace, request: ListMessagesRequest, start: int
) -> MessagePage:
    matches = message_filter(txn, workspace, request.metadata)
    found: list[MessageInfo] = []
    chars = 0
    for looked_at, record in enumerate(txn.messages.all(start)):
        if len(found) == request.size or looked_at == MAX_LOOKED_AT or chars >= MAX_PAGE_CHARS:
            return MessagePage(messages=found, next_page_token=to_token(str(record.number), "messages"))
        if not is_tombstone(record) and matches(record):
            found.append(message_info(txn, record))
            chars += len(found[-1].content or "")
    return MessagePage(messages=found, next_page_token="")


def message_info(txn: ReadTransaction, record: MessageRecord) -> MessageInfo:
    """Return a message for a response."""
    text = txn.messages.text(record)
    return MessageInfo(
        id=message_text_id(record.number),
        message_id=record.caller_id,
        batch_id=batch_text_id(record.batch),
        message_index=record.index,
        role=record.role,
        speaker=record.speaker,
        timestamp=record.timestamp_ms,
        accepted_at=record.accepted_at_ms,
        conversation_id=record.conversation_id,
        metadata=txn.messages.metadata(record),
        content=text,
        pii=[PersonalData(kind=one.kind, offset=one.offset, length=one.length) for one in record.personal],
        attachments=attachment_infos(record, text or ""),
    )
