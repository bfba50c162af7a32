"""Make the configured embedder. Each kind is imported only if the settings name it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from ebbtide.language.embedding import Embedder, embedder_kind

if TYPE_CHECKING:
    from ebbtide.settings import EmbeddingSettings, LanguageSettings


def make_embedder(
    embedding: EmbeddingSettings,
    language: LanguageSettings,
    pool: Executor,
    yield_to_requests: Callable[[], None],
) -> Embedder | None:
    """Return the configured embedder, or None. It uses the circuit breaker settings of `language`.

    An embedder inside the daemon runs on `pool` and calls `yield_to_requests` between small steps. No model is loaded
    and no request is sent before the first text.
    """
    kind = embedder_kind(embedding)
    if kind == "off":
        return None
    if kind == "multilingual":
        from ebbtide.language.multilingual.embedder import MultilingualEmbedder

        return MultilingualEmbedder(embedding.timeout_ms / 1000)
    if kind == "builtin":
        from ebbtide.language.builtin.static_embedder import StaticEmbedder

        return StaticEmbedder(pool, yield_to_requests)

    from ebbtide.language.served.embedder import served_embedder

    return served_embedder(embedding, language, pool)
