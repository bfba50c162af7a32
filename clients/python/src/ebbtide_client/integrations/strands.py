"""A memory store for Strands Agents: `EbbtideMemoryStore`.

The store takes whole messages, so a memory manager needs no call of a model to extract from them. Strands repeats a
batch that failed together with newer messages: each turn has a key, so what did arrive is stored once.
Needs `strands-agents`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from strands.memory import AddMessagesContext, MemoryEntry, MemoryStore, SearchOptions
from strands.types.content import Message

from ebbtide_client.client import Client
from ebbtide_client.integrations.sending import Batch, Sender, batches_of, digest, messages_of
from ebbtide_client.models import FoundMemory

DEFAULT_RESULTS = 10


class EbbtideMemoryStore(MemoryStore):
    """The memory of one agent: one store for each user."""

    def __init__(
        self,
        client: Client,
        agent_id: str,
        *,
        name: str = "ebbtide",
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: Any = None,
    ) -> None:
        """Use the memory of an agent; the options are those of Strands. `extraction=True` stores conversations."""
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._sender = Sender(client)
        self._agent_id = agent_id
        self._run_id = uuid.uuid4().hex

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the memories that answer a query, best first."""
        if not query.strip():
            return []
        limit = (options or {}).get("max_search_results") or self.max_search_results or DEFAULT_RESULTS
        found = await asyncio.to_thread(self._sender.search, self._agent_id, query, limit)
        return [_entry(one) for one in found]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Store a text. The same text is stored once a day."""
        key = digest(self._agent_id, content, metadata, datetime.now(UTC).date())
        fields = {"metadata": metadata} if metadata else {}
        await self._send(batches_of(messages_of("user", content), key, None, **fields))

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Store messages of a conversation, one batch for each turn."""
        numbers = (context.sequence_numbers if context else None) or [uuid.uuid4().hex for _ in messages]
        batches = []
        for turn in _turns(zip(numbers, messages, strict=True)):
            said = [part for _, one in turn for part in messages_of(one["role"], _text(one))]
            key = digest(self._run_id, [number for number, _ in turn], said)
            batches += batches_of(said, key, self._run_id)
        await self._send(batches)

    async def _send(self, batches: list[Batch]) -> None:
        if not self.writable:
            raise ValueError(f"{self.name} is not writable. Pass writable=True.")
        await asyncio.to_thread(self._sender.send, self._agent_id, batches)


def _text(message: Message) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))


def _turns(messages: Iterator[tuple[Any, Message]]) -> Iterator[list[tuple[Any, Message]]]:
    """Yield messages by turns; each begins with a message of the user."""
    turn: list[tuple[Any, Message]] = []
    for number, message in messages:
        if message["role"] == "user" and turn:
            yield turn
            turn = []
        turn.append((number, message))
    if turn:
        yield turn


def _entry(found: FoundMemory) -> MemoryEntry:
    said_at = datetime.fromtimestamp(found.created_at / 1000, UTC).isoformat(timespec="seconds")
    return MemoryEntry(content=found.content, metadata={"id": found.id, "said_at": said_at})
