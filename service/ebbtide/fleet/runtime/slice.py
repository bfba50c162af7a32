"""A slice: one agent's turn to compress.

Steps of at most a few milliseconds each, so that a recall of the same agent never waits long; between two
steps the slice looks whether its time is up or the agent's foreground work waits, and gives way. Only a text
to be shortened is awaited, and nothing is held meanwhile. The slice's deadline is also the model call's (at
least 5 s); a node cut off by it stays where it is and is first next time. Cut off a second time it keeps its
content for this pass, so that a model that hangs on one text does not stop a memory from forgetting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ebbtide.clock import Clock
from ebbtide.fleet.compression.visits import Shortened, ShorteningTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId
from ebbtide.language.port import (
    BadReply,
    LanguageModel,
    ModelUnavailable,
    Processed,
    TextToProcess,
)
from ebbtide.language.served.limiter import Priority
from ebbtide.language.served.retry import ModelClient

JOB_BUDGET_S = 0.02
"""Longest one step keeps the agent's turn."""

LEAST_MODEL_TIME_S = 5.0
"""A model call gets at least this long, however little of the slice is left."""

MOST_TEXTS = 32
"""Texts asked for together of a model that answers many questions at once; they share a commit too."""

TOO_SHORT_FOR_A_MODEL = 20
"""Targets below this many characters are left to the built-in model."""


@dataclass(slots=True)
class Compressor:
    """Runs slices of one agent. Times in seconds. `cut_off` is the node whose model call the last slice cut off."""

    workspace: Workspace
    mailbox: Mailbox
    asking: ModelClient
    fallback: LanguageModel
    clock: Clock
    slice_s: float
    yield_to_requests: Callable[[], None] = lambda: None
    cut_off: NodeId | None = None

    async def run_slice(self) -> bool:
        """Compress until nothing is owed, time is up or foreground work waits; whether more is owed."""
        deadline_s = self.clock.monotonic_s() + self.slice_s
        finished: list[Shortened] = []
        most_tasks = MOST_TEXTS if self.asking.takes_many else 1
        while True:
            step = await self.mailbox.run(
                partial(self.workspace.passes.compress, finished, self._budget(), most_tasks)
            )
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
            elif self._must_give_way(deadline_s):
                return True
            # A shortened text is committed before giving way, or its model call was in vain.
            if finished and self._must_give_way(deadline_s):
                await self.mailbox.run(partial(self.workspace.passes.compress, finished, lambda: True))
                return True

    def _must_give_way(self, deadline_s: float) -> bool:
        return not self.mailbox.is_idle or self.clock.monotonic_s() >= deadline_s

    def _budget(self) -> Budget:
        return Budget(self.clock, JOB_BUDGET_S, self.yield_to_requests)

    async def _shorten_many(self, tasks: Sequence[ShorteningTask]) -> list[Shortened]:
        """How some of these shortenings went, by a model that takes many at once; else nothing."""
        if len(tasks) < 2:
            return []
        long = [task for task in tasks if task.shortening.target >= TOO_SHORT_FOR_A_MODEL]
        short = [task for task in tasks if task.shortening.target < TOO_SHORT_FOR_A_MODEL]
        answers = (
            await self.asking.process_many(_questions(long), priority=Priority.BACKGROUND) if long else []
        )
        name = getattr(self.asking.model, "name", "")
        shortened = [Shortened(*pair, name) for pair in zip(long, answers, strict=False)]
        for task in short:
            shortened.append(Shortened(task, await self._by_the_fallback(task), "builtin"))
        return shortened

    async def _by_the_fallback(self, task: ShorteningTask) -> Processed | None:
        """The text shortened by rules; None where that takes too long, and the content stays."""
        target = task.shortening.target
        try:
            return await self.fallback.process(task.text, prefix=task.prefix, target_length=target)
        except BadReply:
            return None

    async def _shorten(self, task: ShorteningTask, deadline_s: float) -> Shortened | None:
        """How the shortening went; None when the slice's time cut it off."""
        target = task.shortening.target
        model = getattr(self.asking.model, "name", "")
        left_s = max(LEAST_MODEL_TIME_S, deadline_s - self.clock.monotonic_s())
        try:
            if target >= TOO_SHORT_FOR_A_MODEL:
                async with asyncio.timeout(left_s):
                    processed = await self.asking.process(
                        task.text,
                        prefix=task.prefix,
                        target_length=target,
                        priority=Priority.BACKGROUND,
                    )
                return Shortened(task, processed, model)
        except TimeoutError:
            if self.cut_off != task.shortening.node_id:
                self.cut_off = task.shortening.node_id
                return None
            # Cut off twice: for this node there is no server, or the pass would never get past it.
            self.cut_off = None
            return Shortened(task, None, model)
        except ModelUnavailable:
            # The content stays and is asked again in the next pass; the scan counts all the same.
            return Shortened(task, None, model)
        except BadReply:
            pass
        return Shortened(task, await self._by_the_fallback(task), "builtin")


def _questions(tasks: Sequence[ShorteningTask]) -> list[TextToProcess]:
    return [(task.text, task.prefix, task.shortening.target) for task in tasks]


class Budget:
    """Whether a step's time is up, counted from its first question on: not while it waits for its turn.

    Between two questions lies a piece of work: the moment to give way to requests of other agents.
    """

    def __init__(self, clock: Clock, seconds: float, yield_to_requests: Callable[[], None]) -> None:
        self._give_way = yield_to_requests
        self._clock = clock
        self._seconds = seconds
        self._end_s: float | None = None

    def __call__(self) -> bool:
        self._give_way()
        now_s = self._clock.monotonic_s()
        if self._end_s is None:
            self._end_s = now_s + self._seconds
        return now_s >= self._end_s
