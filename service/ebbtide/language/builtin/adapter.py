"""The built-in model behind the language port.

The rules run on the daemon's threads, or in a worker process if a text is long. The model needs no server and fails
only if a text takes too long to process. It does not rephrase. Methods import the rules, so that a
daemon can listen before it has compiled them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import accumulate, groupby, takewhile
from typing import TypeVar

from ebbtide.errors import InvalidRequest, Unavailable
from ebbtide.language.port import (
    BadReply,
    ModelState,
    Processed,
    ProposedStatement,
    Segment,
    TextTooComplex,
    TextToProcess,
    Utterance,
)
from ebbtide.offload.pool import INLINE, MAX_INLINE_CHARS, TextWorkers

T = TypeVar("T")

BATCH_CHARS = 3000
"""Characters processed in one batch, about ten milliseconds of work. Other tasks run between batches."""


class BuiltinModel:
    """Segment and shorten texts by rules, in Chinese and English."""

    name = "builtin"
    names_by_rules = True
    """The memory model has rules for the names of links."""
    extracts_by_rules = True

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
        """Return segments of one message each: a sentence, or a few short ones."""
        from ebbtide.language.builtin.segmentation import segment

        found: list[Segment] = []
        offset = 0
        # No segment spans two messages, so a long message can be processed separately.
        for is_long, group in groupby(messages, lambda message: len(message.text) > MAX_INLINE_CHARS):
            group_messages = list(group)
            if is_long:
                parts = [
                    await self._offload(len(message.text), segment, [message], max_chars)
                    for message in group_messages
                ]
                segments = [_shifted(piece, index) for index, part in enumerate(parts) for piece in part]
            else:
                segments = await self._run(partial(segment, self._yielding(group_messages), max_chars))
            found += [_shifted(piece, offset) for piece in segments]
            offset += len(group_messages)
        return found

    async def process(self, text: str, *, target_length: int | None = None, first: str = "") -> Processed:
        """Return the text as a memory, reduced to its most informative clauses if a target length is given."""
        from ebbtide.language.builtin.model import process

        if len(text) > MAX_INLINE_CHARS:
            return await self._offload(len(text), process, text, target_length, first)

        def work() -> Processed:
            self.yield_to_requests()
            return process(text, target_length, first)

        return await self._run(work)

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """Return an empty name for each focus: the memory model has rules for the names of links."""
        return [""] * len(focuses)

    async def extract(
        self, messages: Sequence[Utterance], *, topics: Sequence[str], people: Collection[str] = ()
    ) -> list[ProposedStatement]:
        """Return what the rules find in messages of users, in the words of its clause. They need no topics.

        `people` are the names of persons whom the user has named before.
        """
        from ebbtide.language.builtin.extraction import extract

        def read() -> list[ProposedStatement]:
            named, found = set(people), list[ProposedStatement]()
            for index, message in enumerate(self._yielding(messages)):
                for one in extract(message.text, named) if message.role == "user" else ():
                    quote = message.text[one.offset : one.offset + one.length]
                    found.append(
                        ProposedStatement(
                            index, quote, one.subject, one.kind, one.slot, one.object, one.negated
                        )
                    )
                    if one.kind == "relation" and one.slot != "pet":
                        named.add(one.object)
            return found

        return await self._run(read)

    async def process_many(self, texts: Sequence[TextToProcess]) -> list[Processed]:
        """Process the first batch of the texts."""
        from ebbtide.language.builtin.model import process

        batch = texts[: _batch_size(arguments[0] for arguments in texts)]
        if len(batch[0][0]) > MAX_INLINE_CHARS:
            return [await self._offload(len(batch[0][0]), process, *batch[0])]
        return await self._run(lambda: [process(*arguments) for arguments in self._yielding(batch)])

    async def filler_keywords(
        self, texts: Sequence[str], *, remember_questions: bool
    ) -> list[tuple[str, ...] | None]:
        """Return the keywords of each text that makes no memory, and None for the others.

        See `small_talk.is_filler`. A long text always makes a memory.
        """
        from ebbtide.language.builtin.keywords import cue_keywords
        from ebbtide.language.builtin.small_talk import is_filler

        return await self._run(
            lambda: [
                cue_keywords(text)
                if len(text) <= MAX_INLINE_CHARS and is_filler(text, remember_questions)
                else None
                for text in self._yielding(texts)
            ]
        )

    async def state(self) -> ModelState:
        """Return that the model is available."""
        return ModelState("builtin", self.name, True)

    async def close(self) -> None:
        """Do nothing: the daemon owns the pool."""

    def _yielding(self, items: Sequence[T]) -> Iterator[T]:
        for item in items:
            self.yield_to_requests()
            yield item

    async def _run(self, fn: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, fn)

    async def _offload(self, size: int, function: Callable[..., T], *arguments: object) -> T:
        try:
            return await self.texts.run(size, function, *arguments)
        except InvalidRequest as error:
            raise TextTooComplex(f"{error.reason}: {error.message}") from None
        except Unavailable as error:
            raise BadReply(f"{error.reason}: {error.message}") from None


def _shifted(piece: Segment, offset: int) -> Segment:
    """Return a segment with its message indices increased."""
    indices = tuple(index + offset for index in piece.messages)
    return Segment(piece.text, indices, piece.start) if offset else piece


def _batch_size(texts: Iterable[str]) -> int:
    """Return how many of the first texts make a batch: at least one."""
    fitting = takewhile(lambda chars: chars <= BATCH_CHARS, accumulate(map(len, texts)))
    return max(1, sum(1 for _ in fitting))
