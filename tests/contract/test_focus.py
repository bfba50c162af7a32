"""Pins, focus by hand and entities: set, unset, listed and refused the same over every transport."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.callers import CALLERS, Caller, CallerIn

AGENT = "/v1/agents/ann"
NOTHING = {
    "text": "",
    "pending_batches": 0,
    "parked_batches": 0,
    "unembedded_messages": 0,
    "relations_unknown": [],
}


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def remember(call: Caller, *texts: str, role: str = "user", **fields: Any) -> None:
    """Remember each text as a batch, and wait for its pass."""
    for text in texts:
        message = {"role": role, "content": text, **fields}
        assert (await call("POST", f"{AGENT}/remember", {"messages": [message]})).status_code == 202
    assert (await call("POST", f"{AGENT}/flush", {"passes": True})).json()["passes_done"] is True


async def entities(call: Caller) -> dict[str, dict[str, Any]]:
    """Return every entity by name."""
    listed = (await call("GET", f"{AGENT}/entities", params={"page_size": 1000})).json()["entities"]
    return {entity["name"]: entity for entity in listed}


async def recalled(call: Caller, **body: Any) -> dict[str, Any]:
    """Return the response of a recall."""
    response = await call("POST", f"{AGENT}/recall", body)
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


# --- pins --------------------------------------------------------------------------------------------------


async def test_a_pinned_memory_stays_whole(tmp_path: Path, caller_in: CallerIn) -> None:
    """A pinned memory outlives passes that forget its neighbour; unpinned it is forgotten too."""
    fading = {"decay_rate": 0.3, "focus_limit": 1, "long_term_factor": 0}
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, fading)
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints old boats in Ghent.")
        first, second = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        pinned = (await call("PUT", f"{AGENT}/nodes/{first['id']}/pin")).json()
        assert (pinned["id"], pinned["pinned"]) == (first["id"], "by_hand")
        assert all(
            link["strength"] == 1
            for link in pinned["links_out"]
            if link["target"] in {entity["id"] for entity in pinned["entities"]}
        )
        await remember(call, *(f"On day {i} we walked along the beach." for i in range(12)))
        kept = (await call("GET", f"{AGENT}/nodes/{first['id']}")).json()
        assert kept["content"] == "Clara plays the cello in Porto."
        assert await call.refused("GET", f"{AGENT}/nodes/{second['id']}") == "NODE_FORGOTTEN"
        assert "Clara plays the cello in Porto." in (await recalled(call, keywords=["Porto"]))["text"]
        unpinned = (await call("DELETE", f"{AGENT}/nodes/{first['id']}/pin")).json()
        assert unpinned["pinned"] == "none"
        await remember(call, *(f"On day {i} we walked along the pier." for i in range(12)))
        assert await call.refused("GET", f"{AGENT}/nodes/{first['id']}") == "NODE_FORGOTTEN"


async def test_a_request_in_words_pins(tmp_path: Path, caller_in: CallerIn) -> None:
    """A user's imperative pins the memory, unless `pin_on_request` is false. A failure to remember does not."""
    async with caller_in(tmp_path) as call:
        await remember(
            call, "Don't forget my locker, it is number 12.", "I can't remember that film with the boat."
        )
        await remember(call, "我昨天没记住健身房的密码，只好回家。")
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert [node["pinned"] for node in nodes] == ["by_request", "none", "none"]
        await remember(call, "我对花生严重过敏，千万别忘了。")
        await call("PATCH", AGENT, {"pin_on_request": False})
        await remember(call, "我对芒果严重过敏，千万别忘了。")
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert [node["pinned"] for node in nodes[3:]] == ["by_request", "none"]


