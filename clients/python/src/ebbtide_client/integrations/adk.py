"""A memory service for Google's Agent Development Kit: `EbbtideMemoryService`.

Each user of each app has an agent of its own. A session may be added many times: the marks of stored events are a
record of the agent, so an event is stored once, also after its memory is deleted. The events of an invocation are a
batch, whose key prevents duplicates if the program ends before its marks are written. Needs `google-adk`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from ebbtide_client.client import Client
from ebbtide_client.errors import Conflict, NotFound
from ebbtide_client.integrations.sending import (
    Batch,
    Sender,
    agent_of_user,
    batches_of,
    digest,
    messages_of,
)

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from ebbtide_client.models import FoundMemory

NAMESPACE = ["integrations", "adk"]
MARK_CHARS = 8
MAX_MARKS = 30_000
"""Most events of a session whose marks are kept, the newest."""

MAX_TRIES = 5
"""How often marks are written while other programs add the same session."""


class EbbtideMemoryService(BaseMemoryService):
    """Memories of the users of apps."""

    def __init__(
        self,
        client: Client,
        *,
        agent_of: Callable[[str, str], str] = agent_of_user,
        max_results: int = 10,
    ) -> None:
        """Use a daemon; `agent_of` returns the agent of an app and a user."""
        self._sender = Sender(client)
        self._agent_of = agent_of
        self._max_results = max_results
        self._locks = [Lock() for _ in range(64)]

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        agent_id = self._agent_of(session.app_name, session.user_id)
        await asyncio.to_thread(self._add, agent_id, session.app_name, session.id, list(session.events), {})

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store those of the events that are not stored yet, with the metadata."""
        agent_id = self._agent_of(app_name, user_id)
        fields = {"metadata": dict(custom_metadata)} if custom_metadata else {}
        await asyncio.to_thread(self._add, agent_id, app_name, session_id, list(events), fields)

    def _add(
        self, agent_id: str, app: str, session_id: str | None, events: list[Event], fields: dict[str, Any]
    ) -> None:
        name = digest(app, session_id)
        with self._locks[hash((agent_id, name)) % len(self._locks)]:
            stored = set(self._marks(agent_id, name)[0])
            fresh = {_mark(one): one for one in events if not one.partial and _mark(one) not in stored}
            for _, group in groupby(fresh.values(), key=lambda one: one.invocation_id or one.id):
                self._sender.send(agent_id, _batches(list(group), session_id, fields))
            if fresh:
                self._put_marks(agent_id, name, list(fresh))

    def _marks(self, agent_id: str, name: str) -> tuple[list[str], int]:
        """Return the marks of stored events, and the version of their record."""
        get = {"op": "get", "namespace": NAMESPACE, "key": name}
        try:
            record = self._sender.client.batch_records(agent_id, [get]).results[0].record
        except NotFound:  # The agent does not exist yet.
            return [], 0
        if record is None:
            return [], 0
        text = str(record.value.get("marks", ""))
        marks = [text[start : start + MARK_CHARS] for start in range(0, len(text), MARK_CHARS)]
        return marks, record.version

    def _put_marks(self, agent_id: str, name: str, fresh: list[str]) -> None:
        self._sender.ensure_agent(agent_id)
        for tries_left in reversed(range(MAX_TRIES)):
            known, version = self._marks(agent_id, name)
            marks = list(dict.fromkeys([*known, *fresh]))[-MAX_MARKS:]
            put = {"op": "put", "namespace": NAMESPACE, "key": name, "value": {"marks": "".join(marks)}}
            try:
                self._sender.client.batch_records(
                    agent_id, [{**put, "if_version": version, "no_index": True}]
                )
            except Conflict:
                if not tries_left:
                    raise
            else:
                return

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as they are; each call stores them again, but for those with an id."""
        agent_id = self._agent_of(app_name, user_id)
        for memory in memories:
            metadata = {**memory.custom_metadata, **(custom_metadata or {})}
            fields = {"metadata": metadata} if metadata else {}
            said = messages_of("user", _text(memory.content), **_said(memory.author, memory.timestamp))
            batches = batches_of(said, digest(memory.id or uuid.uuid4().hex), None, **fields)
            await asyncio.to_thread(self._sender.send, agent_id, batches)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories of a user that answer a query, best first."""
        if not query.strip():
            return SearchMemoryResponse()
        agent_id = self._agent_of(app_name, user_id)
        found = await asyncio.to_thread(self._sender.search, agent_id, query, self._max_results)
        return SearchMemoryResponse(memories=[_entry(one) for one in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory by the id that a search returned, if it exists."""
        if memory_id:
            with suppress(NotFound):
                agent_id = self._agent_of(app_name, user_id)
                await asyncio.to_thread(self._sender.client.delete_node, agent_id, memory_id)


def _mark(event: Event) -> str:
    return digest(event.id or (event.invocation_id, event.author, event.timestamp), size=MARK_CHARS)


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _said(author: str | None, timestamp: int | str | None, event_id: str = "") -> dict[str, Any]:
    fields = {"speaker": "" if author == "user" else author, "timestamp": timestamp, "id": event_id}
    return {name: value for name, value in fields.items() if value}


def _batches(events: Sequence[Event], session_id: str | None, fields: dict[str, Any]) -> list[Batch]:
    messages: Iterable[dict[str, Any]] = (
        message
        for one in events
        for message in messages_of(
            "user" if one.author == "user" else "assistant",
            _text(one.content),
            **_said(one.author, int(one.timestamp * 1000), one.id),
        )
    )
    return batches_of(messages, digest(session_id, [_mark(one) for one in events]), session_id, **fields)


def _entry(found: FoundMemory) -> MemoryEntry:
    source = found.sources[0] if found.sources else None
    role = "model" if source is not None and source.role == "assistant" else "user"
    return MemoryEntry(
        id=found.id,
        content=types.Content(role=role, parts=[types.Part(text=found.content)]),
        author=(source.speaker or role) if source is not None else None,
        timestamp=datetime.fromtimestamp(found.created_at / 1000, UTC).isoformat(timespec="seconds"),
    )
