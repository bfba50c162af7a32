"""Call a model with timeouts, retries and backoff, and count the outcomes.

The two kinds of failure are treated differently (see `port.py`). A transport failure is retried with growing pauses, up
to `max_retries`, and then raised as ModelUnavailable. An unusable reply is requested again at once, up to
`max_bad_replies`, and then raised as BadReply. Background calls (compression, extraction) never retry transport
failures, so that a scan never waits for a server.

A conversation that is too long for one request is split into chunks with retries of their own. Completed chunks are
cached, so that an outage does not restart the conversation.

A model with `process_many` answers the first of several requests in one batch. Each counts as a call; the remaining
ones are sent individually. No slot of the limiter is held during a pause.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ebbtide.language.port import (
    BadReply,
    LanguageModel,
    ModelState,
    ModelUnavailable,
    Processed,
    ProposedStatement,
    SearchPlan,
    Segment,
    TextTooComplex,
    TextToProcess,
    Utterance,
    attempt,
)
from ebbtide.language.served.chunks import Chunk, mapped_back
from ebbtide.language.served.limiter import Priority, PriorityLimiter
from ebbtide.language.served.replies import (
    checked_names,
    checked_processed,
    checked_segments,
    checked_statements,
)
from ebbtide.metrics import Metrics
from ebbtide.telemetry import span

T = TypeVar("T")
Q = TypeVar("Q")

EXTRACTION_TRIES = 2
"""Unusable replies after which statements are extracted by rules."""

MAX_CACHED_CHUNKS = 256
"""Completed chunks of long conversations that are cached until the conversation is complete."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeouts and retries, in seconds."""

    timeout_s: float = 300.0
    max_retries: int = 15
    max_bad_replies: int = 3
    base_s: float = 1.0
    cap_s: float = 30.0

    def pause_s(self, failures: int) -> float:
        """Return the pause after so many consecutive failures: doubling, capped."""
        return min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 32))


@dataclass(slots=True)
class CallCounts:
    """The outcomes of the calls of one task."""

    calls: int = 0
    parsed: int = 0
    bad_replies: int = 0
    unavailable: int = 0


