"""Messages over every transport: listed as they were stored, and filtered by metadata, as memories are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.verbs import inspect, messages
from tests.support.callers import MOSTLY_REST, Caller, CallerIn
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL

AGENT = "/v1/agents/ann"
SAID = [
    {"role": "user", "speaker": "Ann", "content": "Bruno plans the voyage to Porto.", "id": "own-1"},
    {"role": "assistant", "content": "The voyage takes five days.", "metadata": {"topic": "boats"}},
    {"role": "user", "content": "The kitchen needs new tiles.", "metadata": {"floor": 1, "sunny": True}},
    {"role": "user", "content": "我外婆住在青岛。", "timestamp": 1763700000000, "metadata": {"floor": 2}},
]


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(ALL_CALLERS[request.param], embedding={"model": "off"})


async def stored(call: Caller, said: list[dict[str, Any]] = SAID, **fields: Any) -> None:
    """Let the agent remember messages, and wait for their digest."""
    body = {"messages": said, "metadata": {"topic": "home"}, "conversation_id": "c1", **fields}
    answer = await call("POST", f"{AGENT}/remember", body)
    assert answer.status_code == 202, answer.json()
    await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})


async def listed(call: Caller, field: str, metadata: Any = None, **options: Any) -> list[dict[str, Any]]:
    """Return the items of every page of a listing."""
    found: list[dict[str, Any]] = []
    params = {**options, **({} if metadata is None else {"metadata": json.dumps(metadata)})}
    while True:
        answer = await call("GET", f"{AGENT}/{field}", params=params)
        assert answer.status_code == 200, answer.json()
        found += answer.json()[field]
        params["page_token"] = answer.json()["next_page_token"]
        if not params["page_token"]:
            return found


FILTERS: list[tuple[Any, list[int]]] = [
    (None, [1, 2, 3, 4]),
    ({}, [1, 2, 3, 4]),
    ({"topic": "home"}, [1, 3, 4]),
    ({"topic": "boats"}, [2]),
    ({"topic": "home", "floor": 1}, [3]),
    ({"floor": 1.0}, [3]),
    ({"floor": True}, []),
    ({"sunny": True}, [3]),
    ({"sunny": 1}, []),
    ({"topic": "sea"}, []),
    ({"unknown": "home"}, []),
]


async def test_a_message_is_listed_as_it_was_stored(tmp_path: Path, caller_in: CallerIn) -> None:
    """Its ids, speaker, times, text, and its metadata over that of its batch."""
    async with caller_in(tmp_path) as call:
        await stored(call)
        first, second, _, last = await listed(call, "messages")
        assert (first["id"], first["message_id"], first["batch_id"]) == ("m1", "own-1", "b1")
        assert (first["role"], first["speaker"], first["content"]) == ("user", "Ann", SAID[0]["content"])
        assert (first["conversation_id"], first["metadata"]) == ("c1", {"topic": "home"})
        assert first["timestamp"] is None and first["accepted_at"] > 0
        assert (second["role"], second["metadata"]) == ("assistant", {"topic": "boats"})
        assert (last["timestamp"], last["message_index"]) == (1763700000000, 3)


async def test_listings_are_filtered_by_metadata(tmp_path: Path, caller_in: CallerIn) -> None:
    """The filter is that of queries, for messages and for their memories, and loses nothing over pages."""
    async with caller_in(tmp_path) as call:
        await stored(call)
        for metadata, expected in FILTERS:
            for size in (1, 100):
                found = await listed(call, "messages", metadata, page_size=size)
                assert [one["id"] for one in found] == [f"m{number}" for number in expected], metadata
                nodes = await listed(call, "nodes", metadata, page_size=size)
                places = {source["message_index"] + 1 for node in nodes for source in node["sources"]}
                assert places == set(expected), metadata
        assert await listed(call, "nodes", {"topic": "home"}, kinds="entity") == []


async def test_a_filtered_page_is_bounded(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page looks at a bounded number of messages; the listing continues after it, and ends."""
    monkeypatch.setattr(messages, "MAX_LOOKED_AT", 2)
    monkeypatch.setattr(inspect, "MAX_LOOKED_AT", 2)
    async with caller_in(tmp_path) as call:
        await stored(call)
        for field in ("messages", "nodes"):
            params = {"metadata": json.dumps({"floor": 2})}
            page = (await call("GET", f"{AGENT}/{field}", params=params)).json()
            assert page[field] == [] and page["next_page_token"]
            (found,) = await listed(call, field, {"floor": 2})
            assert found["content"] == "我外婆住在青岛。"


async def test_a_page_has_a_bounded_text(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page ends with the message that reaches the limit, so one of any length is returned."""
    monkeypatch.setattr(messages, "MAX_PAGE_CHARS", 50)
    async with caller_in(tmp_path) as call:
        await stored(call)
        pages = []
        token = ""
        while True:
            page = (await call("GET", f"{AGENT}/messages", params={"page_token": token})).json()
            pages.append([one["id"] for one in page["messages"]])
            token = page["next_page_token"]
            if not token:
                break
        assert pages == [["m1", "m2"], ["m3", "m4"]]


async def test_deleted_and_withdrawn_messages(tmp_path: Path, caller_in: CallerIn) -> None:
    """An erased message is not listed; one whose text retention removed has no content."""
    async with caller_in(tmp_path) as call:
        await stored(call)
        await call("POST", f"{AGENT}/forget", {"messages": ["m2"]})
        assert [one["id"] for one in await listed(call, "messages")] == ["m1", "m3", "m4"]
        await call("PATCH", AGENT, {"retention": "none"})
        await stored(call, [{"role": "user", "content": "Clara builds boats in Porto."}])
        last = (await listed(call, "messages"))[-1]
        assert last["content"] is None and last["metadata"] == {"topic": "home"}


async def test_the_filter_is_redacted_as_the_messages_are(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under the policy `redact` a filter with personal data finds what was stored with it."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        await stored(call, metadata={"from": "ann@example.org"})
        found = await listed(call, "messages", {"from": "ann@example.org"})
        assert {one["metadata"]["from"] for one in found} == {"[email]"}


async def test_what_a_listing_refuses(tmp_path: Path, caller_in: CallerIn) -> None:
    """Unknown agents, foreign tokens, and filters that are no flat object."""
    async with caller_in(tmp_path) as call:
        await stored(call)
        for field in ("messages", "nodes"):
            path = f"{AGENT}/{field}"
            assert await call.refused("GET", f"/v1/agents/nobody/{field}") == "AGENT_NOT_FOUND"
            assert await call.refused("GET", path, params={"page_token": "x"}) == "INVALID_PAGE"
            for metadata, reason in (
                ({"a": {"b": 1}}, "WRONG_TYPE"),
                ({"a": "x" * 5000}, "METADATA_TOO_LARGE"),
            ):
                params = {"metadata": json.dumps(metadata)}
                assert await call.refused("GET", path, params=params) == reason
            if call.transport == "rest":
                for text in ("topic", "[]", "3", "{"):
                    assert await call.refused("GET", path, params={"metadata": text}) == "WRONG_TYPE"
