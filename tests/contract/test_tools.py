"""Tools over REST: declared in every form, and called with the scope of what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.access.grants import CALLER, Caller, Grant, Reach
from ebbtide.errors import EbbtideError, Forbidden, NotFound
from ebbtide.verbs.tools import CallToolRequest, ListToolsRequest, call_tool, list_tools
from tests.support.in_process import service_in

CALLS = {
    "create_memory": ("write", '{"subject": "user", "topic": "residence", "object": "Lisbon"}'),
    "search_memories": ("read", '{"query": "Where do I live?"}'),
    "link_memories": ("write", '{"source": "n1", "target": "n2", "relation": "causes"}'),
    "update_memory_importance": ("write", '{"memory": "n1", "importance": "80%"}'),
    "remember": ("write", '{"content": "I moved to Lisbon in May."}'),
    "recall": ("read", '{"q": "Where did I move?"}'),
    "forget": ("admin", '{"topic": "Lisbon", "dry_run": true}'),
}


async def test_a_tool_remembers_recalls_and_forgets(tmp_path: Path) -> None:
    """A message that a model remembers is recalled by its words, and found for erasure."""
    async with service_in(tmp_path / "data") as service:

        async def call(name: str, arguments: object) -> dict[str, object]:
            request = CallToolRequest.model_validate({"agent_id": "a", "name": name, "arguments": arguments})
            return (await call_tool(service, request)).result

        await call("remember", CALLS["remember"][1])
        assert "Lisbon" in str((await call("recall", CALLS["recall"][1]))["text"])
        found = await call("forget", {"topic": "Lisbon", "dry_run": True})
        assert found["dry_run"] is True
        assert found["messages"] or found["partly"]


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_needs_the_scope_of_its_operation(tmp_path: Path, name: str) -> None:
    """A key with every other scope is refused before anything is read or stored."""
    scope, arguments = CALLS[name]
    others = frozenset({"read", "write", "admin"}) - {scope}
    async with service_in(tmp_path / "data") as service:
        token = CALLER.set(Caller("k1", Grant(others, Reach(is_everywhere=True))))
        try:
            with pytest.raises(Forbidden) as refused:
                await call_tool(service, CallToolRequest(agent_id="a", name=name, arguments=arguments))
        finally:
            CALLER.reset(token)
    assert refused.value.reason == "SCOPE_MISSING"


@pytest.mark.parametrize(
    ("form", "key"), [("openai", "function"), ("anthropic", "input_schema"), ("mcp", "inputSchema")]
)
async def test_the_declarations_have_the_form_of_the_vendor(tmp_path: Path, form: str, key: str) -> None:
    """Each form has its own name for the schema, and every callable tool."""
    async with service_in(tmp_path / "data") as service:
        found = await list_tools(service, ListToolsRequest.model_validate({"format": form, "lang": "zh"}))
    assert len(found.tools) == len(CALLS)
    assert all(key in one for one in found.tools)


async def test_a_fact_is_created_searched_linked_and_weighed(tmp_path: Path) -> None:
    """A fact is found at once; one that contradicts it names it; a description stands for an id."""
    async with service_in(tmp_path / "data") as service:

        async def call(name: str, arguments: object) -> dict[str, Any]:
            request = CallToolRequest.model_validate({"agent_id": "a", "name": name, "arguments": arguments})
            return (await call_tool(service, request)).result

        first = await call(
            "create_memory", {"subject": "我", "类型": "事实", "topic": "住在", "object": "青岛"}
        )
        assert (first["status"], first["normalized"]["topic"]) == ("staged", "residence")
        again = await call("create_memory", {"subject": "user", "predicate": "residence", "value": "青岛"})
        assert (again["memory_id"], again["status"]) == (first["memory_id"], "known")
        other = await call("create_memory", {"subject": "user", "topic": "residence", "object": "成都"})
        assert first["memory_id"] in other["contradicts"][0]
        assert "replaces" in other["advice"]
        body = {"subject": "user", "topic": "residence", "object": "成都", "replaces": first["memory_id"]}
        settled = await call("create_memory", body)
        assert (settled["status"], settled["superseded"]) == ("known", [first["memory_id"]])
        assert (settled["contradicts"], settled["advice"]) == ([], "")
        body = {"subject": "user", "topic": "residence", "object": "厦门", "replaces": other["memory_id"]}
        moved = await call("create_memory", body)
        assert moved["superseded"] == [other["memory_id"]]
        found = await call("search_memories", {"query": "用户现在住在哪里？", "limit": "3"})
        assert found["statements"][0]["id"] == moved["memory_id"]
        cause = await call("create_memory", {"subject": "user", "topic": "allergy", "object": "grass pollen"})
        link = await call(
            "link_memories",
            {"source": "allergic to grass pollen", "target": moved["memory_id"], "relation": "导致"},
        )
        assert (link["source"], link["relation"]) == (cause["memory_id"], "causes")
        assert link["target"] == moved["memory_id"]
        why = await call("search_memories", {"query": "Why pollen?", "expand_depth": 2})
        assert {cause["memory_id"], moved["memory_id"]} <= {one["id"] for one in why["statements"]}
        weighed = await call("update_memory_importance", {"memory": cause["memory_id"], "importance": "high"})
        assert weighed["links_changed"] == 2


@pytest.mark.parametrize("description", ["a spaceship", "tea"])
async def test_an_ambiguous_description_names_the_candidates(tmp_path: Path, description: str) -> None:
    """A description that fits no memory, or two equally well, is refused with the ids to choose from."""
    async with service_in(tmp_path / "data") as service:
        for value in ("green tea", "black tea"):
            fields = {"subject": "user", "topic": "likes", "object": value}
            await call_tool(service, CallToolRequest(agent_id="a", name="create_memory", arguments=fields))
        body = {"memory": description, "importance": 1}
        request = CallToolRequest(agent_id="a", name="update_memory_importance", arguments=body)
        with pytest.raises(NotFound) as refused:
            await call_tool(service, request)
        assert refused.value.reason == "AMBIGUOUS_MEMORY"
        assert len(refused.value.metadata) == (2 if description == "tea" else 0)


async def test_the_sentence_tells_a_change_from_a_contradiction(tmp_path: Path) -> None:
    """A value with the user's own words of a change ends the earlier value; each word form of the field is read."""
    async with service_in(tmp_path / "data") as service:

        async def create(**fields: object) -> dict[str, Any]:
            body = {"subject": "user", "topic": "residence", **fields}
            request = CallToolRequest(agent_id="a", name="create_memory", arguments=body)
            return (await call_tool(service, request)).result

        first = await create(object="Lisbon")
        second = await create(object="Porto", sentence="I moved to Porto in May.")
        assert (second["superseded"], second["contradicts"]) == ([first["memory_id"]], [])
        third = await create(content="I moved to Faro yesterday.", value="Faro")
        assert (third["normalized"]["object"], third["superseded"]) == ("Faro", [second["memory_id"]])


