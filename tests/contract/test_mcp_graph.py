"""The MCP set of tools `graph`: the rules of the reference MCP memory server, on records of the agent."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from ebbtide.mcp import graph
from tests.contract.test_mcp import ANN, called, client, site, text_of
from tests.support.keys import KEYS_ON, new_key
from tests.tidy.pages import read as read_page

SET = f"{ANN}?tools=graph"
NAMES = [
    *("create_entities", "create_relations", "add_observations"),
    *("delete_entities", "delete_observations", "delete_relations"),
    *("read_graph", "search_nodes", "open_nodes"),
]
Json = dict[str, Any]


def entity(name: str, kind: str = "person", *observations: str) -> Json:
    """Return an entity as a client sends it."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(begin: str, kind: str, end: str) -> Json:
    """Return a relation as a client sends it."""
    return {"from": begin, "to": end, "relationType": kind}


ANN_ENTITY = entity("Ann", "person", "works at Harbour Labs", "plays the cello")
BOB = entity("Bob", "person", "repairs clocks")
LABS = entity("Harbour Labs", "company", "measures tides")
WORKS = relation("Ann", "works_at", "Harbour Labs")
KNOWS = relation("Ann", "knows", "Bob")
SUPPLIES = relation("Bob", "supplies", "Harbour Labs")

Step = tuple[str, Json, Any]
DELETED_ENTITIES = "Entities deleted successfully"
DELETED_OBSERVATIONS = "Observations deleted successfully"
DELETED_RELATIONS = "Relations deleted successfully"


def graph_of(entities: list[Json], relations: list[Json]) -> Json:
    """Return a graph as a tool returns it."""
    return {"entities": entities, "relations": relations}


def read(entities: list[Json], relations: list[Json]) -> Step:
    """Return a step that expects the whole graph."""
    return "read_graph", {}, graph_of(entities, relations)


