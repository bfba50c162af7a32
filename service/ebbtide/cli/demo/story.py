"""The story of the demo, played through the daemon's operations.

The story follows four memories: it reads them after every batch. Each everyday message is a batch of its own, so one
compression pass follows each. After some weeks a message mentions a name again, which supports the memories of that
name. The story ends when the memory of the lighthouse is forgotten: a recall reports that it once existed, and another
returns the pinned memory. All parameters have their defaults.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ebbtide.cli.demo.events import (
    Done,
    Event,
    Faded,
    Forgotten,
    Kept,
    Memory,
    OnceKnown,
    Recalled,
    Remembered,
    Returned,
    TimePassed,
)
from ebbtide.cli.demo.narration import Language
from ebbtide.errors import NotFound
from ebbtide.memory.wording import SEPARATOR, word_entity
from ebbtide.settings import Settings, StoreSettings
from ebbtide.verbs.agents import AgentInfo, get_agent
from ebbtide.verbs.batches import BatchRequest, FlushRequest, flush, get_batch
from ebbtide.verbs.entities import list_entities
from ebbtide.verbs.inspect import LinkInfo, NodeRequest, get_node, list_links
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.recall import RecallRequest, recall
from ebbtide.verbs.remember import RememberRequest, remember
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

AGENT = "lin-yue"
DATA = Path(__file__).parent.parent / "demo_data"

RECALLS_AFTER = 2
"""Recall after this many conversations: the first two followed memories exist by then."""

RETURNS_AFTER = 100
"""The number of everyday batches before a name comes back."""

MAX_RESULTS = 3
MAX_BATCHES = 500


def demo_settings(directory: Path) -> Settings:
    """Return the defaults with this directory, ignoring the environment."""
    return Settings.model_construct(store=StoreSettings(data_dir=directory))


def load(name: str, language: Language) -> Any:
    """Return the content of a data file of the demo."""
    return json.loads((DATA / f"{name}.{language}.json").read_text("utf-8"))


class Story:
    """One run of the demo on one service."""

    def __init__(self, service: Service, language: Language) -> None:
        self._service = service
        self._conversation = load("conversation", language)
        self._everyday = load("everyday", language)
        self._first: dict[str, str] = {}
        """The first content of every memory created so far."""
        self._followed: dict[str, Memory] = {}
        """The followed memories that are not forgotten, by id, as last read."""
        self._batch_count = 0

    @property
    def conversation_count(self) -> int:
        """The number of conversations."""
        return len(self._conversation["batches"])

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events from the first conversation to the end."""
        async for event in self._remembering():
            yield event
        async for event in self._fading():
            yield event
        info = await self._info()
        yield Done(
            batch_count=self._batch_count,
            pass_count=info.finished_passes,
            memories_made=len(self._first),
            memories_forgotten=len(self._first) - info.counts.nodes,
            memories_left=info.counts.nodes,
        )

    # --- remembering and recalling -----------------------------------------------------------------

    async def _remembering(self) -> AsyncIterator[Event]:
        for number, batch in enumerate(self._conversation["batches"], start=1):
            batch_id, memories = await self._remember(batch["messages"])
            named = [self._named(memory) for memory in memories]
            self._followed |= {memory.id: memory for memory in named if memory.name}
            yield Remembered(
                number=number,
                topic=batch["topic"],
                batch_id=batch_id,
                message_count=len(batch["messages"]),
                memories=named,
                focus=(await self._info()).focus,
            )
            if number == RECALLS_AFTER:
                for question in self._conversation["questions"]:
                    text = await self._recall(question["keywords"])
                    yield Recalled(question["note"], question["keywords"], text)

    async def _remember(self, messages: list[dict[str, Any]]) -> tuple[str, list[Memory]]:
        """Remember one batch and wait for its digest and pass. Return its id and its memories."""
        command = RememberRequest.model_validate({"agent_id": AGENT, "messages": messages})
        accepted = await remember(self._service, command)
        await flush(self._service, FlushRequest(agent_id=AGENT, timeout_ms=60_000, passes=True))
        self._batch_count += 1
        batch = await get_batch(self._service, BatchRequest(agent_id=AGENT, batch_id=accepted.batch_id))
        memories = [await self._memory(node_id) for node_id in batch.node_ids]
        self._first |= {memory.id: memory.content for memory in memories}
        return batch.batch_id, memories

    def _named(self, memory: Memory) -> Memory:
        for name, start in self._conversation["follow"].items():
            taken = any(known.name == name for known in self._followed.values())
            if not taken and start[:16] in memory.content:
                return replace(memory, name=name)
        return memory

    async def _memory(self, node_id: str) -> Memory:
        node = await get_node(self._service, NodeRequest(agent_id=AGENT, node_id=node_id))
        return Memory(
            id=node.id,
            content=node.content,
            phrase=node.phrase,
            keywords=node.keywords,
            importance=round(node.importance, 4),
            original_length=node.original_length,
        )

    async def _recall(self, keywords: list[str]) -> str:
        command = RecallRequest(agent_id=AGENT, keywords=keywords, max_results=MAX_RESULTS)
        return (await recall(self._service, command)).text

    async def _info(self) -> AgentInfo:
        return await get_agent(self._service, AgentRequest(agent_id=AGENT))

    # --- fading ------------------------------------------------------------------------------------

    async def _fading(self) -> AsyncIterator[Event]:
        originals = sum(memory.original_length for memory in self._followed.values())
        everyday = islice(cycle(self._everyday), MAX_BATCHES)
        for batch, message in enumerate(everyday, start=1):
            if batch == RETURNS_AFTER:
                async for event in self._return(batch):
                    yield event
                continue
            await self._remember([message])
            changes = [event async for event in self._changes(batch)]
            kept = sum(memory.length for memory in self._followed.values()) / originals
            yield TimePassed(batch, message["content"], list(self._followed.values()), kept)
            for event in changes:
                yield event
            lost = [e for e in changes if isinstance(e, Forgotten) and e.name == "lighthouse"]
            if lost:
                yield await self._once_known(batch, lost[0])
                yield await self._kept(batch)
                return

    async def _return(self, batch: int) -> AsyncIterator[Event]:
        """Mention a name again, and yield the changes and what a recall of the name returns."""
        story = self._conversation["return"]
        before = next(one for one in self._followed.values() if one.name == "whistle")
        await self._remember([story["message"]])
        async for event in self._changes(batch):
            yield event
        yield Returned(
            batch=batch,
            message=story["message"]["content"],
            memory=self._followed[before.id],
            importance_before=before.importance,
            keywords=story["keywords"],
            text=await self._recall(story["keywords"]),
        )

    async def _changes(self, batch: int) -> AsyncIterator[Event]:
        """Yield the changes of the followed memories in the latest pass."""
        for node_id, before in list(self._followed.items()):
            try:
                now = replace(await self._memory(node_id), name=before.name)
            except NotFound:
                del self._followed[node_id]
                links = await self._dangling()
                yield Forgotten(
                    batch=batch,
                    id=node_id,
                    name=before.name,
                    first_content=self._first[node_id],
                    last_content=before.content,
                    pointed_at_by=[link.source for link in links if link.target == node_id],
                )
                continue
            self._followed[node_id] = now
            if now.content != before.content:
                yield Faded(batch, now, now.length, before.length)

    # --- once known --------------------------------------------------------------------------------

    async def _dangling(self) -> list[LinkInfo]:
        """Return every link from a live memory to a forgotten one."""
        found: list[LinkInfo] = []
        token = ""
        while True:
            page = await list_links(
                self._service, AgentPageRequest(agent_id=AGENT, page_size=1000, page_token=token)
            )
            found += [link for link in page.links if link.dangling]
            token = page.next_page_token
            if not token:
                return found

    async def _once_known(self, batch: int, lost: Forgotten) -> OnceKnown:
        """Return the recall of what was lost."""
        keywords = self._conversation["lost"]
        text = await self._recall(keywords)
        page = await list_entities(self._service, AgentPageRequest(agent_id=AGENT, page_size=1000))
        sentences = {
            word_entity(one.name, knows_more=False, is_chinese=is_chinese)
            for one in page.entities
            for is_chinese in (True, False)
        }
        known = [block for block in text.split(SEPARATOR) if block in sentences]
        return OnceKnown(batch, lost.first_content, keywords, text, known)

    async def _kept(self, batch: int) -> Kept:
        """Return the recall of the pinned memory."""
        keywords = self._conversation["kept"]
        memory = next(one for one in self._followed.values() if one.name == "allergy")
        return Kept(batch, memory, keywords, await self._recall(keywords))