async def test_pins_have_a_limit(tmp_path: Path, caller_in: CallerIn) -> None:
    """TOO_MANY_PINNED names the limit and changes nothing; pinning again or after an unpin succeeds."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"max_pinned": 1})
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints old boats in Ghent.")
        first, second = [node["id"] for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]]
        for _ in range(2):
            assert (await call("PUT", f"{AGENT}/nodes/{first}/pin")).json()["pinned"] == "by_hand"
        refused = (await call("PUT", f"{AGENT}/nodes/{second}/pin")).json()["error"]
        assert (refused["reason"], refused["metadata"]) == ("TOO_MANY_PINNED", {"max_pinned": "1"})
        assert (await call("GET", f"{AGENT}/nodes/{second}")).json()["pinned"] == "none"
        await call("DELETE", f"{AGENT}/nodes/{first}/pin")
        assert (await call("PUT", f"{AGENT}/nodes/{second}/pin")).json()["pinned"] == "by_hand"


async def test_only_living_memories_are_pinned(tmp_path: Path, caller_in: CallerIn) -> None:
    """An entity is INVALID_VALUE; a forgotten node NODE_FORGOTTEN; an unknown one NODE_NOT_FOUND."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        name = (await entities(call))["Porto"]["id"]
        assert await call.refused("PUT", f"{AGENT}/nodes/{name}/pin") == "INVALID_VALUE"
        assert await call.refused("DELETE", f"{AGENT}/nodes/{name}/pin") == "INVALID_VALUE"
        await call("DELETE", f"{AGENT}/nodes/n1")
        for method, path in (
            ("PUT", "/nodes/{}/pin"),
            ("DELETE", "/nodes/{}/pin"),
            ("PUT", "/focus/{}"),
            ("DELETE", "/focus/{}"),
        ):
            assert await call.refused(method, AGENT + path.format("n1")) == "NODE_FORGOTTEN"
            for unknown in ("n0", "n99", "zebra"):
                assert await call.refused(method, AGENT + path.format(unknown)) == "NODE_NOT_FOUND"


# --- focus -------------------------------------------------------------------------------------------------


async def test_focus_moves_by_hand(tmp_path: Path, caller_in: CallerIn) -> None:
    """Focused nodes move to the front of their lists, the oldest leave, and unfocused ones leave; content stays."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"focus_limit": 2})
        await remember(
            call,
            "Clara plays the cello in Porto.",
            "Bruno paints boats in Ghent.",
            "Dana bakes bread in Oslo.",
        )
        memories = [node["id"] for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]]
        porto = (await entities(call))["Porto"]
        assert porto["in_focus"] is False
        focus = (await call("PUT", f"{AGENT}/focus/{memories[0]}")).json()
        assert [node["id"] for node in focus["nodes"]] == [memories[0], memories[2]]
        assert (focus["nodes"][0]["in_focus"], focus["nodes"][0]["kind"]) == (True, "episode")
        focus = (await call("PUT", f"{AGENT}/focus/{porto['id']}")).json()
        assert focus["entities"][0]["name"] == "Porto"
        assert len(focus["entities"]) == 2
        assert focus == (await call("GET", f"{AGENT}/focus")).json()
        for node_id in (memories[0], porto["id"], porto["id"]):
            focus = (await call("DELETE", f"{AGENT}/focus/{node_id}")).json()
        assert [node["id"] for node in focus["nodes"]] == [memories[2]]
        assert "Porto" not in {entity["name"] for entity in focus["entities"]}
        first = (await call("GET", f"{AGENT}/nodes/{memories[0]}")).json()
        assert (first["content"], first["in_focus"]) == ("Clara plays the cello in Porto.", False)


async def test_an_entity_is_not_focused_under_the_first_policy(tmp_path: Path, caller_in: CallerIn) -> None:
    """With `focus_policy` = `nodes` an entity is INVALID_VALUE and the focus stays; a memory can be focused."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        porto = (await entities(call))["Porto"]["id"]
        await call("PATCH", AGENT, {"focus_policy": "nodes"})
        before = (await call("GET", f"{AGENT}/focus")).json()
        error = (await call("PUT", f"{AGENT}/focus/{porto}")).json()["error"]
        assert (error["reason"], "focus_policy" in error["message"]) == ("INVALID_VALUE", True)
        assert (await call("GET", f"{AGENT}/focus")).json() == before
        assert (await call("PUT", f"{AGENT}/focus/n1")).status_code == 200
        await call("PATCH", AGENT, {"focus_policy": None})
        assert (await call("PUT", f"{AGENT}/focus/{porto}")).json()["entities"][0]["id"] == porto