RULES: dict[str, list[Step]] = {
    "an empty graph": [
        read([], []),
        ("search_nodes", {"query": "x"}, graph_of([], [])),
        ("open_nodes", {"names": ["Ann"]}, graph_of([], [])),
        ("delete_entities", {"entityNames": ["Ann"]}, DELETED_ENTITIES),
        ("create_entities", {"entities": []}, []),
    ],
    "names are unique": [
        ("create_entities", {"entities": [BOB, LABS]}, [BOB, LABS]),
        ("create_entities", {"entities": [entity("Bob", "dog"), ANN_ENTITY, ANN_ENTITY]}, [ANN_ENTITY]),
        read([BOB, LABS, ANN_ENTITY], []),
    ],
    "fields that the tool does not have are dropped": [
        ("create_entities", {"entities": [{"type": "entity", **BOB}]}, [BOB]),
        read([BOB], []),
    ],
    "relations are unique, and their ends need not exist": [
        ("create_entities", {"entities": [ANN_ENTITY]}, [ANN_ENTITY]),
        ("create_relations", {"relations": [KNOWS, WORKS]}, [KNOWS, WORKS]),
        ("create_relations", {"relations": [WORKS, SUPPLIES, SUPPLIES]}, [SUPPLIES]),
        ("create_relations", {"relations": []}, []),
        read([ANN_ENTITY], [KNOWS, WORKS, SUPPLIES]),
    ],
    "observations are added once, in order": [
        ("create_entities", {"entities": [BOB, LABS]}, [BOB, LABS]),
        (
            "add_observations",
            {
                "observations": [
                    {"entityName": "Bob", "contents": ["sings", "repairs clocks", "swims"]},
                    {"entityName": "Bob", "contents": ["swims", "rows"]},
                ]
            },
            [
                {"entityName": "Bob", "addedObservations": ["sings", "swims"]},
                {"entityName": "Bob", "addedObservations": ["rows"]},
            ],
        ),
        read([entity("Bob", "person", "repairs clocks", "sings", "swims", "rows"), LABS], []),
    ],
    "an unknown entity undoes the whole call": [
        ("create_entities", {"entities": [BOB]}, [BOB]),
        (
            "add_observations",
            {
                "observations": [
                    {"entityName": "Bob", "contents": ["sings"]},
                    {"entityName": "Zoë", "contents": ["runs"]},
                ]
            },
            ValueError("Entity with name Zoë not found"),
        ),
        read([BOB], []),
    ],
    "an entity is deleted with its relations": [
        ("create_entities", {"entities": [ANN_ENTITY, BOB, LABS]}, [ANN_ENTITY, BOB, LABS]),
        ("create_relations", {"relations": [WORKS, KNOWS, SUPPLIES]}, [WORKS, KNOWS, SUPPLIES]),
        ("delete_entities", {"entityNames": ["Ann", "Nemo"]}, DELETED_ENTITIES),
        read([BOB, LABS], [SUPPLIES]),
        ("create_entities", {"entities": [ANN_ENTITY]}, [ANN_ENTITY]),
        read([BOB, LABS, ANN_ENTITY], [SUPPLIES]),
    ],
    "observations and relations are deleted": [
        ("create_entities", {"entities": [ANN_ENTITY]}, [ANN_ENTITY]),
        ("create_relations", {"relations": [WORKS, KNOWS]}, [WORKS, KNOWS]),
        (
            "delete_observations",
            {
                "deletions": [
                    {"entityName": "Ann", "observations": ["plays the cello", "sings"]},
                    {"entityName": "Nemo", "observations": ["swims"]},
                ]
            },
            DELETED_OBSERVATIONS,
        ),
        ("delete_relations", {"relations": [WORKS, SUPPLIES]}, DELETED_RELATIONS),
        read([entity("Ann", "person", "works at Harbour Labs")], [KNOWS]),
    ],
    "a search finds parts of words in any case, with the relations at either end": [
        ("create_entities", {"entities": [ANN_ENTITY, BOB, LABS]}, [ANN_ENTITY, BOB, LABS]),
        ("create_relations", {"relations": [WORKS, KNOWS, SUPPLIES]}, [WORKS, KNOWS, SUPPLIES]),
        ("search_nodes", {"query": "ARBOUR"}, graph_of([ANN_ENTITY, LABS], [WORKS, KNOWS, SUPPLIES])),
        ("search_nodes", {"query": "ompan"}, graph_of([LABS], [WORKS, SUPPLIES])),
        ("search_nodes", {"query": "clocks"}, graph_of([BOB], [KNOWS, SUPPLIES])),
        ("search_nodes", {"query": "nothing"}, graph_of([], [])),
        ("open_nodes", {"names": ["Harbour Labs", "Nemo"]}, graph_of([LABS], [WORKS, SUPPLIES])),
        ("open_nodes", {"names": ["ann"]}, graph_of([], [])),
        ("open_nodes", {"names": []}, graph_of([], [])),
    ],
    "any text is returned as it was": [
        ("create_entities", {"entities": [entity('林"月"\\/', "", "住在\n青岛", "\u2028é\x07\x7f")]}, ...),
        ("create_relations", {"relations": [relation('林"月"\\/', "", "")]}, ...),
        read([entity('林"月"\\/', "", "住在\n青岛", "\u2028é\x07\x7f")], [relation('林"月"\\/', "", "")]),
    ],
}
"""Calls in order, each with the JSON in its text, the text itself, or its error; an ellipsis for the argument."""

KEYS = {"create_entities": "entities", "create_relations": "relations", "add_observations": "results"}
"""The key under which the structured result has what the text has."""


@pytest.mark.parametrize("rule", RULES)
async def test_the_tools_follow_the_rules_of_the_reference(tmp_path: Path, rule: str) -> None:
    """Each call returns what the reference server returns, as text and as structure."""
    async with site(tmp_path) as (_, url), client(url + SET) as one:
        for name, arguments, expected in RULES[rule]:
            result = await one.call_tool(name, arguments)
            text = text_of(result)
            if isinstance(expected, ValueError):
                assert (result.is_error, text) == (True, str(expected))
                continue
            assert not result.is_error, text
            if isinstance(expected, str):
                assert text == expected
                assert result.structured_content == {"success": True, "message": expected}
                continue
            wanted = next(iter(arguments.values())) if expected is ... else expected
            assert json.loads(text) == wanted, name
            structure = wanted if isinstance(wanted, dict) else {KEYS[name]: wanted}
            assert result.structured_content == structure


