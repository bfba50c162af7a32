"""The story of the demo, played through the daemon's operations.

The story follows three memories: it reads them after every batch. Each everyday message is a batch of its own, so
one compression pass follows each. After a followed memory is forgotten, the story lists the dangling links to it and
recalls by the keywords of a memory that has one. A dangling link is as weak as the memory was, so a recall reports it
for a few batches only, and only within its reach. Until a recall does, the story continues.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebbtide.cli.demo.events import (
    Done,
    Event,
    Faded,
    Forgotten,
    Memory,
    OnceKnown,
    Recalled,
    Remembered,
    TimePassed,
)
from ebbtide.cli.demo.narration import Language
from ebbtide.errors import NotFound
from ebbtide.memory.wording import SEPARATOR, one_line, word_dangling
from ebbtide.settings import MemorySettings, Settings, StoreSettings
from ebbtide.verbs.agents import AgentInfo, get_agent
from ebbtide.verbs.batches import BatchRequest, FlushRequest, flush, get_batch
from ebbtide.verbs.inspect import LinkInfo, NodeRequest, get_node, list_links
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.recall import RecallRequest, recall
from ebbtide.verbs.remember import RememberRequest, remember
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

AGENT = "lin-yue"
DECAY_RATE = 0.9
DATA = Path(__file__).parent.parent / "demo_data"

RECALLS_AFTER = 2
"""Recall after this many conversations: the first two followed memories exist by then."""

DEPTH = 2
MAX_RESULTS = 3
MAX_DEPTH = 8
MAX_BATCHES = 120
TRACE_BATCHES = 6
"""Stop looking for a trace this many batches after the last followed memory was forgotten."""


def demo_settings(directory: Path) -> Settings:
    """Return the defaults without entities, with a faster decay and this directory, ignoring the environment."""
    return Settings.model_construct(
        store=StoreSettings(data_dir=directory),
        memory=MemorySettings(decay_rate=DECAY_RATE, focus_policy="nodes"),
    )


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
        self._lost: list[str] = []
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
                    yield await self._recall(question)

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

    async def _recall(self, question: dict[str, Any]) -> Recalled:
        command = RecallRequest(
            agent_id=AGENT, keywords=question["keywords"], depth=DEPTH, max_results=MAX_RESULTS
        )
        answer = await recall(self._service, command)
        return Recalled(question["note"], question["keywords"], DEPTH, answer.text)

    async def _info(self) -> AgentInfo:
        return await get_agent(self._service, AgentRequest(agent_id=AGENT))

    # --- fading ------------------------------------------------------------------------------------

    async def _fading(self) -> AsyncIterator[Event]:
        originals = sum(memory.original_length for memory in self._followed.values())
        quiet = 0
        for batch, message in enumerate(self._everyday[:MAX_BATCHES], start=1):
            await self._remember([message])
            changes = [event async for event in self._changes(batch)]
            kept = sum(memory.length for memory in self._followed.values()) / originals
            yield TimePassed(batch, message["content"], list(self._followed.values()), kept)
            for event in changes:
                yield event
            if self._followed:
                continue
            trace = await self._trace(batch, self._lost)
            if trace is not None:
                yield trace
                return
            quiet += 1
            if quiet == TRACE_BATCHES:
                break
        trace = await self._trace(batch, [])
        if trace is not None:
            yield trace

    async def _changes(self, batch: int) -> AsyncIterator[Event]:
        """Yield the changes of the followed memories in the latest pass."""
        for node_id, before in list(self._followed.items()):
            try:
                now = replace(await self._memory(node_id), name=before.name)
            except NotFound:
                del self._followed[node_id]
                self._lost.append(node_id)
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

    async def _trace(self, batch: int, lost: list[str]) -> OnceKnown | None:
        """Return the recall with the longest memory that links to one in `lost`, or to any if it is empty."""
        links = [link for link in await self._dangling() if not lost or link.target in lost]
        best: OnceKnown | None = None
        for source in sorted({link.source for link in links}):
            teller = await self._memory(source)
            own = [link for link in links if link.source == source]
            found = await self._recall_trace(batch, teller, max(own, key=lambda link: link.strength))
            if found is not None and (best is None or found.teller.length > best.teller.length):
                best = found
        return best

    async def _recall_trace(self, batch: int, teller: Memory, link: LinkInfo) -> OnceKnown | None:
        """Return the recall by the teller's keywords if it returns the teller alone and reports a loss."""
        keywords = teller.keywords[:2]
        if not keywords:
            return None
        command = RecallRequest(agent_id=AGENT, keywords=keywords, depth=MAX_DEPTH, max_results=MAX_RESULTS)
        answer = await recall(self._service, command)
        memory, *sentences = answer.text.split(SEPARATOR)
        known = await get_node(self._service, NodeRequest(agent_id=AGENT, node_id=teller.id))
        expected = {word_dangling(lost.relation, teller.content, "auto") for lost in known.dangling}
        if not memory.endswith(one_line(teller.content)) or not sentences:
            return None
        if not expected.issuperset(sentences):
            return None
        return OnceKnown(
            batch=batch,
            forgotten=link.target,
            first_content=self._first[link.target],
            teller=teller,
            relation=link.relation,
            strength=round(link.strength, 4),
            keywords=keywords,
            depth=MAX_DEPTH,
            text=answer.text,
            sentences=sentences,
        )