async def test_a_description_never_chooses_another_memory(tmp_path: Path) -> None:
    """Words of a fact that is over mean that fact, words that are shared mean the present one, others mean none."""
    async with service_in(tmp_path / "data") as service:

        async def call(name: str, **arguments: object) -> dict[str, Any]:
            request = CallToolRequest(agent_id="a", name=name, arguments=arguments)
            return (await call_tool(service, request)).result

        ids = {}
        for value, said in (("Lisbon", "I live in Lisbon"), ("Porto", "I moved to Porto")):
            fields = {"subject": "user", "topic": "residence", "object": value, "sentence": said}
            ids[value] = (await call("create_memory", **fields))["memory_id"]
        for description, meant in (("Lisbon", "Lisbon"), ("Porto", "Porto"), ("the residence", "Porto")):
            done = await call("link_memories", source=ids[_other(meant)], target=description)
            assert done["target"] == ids[meant]
        with pytest.raises(NotFound):
            await call("update_memory_importance", memory="the holiday house", importance=1)


def _other(value: str) -> str:
    return "Porto" if value == "Lisbon" else "Lisbon"


async def test_an_error_names_only_what_a_model_can_call(tmp_path: Path) -> None:
    """A refused call names arguments and tools, no field or route of another interface."""
    async with service_in(tmp_path / "data") as service:

        async def refused(name: str, arguments: object, reason: str) -> str:
            request = CallToolRequest.model_validate({"agent_id": "a", "name": name, "arguments": arguments})
            with pytest.raises(EbbtideError) as found:
                await call_tool(service, request)
            assert found.value.reason == reason
            said = " ".join([found.value.message, *(one.field for one in found.value.violations)])
            assert not any(word in said for word in ("/v1/", "GET ", "PATCH", "PUT ", "node_id", "ListNodes"))
            return said

        said = await refused("search_memories", {"query": "Where do I live?"}, "AGENT_NOT_FOUND")
        assert "create_memory" in said
        fields = {"subject": "user", "topic": "residence", "object": "Lisbon"}
        request = CallToolRequest(agent_id="a", name="create_memory", arguments=fields)
        home = (await call_tool(service, request)).result["memory_id"]
        for arguments in ({"source": home, "target": "n99"}, {"source": "n99", "target": home}):
            assert "search_memories" in await refused("link_memories", arguments, "NODE_NOT_FOUND")
        said = await refused("link_memories", {"source": home, "target": home}, "INVALID_VALUE")
        assert said.startswith("target_memory_description: ")
        assert said.endswith(" target_memory_description")
        said = await refused("update_memory_importance", {"memory": "n99", "importance": 1}, "NODE_NOT_FOUND")
        assert "search_memories" in said
        said = await refused("update_memory_importance", {"memory": "n2", "importance": 1}, "INVALID_VALUE")
        assert said.startswith("memory: ")
        said = await refused("forget", {"memories": ["n2"], "dry_run": True}, "INVALID_VALUE")
        assert said.startswith("memories: ")
        said = await refused("forget", {"memories": ["x"], "dry_run": True}, "NODE_NOT_FOUND")
        assert "search_memories" in said
        said = await refused("forget", {"dry_run": True}, "MISSING_FIELD")
        assert said.startswith("arguments.topic: required; allowed: topic or memories. Example: {")
        other = {**fields, "object": "Porto"}
        said = await refused("create_memory", {**other, "replaces": "n99"}, "NODE_NOT_FOUND")
        assert "search_memories" in said
        said = await refused("create_memory", {**other, "replaces": "n2"}, "NOT_A_STATEMENT")
        assert "search_memories" in said
        said = await refused("create_memory", {**other, "topic": "?!"}, "INVALID_VALUE")
        assert said.startswith("topic: ")