async def test_the_text_is_that_of_the_reference_byte_for_byte(tmp_path: Path) -> None:
    """The text is what `JSON.stringify(graph, null, 2)` returns, also as the resource."""
    async with site(tmp_path) as (_, url), client(url + SET) as one:
        await called(
            one, "create_entities", entities=[entity("林月", "person", 'says "hi"\t'), entity("Bob")]
        )
        await called(one, "create_relations", relations=[relation("Bob", "knows", "林月")])
        found = text_of(await called(one, "read_graph"))
        assert found == (
            '{\n  "entities": [\n    {\n      "name": "林月",\n      "entityType": "person",\n'
            '      "observations": [\n        "says \\"hi\\"\\t"\n      ]\n    },\n'
            '    {\n      "name": "Bob",\n      "entityType": "person",\n      "observations": []\n    }\n  ],\n'
            '  "relations": [\n    {\n      "from": "Bob",\n      "to": "林月",\n      "relationType": "knows"\n'
            "    }\n  ]\n}"
        )
        (listed,) = (await one.list_resources()).resources
        assert str(listed.uri) == "memory://knowledge-graph"
        (content,) = (await one.read_resource(str(listed.uri))).contents
        assert (content.mime_type, content.text) == ("application/json", found)


BAD_CALLS: dict[str, tuple[str, Json, str]] = {
    "missing": ("create_entities", {}, "entities: required"),
    "missing inside": (
        "create_entities",
        {"entities": [{"name": "Ann"}]},
        "entities[0].entityType: required",
    ),
    "wrong type": ("open_nodes", {"names": "Ann"}, "names: not a list"),
    "wrong type inside": ("open_nodes", {"names": ["Ann", 7]}, "names[1]: not a text"),
    "empty name": ("create_entities", {"entities": [entity("")]}, "entities[0].name: 0 characters"),
    "long name": ("create_entities", {"entities": [entity("x" * 501)]}, "allowed: 1-500"),
    "long relation": ("create_relations", {"relations": [relation("x" * 250, "y", "z" * 250)]}, "1-500"),
    "many": ("delete_entities", {"entityNames": ["x"] * 901}, "entityNames: 901 items; allowed: at most 900"),
    "a large entity": ("create_entities", {"entities": [entity("x", "y", "z" * 263_000)]}, "262144"),
}


async def test_a_call_that_cannot_be_done_changes_nothing_and_says_why(tmp_path: Path) -> None:
    """The error names the argument and what is allowed; lookups of impossible names find nothing."""
    async with site(tmp_path) as (_, url), client(url + SET) as one:
        await called(one, "create_entities", entities=[BOB])
        for kind, (name, arguments, words) in BAD_CALLS.items():
            result = await one.call_tool(name, arguments)
            assert result.is_error and words in text_of(result), (kind, text_of(result))
        for name in ("", "x" * 501):
            await called(one, "open_nodes", names=[name])
            await called(one, "delete_entities", entityNames=[name])
        assert json.loads(text_of(await called(one, "read_graph"))) == graph_of([BOB], [])


async def test_concurrent_calls_of_two_clients_lose_nothing(tmp_path: Path) -> None:
    """Each observation, entity and relation of two clients that write at once is there afterwards."""
    async with site(tmp_path) as (_, url), client(url + SET) as one, client(url + SET) as other:
        await called(one, "create_entities", entities=[entity("Ann")])

        async def write(by: Client, place: int) -> None:
            name = f"E{place}"
            added = [{"entityName": "Ann", "contents": [f"fact {place}"]}]
            await asyncio.gather(
                called(by, "create_entities", entities=[entity(name)]),
                called(by, "create_relations", relations=[relation("Ann", "knows", name)]),
                called(by, "add_observations", observations=added),
            )

        await asyncio.gather(*(write(by, place) for place, by in enumerate((one, other) * 3)))
        found = (await called(other, "read_graph")).structured_content
        places = {str(place) for place in range(6)}
        assert {fact.split()[1] for fact in found["entities"][0]["observations"]} == places
        assert {each["name"] for each in found["entities"]} == {"Ann", *(f"E{place}" for place in places)}
        assert {each["to"] for each in found["relations"]} == {f"E{place}" for place in places}


