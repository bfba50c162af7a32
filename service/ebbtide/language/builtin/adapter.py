"""The built-in model behind the language port.

Plain functions on the daemon's own threads, or in a worker process where a text is long. The model needs no server and
fails only for a text that takes too long to process. It does not resolve pronouns, rephrase, or know about the world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import accumulate, groupby, takewhile
from typing import TypeVar

from ebbtide.errors import InvalidRequest, Unavailable
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.relations import relate, relate_many
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.port import (
    BadReply,
    ModelState,
    Processed,
    Segment,
    TextTooComplex,
    TextToProcess,
    Utterance,
)
from ebbtide.offload.pool import INLINE, MAX_INLINE_CHARS, TextWorkers

T = TypeVar("T")

BATCH_CHARS = 3000
"""Characters of the texts answered in one go: about ten milliseconds of work, after which others have their turn."""


class BuiltinModel:
    """Segments, shortens and relates by rules, in Chinese and English."""

    name = "builtin"

    def __init__(
        self,
        pool: Executor,
        yield_to_requests: Callable[[], None] = lambda: None,
        texts: TextWorkers = INLINE,
    ) -> None:
        """Run on `pool`, and long texts in worker processes. `yield_to_requests` is called between small steps."""
        self.pool = pool
        self.yield_to_requests = yield_to_requests
        self.texts = texts

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Sentences, or a few short ones, of one message."""
        found: list[Segment] = []
        place = 0
        # No segment spans two messages, so a long one can be processed by itself.
        for is_long, group in groupby(messages, lambda message: len(message.text) > MAX_INLINE_CHARS):
            some = list(group)
            if is_long:
                parts = [await self._offload(len(one.text), segment, [one], max_chars) for one in some]
                segments = [_shifted(one, at) for at, part in enumerate(parts) for one in part]
            else:
                segments = await self._run(partial(segment, self._yielding(some), max_chars))
            found += [_shifted(one, place) for one in segments]
            place += len(some)
        return found

    async def process(self, text: str, *, prefix: str = "", target_length: int | None = None) -> Processed:
        """The text as it stands, or its most telling clauses."""
        if len(text) > MAX_INLINE_CHARS:
            return await self._offload(len(text), process, text, prefix, target_length)
        return await self._run(partial(process, text, prefix, target_length))

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """What two texts both speak of, or nothing."""
        if (longest := max(map(len, (node, *focuses)))) > MAX_INLINE_CHARS:
            return await self._offload(longest, relate, node, focuses)
        return await self._run(partial(relate, node, focuses))

    async def process_many(self, texts: Sequence[TextToProcess]) -> list[Processed]:
        """What `process` answers to the first of the texts."""
        first = texts[: _batch_size(text for text, _, _ in texts)]
        if len(first[0][0]) > MAX_INLINE_CHARS:
            text, prefix, target_length = first[0]
            return [await self.process(text, prefix=prefix, target_length=target_length)]
        return await self._run(lambda: [process(*asked) for asked in self._yielding(first)])

    async def relate_many(self, questions: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
        """What `relate` answers to the first of the questions, each a node with its focuses."""
        first = questions[: _batch_size(node for node, _ in questions)]
        longest = max(len(text) for node, focuses in first for text in (node, *focuses))
        if longest > MAX_INLINE_CHARS:
            return await self._offload(longest, relate_many, first)
        return await self._run(lambda: relate_many(self._yielding(first)))

    async def state(self) -> ModelState:
        """Always there."""
        return ModelState("builtin", self.name, True)

    async def close(self) -> None:
        """Nothing to let go of: the pool is the daemon's."""

    def _yielding(self, pieces: Sequence[T]) -> Iterator[T]:
        for piece in pieces:
            self.yield_to_requests()
            yield piece

    async def _run(self, fn: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, fn)

    async def _offload(self, size: int, function: Callable[..., T], *arguments: object) -> T:
        try:
            return await self.texts.run(size, function, *arguments)
        except InvalidRequest as error:
            raise TextTooComplex(f"{error.reason}: {error.message}") from None
        except Unavailable as error:
            raise BadReply(f"{error.reason}: {error.message}") from None


def _shifted(one: Segment, by: int) -> Segment:
    """A segment whose messages are counted from further ahead."""
    return Segment(one.text, tuple(index + by for index in one.messages), one.start) if by else one


def _batch_size(texts: Iterable[str]) -> int:
    """How many of the first texts are answered in one go: at least one, however long."""
    fitting = takewhile(lambda chars: chars <= BATCH_CHARS, accumulate(map(len, texts)))
    return max(1, sum(1 for _ in fitting))
