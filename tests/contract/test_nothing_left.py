"""After forget, no file and no response contains a word that was stored in every possible place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import Processed, Segment
from ebbtide.telemetry import configure_log
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn
from tests.support.scanning import Traces
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
MARK = "Zyxomarq"
KEPT = "My cat Miso sleeps on the warm windowsill every single afternoon."

TELLING: dict[str, Any] = {
    "messages": [
        {
            "role": "user",
            "content": f"On Monday {MARK}content was told to nobody but me.",
            "speaker": f"{MARK}speaker",
            "id": f"{MARK}id",
            "timestamp": 1_700_000_000_000,
            "metadata": {f"{MARK}field": f"{MARK}value", "deep": f"{MARK}own"},
        }
    ],
    "conversation_id": f"{MARK}conversation",
    "metadata": {"of": f"{MARK}batch"},
    "idempotency_key": f"{MARK}key",
}

SELECTIONS: dict[str, dict[str, Any]] = {
    "nodes": {"nodes": ["n2"]},
    "messages": {"messages": ["m2"]},
    "topic": {"topic": f"{MARK}content"},
    "time_range": {"time_range": {"begin": 1_690_000_000_000, "end": 1_700_000_000_001}},
    "conversations": {"conversations": [f"{MARK}conversation"]},
    "speakers": {"speakers": [f"{MARK}speaker"]},
}

LOOKS = ("", "/nodes", "/links", "/focus", "/batches", "/audit")


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


@pytest.fixture
def verbose_log() -> Iterator[None]:
    """Log everything except content."""
    configure_log("debug", "json")
    yield
    configure_log("error", "json")


def telling_model() -> ScriptedModel:
    """Return a model that includes the word in summaries, keywords and names of links."""
    model = ScriptedModel()

    def processed() -> Processed:
        _, (text, _) = model.log[-1]
        if MARK not in text:
            return Processed(text, "a phrase", ("word",))
        return Processed(text, f"{MARK}phrase", (f"{MARK}keyword",))

    def segmented() -> list[Segment]:
        _, texts = model.log[-1]
        return [Segment(text, (index,)) for index, text in enumerate(texts)]

    model.always["segment"] = segmented
    model.always["process"] = processed

    def named() -> list[str]:
        _, (node, focuses) = model.log[-1]
        return [f"{MARK}link" if MARK in node + focus else "near" for focus in focuses]

    model.always["relate"] = named
    return model


def held_in(data_dir: Path) -> list[str]:
    """Return the files of a data directory, of agents and others, that contain the word verbatim."""
    files = [path for path in data_dir.rglob("*") if path.is_file()]
    return [str(path) for path in files if MARK.encode() in path.read_bytes() or MARK in path.name]


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text, **fields}]}


async def filled(call: Caller) -> None:
    """Store one message to forget between two others."""
    for body in (said(KEPT), TELLING, said("The harbour smells of tar and oranges in the morning.")):
        answer = await call("POST", f"{AGENT}/remember", body)
        assert answer.status_code == 202, answer.json()
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})


def text_of(answer: Any) -> str:
    """Return the text of a response."""
    return str(answer.json())


async def answers(call: Caller) -> dict[str, str]:
    """Return all responses of the daemon about the agent, by request."""
    told = {look: text_of(await call("GET", AGENT + look)) for look in LOOKS}
    if call.transport == "rest":
        told["events"] = (await call("GET", f"{AGENT}/events?follow=false")).text
    else:
        told["events"] = text_of(await call("GET", f"{AGENT}/events", {"follow": False}))
    for number in (1, 2, 3):
        for path in (f"/nodes/n{number}", f"/batches/b{number}"):
            told[path] = str((await call("GET", AGENT + path)).json())
    for name, cue in {
        "living": {"depth": 8},
        "asked": {"query": "What was told on Monday?", "explain": True},
        "keywords": {"keywords": [MARK[:5]], "depth": 8},
    }.items():
        told[name] = str((await call("POST", f"{AGENT}/recall", cue)).json())
    told["search"] = str(
        (await call("POST", f"{AGENT}/search", {"query": "told on Monday", "explain": True})).json()
    )
    told["agents"] = str((await call("GET", "/v1/agents")).json())
    told["export"] = (await call.download(f"{AGENT}/export")).decode()
    return told


@pytest.mark.usefixtures("verbose_log")
@pytest.mark.parametrize("kind", SELECTIONS)
async def test_no_file_no_answer_and_no_log_holds_what_is_forgotten(
    tmp_path: Path, caller_in: CallerIn, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Content, speaker, ids, metadata, conversation, keywords, phrase, relations and idempotency key are deleted."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path, telling_model()) as call:
        await filled(call)
        before = await answers(call)
        assert MARK in before["/nodes"] and f"{MARK}link" in before["/links"] and MARK in before["export"]
    traces = Traces.noted(directory, [MARK])
    assert traces.found_in(directory)
    async with caller_in(tmp_path, telling_model()) as call:
        await answers(call)
        selection = SELECTIONS[kind]
        if "nodes" in selection:
            listed = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
            selection = {"nodes": [node["id"] for node in listed if MARK in node["content"]]}
        gone = (await call("POST", f"{AGENT}/forget", selection)).json()
        assert gone["compacted"] and gone["counts"]["messages"] == 1 and MARK not in str(gone)
        for asked, told in (await answers(call)).items():
            assert MARK not in told, asked
        assert "Miso" in (await answers(call))["living"]
        assert MARK not in (await call.download(f"{AGENT}/export")).decode()
    assert traces.found_in(directory) == []
    assert held_in(tmp_path) == []
    async with caller_in(tmp_path, telling_model()) as call:
        for asked, told in (await answers(call)).items():
            assert MARK not in told, asked
        again = (await call("POST", f"{AGENT}/remember", TELLING)).json()
        assert again["batch_id"] == "b4", "nobody knows the key any more"
    captured = capfd.readouterr()
    assert "agent opened" in captured.err + captured.out
    assert MARK not in captured.err + captured.out