async def test_changes_by_hand_are_events(tmp_path: Path, caller_in: CallerIn) -> None:
    """Pins, unpins and moves of the focus are events, once each; a repetition writes none."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        name = (await entities(call))["Porto"]["id"]
        before = (await events(call))[-1]["sequence"]
        for _ in range(2):
            await call("PUT", f"{AGENT}/nodes/n1/pin")
        for _ in range(2):
            await call("DELETE", f"{AGENT}/nodes/n1/pin")
        for _ in range(2):
            await call("DELETE", f"{AGENT}/focus/{name}")
        await call("DELETE", f"{AGENT}/focus/n1")
        found = await events(call, before)
        assert [event["kind"] for event in found] == [
            "NodePinned",
            "NodeUnpinned",
            "FocusMoved",
            "FocusMoved",
        ]
        assert [event["node_id"] for event in found[:2]] == ["n1", "n1"]
        assert found[2]["focus"] == ["n1"]
        assert name not in found[2]["focus_entities"]
        assert found[3]["focus"] == []
        assert found[3]["focus_entities"] == found[2]["focus_entities"]


async def events(call: Caller, after: int | None = None) -> list[dict[str, Any]]:
    """Return the stored events after a number."""
    response = await call(
        "GET", f"{AGENT}/events", params={"follow": False} | ({"after": after} if after else {})
    )
    if call.transport == "grpc":
        items: list[dict[str, Any]] = response.json()["items"]
        return items
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


async def test_entities_are_made_and_deleted_with_events(tmp_path: Path, caller_in: CallerIn) -> None:
    """A first mention is EntityMade with the entity's id; deleting its last memory is EntityGone, without a name."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        made = {entity["id"] for entity in (await entities(call)).values()}
        found = await events(call)
        assert {event["node_id"] for event in found if event["kind"] == "EntityMade"} == made != set()
        await call("DELETE", f"{AGENT}/nodes/n1")
        assert await entities(call) == {}
        found = await events(call)
        assert {event["node_id"] for event in found if event["kind"] == "EntityGone"} == made
        assert "Porto" not in str(found)


# --- entities ----------------------------------------------------------------------------------------------