@dataclass(slots=True)
class ModelClient:
    """A model behind a limiter, called with retries. The methods are those of the port, with a priority."""

    model: LanguageModel
    limiter: PriorityLimiter
    patience: RetryPolicy
    tallies: dict[str, CallCounts] = field(default_factory=dict)
    under_way: dict[int, float] = field(default_factory=dict)
    """The start of each running call, by the event loop's clock."""
    troubled: bool = False
    """Whether the latest call could not reach the server, so that callers should not wait for the model."""
    metrics: Metrics = field(default_factory=Metrics)
    _answered: OrderedDict[tuple[Chunk, int], list[Segment]] = field(default_factory=OrderedDict)

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Split messages into segments; see the port."""

        split = getattr(self.model, "chunks", None)
        chunks: list[Chunk] = await split(messages) if split is not None else []
        if len(chunks) < 2:
            return await self._segment(messages, max_chars)
        segments: list[Segment] = []
        for chunk in chunks:
            answer = self._answered.get((chunk, max_chars))
            if answer is None:
                answer = await self._segment([piece.utterance for piece in chunk], max_chars)
                self._answered[chunk, max_chars] = answer
                while len(self._answered) > MAX_CACHED_CHUNKS:
                    self._answered.popitem(last=False)
            segments += mapped_back(answer, chunk)
        for chunk in chunks:
            self._answered.pop((chunk, max_chars), None)
        return segments

    async def _segment(self, messages: Sequence[Utterance], max_chars: int) -> list[Segment]:
        async def ask() -> list[Segment]:
            reply = await self.model.segment(messages, max_chars=max_chars)
            return checked_segments(reply, messages, max_chars)

        return await self._with_retries("segment", ask, Priority.FOREGROUND)

    async def process(
        self,
        text: str,
        *,
        target_length: int | None = None,
        first: str = "",
        priority: Priority = Priority.FOREGROUND,
    ) -> Processed:
        """Make a memory of a text; see the port."""

        async def ask() -> Processed:
            reply = await self.model.process(text, target_length=target_length, first=first)
            return checked_processed(reply, text, target_length)

        return await self._with_retries("process", ask, priority)

    @property
    def names_by_rules(self) -> bool:
        """Return whether the model leaves the names of links to the rules of the memory model."""
        return getattr(self.model, "names_by_rules", False)

    @property
    def takes_many(self) -> bool:
        """Return whether the model processes several texts in one batch."""
        return hasattr(self.model, "process_many")

    async def process_many(
        self, texts: Sequence[TextToProcess], *, priority: Priority = Priority.FOREGROUND
    ) -> list[Processed]:
        """Process the first of some texts in one batch. Return nothing if the model takes them individually."""

        def checked(reply: Processed, arguments: TextToProcess) -> Processed:
            return checked_processed(reply, *arguments[:2])

        return await self._call_many("process", texts, checked, priority)

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """Name relations; see the port."""

        async def ask() -> list[str]:
            return checked_names(await self.model.relate(node, focuses), len(focuses))

        return await self._with_retries("relate", ask, Priority.FOREGROUND)

    async def plan_search(self, question: str, today: str, limit_s: float) -> SearchPlan:
        """Return how to search for an answer. Raise ModelUnavailable or BadReply, without retries, within the limit."""
        plan: Callable[[str, str], Awaitable[SearchPlan]] | None = getattr(self.model, "plan_search", None)
        if plan is None:
            raise ModelUnavailable("the language model makes no plans")
        attempt.set(0)
        tally = self.tallies.setdefault("plan", CallCounts())
        try:
            async with asyncio.timeout(limit_s):
                found = await self._call("plan", tally, lambda: plan(question, today), Priority.FOREGROUND)
        except TimeoutError as error:
            tally.unavailable += 1
            raise ModelUnavailable(f"no plan within {limit_s * 1000:g} ms") from error
        except BadReply:
            tally.bad_replies += 1
            raise
        except ModelUnavailable:
            tally.unavailable += 1
            raise
        tally.parsed += 1
        return found

    @property
    def extracts_by_rules(self) -> bool:
        """Return whether the model finds statements by the rules of the built-in model."""
        return getattr(self.model, "extracts_by_rules", False)

    async def extract(
        self,
        messages: Sequence[Utterance],
        *,
        topics: Sequence[str],
        priority: Priority = Priority.EXTRACTION,
    ) -> list[ProposedStatement]:
        """List statements in messages, by default with the lowest priority; see the port."""

        async def ask() -> list[ProposedStatement]:
            return checked_statements(await self.model.extract(messages, topics=topics))

        return await self._with_retries("extract", ask, priority, EXTRACTION_TRIES)

    @property
    def longest_call_s(self) -> float:
        """Return the duration of the oldest running call so far, or 0."""
        began_s = min(self.under_way.values(), default=None)
        return 0.0 if began_s is None else asyncio.get_running_loop().time() - began_s

    async def state(self) -> ModelState:
        """Return whether the model is available."""
        return await self.model.state()

    async def close(self) -> None:
        """Close the model."""
        await self.model.close()

    async def _with_retries(
        self,
        task: str,
        ask: Callable[[], Awaitable[T]],
        priority: Priority,
        max_bad_replies: int | None = None,
    ) -> T:
        tally = self.tallies.setdefault(task, CallCounts())
        most = self.patience.max_bad_replies if max_bad_replies is None else max_bad_replies
        failures = bad_replies = 0
        retries = self.patience.max_retries if priority is Priority.FOREGROUND else 0
        while True:
            try:
                attempt.set(bad_replies)
                answer = await self._call(task, tally, ask, priority)
            except ModelUnavailable as error:
                self.troubled = True
                tally.unavailable += 1
                failures += 1
                if failures > retries:
                    raise
                await asyncio.sleep(error.retry_after_s or self.patience.pause_s(failures))
            except BadReply as error:
                self.troubled = False
                tally.bad_replies += 1
                bad_replies += 1
                if bad_replies >= most or isinstance(error, TextTooComplex):
                    raise
            else:
                self.troubled = False
                tally.parsed += 1
                return answer

    async def _call_many(
        self,
        task: str,
        requests: Sequence[Q],
        checked: Callable[[T, Q], T],
        priority: Priority = Priority.FOREGROUND,
    ) -> list[T]:
        """Return the replies of one batch, up to the first invalid one."""
        many: Callable[[Sequence[Q]], Awaitable[list[T]]] | None = getattr(self.model, f"{task}_many", None)
        if many is None:
            return []
        tally = self.tallies.setdefault(task, CallCounts())
        answers: list[T] = []
        try:
            attempt.set(0)
            replies = await self._call(task, tally, lambda: many(requests), priority)
            for number, (reply, arguments) in enumerate(zip(replies, requests, strict=False)):
                tally.calls += number > 0
                answers.append(checked(reply, arguments))
        except ModelUnavailable:
            self.troubled = True
            tally.unavailable += 1
            return []
        except BadReply:
            tally.bad_replies += 1
        self.troubled = False
        tally.parsed += len(answers)
        return answers

    async def _call(
        self, task: str, tally: CallCounts, ask: Callable[[], Awaitable[T]], priority: Priority
    ) -> T:
        async with self.limiter.passing(priority):
            tally.calls += 1
            call, now_s = object(), asyncio.get_running_loop().time()
            self.under_way[id(call)] = now_s
            outcome = "cancelled"
            try:
                async with asyncio.timeout(self.patience.timeout_s) as limit:
                    with span("model.call", task=task):
                        answer = await ask()
                outcome = "ok"
                return answer
            except TimeoutError as error:
                outcome = "unavailable"
                if not limit.expired():
                    raise
                seconds = self.patience.timeout_s
                raise ModelUnavailable(f"no reply within {seconds:g} s") from error
            except (ModelUnavailable, BadReply) as error:
                outcome = "bad_reply" if isinstance(error, BadReply) else "unavailable"
                raise
            finally:
                del self.under_way[id(call)]
                self.metrics.model_call(task, outcome, asyncio.get_running_loop().time() - now_s)
