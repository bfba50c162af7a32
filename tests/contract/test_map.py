"""The map of a memory, and nodes by their ids, over every transport."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebbtide.rpc import convert
from ebbtide.verbs import columns, memory_map, service
from ebbtide.verbs.memory_map import MapLinks
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn

AGENT = "/v1/agents/ann"
KINDS = "episode,entity,allergy,fact,event,relation,opinion,preference,task,reflection"
SAID = (
    "I moved to Lisbon in the spring of last year, together with my cat Miso.",
    "My sister Clara is a carpenter and she builds wooden boats in Porto.",
    "Clara visits me in Lisbon with Miso's brother every summer.",
)


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


async def ok(call: Caller, method: str, path: str, body: Any = None, **params: Any) -> Any:
    answer = await call(method, f"{AGENT}{path}", body, params=params)
    assert answer.status_code < 300, answer.json()
    return answer.json()


async def lived(call: Caller) -> None:
    """Make an agent with a focus, a pin, entities, a kept statement, a kind of its own and faded links."""
    await ok(call, "PUT", "", {"focus_limit": 2, "segment_max_chars": 80})
    for text in SAID:
        await ok(
            call, "POST", "/remember", {"messages": [{"role": "user", "speaker": "Ann", "content": text}]}
        )
        await ok(call, "POST", "/flush", {"timeout_ms": 10_000, "passes": True})
    fact = {"subject": "user", "topic": "residence", "object": "Lisbon", "content": "I live in Lisbon."}
    await ok(call, "POST", "/statements", fact)
    await ok(call, "POST", "/nodes", {"content": "Ann is allergic to nuts.", "kind": "allergy"})
    await ok(call, "PUT", "/nodes/n1/pin")
    await ok(call, "POST", "/compress", {"passes": 3})
    await ok(call, "POST", "/flush", {"timeout_ms": 10_000, "passes": True})


def rounded(values: list[float]) -> list[float]:
    """Round numbers that gRPC sends with 32 bits."""
    return [round(value, 3) for value in values]


def rows(table: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in columns."""
    return zip(*(rounded(column) for column in table.values()), strict=True)


def number(node_id: str) -> int:
    return int(node_id.removeprefix("n"))