async def test_entities_count_what_lives_and_what_is_forgotten(tmp_path: Path, caller_in: CallerIn) -> None:
    """An entity of two memories counts both; when they fade, it counts them as forgotten and recall says so."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"decay_rate": 0.6, "focus_limit": 1, "long_term_factor": 0})
        await remember(call, "Clara plays the cello in Porto.", "Clara bought a flat in Porto.")
        porto = (await entities(call))["Porto"]
        assert (porto["living_count"], porto["forgotten_count"]) == (2, 0)
        counts = (await call("GET", AGENT)).json()["counts"]
        assert counts["entities"] == len(await entities(call))
        said = ""
        for day in range(20):
            await remember(call, f"On day {day} we walked along the beach.")
            porto = (await entities(call)).get("Porto", porto)
            said = (await recalled(call, keywords=["Porto"]))["text"]
            if "something about" in said:
                break
        assert said == "[Memory] I once knew something about Porto, but I can't recall it"
        assert porto["living_count"] == 0
        assert porto["forgotten_count"] >= 1
        detail = (await call("GET", f"{AGENT}/nodes/{porto['id']}")).json()
        assert (detail["kind"], detail["phrase"], detail["content"]) == ("entity", "Porto", "")
        assert detail["created_at"] is None and detail["first_content"] is None
        assert len(detail["dangling"]) == porto["forgotten_count"]


async def test_listings_select_kinds_and_page(tmp_path: Path, caller_in: CallerIn) -> None:
    """Nodes are memories by default, entities or both on request, by id, without loss or repeat over pages."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints boats in Ghent.")

        async def listed(key: str, **options: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            token = ""
            while True:
                params = {**options, "page_size": 2, "page_token": token}
                page = (await call("GET", f"{AGENT}/{key}", params=params)).json()
                assert len(page[key]) <= 2
                found += page[key]
                token = page["next_page_token"]
                if not token:
                    return found

        memories = await listed("nodes")
        named = await listed("nodes", kinds="entity")
        both = await listed("nodes", kinds="entity,episode")
        assert {node["kind"] for node in memories} == {"episode"}
        assert {node["kind"] for node in named} == {"entity"}
        assert both == sorted(memories + named, key=lambda node: int(node["id"][1:]))
        assert [node["id"] for node in named] == [one["id"] for one in await listed("entities")]
        assert await call.refused("GET", f"{AGENT}/nodes?kinds=two%20words") == "INVALID_VALUE"
        assert await listed("nodes", kinds="zebra") == [], "a kind that no memory has"
        assert await call.refused("GET", f"{AGENT}/entities?page_token=x") == "INVALID_PAGE"


async def test_an_entity_is_changed_only_through_its_memories(tmp_path: Path, caller_in: CallerIn) -> None:
    """An entity can be neither corrected, deleted nor forgotten as if it were a memory, and the error says why."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        name = (await entities(call))["Porto"]["id"]
        assert await call.refused("PATCH", f"{AGENT}/nodes/{name}", {"content": "x"}) == "NODE_NOT_FOUND"
        assert await call.refused("DELETE", f"{AGENT}/nodes/{name}") == "NODE_NOT_FOUND"
        for dry_run in (True, False):
            body = {"nodes": [name], "dry_run": dry_run}
            assert await call.refused("POST", f"{AGENT}/forget", body) == "INVALID_VALUE"
        for method, path, body in (
            ("PATCH", f"/nodes/{name}", {"content": "x"}),
            ("DELETE", f"/nodes/{name}", None),
            ("POST", "/forget", {"nodes": [name]}),
        ):
            assert "entity" in (await call(method, AGENT + path, body)).json()["error"]["message"]
        assert "Porto" in await entities(call)


# --- recall ------------------------------------------------------------------------------------------------


async def test_an_unknown_agent_recalls_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """By keyword, query and vector, a recall and a search are empty and the counts are 0; no agent is created."""
    async with caller_in(tmp_path) as call:
        for body in ({}, {"keywords": ["Lisbon"]}, {"query": "Where?", "citations": True, "explain": True}):
            found = await recalled(call, **body)
            assert {name: found[name] for name in NOTHING} == NOTHING
            assert found.get("memories", []) == []
            assert found.get("explanation") is None
        for body in ({"query": "Where?"}, {"vector": [1.0]}):
            found = (await call("POST", f"{AGENT}/search", body)).json()
            assert found.pop("records", []) == []  # gRPC has an empty list where REST has no field
            assert found == {
                "memories": [],
                "pending_batches": 0,
                "parked_batches": 0,
                "unembedded_messages": 0,
            }
        assert (await call("GET", "/v1/agents")).json()["agents"] == []


async def test_dates_stand_before_memories(tmp_path: Path, caller_in: CallerIn) -> None:
    """Dates are those of the messages; on by default for a query, off for keywords, and either can be changed."""
    dated = "[Memory] [2023-11-14] Clara plays the cello in Porto."
    plain = "[Memory] Clara plays the cello in Porto."
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", timestamp=1_700_000_000_000)
        question = {"query": "What does Clara play?"}
        for body, text in (
            (question, dated),
            ({**question, "dates": False}, plain),
            ({"keywords": ["cello"]}, plain),
            ({"keywords": ["cello"], "dates": True}, dated),
        ):
            assert (await recalled(call, **body))["text"] == text
        budget = {**question, "tokenizer": "characters"}
        assert (await recalled(call, **budget, token_budget=len(dated)))["text"] == dated
        assert (await recalled(call, **budget, token_budget=len(dated) - 1))["text"] == ""


async def test_a_dated_recall_is_not_remembered_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """`drop_recalled` drops a recalled line with its date, also if it was recalled without."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", timestamp=1_700_000_000_000)
        text = (await recalled(call, keywords=["cello"], dates=True))["text"]
        assert text.startswith("[Memory] [2023-11-14] ")
        message = {"role": "assistant", "content": text.replace("2023-11-14", "2024-01-01")}
        stored = (await call("POST", f"{AGENT}/remember", {"messages": [message]})).json()
        assert stored["dropped_recalled"] == 1


