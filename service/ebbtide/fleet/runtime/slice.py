"""A slice: one agent's turn at compression.

A slice runs steps of a few milliseconds, so that a recall of the same agent never waits long. Between two steps it
yields when its time is up or when the agent has other jobs. Only the language model is awaited, and no lock or
transaction is held meanwhile.

The slice's deadline also limits the model call, which gets at least 5 s. A node whose call is cut off stays first
in the order. If it is cut off a second time, it keeps its content for this pass, so that one text on which the model
hangs cannot block compression.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

from ebbtide.fleet.compression.passes import Shortened, ShorteningTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId
from ebbtide.language.port import BadReply, ModelUnavailable, Processed
from ebbtide.language.served.limiter import Priority

MIN_MODEL_TIME_S = 5.0
"""A model call gets at least this much time, even at the end of a slice."""

MAX_TEXTS = 32
"""Most texts sent together to a model that accepts many; they share one commit."""

TOO_SHORT_FOR_A_MODEL = 20
"""Targets below this many characters are left to the built-in model."""


class Compressor:
    """Runs compression slices of one agent."""

    def __init__(self, workspace: Workspace, mailbox: Mailbox, shared: SharedResources) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._shared = shared
        self._model_client = shared.model_client
        self._cut_off: NodeId | None = None
        """The node whose model call the last slice cut off."""

    async def run_slice(self) -> bool:
        """Compress until nothing is owed, time is up or another job waits. Return whether more is owed."""
        deadline_s = self._shared.clock.monotonic_s() + self._shared.slice_s
        finished: list[Shortened] = []
        max_tasks = MAX_TEXTS if self._model_client.takes_many else 1
        compress = self._workspace.passes.compress
        while True:
            budget = self._shared.budget(self._mailbox.is_awaited)
            step = await self._mailbox.run_in_background(partial(compress, finished, budget, max_tasks))
            if step.is_idle:
                return False
            finished = []
            if step.tasks:
                finished = await self._shorten_many(step.tasks)
                if not any(shortened.task is step.tasks[0] for shortened in finished):
                    first = await self._shorten(step.tasks[0], deadline_s)
                    if first is None:
                        return True
                    finished.append(first)
            elif self._must_yield(deadline_s):
                return True
            # Commit a shortened text before yielding; otherwise its model call is wasted.
            if finished and self._must_yield(deadline_s):
                await self._mailbox.run_in_background(partial(compress, finished, lambda: True))
                return True

    def _must_yield(self, deadline_s: float) -> bool:
        return not self._mailbox.is_idle or self._shared.clock.monotonic_s() >= deadline_s

    @property
    def _model_name(self) -> str:
        return getattr(self._model_client.model, "name", "")

    async def _shorten_many(self, tasks: Sequence[ShorteningTask]) -> list[Shortened]:
        """Shorten several texts with a model that accepts many at once; return an empty list for other models."""
        if len(tasks) < 2:
            return []
        long = [task for task in tasks if task.shortening.target >= TOO_SHORT_FOR_A_MODEL]
        short = [task for task in tasks if task.shortening.target < TOO_SHORT_FOR_A_MODEL]
        answers: list[Processed] = []
        if long:
            texts = [(task.content, task.shortening.target, task.first) for task in long]
            answers = await self._model_client.process_many(texts, priority=Priority.BACKGROUND)
        shortened = [Shortened(*pair, self._model_name) for pair in zip(long, answers, strict=False)]
        return shortened + [await self._shorten_by_rules(task) for task in short]

    async def _shorten_by_rules(self, task: ShorteningTask) -> Shortened:
        """Shorten a text with the built-in model. The content stays if that takes too long."""
        processed, target = None, task.shortening.target
        with contextlib.suppress(BadReply):
            processed = await self._shared.fallback.process(
                task.content, target_length=target, first=task.first
            )
        return Shortened(task, processed, "builtin")

    async def _shorten(self, task: ShorteningTask, deadline_s: float) -> Shortened | None:
        """Shorten one text. Return None if the slice's deadline cut the call off."""
        target, node_id = task.shortening.target, task.shortening.node_id
        if target < TOO_SHORT_FOR_A_MODEL:
            return await self._shorten_by_rules(task)
        try:
            async with asyncio.timeout(max(MIN_MODEL_TIME_S, deadline_s - self._shared.clock.monotonic_s())):
                processed = await self._model_client.process(
                    task.content, target_length=target, first=task.first, priority=Priority.BACKGROUND
                )
            return Shortened(task, processed, self._model_name)
        except TimeoutError:
            if self._cut_off != node_id:
                self._cut_off = node_id
                return None
            # Cut off twice: keep the content, or the pass would never get beyond this node.
            self._cut_off = None
            return Shortened(task, None, self._model_name)
        except ModelUnavailable:
            # The content stays until the next pass; the scan counts nevertheless.
            return Shortened(task, None, self._model_name)
        except BadReply:
            return await self._shorten_by_rules(task)
