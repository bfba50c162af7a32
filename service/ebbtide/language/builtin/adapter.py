"""The built-in model behind the language port.

Plain functions on the daemon's own threads; it never fails and needs no server. What it does not do: resolve
pronouns, rephrase, know anything about the world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import accumulate, takewhile
from typing import TypeVar

from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.relations import relate, relate_many
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.port import ModelState, Processed, Segment, TextToProcess, Utterance

T = TypeVar("T")

CHARS_AT_ONCE = 3000
"""Characters of the texts answered in one go: about ten milliseconds of work, after which others have their turn."""


class BuiltinModel:
    """Segments, shortens and relates by rules, in Chinese and English."""

    name = "builtin"

    def __init__(self, pool: Executor, give_way: Callable[[], None] = lambda: None) -> None:
        """Work on `pool`; `give_way` is called between two small pieces of work, and may rest."""
        self.pool = pool
        self.give_way = give_way

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Sentences, or a few short ones, of one message."""
        return await self._run(lambda: segment(self._politely(messages), max_chars))

    async def process(self, text: str, *, prefix: str = "", target_length: int | None = None) -> Processed:
        """The text as it stands, or its most telling clauses."""
        return await self._run(partial(process, text, prefix, target_length))

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """What two texts both speak of, or nothing."""
        return await self._run(partial(relate, node, focuses))

    async def process_many(self, texts: Sequence[TextToProcess]) -> list[Processed]:
        """What `process` answers to the first of the texts."""
        first = texts[: _at_once(text for text, _, _ in texts)]
        return await self._run(lambda: [process(*asked) for asked in self._politely(first)])

    async def relate_many(self, questions: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
        """What `relate` answers to the first of the questions, each a node with its focuses."""
        first = questions[: _at_once(node for node, _ in questions)]
        return await self._run(lambda: relate_many(self._politely(first)))

    async def state(self) -> ModelState:
        """Always there."""
        return ModelState("builtin", self.name, True)

    async def close(self) -> None:
        """Nothing to let go of: the pool is the daemon's."""

    def _politely(self, pieces: Sequence[T]) -> Iterator[T]:
        for piece in pieces:
            self.give_way()
            yield piece

    async def _run(self, fn: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, fn)


def _at_once(texts: Iterable[str]) -> int:
    """How many of the first texts are answered in one go: at least one, however long."""
    fitting = takewhile(lambda chars: chars <= CHARS_AT_ONCE, accumulate(map(len, texts)))
    return max(1, sum(1 for _ in fitting))