async def test_the_map_equals_what_the_other_reads_return(tmp_path: Path, caller_in: CallerIn) -> None:
    """Importances, lengths, scans, kinds, focus, links, pass and event are those of the reads of single nodes."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        found = await ok(call, "GET", "/map", links="all")
        nodes = (await ok(call, "GET", "/nodes", kinds=KINDS, page_size=1000))["nodes"]
        assert {node["kind"] for node in nodes} >= {"episode", "entity", "fact", "allergy"}
        assert any(node["pinned"] == "by_hand" for node in nodes)
        assert list(rows(found["nodes"])) == [
            (
                number(node["id"]),
                found["kinds"].index(node["kind"]),
                round(node["importance"], 3),
                len(node["content"]),
                node["original_length"],
                node["scan_count"],
                node["created_at"] or 0,
            )
            for node in nodes
        ]
        assert sorted(found["kinds"]) == sorted({node["kind"] for node in nodes})
        links = (await ok(call, "GET", "/links", page_size=1000))["links"]
        assert any(0 < link["strength"] < 1 for link in links)
        assert sorted(rows(found["links"])) == sorted(
            (
                number(link["source"]),
                number(link["target"]),
                found["relations"].index(link["relation"]),
                round(link["strength"], 3),
            )
            for link in links
        )
        assert found["links"]["source"] == sorted(found["links"]["source"])
        focus = await ok(call, "GET", "/focus")
        assert found["focus"] == [number(one["id"]) for one in (*focus["nodes"], *focus["entities"])]
        assert found["pass_number"] == (await ok(call, "GET", ""))["finished_passes"] > 3
        assert found["next_node"] > max(found["nodes"]["id"])
        last = found["last_event"]
        assert (await call("GET", f"{AGENT}/events", params={"after": last - 1, "follow": False})).text
        beyond = await call("GET", f"{AGENT}/events", params={"after": last + 1, "follow": False})
        assert beyond.json()["error"]["reason"] == "EVENTS_GONE"
        assert found["first_event"] == 1
        without = await ok(call, "GET", "/map")
        assert without["nodes"] == found["nodes"]
        assert without["links"] == {"source": [], "target": [], "relation": [], "strength": []}
        assert without["relations"] == []


async def test_the_pages_of_a_map_are_the_map(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every node and link is on exactly one page, also where one node has more links than a page."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        whole = await ok(call, "GET", "/map", links="all")
        most = 3
        assert max(map(whole["links"]["source"].count, whole["links"]["source"])) > most
        monkeypatch.setattr(memory_map, "MAX_LINKS", most)
        for size in (1, 2, 100):
            nodes, links, token = [], [], ""
            while True:
                page = await ok(call, "GET", "/map", links="all", page_size=size, page_token=token)
                assert len(page["nodes"]["id"]) <= size
                assert len(page["links"]["source"]) <= most
                nodes += [(*row, page["kinds"][row[1]]) for row in rows(page["nodes"])]
                links += [(row[0], row[1], page["relations"][row[2]], row[3]) for row in rows(page["links"])]
                if not (token := page["next_page_token"]):
                    break
            assert [(*row[:1], *row[2:]) for row in nodes] == [
                (*row[:1], *row[2:], whole["kinds"][row[1]]) for row in rows(whole["nodes"])
            ]
            assert links == [
                (row[0], row[1], whole["relations"][row[2]], row[3]) for row in rows(whole["links"])
            ]


async def test_a_map_keeps_no_name_of_what_was_deleted(tmp_path: Path, caller_in: CallerIn) -> None:
    """Kinds and relations that only deleted nodes had are not in the response; their ids count as used."""
    async with caller_in(tmp_path) as call:
        empty = await call("PUT", AGENT)
        assert empty.status_code == 201
        assert (await ok(call, "GET", "/map", links="all"))["nodes"]["id"] == []
        kept, gone = [
            (await ok(call, "POST", "/nodes", {"content": f"Memory {kind}.", "kind": kind}))["id"]
            for kind in ("plain", "secret")
        ]
        await ok(call, "POST", "/links", {"source": kept, "target": gone, "relation": "confides"})
        before = await ok(call, "GET", "/map", links="all")
        assert "secret" in before["kinds"] and "confides" in before["relations"]
        await ok(call, "DELETE", f"/nodes/{gone}")
        after = await ok(call, "GET", "/map", links="all")
        assert "secret" not in json.dumps(after) and "confides" not in json.dumps(after)
        assert number(gone) not in after["nodes"]["id"]
        assert after["next_node"] == before["next_node"]
        refused = await call("GET", f"{AGENT}/map", params={"page_size": 100_001})
        assert refused.json()["error"]["reason"] == "INVALID_PAGE"


async def test_nodes_are_returned_by_their_ids(tmp_path: Path, caller_in: CallerIn) -> None:
    """They come once each in the order of the request, of any kind, without the dead; in detail on request."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        every = {one["id"]: one for one in (await ok(call, "GET", "/nodes", kinds=KINDS))["nodes"]}
        chosen = [*reversed(every)][:5]
        found = await ok(call, "GET", "/nodes", ids=",".join([*chosen, "n999", chosen[0]]))
        assert (found["nodes"], found["next_page_token"]) == ([every[one] for one in chosen], "")
        assert not found.get("details")
        await ok(call, "DELETE", "/nodes/n1")
        assert (await ok(call, "GET", "/nodes", ids="n1"))["nodes"] == []
        found = await ok(call, "GET", "/nodes", ids=",".join([*chosen, "n1", chosen[0]]), details=True)
        assert found == {
            "nodes": [],
            "next_page_token": "",
            "details": [await ok(call, "GET", f"/nodes/{one}") for one in chosen],
        }
        assert (await ok(call, "GET", "/nodes", ids="n1", details=True))["details"] == []
        error = (await call("GET", f"{AGENT}/nodes", params={"details": True})).json()["error"]
        assert (error["reason"], error["field_violations"][0]["field"]) == ("INVALID_VALUE", "details")
        for ids, reason, field in (
            ("n1,m2", "INVALID_VALUE", "ids[1]"),
            (",".join(["n1"] * 101), "TOO_MANY_ITEMS", "ids"),
        ):
            error = (await call("GET", f"{AGENT}/nodes", params={"ids": ids})).json()["error"]
            assert (error["reason"], error["field_violations"][0]["field"]) == (reason, field)
        for name, value in {"kinds": "fact", "newest_first": True}.items():
            answer = await call("GET", f"{AGENT}/nodes", params={"ids": "n1", name: value})
            assert answer.json()["error"]["field_violations"][0]["field"] == name


async def test_a_large_map_is_encoded_outside_the_event_loop(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From LARGE_BYTES on, columns are converted on another thread."""
    threads = set()

    def observed(column: Any) -> Any:
        if isinstance(column, np.ndarray):
            threads.add(threading.current_thread())
        return original(column)

    original = columns.parts
    async with caller_in(tmp_path) as call:
        await lived(call)
        for module in (columns, convert):
            monkeypatch.setattr(module, "parts", observed)
        await ok(call, "GET", "/map")
        assert threads == {threading.current_thread()}
        threads.clear()
        monkeypatch.setattr(service, "LARGE_BYTES", 100)
        await ok(call, "GET", "/map")
        assert threads and threading.current_thread() not in threads


def test_columns_of_any_length_are_lists_in_json() -> None:
    """A column of any length becomes one JSON list."""
    most = columns.NUMBERS_AT_ONCE
    for count in (0, 1, most - 1, most, most + 1, 2 * most):
        numbers = np.arange(count)
        found = json.loads(
            MapLinks(source=numbers, target=numbers * 2, relation=numbers, strength=numbers / 8).as_json()
        )
        assert found["source"] == list(range(count))
        assert found["strength"] == [one / 8 for one in range(count)]
