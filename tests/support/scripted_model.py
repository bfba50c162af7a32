"""A language model that follows the script of a test: it answers, fails, hangs, or returns nonsense.

It passes the same contract tests as the built-in model while it behaves.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from ebbtide.language.builtin.extraction import extract
from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.port import ModelState, Processed, ProposedStatement, SearchPlan, Segment, Utterance


def relate(node: str, others: Sequence[str]) -> list[str]:
    """Return the first short keyword of a memory that each other text contains, or an empty string."""
    nouns = [word for word in keywords(node) if len(word) <= (20 if word.isascii() else 4)]
    return [next((word for word in nouns if word in other), "") for other in others]


def statements(messages: Sequence[Utterance]) -> list[ProposedStatement]:
    """Return what the rules of the built-in model find in the messages of users."""
    return [
        ProposedStatement(
            index,
            message.text[one.offset : one.offset + one.length],
            one.subject,
            one.kind,
            one.slot,
            one.object,
            one.negated,
        )
        for index, message in enumerate(messages)
        if message.role == "user"
        for one in extract(message.text)
    ]


TASKS = ("segment", "process", "relate", "extract", "plan")

Step = Exception | float | Callable[[], Any]
"""The next call of a task: raise this exception, sleep this many seconds and answer, or call this.

A callable may inspect `log[-1]` for the request, and may be a coroutine function.
"""


class ScriptedModel:
    """Follow a script for each task, then (or without a script) answer like the built-in model."""

    name = "scripted"

    def __init__(self) -> None:
        self.script: dict[str, deque[Step]] = {t: deque() for t in TASKS}
        self.always: dict[str, Step] = {}
        """The step of a task when its script is empty."""
        self.calls: Counter[str] = Counter()
        self.log: list[tuple[str, Any]] = []
        self.available = True
        self.running = 0
        self.most_running = 0
        self.closed = False

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        self.log.append(("segment", [m.text for m in messages]))
        answer = await self._step("segment", lambda: segment(messages, max_chars))
        return list(answer)

    async def process(self, text: str, *, target_length: int | None = None, first: str = "") -> Processed:
        self.log.append(("process", (text, target_length)))
        answer: Processed = await self._step("process", lambda: process(text, target_length, first))
        return answer

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        self.log.append(("relate", (node, list(focuses))))
        answer = await self._step("relate", lambda: relate(node, focuses))
        return list(answer)

    async def extract(
        self, messages: Sequence[Utterance], *, topics: Sequence[str]
    ) -> list[ProposedStatement]:
        self.log.append(("extract", list(messages)))
        return list(await self._step("extract", lambda: statements(messages)))

    async def plan_search(self, question: str, today: str) -> SearchPlan:
        self.log.append(("plan", (question, today)))
        plan: SearchPlan = await self._step("plan", SearchPlan)
        return plan

    async def state(self) -> ModelState:
        return ModelState("scripted", self.name, self.available, "" if self.available else "told so")

    async def close(self) -> None:
        self.closed = True

    async def _step(self, task: str, answer: Callable[[], Any]) -> Any:
        self.calls[task] += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            steps = self.script[task]
            step = steps.popleft() if steps else self.always.get(task, answer)
            if isinstance(step, Exception):
                await asyncio.sleep(0)
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
                return answer()
            told = step()
            return await told if inspect.isawaitable(told) else told
        finally:
            self.running -= 1
