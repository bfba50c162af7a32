"""The selected conversations of an import, oldest first, and the requests of each.

All files are read before anything is sent. The messages wait in a temporary file without a name, so that memory grows
with the number of conversations, not with their size.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Self

from ebbtide.cli.files.conversation import ANY_AGENT, Placed, Request, refused_message
from ebbtide.cli.files.foreign.chats import Chat, Json, Notes

if TYPE_CHECKING:
    from ebbtide.settings import LimitSettings

BATCH_SIZE = 40
BATCH_BYTES = 2 << 20
"""Messages of a batch and their size as JSON; a single message may be larger."""

SPOOL_BYTES = 8 << 20
"""Bytes of messages that are in memory before a temporary file is created."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which conversations to import: by id or words of the title, with a message since a time, the newest ones."""

    names: Sequence[str] = ()
    since_ms: int | None = None
    limit: int | None = None

    def includes(self, chat: Chat) -> bool:
        """Whether a conversation is selected, apart from the limit."""
        title = chat.title.casefold()
        if self.names and not any(
            name == chat.conversation_id or name.casefold() in title for name in self.names
        ):
            return False
        return self.since_ms is None or (chat.span is not None and chat.span[1] >= self.since_ms)


@dataclass(frozen=True, slots=True)
class _Entry:
    span: tuple[int, int] | None
    at: int
    length: int
    messages: int


@dataclass(slots=True)
class Plan:
    """Conversations that wait to be sent."""

    selection: Selection
    notes: Notes
    not_selected: int = 0
    _entries: list[_Entry] = field(default_factory=list)
    _spool: SpooledTemporaryFile[bytes] = field(
        default_factory=lambda: SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 - __exit__ closes it
    )

    def add(self, chat: Chat) -> None:
        """Add a conversation if it is selected and has messages. Note the messages that a request must not have."""
        if not chat.messages:
            self.notes.leave_out("conversations without messages")
        elif not self.selection.includes(chat):
            self.not_selected += 1
        elif _keep_valid(chat, self.notes):
            line = [chat.conversation_id, chat.metadata, chat.place]
            written = json.dumps([*line, [[one.message, one.place] for one in chat.messages]]).encode()
            entry = _Entry(chat.span, self._spool.seek(0, 2), len(written), len(chat.messages))
            self._spool.write(written)
            self._entries.append(entry)

    def finish(self) -> None:
        """Sort the conversations, oldest first, and drop those beyond the limit, which are the oldest."""
        self._entries.sort(key=lambda one: one.span[1] if one.span else 0)
        if self.selection.limit is not None and len(self._entries) > self.selection.limit:
            self.not_selected += len(self._entries) - self.selection.limit
            del self._entries[: -self.selection.limit]

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return sum(one.messages for one in self._entries)

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and the last time of the messages in ms, or None if they have none."""
        spans = [one.span for one in self._entries if one.span]
        return (min(one[0] for one in spans), max(one[1] for one in spans)) if spans else None

    def chats(self) -> Iterator[Chat]:
        """Yield the conversations, oldest first, so that the newest memories end up in focus."""
        for entry in self._entries:
            self._spool.seek(entry.at)
            name, metadata, place, messages = json.loads(self._spool.read(entry.length))
            yield Chat(name, [Placed(*one) for one in messages], metadata, place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._spool.close()


def _keep_valid(chat: Chat, notes: Notes) -> bool:
    """Remove the messages that the daemon would refuse, and note them. Return whether any are left."""
    kept: list[Placed] = []
    for begin in range(0, len(chat.messages), BATCH_SIZE):
        part = chat.messages[begin : begin + BATCH_SIZE]
        while part and (error := _refusal(_body(chat, part))):
            found = refused_message(error)
            if found is None:
                notes.skip(chat.place, error)
                return False
            notes.skip(part.pop(found[0]).place, found[1])
        kept += part
    chat.messages = kept
    return bool(kept)


def _refusal(body: Json) -> str | None:
    """Return why the daemon would refuse a batch, or None."""
    from ebbtide.errors import InvalidRequest
    from ebbtide.verbs.remember import RememberRequest
    from ebbtide.verbs.requests import validated

    try:
        validated(RememberRequest, {"agent_id": ANY_AGENT, **body}, _limits())
    except InvalidRequest as error:
        return error.message
    return None


@cache
def _limits() -> LimitSettings:
    from ebbtide.settings import LimitSettings

    return LimitSettings()


def _body(chat: Chat, placed: Sequence[Placed]) -> Json:
    body: Json = {"messages": [one.message for one in placed], "conversation_id": chat.conversation_id}
    return body | ({"metadata": chat.metadata} if chat.metadata else {})


def marks_of(chat: Chat) -> list[str]:
    """Return a mark of each message, by which a later import recognises it in its conversation.

    It is made of the id and the time of the message, else of its words, and of how many like it came before.
    """
    before: Counter[str] = Counter()
    marks = []
    for one in chat.messages:
        message = one.message
        said = [message["id"]] if message.get("id") else [message["role"], message["content"]]
        name = json.dumps([*said, message.get("timestamp")])
        marks.append(letters([name, before[name]], 8))
        before[name] += 1
    return marks


def letters(value: object, count: int) -> str:
    """Return a digest of a value as lower-case letters, which no search for personal data takes for a number."""
    number = int.from_bytes(hashlib.sha256(json.dumps(value).encode()).digest())
    found = []
    for _ in range(count):
        number, letter = divmod(number, 26)
        found.append(chr(ord("a") + letter))
    return "".join(found)


def requests_of(chat: Chat, fresh: Sequence[int]) -> Iterator[tuple[Request, list[int]]]:
    """Yield the requests for the messages with these indexes, each with the indexes that it contains.

    The idempotency key is derived from the content, so that a request that is repeated after a kill has no effect.
    """
    part: list[int] = []
    size = 0
    for index in fresh:
        length = len(json.dumps(chat.messages[index].message))
        if part and (len(part) == BATCH_SIZE or size + length > BATCH_BYTES):
            yield _request(chat, part), part
            part, size = [], 0
        part.append(index)
        size += length
    if part:
        yield _request(chat, part), part


def _request(chat: Chat, indexes: Sequence[int]) -> Request:
    placed = [chat.messages[index] for index in indexes]
    body = _body(chat, placed)
    digest = hashlib.sha256(json.dumps([body, indexes[0]], sort_keys=True).encode()).hexdigest()
    body["idempotency_key"] = f"import/{digest[:40]}"
    return Request(body, [one.place for one in placed])