async def test_a_graph_of_several_pages_is_read_in_order_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that no page or batch is large enough for keeps its order, and an entity goes with all relations."""
    monkeypatch.setattr(graph, "MAX_RESULTS", 7)
    monkeypatch.setattr(graph, "MAX_ITEMS", 30)
    names = [f"E{place}" for place in range(20)]
    async with site(tmp_path) as (_, url), client(url + SET) as one:
        large = [entity(name, "x", name * 30_000) for name in names]
        for begin in range(0, 20, 4):
            await called(one, "create_entities", entities=large[begin : begin + 4])
            to_hub = [
                relation(f"{name}-{side}", "near", "E5") for name in names[begin : begin + 4] for side in "ab"
            ]
            await called(one, "create_relations", relations=to_hub)
        found = (await called(one, "read_graph")).structured_content
        assert found["entities"] == large
        assert [each["from"] for each in found["relations"]] == [
            f"{name}-{side}" for name in names for side in "ab"
        ]
        await called(one, "delete_entities", entityNames=["E5"])
        left = (await called(one, "search_nodes", query="e")).structured_content
        assert left == graph_of([each for each in large if each["name"] != "E5"], [])


async def test_the_set_is_offered_over_http_and_standard_input(tmp_path: Path) -> None:
    """The path, `/mcp` with a header and `ebbtide mcp --tools graph` reach one graph, as the key allows."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    key, reader = (new_key(tmp_path, *scopes, agents=["ann"]) for scopes in (("read", "write"), ("read",)))
    async with site(tmp_path, access=KEYS_ON) as (_, url):
        bearer = {"Authorization": f"Bearer {key}"}
        async with client(url + SET, **bearer) as one:
            assert [tool.name for tool in (await one.list_tools()).tools] == NAMES
            hints = {tool.name: tool.annotations for tool in (await one.list_tools()).tools}
            assert hints["read_graph"].read_only_hint and hints["delete_entities"].destructive_hint
            await called(one, "create_entities", entities=[BOB])
        async with client(f"{url}/mcp", "legacy", **bearer, **{"X-Ebbtide-Tools": "graph"}) as one:
            assert "Bob" in text_of(await called(one, "read_graph"))
        arguments = ["-m", "ebbtide", "mcp", "--agent", "ann", "--tools", "graph", "--url", url]
        started = StdioServerParameters(command=sys.executable, args=arguments, env={"EBBTIDE_API_KEY": key})
        async with Client(stdio_client(started), mode="legacy") as one:
            assert "clocks" in text_of(await called(one, "open_nodes", names=["Bob"]))
        async with client(url + SET, Authorization=f"Bearer {reader}") as one:
            refused = await one.call_tool("create_entities", {"entities": [LABS]})
            assert refused.is_error and "write" in text_of(refused)
            assert "Bob" in text_of(await called(one, "search_nodes", query="clock"))


async def test_a_file_of_the_reference_server_can_be_moved(tmp_path: Path) -> None:
    """The script on the page of integrations moves a `memory.jsonl` as it is."""
    (script,) = re.findall(r"```python\n(import asyncio.*?)```", read_page("docs/integrations.md"), re.DOTALL)
    definition, _, _ = script.partition("asyncio.run")
    lines = [{"type": "entity", **ANN_ENTITY}, {"type": "entity", **LABS}, {"type": "relation", **WORKS}]
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    names: Json = {}
    exec(definition, names)
    async with site(tmp_path / "data") as (_, url), client(url + SET) as one:
        await names["move"](str(file), url + SET)
        assert (await called(one, "read_graph")).structured_content == graph_of([ANN_ENTITY, LABS], [WORKS])


async def test_names_are_redacted_alike_in_entities_and_relations(tmp_path: Path) -> None:
    """Under the policy `redact`, the same name is found again, and no personal data is returned or stored."""
    name = "ann.lee@example.com"
    async with site(tmp_path, memory={"pii": "redact"}) as (_, url), client(url + SET) as one:
        await called(one, "create_entities", entities=[entity(name, "person", f"writes from {name}"), BOB])
        await called(one, "create_relations", relations=[relation(name, "knows", "Bob")])
        again = await called(one, "create_entities", entities=[entity(name)])
        assert again.structured_content == {"entities": []}
        found = await called(one, "open_nodes", names=[name])
        assert len(found.structured_content["relations"]) == 1 and name not in text_of(found)
        await called(one, "delete_entities", entityNames=[name])
        left = (await called(one, "read_graph")).structured_content
        assert left == graph_of([BOB], [])
