"""Extraction runs apart from the digest: statements are found in digested messages, and no request waits for that.

Read the next messages (job) → call the model, holding nothing → store the statements of each message (job). The calls
have the lowest priority of all. `fleet/ingest/gate.py` judges what a model lists, and `fleet/ingest/extraction.py`
stores it.

Failures:

* The model server is down. The extraction pauses and tries again; the digest continues.
* Two replies are unusable. The rules of the built-in model take the place of the model for these messages.
* The agent keeps as many statements as it may. The extraction pauses, and continues when there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ebbtide.fleet.ingest.extraction import (
    MODEL,
    MODEL_ROOM,
    RULES_ROOM,
    AgentFull,
    ExtractionBatch,
    Findings,
    Heard,
    Part,
    Room,
    parts_of,
)
from ebbtide.fleet.ingest.inbox import DigestTask
from ebbtide.fleet.runtime.background_task import BackgroundTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.language.port import BadReply, ProposedStatement, Utterance
from ebbtide.language.served.limiter import Priority
from ebbtide.memory.slot_names import SLOTS

TOPICS = tuple(SLOTS)

MAX_AUTHOR_CHARS = 100

FULL = "max_statements"
"""Why extraction pauses at the limit of the agent."""

ROOM_CHECK_S = 600.0
"""How often a full agent is looked at, if nothing changes it: statements end with time."""


class Extraction(BackgroundTask):
    """Extracts the statements of one agent's messages until it is cancelled."""

    NO_MODEL = "no model server answers"

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        shared: SharedResources,
        on_progress: Callable[[], None],
        settle: Callable[[], None],
    ) -> None:
        """`on_progress` is called after each step; `settle` is a job that finds out whether the agent is idle."""
        super().__init__("extraction", workspace.identity.agent_id, shared.model_client.patience)
        self._jobs = workspace.extraction
        self._workspace = workspace
        self._mailbox = mailbox
        self._model_client = shared.model_client
        self._fallback = shared.fallback
        self._clock = shared.clock
        self._metrics = shared.metrics
        self._on_progress = on_progress
        self._settle = settle
        self._is_settled = False
        self._answers: dict[tuple[int, int], list[ProposedStatement] | None] = {}
        """The replies about the current messages, by the first part of the request; None for an unusable one."""

    @property
    def _asks_model(self) -> bool:
        """Whether a model is called: the built-in one answers by the rules."""
        return "model" in self._workspace.parameters.extraction and not self._model_client.extracts_by_rules

    @property
    def _room(self) -> Room:
        return MODEL_ROOM if self._asks_model else RULES_ROOM

    async def _once(self) -> None:
        self._arrived.clear()
        batch = None
        if self._jobs.is_on:
            batch = await self._mailbox.run_in_background(partial(self._jobs.next_batch, self._room))
        if batch is None:
            if self._jobs.is_on and not self._is_settled:
                await self._mailbox.run_in_background(self._settle)
                self._is_settled = True
            self._reset_failures()
            await self._arrived.wait()
            return
        self._is_settled = False
        await self._wait_for_room()
        with suppress(AgentFull):
            await self._extract(batch, Priority.EXTRACTION, moves_mark=True)
        self._on_progress()

    def notice(self) -> None:
        """Look for work soon. Whether a full agent has room is not known until then."""
        if self.held_up_by == FULL:
            self.held_up_by = ""
        super().notice()

    async def _wait_for_room(self) -> None:
        """Wait while the agent is full. A deletion, a retraction or another limit ends that, and so may time."""
        while await self._mailbox.run_in_background(partial(self._jobs.is_full, self._clock.now_ms())):
            self._log.info("extraction paused", why=FULL)
            self.held_up_by = FULL
            self._on_progress()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), ROOM_CHECK_S)
            self._arrived.clear()
        self._reset_failures()

    async def before_digest(self, task: DigestTask) -> None:
        """Extract the statements of a batch before its digest, if the digest deletes its texts."""
        if not self._jobs.is_on:
            return
        for batch in await self._mailbox.run_in_background(partial(self._jobs.early, task, self._room)):
            # The digest of this batch waits, so the calls have its priority.
            await self._extract(batch, Priority.FOREGROUND, moves_mark=False)

    async def _extract(self, batch: ExtractionBatch, priority: Priority, *, moves_mark: bool) -> None:
        found = await self._findings(batch, priority)
        for index, heard in enumerate(batch.messages):
            if not found[index].are_any:
                continue
            up_to = heard.record.number if moves_mark else 0
            job = partial(self._jobs.keep, heard, found[index], self._clock.now_ms(), up_to)
            count, rejected = await self._mailbox.run_in_background(job)
            self._metrics.extracted(count, rejected)
        if moves_mark:
            await self._mailbox.run_in_background(partial(self._jobs.finish, batch))
        self._answers.clear()

    async def _findings(self, batch: ExtractionBatch, priority: Priority) -> list[Findings]:
        """Ask the model and the rules about messages. Return what they found in each."""
        mode = self._workspace.parameters.extraction
        found = [Findings(self._author) for _ in batch.messages]
        failed: set[int] = set()
        if self._asks_model:
            for parts in parts_of(batch):
                answer = await self._answer(batch, parts, priority)
                if answer is None:
                    failed |= {part.message for part in parts}
                    continue
                for part in parts:
                    found[part.message].by_model[part.begin] = (part.utterance.text, [])
                for one in answer:
                    if 0 <= one.message < len(parts):
                        part = parts[one.message]
                        found[part.message].by_model[part.begin][1].append(one)
                    else:
                        found[parts[0].message].invented.append(one)
        uses_rules = mode != "model" or not self._asks_model
        by_rules = [
            i for i, heard in enumerate(batch.messages) if heard.is_from_user and (uses_rules or i in failed)
        ]
        for index, proposed in (await self._by_rules([batch.messages[i] for i in by_rules])).items():
            found[by_rules[index]].by_rules.extend(proposed)
        for index in failed:
            found[index].is_fallback = True
        return found

    @property
    def _author(self) -> str:
        name = getattr(self._model_client.model, "name", "")
        return f"{MODEL}{name}"[:MAX_AUTHOR_CHARS]

    async def _answer(
        self, batch: ExtractionBatch, parts: list[Part], priority: Priority
    ) -> list[ProposedStatement] | None:
        """Return the model's reply about some parts; None if it is unusable twice. Each reply is requested once."""
        first = parts[0]
        key = batch.messages[first.message].record.number, first.begin
        if key not in self._answers:
            try:
                self._answers[key] = await self._model_client.extract(
                    [part.utterance for part in parts], topics=TOPICS, priority=priority
                )
            except BadReply as error:
                self._log.warning("extraction by rules", detail=str(error))
                self._answers[key] = None
        return self._answers[key]

    async def _by_rules(self, messages: list[Heard]) -> dict[int, list[ProposedStatement]]:
        """Return what the rules find in each message."""
        spoken = [Utterance(one.record.role, one.record.speaker, one.text) for one in messages]
        found: dict[int, list[ProposedStatement]] = {}
        people = await self._mailbox.run_in_background(self._jobs.people) if spoken else ()
        for one in await self._fallback.extract(spoken, topics=(), people=people) if spoken else []:
            found.setdefault(one.message, []).append(one)
        return found
