"""Concepts: groups of statements and entities, found by a consolidation and deleted with their members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.ids import AgentId
from tests.contract.test_clear import files_with
from tests.contract.test_statements import AGENT, done, says
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in

NOW_MS = 1_795_000_000_000

CELLIST = [
    ("sister", "Clara", "I"),
    ("residence", "Porto", "Clara"),
    ("occupation", "cellist", "Clara"),
    ("employer", "Porto Orchestra", "Clara"),
    ("birthday", "1990-05-07", "Clara"),
]
BAKER = [
    ("friend", "Anton", "I"),
    ("residence", "Bergen", "Anton"),
    ("occupation", "Quimbaker", "Anton"),
    ("employer", "Bergen Bakery", "Anton"),
    ("likes", "sourdough", "Anton"),
]


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def told(call: Caller, *groups: list[tuple[str, str, str]]) -> list[str]:
    """Store statements, and return their ids."""
    said = [await says(call, topic, value, subject=who) for group in groups for topic, value, who in group]
    return [one["id"] for one in said]


async def concepts(call: Caller) -> list[dict[str, Any]]:
    """Return the concepts, by their first keyword."""
    found: list[dict[str, Any]] = (await done(call, "GET", "nodes", kinds="concept"))["nodes"]
    return sorted(found, key=lambda one: one["keywords"][0])


async def consolidated(call: Caller) -> dict[str, int]:
    """Run a consolidation, and return how much its step for concepts looked at and changed."""
    ran = await done(call, "POST", "consolidate", {})
    [step] = [one for one in ran["steps"] if one["step"] == "concepts"]
    return {name: step.get(name, 0) for name in ("looked", "changed")}


async def test_groups_of_statements_become_concepts(tmp_path: Path, caller_in: CallerIn) -> None:
    """Two people with what is known of them are two concepts, with their names; the user joins nothing."""
    async with caller_in(tmp_path) as call:
        statements = await told(call, CELLIST, BAKER)
        rehearsed = await done(call, "POST", "consolidate", {"dry_run": True})
        [step] = [one for one in rehearsed["steps"] if one["step"] == "concepts"]
        assert (step["changed"], await concepts(call)) == (2, [])
        assert (await consolidated(call))["changed"] == 2
        found = await concepts(call)
        assert [one["keywords"][0] for one in found] == ["Anton", "Clara"]
        for one, known in zip(found, (statements[5:], statements[:5]), strict=True):
            assert one["kind"] == "concept" and one["content"] == ", ".join(one["keywords"])
            assert one["sources"] == [] and not one["in_focus"]
            detail = await done(call, "GET", f"nodes/{one['id']}")
            members = {link["target"] for link in detail["links_out"]}
            assert members >= {*known} and {link["relation"] for link in detail["links_out"]} == {"contains"}
        listed = (await done(call, "GET", "nodes"))["nodes"]
        assert "concept" not in {one["kind"] for one in listed}


async def test_a_concept_keeps_its_identity_while_its_members_hardly_change(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A second run changes nothing; one more statement leaves the id; other groups leave the concept."""
    async with caller_in(tmp_path) as call:
        await told(call, CELLIST)
        await consolidated(call)
        [first] = await concepts(call)
        assert (await consolidated(call))["changed"] == 0
        await says(call, "likes", "tea", subject="Clara")
        assert (await consolidated(call))["changed"] == 1
        [second] = await concepts(call)
        assert (second["id"], second["created_at"]) == (first["id"], first["created_at"])
        assert len((await done(call, "GET", f"nodes/{first['id']}"))["links_out"]) > 5


async def test_a_recall_returns_no_concept(tmp_path: Path, caller_in: CallerIn) -> None:
    """Recalls by query and by keyword are the same before and after concepts are found."""
    async with caller_in(tmp_path) as call:
        await told(call, CELLIST)
        await done(call, "POST", "flush", {"vectors": True, "timeout_ms": 60_000})

        async def recalled() -> list[str]:
            asked = [{"query": "Where does Clara live?"}, {"keywords": ["Clara"]}, {}]
            return [(await call("POST", f"{AGENT}/recall", body)).json()["text"] for body in asked]

        before = await recalled()
        await consolidated(call)
        assert len(await concepts(call)) == 1
        assert await recalled() == before


