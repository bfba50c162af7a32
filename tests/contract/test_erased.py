"""The log of erased agents over every transport: agents, callers, verification, and proofs of texts."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.store.audit.erased_agents import LOG
from ebbtide.verbs import erased as verb
from tests.support.callers import MOSTLY_REST, Caller, CallerIn
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL

SAID = "My sister Clara is a carpenter."
WHERE = "我外婆住在青岛。"


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(ALL_CALLERS[request.param], embedding={"model": "off"})


async def lived(call: Caller, agent: str, *contents: str) -> dict[str, Any]:
    """Create an agent, store a message, erase the agent, and return the response of the erasure."""
    messages = [{"role": "user", "content": one} for one in contents]
    if messages:
        body = {"messages": messages}
        assert (await call("POST", f"/v1/agents/{agent}/remember", body)).status_code == 202
        await call("POST", f"/v1/agents/{agent}/flush", {"timeout_ms": 20_000})
    else:
        await call("PUT", f"/v1/agents/{agent}")
    answer: dict[str, Any] = (await call("DELETE", f"/v1/agents/{agent}")).json()
    return answer


async def listed(call: Caller, **params: Any) -> list[dict[str, Any]]:
    """Return every record, page by page."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = await call("GET", "/v1/erased-agents", params={**params, "page_token": token})
        assert answer.status_code == 200, answer.json()
        page = answer.json()
        found += page["records"]
        token = page["next_page_token"]
        if not token:
            return found


async def verified(call: Caller, *texts: str, **fields: Any) -> dict[str, Any]:
    """Return the result of a verification."""
    answer = await call("POST", "/v1/erased-agents/verify", {"texts": list(texts), **fields})
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


async def test_erased_agents_are_recorded(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each erased agent has one record with its id, counts and the hash that the erasure returned, without content."""
    async with caller_in(tmp_path) as call:
        assert await listed(call) == []
        assert await verified(call) == {
            "intact": True,
            "records": 0,
            "record_hash": "",
            "broken_record": 0,
            "problem": "",
            "texts": [],
        }
        told = [
            await lived(call, "ann", SAID, "The harbour smells of tar."),
            await lived(call, "林月", WHERE),
        ]
    async with caller_in(tmp_path) as call:
        found = await listed(call)
        assert [one["agent_id"] for one in found] == ["ann", "林月"]
        assert [one["record_hash"] for one in found] == [one["record_hash"] for one in told]
        assert [one["number"] for one in found] == [one["record_number"] for one in told] == [1, 2]
        assert {(one["actor"], one["action"]) for one in found} == {("-", "agent_erased")}
        assert found[0]["details"]["messages"] == 2 and found[0]["proof_count"] >= 2 and found[0]["at"] > 0
        assert found[1]["previous_hash"] == found[0]["record_hash"]
        for one in found:
            assert hashlib.sha256(one["line"].encode()).hexdigest() == one["record_hash"]
            assert json.loads(one["line"])["proof_count"] == one["proof_count"]
        assert not any(word in str(found) for word in ("Clara", "harbour", "青岛"))
        whole = await verified(call)
        assert (whole["intact"], whole["records"], whole["record_hash"]) == (True, 2, told[1]["record_hash"])


async def test_the_log_comes_in_pages(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages together are the log, also for one of many agents, with read blocks of any size."""
    async with caller_in(tmp_path) as call:
        for number in range(7):
            await lived(call, "ann" if number % 3 == 0 else f"bob{number}")
        whole = await listed(call)
        assert [one["number"] for one in whole] == list(range(1, 8))
        for pieces in (1000, 1, 2):
            monkeypatch.setattr(verb, "READ_AT_ONCE", pieces)
            for size in (1, 2, 3, 7, 8):
                assert await listed(call, page_size=size) == whole
                ann = await listed(call, page_size=size, agent_id="ann")
                assert [one["number"] for one in ann] == [1, 4, 7]
        assert await listed(call, agent_id="nobody") == []
        first = (await call("GET", "/v1/erased-agents", params={"page_size": 3})).json()
        assert len(first["records"]) == 3 and first["next_page_token"]
        whole_page = (await call("GET", "/v1/erased-agents", params={"page_size": 7})).json()
        assert whole_page["next_page_token"] == ""
        for params in ({"page_size": 0}, {"page_token": "x"}, {"page_token": "ZXJhc2VkOjEtLTI"}):
            assert await call.refused("GET", "/v1/erased-agents", params=params) == "INVALID_PAGE"
        assert (
            await call.refused("GET", "/v1/erased-agents", params={"agent_id": "a/b"}) == "INVALID_AGENT_ID"
        )


async def test_the_erasure_of_an_agents_text_can_be_proved(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first record that proves the erasure of a text is named, among all agents or for one."""
    async with caller_in(tmp_path) as call:
        await lived(call, "ann", SAID)
        await lived(call, "bob", SAID, WHERE)
        for at_once in (verb.HASHED_AT_ONCE, 1):
            monkeypatch.setattr(verb, "HASHED_AT_ONCE", at_once)
            found = await verified(call, f"  {SAID}\n", WHERE, "The harbour smells of tar.", "")
            assert [one["record"] for one in found["texts"]] == [1, 2, 0, 0]
            assert [one["erased"] for one in found["texts"]] == [True, True, False, False]
            of_bob = await verified(call, SAID, WHERE, agent_id="bob")
            assert [one["record"] for one in of_bob["texts"]] == [2, 2]
            of_ann = await verified(call, SAID, WHERE, agent_id="ann")
            assert [one["record"] for one in of_ann["texts"]] == [1, 0]
            assert of_ann["intact"] and of_ann["records"] == 2
            assert not (await verified(call, SAID, agent_id="nobody"))["texts"][0]["erased"]
        assert (
            await call.refused("POST", "/v1/erased-agents/verify", {"texts": ["x"] * 101}) == "TOO_MANY_ITEMS"
        )
        long = {"texts": ["x" * 100_001]}
        assert await call.refused("POST", "/v1/erased-agents/verify", long) == "TEXT_TOO_LONG"
        odd = {"agent_id": ".."}
        assert await call.refused("POST", "/v1/erased-agents/verify", odd) == "INVALID_AGENT_ID"


async def test_damage_of_the_log_is_located(tmp_path: Path, caller_in: CallerIn) -> None:
    """A changed record, an unreadable one, and missing proofs each break the chain at their position."""
    async with caller_in(tmp_path) as call:
        for agent in ("ann", "bob", "eve"):
            await lived(call, agent, SAID)
        path = tmp_path / "audit" / LOG
        content = path.read_bytes()
        lines = content.splitlines(keepends=True)
        for changed, broken in (
            (content.replace(b'agent_id\\":\\"bob', b'agent_id\\":\\"rob'), 2),
            (lines[0] + b"nonsense\n" + lines[2], 2),
            (lines[0] + lines[2], 2),
            (b"".join(lines[1:]), 1),
        ):
            assert changed != content
            path.write_bytes(changed)
            found = await verified(call, SAID)
            assert (found["intact"], found["broken_record"], found["records"]) == (False, broken, broken - 1)
            assert found["problem"] and found["texts"][0]["erased"] == (broken > 1)
            assert len(await listed(call, page_size=1)) == changed.count(b"\n")
        path.write_bytes(content + b'{"text": "half a li')
        assert (await verified(call))["intact"] and len(await listed(call)) == 3
        (tmp_path / "audit" / "3.proofs").unlink()
        found = await verified(call, SAID)
        assert (found["broken_record"], found["texts"][0]["record"]) == (3, 1)
        assert (await listed(call))[2]["proof_count"] > 0
