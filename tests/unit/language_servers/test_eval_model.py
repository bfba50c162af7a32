"""The evaluation kit runs, and the built-in model reproduces the golden file."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.eval_model import evaluate, load_samples, show
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Utterance
from ebbtide.language.served.chat import ServerOptions
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.ollama import OllamaChat
from tests.support.fake_ollama import FakeOllama

GOLDEN = Path(__file__).parents[2] / "golden" / "builtin_model.json"
"""To regenerate it, delete it and run this test; check the difference before you commit it."""


async def told_by_builtin() -> list[dict[str, Any]]:
    """Return the results of the built-in model for the samples."""
    found = []
    with ThreadPoolExecutor(1) as pool:
        model = BuiltinModel(pool)
        for sample in load_samples():
            said = [Utterance(m["role"], m.get("speaker", ""), m["content"]) for m in sample["messages"]]
            segments = await model.segment(said, max_chars=200)
            texts = [segment.text for segment in segments]
            processed = [await model.process(text, target_length=len(text) // 2) for text in texts]
            found.append({"segments": texts, "halves": [asdict(p) for p in processed]})
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


async def test_builtin_model_does_what_it_did() -> None:
    """Segments and shortenings of the samples equal the golden file exactly."""
    told = await told_by_builtin()
    if not GOLDEN.exists():
        GOLDEN.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        raise AssertionError("the golden file has been made; look at it")
    assert told == json.loads(GOLDEN.read_text(encoding="utf-8"))


async def test_kit_scores_a_model_on_a_server() -> None:
    """The kit prints the scores of the built-in model and of a server side by side."""
    samples = load_samples()[:2]
    with ThreadPoolExecutor(1) as pool:
        builtin = await evaluate(BuiltinModel(pool), "builtin", samples)
    async with FakeOllama().running_here() as server:
        model = ServedModel(OllamaChat(ServerOptions(server.url, "qwen2.5:7b")))
        served = await evaluate(model, "qwen2.5:7b", samples)
        await model.close()
    assert served.parse_rates == {"segment": 1.0, "process": 1.0, "relate": 1.0}
    assert served.length_kept == served.shortened == builtin.shortened > 0
    assert 0 < served.facts_kept <= served.facts
    assert served.tokens > 0
    table = show([builtin, served])
    for line in ("replies that parse", "target length kept", "facts kept at 50 %", "seconds a segment"):
        assert line in table
