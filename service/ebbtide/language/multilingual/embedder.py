"""The multilingual embedder: multilingual-e5-small in worker processes.

The model is native code of a third party, so it runs outside the daemon. A crash or a hang costs the call that caused
it; the worker is replaced at the next call. Queries and messages have workers of their own, so a query never waits
while messages are embedded, and a message that crashes the library costs no query its vector.

A call whose worker crashed, hung or returned unusable vectors is a BadReply: the caller finds out whether a text is the
reason. A worker that cannot start, or was killed from outside, says nothing about the text: ModelUnavailable.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import EbbtideError
from ebbtide.language.builtin.scripts import has_word
from ebbtide.language.embedding import MULTILINGUAL_NAME, has_multilingual
from ebbtide.language.multilingual.worker import MAX_CHARS, embed, missing
from ebbtide.language.port import BadReply, ModelState, ModelUnavailable
from ebbtide.offload.worker_pool import WorkerEnded, WorkerPool

Vector = NDArray[np.float32]
EmbedFunction = Callable[[Sequence[str], bool], tuple[int, bytes]]

KIND: Final = "multilingual"
DIMENSION: Final = 384

QUERY_WORKERS: Final = 2
"""Worker processes for queries. The second one starts only while the first is busy or hangs."""

QUERY_TIME_LIMIT_S: Final = 10.0
"""After this time a query's worker is killed. Its caller stops waiting earlier."""

TEXTS_PER_ROUND: Final = 32
"""Vectors that are committed together: one to three seconds of work. Agents take turns after each round."""

BATCH_CHARS: Final = 2 * MAX_CHARS
BATCH_TEXTS: Final = 16
"""Limits of one call for messages, about a second of work."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class MultilingualEmbedder:
    """Embed texts of any language in worker processes."""

    def __init__(self, time_limit_s: float, function: EmbedFunction = embed) -> None:
        """Start no process yet. `time_limit_s` limits each call for messages; workers call `function`."""
        self.model = f"{KIND}:{MULTILINGUAL_NAME}"
        self.dimension: int | None = DIMENSION
        self.texts_per_round = TEXTS_PER_ROUND
        self._time_limit_s = time_limit_s
        self._function = function
        self._queries = WorkerPool("embed_query", QUERY_WORKERS)
        self._messages = WorkerPool("embed_message", 1)
        self._failure = ""
        """Why the library could not be loaded at the last attempt."""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector | None]:
        """Return the vector of the beginning of each text, or None for a text without a word."""
        cleaned = [clean(text) for text in texts]
        found: list[Vector | None] = [None] * len(texts)
        for indices in _batches(cleaned):
            vectors = await self._call([cleaned[index] for index in indices], is_query)
            for index, vector in zip(indices, vectors, strict=True):
                found[index] = vector
        return found

    async def state(self) -> ModelState:
        """Return whether the package is installed and could be loaded at the last attempt."""
        detail = self._failure or ("" if has_multilingual() else missing())
        return ModelState(KIND, MULTILINGUAL_NAME, not detail, detail)

    async def close(self) -> None:
        """End the worker processes. Idempotent."""
        for pool in (self._queries, self._messages):
            await asyncio.to_thread(pool.close)

    async def _call(self, texts: Sequence[str], is_query: bool) -> list[Vector]:
        pool = self._queries if is_query else self._messages
        limit_s = QUERY_TIME_LIMIT_S if is_query else self._time_limit_s
        try:
            outcome = pool.submit(self._function, (texts, is_query), limit_s)
            reply = await asyncio.wrap_future(outcome)
        except ModelUnavailable as error:
            self._failure = str(error)
            raise
        except WorkerEnded as ended:
            raise _meaning_of(ended) from None
        except (EbbtideError, OSError) as error:
            raise ModelUnavailable(f"the embedder has no worker process: {error}") from None
        except Exception as error:  # A third-party package may raise anything.
            raise BadReply(f"the embedder failed ({type(error).__name__})") from None
        self._failure = ""
        return read_reply(reply, len(texts))


def clean(text: str) -> str:
    """Return the beginning of a text without control characters and lone surrogates.

    The library reads a text up to the first NUL, and takes neither lone surrogates nor endless texts.
    """
    return _CONTROL.sub(" ", text[:MAX_CHARS]).encode("utf-8", "replace").decode("utf-8")


def read_reply(reply: Any, text_count: int) -> list[Vector]:
    """Return the vectors of a reply, normalised to length 1. Raise BadReply if they are unusable."""
    dimension, content = reply
    if dimension != DIMENSION or len(content) != 4 * DIMENSION * text_count:
        raise BadReply(
            f"the embedder returned {len(content)} bytes of vectors with {dimension} dimensions; "
            f"expected: {text_count} vectors with {DIMENSION} dimensions"
        )
    matrix = np.frombuffer(content, dtype=np.float32).reshape(text_count, DIMENSION).astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise BadReply("the embedder returned a vector that is zero or not finite")
    return [(row / length).astype(np.float32) for row, length in zip(matrix, lengths, strict=True)]


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of texts that contain a word, in batches."""
    batch: list[int] = []
    chars = 0
    for index, text in enumerate(texts):
        if not has_word(text):
            continue
        if batch and (len(batch) == BATCH_TEXTS or chars + len(text) > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(index)
        chars += len(text)
    if batch:
        yield batch


def _meaning_of(ended: WorkerEnded) -> Exception:
    if ended.was_killed:
        return ModelUnavailable("the worker process of the embedder was killed, perhaps for lack of memory")
    return BadReply("the embedder did not finish in time" if ended.is_late else "the embedder crashed")