async def test_unknown_relations_are_ignored_and_reported(tmp_path: Path, caller_in: CallerIn) -> None:
    """The promised example: relations that nothing has do not empty the answer, and are named in the response."""
    async with caller_in(tmp_path) as call:
        await remember(call, "我们的项目进度落后两周，需要加班。")
        found = await recalled(call, keywords=["项目", "进度"], relations=["同事", "负责"])
        assert found["text"] == "[记忆] 我们的项目进度落后两周，需要加班。"
        assert found["relations_unknown"] == ["同事", "负责"]
        found = await recalled(call, keywords=["进度"], relations=["项目", "负责"])
        assert found["relations_unknown"] == ["负责"]


async def test_a_time_range_narrows_a_keyword_recall(tmp_path: Path, caller_in: CallerIn) -> None:
    """Only memories of the period match, from begin to before end."""
    async with caller_in(tmp_path) as call:
        for day in range(3):
            await remember(
                call, f"Clara played cello number {day} in Porto.", timestamp=1_000_000_000_000 + day
            )
        time_range = {"begin": 1_000_000_000_001, "end": 1_000_000_000_002}
        found = await recalled(call, keywords=["cello"], time_range=time_range)
        assert found["text"] == "[Memory] Clara played cello number 1 in Porto."


async def test_a_keyword_recall_explains_itself(tmp_path: Path, caller_in: CallerIn) -> None:
    """It names where it started and by which keyword, and for each memory its matches and the path to it."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"focus_limit": 1, "cue_memories": 0})
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints boats in Ghent.")
        porto = (await entities(call))["Porto"]["id"]
        explanation = (await recalled(call, keywords=["Porto", "cello"], explain=True))["explanation"]
        named = [start for start in explanation["starts"] if start["position"] == 0]
        assert {"id": porto, "name": "Porto", "position": 0, "keyword": "Porto"} in named
        assert [start["position"] for start in explanation["starts"] if not start["keyword"]] == [1, 2]
        (memory,) = explanation["memories"]
        assert (memory["id"], memory["matched_keywords"]) == ("n1", ["Porto", "cello"])
        assert memory["path"][0]["relation"] == ""
        assert memory["path"][-1]["id"] == "n1"
        assert 0 < memory["score"] <= 1


async def test_a_query_returns_no_entity(tmp_path: Path, caller_in: CallerIn) -> None:
    """Neither a recall nor a search by the name of an entity returns it, also if the search starts from it."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", "Clara paints boats in Porto.")
        known = {entity["id"] for entity in (await entities(call)).values()}
        assert len(known) >= 3
        for query in ("Porto", "Clara", "What happens in Porto?"):
            question = {"query": query, "citations": True, "start_nodes": sorted(known)}
            found = await recalled(call, **question)
            listed = (await call("POST", f"{AGENT}/search", {"query": query})).json()
            memories = [*found["memories"], *listed["memories"]]
            assert {memory["kind"] for memory in memories} == {"episode"}
            named = {memory["id"] for memory in memories} | {
                n for memory in memories for n in memory["node_ids"]
            }
            assert named and not named & known
            assert "I once knew" not in found["text"]
