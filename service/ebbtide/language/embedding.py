"""The embedding port: what recall asks of a model that turns texts into vectors, and who may be behind it.

The rules guarded here: vectors of two models are never compared, so every embedder has one name that is stamped
on what it makes; and a model that has nothing to say about a text says so (None) instead of inventing a vector.
It fails in the two ways of the language port and no other: ModelUnavailable says nothing about the texts, BadReply
says that these texts and this model do not get along. Having no embedder at all is no failure: recall goes on by
its other signals.

Deliberately not here: indexes, retries, and any import of a model. What is not used is not loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from ebbtide.language.port import BadReply, ModelState, ModelUnavailable
from ebbtide.telemetry import span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ebbtide.settings import EmbeddingSettings


MAX_DIMENSIONS = 8192
"""Most numbers in a vector, more than models have: every message takes two bytes for each."""

PROBE = "memory"
"""A text that every model can take: one that fails over this fails over anything."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def model(self) -> str:
        """The name stamped on vectors, such as `builtin:wordllama-256`."""

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; None until that is known."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False
    ) -> list[NDArray[np.float32] | None]:
        """Answer one vector for each text, or None where this model has nothing to say about it.

        `is_query` tells that the texts are questions to be held against others. ModelUnavailable or BadReply.
        """

    async def state(self) -> ModelState:
        """Tell who answers and whether it does, without asking for a vector."""

    async def close(self) -> None:
        """Let go of connections. Idempotent."""


async def vector_of(
    embedder: Embedder | None, query: str, timeout_s: float
) -> tuple[NDArray[np.float32] | None, str]:
    """What a question means to an embedder; else None, and why: a question never waits long, nor fails, for this."""
    if embedder is None:
        return None, "no embedder"
    try:
        async with asyncio.timeout(timeout_s):
            with span("embedding", texts=1):
                vector = (await embedder.embed([query], is_query=True))[0]
    except TimeoutError:
        return None, "the embedder did not answer in time"
    except ModelUnavailable as error:
        return None, f"no embedder answers: {error}"
    except BadReply as error:
        return None, f"the embedder cannot take this query: {error}"
    return vector, "" if vector is not None else "the embedder does not know this language"


def has_builtin() -> bool:
    """Tell whether the extra that brings the built-in embedder is installed, without loading it."""
    return find_spec("wordllama") is not None


BUILTIN_NAME = "wordllama-256"


def embedder_name(embedding: EmbeddingSettings) -> str | None:
    """The name that vectors are stamped with under these settings, as `Embedder.model` has it; None without any."""
    kind = embedding.model
    if kind == "off" or (kind == "auto" and not has_builtin()):
        return None
    if kind in ("auto", "builtin"):
        return f"builtin:{BUILTIN_NAME}"
    size = f"@{embedding.dimensions}" if embedding.dimensions else ""
    return f"{kind}:{embedding.name}{size}"
