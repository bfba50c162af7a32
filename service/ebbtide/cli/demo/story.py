"""The story of the demo: what is remembered, asked and forgotten, in this order, through the daemon's verbs.

Nothing is staged. Three memories are followed by asking for them after every batch. Each message of the everyday
talk is a batch of its own, so that one compression pass follows each. When a followed memory is gone, the story
looks who still has a link to it (`list_links`, dangling) and asks with that memory's own keywords. A dangling
link is as weak as the memory was, so there is something to be told for a few batches only, and only as far as a
recall reaches; until then, and for memories out of reach, the story goes on.
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
from ebbtide.errors import NotFound
from ebbtide.memory.wording import SEPARATOR, word_dangling, word_memory
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

ASKED_AFTER = 2
"""Conversations after which the first questions are asked: both followed memories of the beginning are there."""

QUESTIONS_ASKED = 2
ANSWERS_SHOWN = 3
DEEPEST = 8
MOST_BATCHES = 120
BATCHES_TO_LOOK = 6
"""Batches after the last followed memory is gone in which a trace of it is still looked for."""

FOLLOWED = {"follow": "lighthouse", "follow_en": "bakery", "follow_trace": "whistle"}
"""Keys of the conversation file, and what the followed memories are called."""


def demo_settings(directory: Path) -> Settings:
    """Defaults, whatever the environment says, with a faster decay and a directory that is thrown away."""
    return Settings.model_construct(
        store=StoreSettings(data_dir=directory), memory=MemorySettings(decay_rate=DECAY_RATE)
    )


def load(name: str) -> dict[str, Any]:
    """A file of the demo's data."""
    content: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return content


class Story:
    """One telling of the demo on one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._conversation = load("conversation")
        self._everyday = [m for batch in load("everyday")["batches"] for m in batch]
        self._first: dict[str, str] = {}
        """First content of every memory made so far."""
        self._followed: dict[str, Memory] = {}
        """Followed memories that live, by id, as last seen."""
        self._lost: list[str] = []
        self._batch_count = 0

    async def events(self) -> AsyncIterator[Event]:
        """Everything that happens, from the first conversation to the end."""
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

    # --- remembering and asking --------------------------------------------------------------------

    async def _remembering(self) -> AsyncIterator[Event]:
        for number, batch in enumerate(self._conversation["batches"], start=1):
            batch_id, memories = await self._remember(batch["messages"])
            named = [self._named(memory) for memory in memories]
            self._followed |= {memory.id: memory for memory in named if memory.name}
            yield Remembered(
                number=number,
                topic={"en": batch["topic"], "zh": batch["topic_zh"]},
                batch_id=batch_id,
                message_count=len(batch["messages"]),
                memories=named,
                focus=(await self._info()).focus,
            )
            if number == ASKED_AFTER:
                for question in self._conversation["questions"][:QUESTIONS_ASKED]:
                    yield await self._ask(question, question["depth"])

    async def _remember(self, messages: list[dict[str, Any]]) -> tuple[str, list[Memory]]:
        """Remember one batch and wait for its digest and its pass; the batch and the memories it became."""
        command = RememberRequest.model_validate({"agent_id": AGENT, "messages": messages})
        accepted = await remember(self._service, command)
        await flush(self._service, FlushRequest(agent_id=AGENT, timeout_ms=60_000, passes=True))
        self._batch_count += 1
        batch = await get_batch(self._service, BatchRequest(agent_id=AGENT, batch_id=accepted.batch_id))
        memories = [await self._memory(node_id) for node_id in batch.node_ids]
        self._first |= {memory.id: memory.content for memory in memories}
        return batch.batch_id, memories

    def _named(self, memory: Memory) -> Memory:
        for key, name in FOLLOWED.items():
            taken = any(known.name == name for known in self._followed.values())
            if not taken and self._conversation[key][:16] in memory.content:
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

    async def _ask(self, question: dict[str, Any], depth: int) -> Recalled:
        command = RecallRequest(
            agent_id=AGENT, keywords=question["keywords"], depth=depth, max_results=ANSWERS_SHOWN
        )
        answer = await recall(self._service, command)
        note = {"en": question["note"], "zh": question["note_zh"]}
        return Recalled(note, question["keywords"], depth, answer.text)

    async def _info(self) -> AgentInfo:
        return await get_agent(self._service, AgentRequest(agent_id=AGENT))

    # --- fading ------------------------------------------------------------------------------------

    async def _fading(self) -> AsyncIterator[Event]:
        originals = sum(memory.original_length for memory in self._followed.values())
        quiet = 0
        for batch, message in enumerate(self._everyday[:MOST_BATCHES], start=1):
            await self._remember([message])
            changes = [event async for event in self._look(batch)]
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
            if quiet == BATCHES_TO_LOOK:
                break
        trace = await self._trace(batch, [])
        if trace is not None:
            yield trace

    async def _look(self, batch: int) -> AsyncIterator[Event]:
        """What became of the followed memories in the latest pass."""
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
        """Every live link to something forgotten."""
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
        """The most telling recall that still says something of a memory in `lost` (of any, if empty) was known."""
        links = [link for link in await self._dangling() if not lost or link.target in lost]
        best: OnceKnown | None = None
        for source in sorted({link.source for link in links}):
            teller = await self._memory(source)
            own = [link for link in links if link.source == source]
            found = await self._told(batch, teller, max(own, key=lambda link: link.strength))
            # The longest teller says most about what is missing.
            if found is not None and (best is None or found.teller.length > best.teller.length):
                best = found
        return best

    async def _told(self, batch: int, teller: Memory, link: LinkInfo) -> OnceKnown | None:
        """The recall by the teller's own keywords, if it brings back the teller alone and tells of a loss."""
        keywords = teller.keywords[:2]
        if not keywords:
            return None
        command = RecallRequest(agent_id=AGENT, keywords=keywords, depth=DEEPEST, max_results=ANSWERS_SHOWN)
        answer = await recall(self._service, command)
        memory, *sentences = answer.text.split(SEPARATOR)
        known = await get_node(self._service, NodeRequest(agent_id=AGENT, node_id=teller.id))
        expected = {word_dangling(lost.relation, teller.content, "auto") for lost in known.dangling}
        if memory != word_memory(teller.content, "auto") or not sentences:
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
            depth=DEEPEST,
            text=answer.text,
            sentences=sentences,
        )
