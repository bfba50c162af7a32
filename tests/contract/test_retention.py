"""Retention over every transport: texts expire, and memories remain and are found."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn

AGENT = "/v1/agents/ann"
SAID = "My sister Clara is a carpenter and builds boats in the old harbour."


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def said(call: Caller, text: str = SAID) -> None:
    messages = [{"role": "user", "speaker": "Bob", "content": text, "id": "m1"}]
    assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
    assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})).status_code == 200


async def cited(call: Caller) -> dict[str, Any]:
    """Return the only memory about boats, with its citation."""
    answer = (await call("POST", f"{AGENT}/recall", {"query": "boats", "citations": True})).json()
    [memory] = answer["memories"]
    found: dict[str, Any] = memory
    return found


async def until_unquoted(call: Caller) -> None:
    for _ in range(1000):
        if not (await cited(call))["sources"][0]["quote"]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the text is still quoted")


async def test_with_none_nothing_is_quoted(tmp_path: Path, caller_in: CallerIn) -> None:
    """With `none` a digested text cannot be quoted. The memory is found; its source has the speaker and the time."""
    async with caller_in(tmp_path) as call:
        created = await call("PUT", AGENT, {"retention": "none"})
        assert created.json()["parameters"]["retention"] == "none"
        await said(call)
        memory = await cited(call)
        [source] = memory["sources"]
        assert (memory["content"], memory["state"]) == (SAID, "living")
        assert (source["message_id"], source["speaker"], source["length"]) == ("m1", "Bob", len(SAID))
        assert (source["quote"], source["chunk_id"]) == ("", "")


async def test_a_lower_retention_removes_existing_texts(tmp_path: Path, caller_in: CallerIn) -> None:
    """A change to none withdraws earlier texts in the background, and a restart does not restore them."""
    async with caller_in(tmp_path) as call:
        await said(call)
        assert (await cited(call))["sources"][0]["quote"] == SAID
        assert (await call("PATCH", AGENT, {"retention": "days:1"})).status_code == 200
        assert (await cited(call))["sources"][0]["quote"] == SAID
        assert (await call("PATCH", AGENT, {"retention": "none"})).status_code == 200
        await until_unquoted(call)
        before = await cited(call)
    async with caller_in(tmp_path) as call:
        assert (await call("PATCH", AGENT, {"retention": None})).json()["parameters"]["retention"] == "keep"
        assert await cited(call) == before


async def test_texts_that_expired_while_closed_are_removed_at_opening(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A daemon with another default applies it to existing texts."""
    async with caller_in(tmp_path) as call:
        await said(call)
    async with caller_in(tmp_path, memory={"retention": "none"}) as call:
        await until_unquoted(call)


@pytest.mark.parametrize("bad", ["", "forever", "days", "days:0", "days:1.5", "days:99999", "None"])
async def test_an_invalid_retention_is_refused(tmp_path: Path, caller_in: CallerIn, bad: str) -> None:
    """The error names the parameter, the value and the allowed values; the agent keeps its setting."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"retention": "days:7"})
        answer = await call("PATCH", AGENT, {"retention": bad})
        error = answer.json()["error"]
        assert (answer.status_code, error["reason"]) == (400, "INVALID_VALUE")
        assert error["message"].startswith(f"retention: '{bad}' is not allowed; allowed: keep, none, days:N")
        assert (await call("GET", AGENT)).json()["parameters"]["retention"] == "days:7"


def without_note(content: str) -> str:
    """Return the content of a memory without the note on its validity."""
    return content.partition(" (")[0].partition("（")[0]


async def test_removed_texts_are_recalled_as_their_memories_say(tmp_path: Path, caller_in: CallerIn) -> None:
    """With extraction, a recall has each memory once; statements do not repeat its words."""
    batches = [
        ["My sister Clara lives in Porto. I am allergic to peanuts.", "I work at Acme as a nurse."],
        ["I no longer work at Acme. I now work at Bosch.", "我每天吃阿司匹林。我妹妹叫小芳。"],
        ["Actually I moved to Berlin because I work at Bosch."],
    ]
    async with caller_in(tmp_path, embedding={"model": "off"}) as call:
        await call("PUT", AGENT, {"retention": "none", "extraction": "rules"})
        for batch in batches:
            messages = [{"role": "user", "speaker": "Ann", "content": text} for text in batch]
            await call("POST", f"{AGENT}/remember", {"messages": messages})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "extraction": True})
        statements = (await call("GET", f"{AGENT}/statements")).json()["statements"]
        assert {"Berlin", "Bosch", "peanuts"} <= {one["object"] for one in statements}
        texts = {text for batch in batches for text in batch}
        for query in ("Where does Clara live?", "Where do I work?", "我吃什么药？"):
            found = (await call("POST", f"{AGENT}/search", {"query": query})).json()["memories"]
            assert found and {without_note(one["content"]) for one in found} <= texts, query
            recalled = (await call("POST", f"{AGENT}/recall", {"query": query})).json()["text"]
            assert all(recalled.count(one["content"]) == 1 for one in found), recalled
            assert all(recalled.count(text.rstrip(".")[:12]) <= 1 for text in texts), recalled
            assert "then Acme" not in recalled
