"""Embedders on a server: Ollama's `/api/embed` and OpenAI's `/v1/embeddings`.

Texts are cut by our own token estimate before they are sent, because servers truncate silently, reject, or fail. A
reply must contain one vector for each text, of one size, with finite numbers and a length above 0. A new size is
accepted if a second reply confirms it, since another model may be behind the same name. If a server rejects the number
or the length of the texts, later requests use fewer or shorter ones. Requests ask for few vectors, because responses
are parsed on the event loop. Response bodies of errors are never quoted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ebbtide.language.builtin.scripts import cluster_cut, has_word
from ebbtide.language.embedding import MAX_DIMENSIONS, PROBE
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.breaker import BreakerPolicy
from ebbtide.language.served.client import OllamaClient, OpenAIClient, ServerClient
from ebbtide.language.served.connection import RequestRejected, ServerError
from ebbtide.language.served.server import DEFAULT_URLS
from ebbtide.language.tokens import estimate
from ebbtide.settings import EmbeddingSettings, LanguageSettings

Vector = NDArray[np.float32]

MAX_TEXTS = 64
"""Texts in one request."""

FIRST_TEXTS = 8
"""Texts in a request while the size of a vector is unknown."""

ANSWER_BYTES = 512 * 1024
BYTES_PER_NUMBER = 24
"""Limit of a response, which is parsed on the event loop, and the worst case of a number in JSON."""

MAX_TOKENS = 480
"""Estimated tokens of a text. Many models, and llama.cpp by default, accept 512."""

MIN_TOKENS = 60
"""If a server rejects so few tokens as too long, the text is not the reason."""

_PASSAGES = "Represent this sentence for searching relevant passages: "
PREFIXES: tuple[tuple[str, str, str], ...] = (
    (r"nomic-embed-text", "search_document: ", "search_query: "),
    (r"embeddinggemma", "title: none | text: ", "task: search result | query: "),
    (r"qwen3-embedding", "", "Instruct: Given a question, retrieve memories that answer it\nQuery: "),
    (r"\be5-(?!.{0,300}instruct)", "passage: ", "query: "),
    (r"snowflake-arctic-embed2|arctic-embed-\w-v2", "", "query: "),
    (r"mxbai-embed|arctic-embed|bge-(?:small|base|large)-en", "", _PASSAGES),
    (r"bge-(?:small|base|large)-zh", "", "为这个句子生成表示以用于检索相关文章："),
)
"""Models by name, with the prefixes for texts and for queries that they were trained with."""

_PREFIXES = [(re.compile(pattern, re.IGNORECASE), text, query) for pattern, text, query in PREFIXES]

_TOO_LONG = re.compile(
    r"too (?:long|large)|context|\btokens\b|maximum.{0,200}length", re.IGNORECASE | re.DOTALL
)
_TOO_MANY = re.compile(r"batch|too many", re.IGNORECASE)
_NO_EMBEDDINGS = re.compile(r"support.{0,20}embedding", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """Settings of an embedding server, except its kind."""

    base_url: str
    name: str
    api_key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    dimensions: int = 0
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)


class TooLong(Exception):
    """The server rejected a text for its length."""


class TooMany(Exception):
    """The server rejected the number of texts."""


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


_Numbers = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]


class ServedEmbedder(ServerClient):
    """A client of one embedding model on one server, behind a circuit breaker."""

    path = ""
    _has_answered = False

    def __init__(self, options: EmbeddingOptions, pool: Executor) -> None:
        """Use the server of `options`. Large replies are read on `pool`."""
        super().__init__(
            options.name,
            options.base_url,
            options.breaker,
            timeout_s=options.timeout_s,
            api_key=options.api_key,
            connections=8,
        )
        self.options = options
        size = f"@{options.dimensions}" if options.dimensions else ""
        self.model = f"{self.kind}:{options.name}{size}"
        self.dimension: int | None = options.dimensions or None
        self._pool = pool
        self._prefixes = prefixes_of(options.name)
        self._most_texts = MAX_TEXTS
        self._most_tokens = MAX_TOKENS

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options!r})"

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector | None]:
        """Return the server's vector for each text, normalised to length 1, or None for a text without a word."""
        prefix = self._prefixes[is_query]
        worded = [index for index, text in enumerate(texts) if has_word(text)]
        found: list[Vector | None] = [None] * len(texts)
        while worded:
            some, worded = worded[: self._batch_size()], worded[self._batch_size() :]
            vectors = await self._vectors([prefix + texts[index] for index in some])
            for index, vector in zip(some, vectors, strict=True):
                found[index] = vector
        if len({len(vector) for vector in found if vector is not None}) > 1:
            raise self._of_two_sizes()
        return found

    # --- specific to each kind of server --------------------------------------------------------------

    def _request(self, texts: Sequence[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.options.name, "input": list(texts)}
        return {**request, "dimensions": self.options.dimensions} if self.options.dimensions else request

    def _rows(self, reply: dict[str, Any]) -> list[list[float]]:
        """Return the vectors of a reply in the order of the texts. Raise ValidationError or BadReply."""
        raise NotImplementedError

    # --- common to all kinds of servers ----------------------------------------------------------------

    def _batch_size(self) -> int:
        """Return how many texts go into one request."""
        if self.dimension is None:
            return min(FIRST_TEXTS, self._most_texts)
        return max(1, min(self._most_texts, ANSWER_BYTES // (self.dimension * BYTES_PER_NUMBER)))

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of some texts, with fewer or shorter texts if the server requires that."""
        most_tokens = self._most_tokens
        fitting = [cut_to(text, most_tokens) for text in texts]
        try:
            with self.breaker.passing():
                reply = await self._ask(fitting)
        except TooMany:
            half = len(texts) // 2
            if half == 0:
                raise BadReply("the server rejected a single text as too many") from None
            self._most_texts = min(self._most_texts, half)
            return await self._vectors(texts[:half]) + await self._vectors(texts[half:])
        except TooLong:
            if most_tokens <= MIN_TOKENS:
                raise BadReply("the server rejected a short text as too long") from None
            self._most_tokens = min(self._most_tokens, max(MIN_TOKENS, most_tokens // 2))
            return await self._vectors(texts)
        work = partial(self._read, reply, len(texts))
        rows, dimension = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        if self.dimension not in (None, dimension):
            await self._confirm(dimension)
        self.dimension, self._has_answered = dimension, True
        return rows

    async def _confirm(self, dimension: int) -> None:
        """Verify that the server has changed its vector size, since then everything is embedded again."""
        if self.options.dimensions:
            raise BadReply(f"the vector has {dimension} dimensions; expected {self.options.dimensions}")
        try:
            with self.breaker.passing():
                reply = await self._post([PROBE])
            work = partial(self._read, reply, 1)
            _, now = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except (BadReply, TooLong, TooMany):
            now = 0
        if now != dimension:
            raise self._of_two_sizes()

    async def _ask(self, texts: Sequence[str]) -> dict[str, Any]:
        try:
            return await self._post(texts)
        except ServerError:
            # Some servers always fail at certain texts. If the probe works and these texts fail again, the texts
            # are the reason.
            await self._post([PROBE])
        try:
            return await self._post(texts)
        except ServerError:
            raise BadReply("the server fails at these texts only") from None

    async def _post(self, texts: Sequence[str]) -> dict[str, Any]:
        try:
            return await self._http.post(self.path, self._request(texts))
        except RequestRejected as rejection:
            raise self._meaning(rejection, len(texts)) from None

    def _meaning(self, rejection: RequestRejected, text_count: int) -> Exception:
        """Return the error that a rejection means: about the server, the model, the request or the texts."""
        if rejection.status == 404:
            is_model = "model" in rejection.body.lower()
            return self._missing() if is_model else self._unexpected_answer(self.path)
        if _NO_EMBEDDINGS.search(rejection.body):
            return ModelUnavailable(
                f"model {self.options.name} on {self._http.base_url} does not support embeddings"
            )
        if rejection.status in (400, 413, 422):
            if _TOO_LONG.search(rejection.body):
                return TooLong()
            if text_count > 1 and (rejection.status == 413 or _TOO_MANY.search(rejection.body)):
                return TooMany()
            if rejection.status == 413:
                return TooLong()
        return BadReply(f"the server rejected the texts (HTTP {rejection.status})")

    def _read(self, reply: dict[str, Any], text_count: int) -> tuple[list[Vector], int]:
        """Return the vectors of a reply, normalised to length 1, and their size. Runs on the pool."""
        try:
            rows = self._rows(reply)
        except ValidationError:
            raise BadReply("the reply must contain vectors of finite numbers") from None
        if len(rows) != text_count:
            raise BadReply(f"the reply has {len(rows)} vectors for {text_count} texts")
        if len({len(row) for row in rows}) != 1:
            raise BadReply("the vectors have different sizes")
        if len(rows[0]) > MAX_DIMENSIONS:
            raise BadReply(f"the vectors have {len(rows[0])} dimensions; the maximum is {MAX_DIMENSIONS}")
        matrix = np.asarray(rows, dtype=np.float64)
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(matrix, axis=1)
        if not np.isfinite(lengths).all():
            raise BadReply("the length of a vector is not finite")
        if not lengths.all():
            # Every text contains a word, so no vector may be zero.
            raise BadReply("a vector is zero")
        return [
            (row / length).astype(np.float32) for row, length in zip(matrix, lengths, strict=True)
        ], matrix.shape[1]

    def _of_two_sizes(self) -> ModelUnavailable:
        name = self.options.name
        return ModelUnavailable(f"model {name} on {self._http.base_url} returns vectors of different sizes")


class _OllamaReply(_Form):
    embeddings: list[_Numbers]


class OllamaEmbedder(ServedEmbedder, OllamaClient):
    """An embedding model on Ollama."""

    path = "/api/embed"

    def _request(self, texts: Sequence[str]) -> dict[str, Any]:
        # Ollama must reject a text that is still too long, not truncate it.
        return {**super()._request(texts), "truncate": False}

    def _rows(self, reply: dict[str, Any]) -> list[list[float]]:
        return _OllamaReply.model_validate(reply).embeddings


class _OpenAIVector(_Form):
    embedding: _Numbers
    index: int


class _OpenAIReply(_Form):
    data: list[_OpenAIVector]


class OpenAIEmbedder(ServedEmbedder, OpenAIClient):
    """An embedding model on a server with OpenAI's interface."""

    path = "/v1/embeddings"
    max_other_names = 1

    def _rows(self, reply: dict[str, Any]) -> list[list[float]]:
        found = sorted(_OpenAIReply.model_validate(reply).data, key=lambda vector: vector.index)
        if [vector.index for vector in found] != list(range(len(found))):
            raise BadReply("the indices of the vectors must be 0 to n - 1")
        return [vector.embedding for vector in found]


KINDS: dict[str, type[ServedEmbedder]] = {"ollama": OllamaEmbedder, "openai": OpenAIEmbedder}


def served_embedder(
    embedding: EmbeddingSettings, language: LanguageSettings, pool: Executor
) -> ServedEmbedder:
    """Return the configured embedder on its server. No request is sent yet."""
    base_url = (embedding.base_url or DEFAULT_URLS[embedding.model]).rstrip("/")
    options = EmbeddingOptions(
        base_url=base_url.removesuffix("/v1" if embedding.model == "openai" else "/api"),
        name=embedding.name,
        api_key=embedding.api_key.get_secret_value(),
        timeout_s=embedding.timeout_ms / 1000,
        dimensions=embedding.dimensions,
        breaker=BreakerPolicy(
            language.breaker_failures, language.breaker_open_ms / 1000, language.breaker_cap_ms / 1000
        ),
    )
    return KINDS[embedding.model](options, pool)


def prefixes_of(name: str) -> tuple[str, str]:
    """Return the prefixes of a model for texts and for queries."""
    found = ((text, query) for pattern, text, query in _PREFIXES if pattern.search(name))
    return next(found, ("", ""))


def cut_to(text: str, most_tokens: int) -> str:
    """Return the beginning of a text with at most so many estimated tokens. No grapheme cluster is split."""
    # Spaces are free in the estimate, but not in a request.
    text = text[: 8 * most_tokens]
    if estimate(text) <= most_tokens:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if estimate(text[:middle]) <= most_tokens else (low, middle)
    return text[: cluster_cut(text, 0, low)]
