"""Memories that are there, over every transport: deleted with everything they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import Segment
from ebbtide.store import layout
from ebbtide.store.lmdb_store import LmdbStore
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
MAP = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
SENTENCES = {"segment_max_chars": 80}
"""Makes a memory of every sentence below."""

TOLD = (
    "I moved to Lisbon in the spring of last year, together with my cat Miso. "
    "My sister Clara is a carpenter and she builds wooden boats in Porto. "
    "我外婆住在青岛，她每天早上都要去海边散步。"
)


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def settled(call: Caller, *contents: str, **fields: Any) -> None:
    messages = [{"role": "user", "speaker": "Ann", "content": content} for content in contents]
    answer = await call("POST", f"{AGENT}/remember", {"messages": messages, **fields})
    assert answer.status_code == 202, answer.json()
    assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "passes": True})).json()[
        "passes_done"
    ]


async def nodes(call: Caller) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]}


async def saying(call: Caller, word: str) -> str:
    """The only memory that says a word."""
    [found] = [name for name, node in (await nodes(call)).items() if word in node["content"]]
    return found


async def answered(call: Caller, query: str, **fields: Any) -> list[dict[str, Any]]:
    answer = await call("POST", f"{AGENT}/recall", {"query": query, "citations": True, **fields})
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["memories"]
    return found


def texts_on_disk(path: Path) -> list[str]:
    """Every text that the agent's store refers to."""
    store = LmdbStore.open(path / "agents" / "ann", **MAP)
    try:
        return store.read(
            lambda txn: (
                [txn.chunk(bytes(key)) for key, _ in txn.items(layout.CHUNKS)]  # type: ignore[attr-defined]
                + [node.content for node in txn.nodes()]
            )
        )
    finally:
        store.close()


# --- deleting ------------------------------------------------------------------------------------------


async def test_a_deleted_memory_is_gone_with_its_words(tmp_path: Path, caller_in: CallerIn) -> None:
    """Neither node, link, focus, recall nor question knows it; its neighbours stand where they stood."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD)
        assert len(await nodes(call)) == 3
        gone = await saying(call, "Clara")
        before = await nodes(call)
        [cited] = before[gone]["sources"]
        links = (await call("GET", f"{AGENT}/links")).json()["links"]
        mine = [link for link in links if gone in (link["source"], link["target"])]
        assert mine and any(link["target"] == gone for link in mine)
        assert [m["state"] for m in await answered(call, "What does Clara build?")] == ["living"]

        answer = await call("DELETE", f"{AGENT}/nodes/{gone}")
        assert (answer.status_code, answer.json()) == (
            200,
            {"node_id": gone, "links_removed": len(mine), "bytes_withdrawn": cited["length"]},
        )
        del before[gone]
        for name, node in (await nodes(call)).items():
            assert (node["content"], node["sources"]) == (before[name]["content"], before[name]["sources"])
        left = (await call("GET", f"{AGENT}/links")).json()["links"]
        assert len(left) == len(links) - len(mine)
        assert all(gone not in (link["source"], link["target"]) for link in left)
        assert gone not in str((await call("GET", f"{AGENT}/focus")).json())
        told = (await call("POST", f"{AGENT}/recall", {"keywords": []})).json()["text"]
        assert "Clara" not in told and "recall it" not in told and "forgotten" not in told
        for query in ("What does Clara build?", "carpenter", "boats", "Lisbon Miso", "青岛 外婆"):
            assert "Clara" not in str(await answered(call, query)), query
        assert await answered(call, "carpenter boats") == []
        assert [m["state"] for m in await answered(call, "青岛")] == ["living"]
    assert not any("Clara" in text for text in texts_on_disk(tmp_path))


async def test_what_was_deleted_stays_deleted_after_a_restart(tmp_path: Path, caller_in: CallerIn) -> None:
    """The shelf made anew from the store gives the answers that the one which followed the deletion gave."""
    queries = ["Where did Ann move?", "谁住在青岛？", "Clara boats", "Ann"]
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD, "The harbour smells of tar and oranges in the morning.")
        await answered(call, "anything")
        await call("DELETE", f"{AGENT}/nodes/{await saying(call, 'Clara')}")
        await call("DELETE", f"{AGENT}/nodes/{await saying(call, '青岛')}")
        before = [await answered(call, query) for query in queries]
        assert all(before[:1]) and before[2] == []
        looks = [(await call("GET", f"{AGENT}/{what}")).json() for what in ("nodes", "links", "focus")]
    async with caller_in(tmp_path) as call:
        assert [await answered(call, query) for query in queries] == before
        assert [
            (await call("GET", f"{AGENT}/{what}")).json() for what in ("nodes", "links", "focus")
        ] == looks
    assert not any("Clara" in text or "青岛" in text for text in texts_on_disk(tmp_path))


async def test_deleting_twice_finds_nothing_the_second_time(tmp_path: Path, caller_in: CallerIn) -> None:
    """A deleted memory, one that never was and what is no id at all are not found; nothing else is touched."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD)
        assert (await call("DELETE", f"{AGENT}/nodes/n1")).status_code == 200
        left = await nodes(call)
        for name in ("n1", "n99", "x1"):
            assert await call.refused("DELETE", f"{AGENT}/nodes/{name}") == "NODE_NOT_FOUND"
        assert await nodes(call) == left


async def test_the_last_memory_of_a_message_leaves_nothing_to_be_found(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Of a message that said one thing nothing is told any more, not even who spoke."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        assert len(await answered(call, "Ann harbour")) == 1
        assert (await call("DELETE", f"{AGENT}/nodes/n1")).json()["bytes_withdrawn"] == 26
        assert await answered(call, "Ann harbour") == []
        assert await answered(call, "Ann") == []


async def test_an_equal_text_said_again_is_another_memory(tmp_path: Path, caller_in: CallerIn) -> None:
    """Deleting one of two that say the same leaves the other with its words, though the store keeps them once."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        await settled(call, "The harbour smells of tar.")
        await call("DELETE", f"{AGENT}/nodes/n1")
        assert [memory["node_ids"] for memory in await answered(call, "harbour")] == [["n2"]]
        assert list(await nodes(call)) == ["n2"]


async def test_words_stay_where_another_living_memory_has_them(tmp_path: Path) -> None:
    """Memories that a model worded cite the whole message: it goes with the last of them."""
    model = ScriptedModel()
    model.always["segment"] = lambda: [Segment("Ann likes tar.", (0,)), Segment("Ann likes oranges.", (0,))]
    async with rest_in(tmp_path, model) as call:
        await settled(call, "Tar and oranges, that is what I like.")
        assert (await call("DELETE", f"{AGENT}/nodes/n1")).json()["bytes_withdrawn"] == 0
        assert len(await answered(call, "oranges")) == 1
        assert (await call("DELETE", f"{AGENT}/nodes/n2")).json()["bytes_withdrawn"] == 37
        assert await answered(call, "oranges") == []
