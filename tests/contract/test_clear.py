"""Clearing an agent: everything that it has stored is removed, and its id and parameters stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.callers import CALLERS, CallerIn
from tests.support.scanning import Traces

AGENT = "/v1/agents/ann"
SECRET = "Heron"
LINES = [f"Project {SECRET} needs {number} carpenters in Porto." for number in range(6)]


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


def files_with(word: str, directory: Path) -> list[Path]:
    """Return the files below a directory that contain the bytes of a word."""
    return [path for path in directory.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def filled(call: object, lines: list[str]) -> None:
    """Let an agent with a parameter of its own remember lines, some of which wait in the inbox."""
    messages = [{"role": "user", "content": line} for line in lines]
    await call("PUT", AGENT, {"focus_limit": 5})  # type: ignore[operator]
    await call("POST", f"{AGENT}/remember", {"messages": messages})  # type: ignore[operator]


async def test_only_the_id_and_the_parameters_stay(tmp_path: Path, caller_in: CallerIn) -> None:
    """All data is removed, ids are not used again, and the audit log has a record."""
    async with caller_in(tmp_path) as call:
        await filled(call, LINES)
        await call("POST", f"{AGENT}/flush", {})
        created_at = (await call("GET", AGENT)).json()["created_at"]
        last = (await call("GET", f"{AGENT}/nodes")).json()["nodes"][-1]["id"]
        cleared = (await call("POST", f"{AGENT}/clear")).json()
        assert cleared == {"agent_id": "ann", "messages": 6, "memories": 6}
        agent = (await call("GET", AGENT)).json()
        assert (agent["created_at"], agent["parameters"]["focus_limit"]) == (created_at, 5)
        assert set(agent["counts"].values()) == {0}
        assert (await call("GET", f"{AGENT}/batches")).json()["batches"] == []
        found = await call("POST", f"{AGENT}/recall", {"query": f"What does {SECRET} need?"})
        assert SECRET not in found.json()["text"]
        records = (await call("GET", f"{AGENT}/audit")).json()["records"]
        assert (
            records[-1]["action"] == "cleared"
            and (await call("POST", f"{AGENT}/audit/verify", {})).json()["intact"]
        )
        stored = await call(
            "POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": "A new boat."}]}
        )
        assert stored.json()["batch_id"] == "b2"
        await call("POST", f"{AGENT}/flush", {})
        (node,) = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert int(node["id"][1:]) > int(last[1:])


async def test_waiting_batches_are_removed_and_missing_agents_refused(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Batches that wait for their digest are removed too. An unknown agent is not created."""
    async with caller_in(tmp_path) as call:
        await filled(call, LINES)
        assert (await call("POST", f"{AGENT}/clear")).json()["messages"] == 6
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 0
        assert await call.refused("POST", "/v1/agents/nobody/clear") == "AGENT_NOT_FOUND"
        listed = (await call("GET", "/v1/agents")).json()["agents"]
        assert [one["agent_id"] for one in listed] == ["ann"]


async def test_no_file_contains_what_was_cleared(tmp_path: Path, caller_in: CallerIn) -> None:
    """No plain bytes, compressed frames, keys or decoded values contain it, also after a restart."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await filled(call, LINES)
        await call("POST", f"{AGENT}/flush", {})
    traces = Traces.noted(directory, (SECRET, "carpenters"))
    assert traces.found_in(directory)
    async with caller_in(tmp_path) as call:
        await call("POST", f"{AGENT}/clear")
    assert not traces.found_in(directory)
    async with caller_in(tmp_path) as call:
        assert (await call("GET", AGENT)).json()["counts"]["nodes"] == 0
    assert files_with(SECRET, tmp_path) == []