@pytest.mark.parametrize("way", ["topic", "node", "delete"])
async def test_a_concept_is_deleted_with_a_member(tmp_path: Path, caller_in: CallerIn, way: str) -> None:
    """After a deletion no file contains a word of the concept, and the other concept stays."""
    async with caller_in(tmp_path) as call:
        statements = await told(call, CELLIST, BAKER)
        skill = (await says(call, "skill", "Quimbaker", subject="Anton"))["id"]
        await consolidated(call)
        anton, clara = await concepts(call)
        assert "Quimbaker" in anton["keywords"] and files_with("Quimbaker", tmp_path) != []
        if way == "topic":
            await done(call, "POST", "forget", {"topic": "Quimbaker"})
        elif way == "node":
            await done(call, "POST", "forget", {"nodes": [statements[7], skill]})
        else:
            assert (await call("DELETE", f"{AGENT}/nodes/{statements[7]}")).status_code < 300
        assert [one["id"] for one in await concepts(call)] == [clara["id"]]
        gone = await call("GET", f"{AGENT}/nodes/{anton['id']}")
        assert gone.status_code in (404, 410)
        await consolidated(call)
        again = [one["keywords"] for one in await concepts(call)]
        assert len(again) == 2 and again[0][0] == "Anton" and "Quimbaker" not in again[0]
        assert way == "delete" or files_with("Quimbaker", tmp_path) == []


async def test_concepts_are_moved_with_an_agent(tmp_path: Path, caller_in: CallerIn) -> None:
    """A backup and an export have the concepts, with their ids and members."""
    async with caller_in(tmp_path) as call:
        await told(call, CELLIST)
        await consolidated(call)
        [before] = await concepts(call)
        links = (await done(call, "GET", f"nodes/{before['id']}"))["links_out"]
        for form in ("backup", "export"):
            content = await call.download(f"{AGENT}/{form}")
            await call("DELETE", AGENT)
            assert (await call.upload(f"{AGENT}/restore", content)).status_code < 300
            assert await concepts(call) == [before]
            assert (await done(call, "GET", f"nodes/{before['id']}"))["links_out"] == links
            assert (await consolidated(call))["changed"] == 0


async def test_an_agent_without_statements_has_no_concept(tmp_path: Path, caller_in: CallerIn) -> None:
    """A consolidation looks at nothing where nothing was stated."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        assert await consolidated(call) == {"looked": 0, "changed": 0}
        assert await concepts(call) == []


async def test_what_is_deleted_during_the_step_does_not_come_back(tmp_path: Path) -> None:
    """A statement that is deleted after the groups were found is in no concept that the step writes."""
    async with rest_in(tmp_path) as call:
        statements = await told(call, CELLIST)
        skill = (await says(call, "skill", "Quimcello", subject="Clara"))["id"]
        await says(call, "hobby", "Quimcello", subject="Clara")
        async with call.service.fleet.using(AgentId("ann")) as agent:
            consolidation = agent.workspace.consolidation

            def advance() -> str:
                return consolidation.advance(NOW_MS, lambda: True)

            while consolidation.is_running or await agent.run(advance):
                step: Any = consolidation._run and consolidation._run.step
                if getattr(step, "_continued", None) is None and getattr(step, "_counted", 0):
                    await done(call, "POST", "forget", {"topic": "Quimcello"})
                    break
                await agent.run(advance)
            while consolidation.is_running:
                await agent.run(advance)
        [found] = await concepts(call)
        assert "Quimcello" not in found["keywords"] and files_with("Quimcello", tmp_path) == []
        members = {one["target"] for one in (await done(call, "GET", f"nodes/{found['id']}"))["links_out"]}
        assert members >= {*statements} and skill not in members


async def test_a_concept_can_only_be_read(tmp_path: Path, caller_in: CallerIn) -> None:
    """Every other request for it says that it is a concept and how it is deleted, not that it is forgotten."""
    async with caller_in(tmp_path) as call:
        await told(call, CELLIST)
        await consolidated(call)
        [concept] = await concepts(call)
        one, path = concept["id"], f"{AGENT}/nodes/{concept['id']}"
        other = concept["members"][0] if "members" in concept else "n1"
        requests = [
            ("DELETE", path, None),
            ("PATCH", path, {"content": "other words"}),
            ("PUT", f"{path}/pin", None),
            ("DELETE", f"{path}/pin", None),
            ("PUT", f"{AGENT}/focus/{one}", None),
            ("DELETE", f"{AGENT}/focus/{one}", None),
            ("GET", f"{path}/why", None),
            ("POST", f"{AGENT}/links", {"source": one, "target": other, "relation": "supports"}),
        ]
        for method, target, body in requests:
            response = await call(method, target, body)
            error = response.json()["error"]
            assert (response.status_code, error["reason"]) == (400, "INVALID_VALUE"), (method, target)
            assert f"{one} is a concept" in error["message"]
        response = await call("GET", f"{AGENT}/statements/{one}")
        assert response.json()["error"]["reason"] == "NOT_A_STATEMENT"
        batch = await done(call, "POST", "nodes/delete", {"node_ids": [one]})
        assert [result["reason"] for result in batch["results"]] == ["INVALID_VALUE"]
        assert [found["id"] for found in await concepts(call)] == [one]
