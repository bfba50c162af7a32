"""Every operation over every transport: the same cases, fields, limits and errors.

A transport is a caller of `tests/support/callers.py`: it calls an operation by its route and returns status, reason
and body. Cases for a single transport use its caller directly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ebbtide import __version__
from tests.support.callers import Caller, CallerIn, grpc_in, rest_in, unless_unsayable
from tests.support.forwarded import ALL_CALLERS
from tests.support.keys import KEYS_ON
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
HELLO = {
    "messages": [{"role": "user", "speaker": "Ann", "content": "I moved to Lisbon in May with my cat Miso."}]
}


@pytest.fixture(params=ALL_CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


async def settled(call: Caller, *batches: Any) -> None:
    for batch in batches or (HELLO,):
        assert (await call("POST", f"{AGENT}/remember", batch)).status_code == 202
    everything = {"timeout_ms": 10_000, "passes": True, "vectors": True}
    flushed = await call("POST", f"{AGENT}/flush", everything)
    assert flushed.json()["digested"] is True


async def test_remember_answers_202_with_a_batch_that_can_be_followed(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """An acknowledged batch has an id, a Location and a status that ends in `digested` with its nodes."""
    async with caller_in(tmp_path) as call:
        response = await call("POST", f"{AGENT}/remember", HELLO)
        assert response.status_code == 202
        assert response.json() == {
            "batch_id": "b1",
            "pending_batches": 1,
            "pii": {},
            "dropped_recalled": 0,
            "collapsed": 0,
        }
        if call.transport == "rest":
            assert response.headers["location"] == f"{AGENT}/batches/b1"
        await call("POST", f"{AGENT}/flush", {})
        batch = (await call("GET", f"{AGENT}/batches/b1")).json()
        assert batch["state"] == "digested"
        assert batch["node_ids"] == ["n1"]
        assert batch["digested_at"] >= batch["accepted_at"]


async def test_recall_is_byte_for_byte_as_specified(tmp_path: Path, caller_in: CallerIn) -> None:
    """The text is exactly the marked content. The counts are separate fields."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        answer = (await call("POST", f"{AGENT}/recall", {"keywords": ["LISBON"]})).json()
        # Protobuf cannot distinguish absent from empty.
        unasked = {} if call.transport == "rest" else {"memories": [], "explanation": None, "records": []}
        assert answer == unasked | {
            "text": "[Memory] Ann: I moved to Lisbon in May with my cat Miso.",
            "pending_batches": 0,
            "parked_batches": 0,
            "unembedded_messages": 0,
            "relations_unknown": [],
        }


async def test_recall_in_chinese_marks_and_separates_memories(tmp_path: Path, caller_in: CallerIn) -> None:
    """Chinese memories are marked in Chinese; the separator is between blocks, newest focus first."""
    async with caller_in(tmp_path) as call:
        await settled(
            call,
            {"messages": [{"role": "user", "content": "我五月搬到了青岛，住在海边的一栋老房子里。"}]},
            {"messages": [{"role": "user", "content": "我的猫叫豆包，今年三岁了，最喜欢晒太阳。"}]},
        )
        text = (await call("POST", f"{AGENT}/recall", {})).json()["text"]
        assert (
            text
            == "[记忆] 我的猫叫豆包，今年三岁了，最喜欢晒太阳。\n---\n[记忆] 我五月搬到了青岛，住在海边的一栋老房子里。"
        )


async def test_recall_returns_plain_text_on_request(tmp_path: Path) -> None:
    """`Accept: text/plain` gets the bare text, with the counts in headers; any other value gets JSON."""
    async with rest_in(tmp_path) as call:
        await settled(call)
        plain = await call("POST", f"{AGENT}/recall", {}, headers={"Accept": "text/plain"})
        assert plain.headers["content-type"] == "text/plain; charset=utf-8"
        assert plain.text.startswith("[Memory] Ann:")
        assert plain.headers["x-pending-batches"] == "0"
        assert plain.headers["x-parked-batches"] == "0"
        for accept in ("*/*", "application/json", "text/plain;q=0.5, application/json"):
            response = await call("POST", f"{AGENT}/recall", {}, headers={"Accept": accept})
            assert response.headers["content-type"] == "application/json"


async def test_an_unknown_keyword_recalls_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A recall without matches is the empty string, not an error."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        assert (await call("POST", f"{AGENT}/recall", {"keywords": ["zebra"]})).json()["text"] == ""


async def test_reads_never_create_an_agent(tmp_path: Path, caller_in: CallerIn) -> None:
    """Every operation except remember, recall, search and PUT returns AGENT_NOT_FOUND for an unknown agent."""
    async with caller_in(tmp_path) as call:
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"decay_rate": 0.9}),
            ("DELETE", "", None),
            ("POST", "/flush", {}),
            ("POST", "/compress", {}),
            ("POST", "/close", None),
            ("GET", "/batches", None),
            ("GET", "/batches/b1", None),
            ("POST", "/batches/b1/retry", None),
            ("GET", "/focus", None),
            ("GET", "/nodes", None),
            ("GET", "/nodes/n1", None),
            ("DELETE", "/nodes/n1", None),
            ("PATCH", "/nodes/n1", {"content": "x"}),
            ("POST", "/nodes/delete", {"node_ids": ["n1"]}),
            ("GET", "/links", None),
            ("GET", "/entities", None),
            ("PUT", "/nodes/n1/pin", None),
            ("DELETE", "/nodes/n1/pin", None),
            ("PUT", "/focus/n1", None),
            ("DELETE", "/focus/n1", None),
        ):
            assert await call.refused(method, AGENT + path, body) == "AGENT_NOT_FOUND", path
        assert (await call("GET", "/v1/agents")).json() == {"agents": [], "next_page_token": ""}


@pytest.mark.parametrize(
    ("body", "reason", "field"),
    [
        ({}, "EMPTY_MESSAGES", "messages"),
        ({"messages": []}, "EMPTY_MESSAGES", "messages"),
        ({"messages": "hello"}, "WRONG_TYPE", "messages"),
        ({"messages": [{"role": "user"}]}, "MISSING_FIELD", "messages[0].content"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "INVALID_VALUE", "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "WRONG_TYPE", "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x", "time": 1}]}, "UNKNOWN_FIELD", "messages[0].time"),
        (
            {"messages": [{"role": "user", "content": "x", "timestamp": "1"}]},
            "WRONG_TYPE",
            "messages[0].timestamp",
        ),
        (
            {"messages": [{"role": "user", "content": "x", "timestamp": 1e30}]},
            "WRONG_TYPE",
            "messages[0].timestamp",
        ),
        (
            {"messages": [{"role": "user", "content": "x", "timestamp": 10**18}]},
            "INVALID_VALUE",
            "messages[0].timestamp",
        ),
        ({"messages": [{"role": "user", "content": "x" * 100_001}]}, "TEXT_TOO_LONG", "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": "x", "speaker": "x" * 201}]},
            "TEXT_TOO_LONG",
            "messages[0].speaker",
        ),
        (
            {"messages": [{"role": "user", "content": "x", "id": "x" * 201}]},
            "TEXT_TOO_LONG",
            "messages[0].id",
        ),
        ({"messages": [{"role": "user", "content": "x"}] * 1001}, "TOO_MANY_MESSAGES", "messages"),
        ({**HELLO, "metadata": {"k": "v" * 5000}}, "METADATA_TOO_LARGE", "metadata"),
        ({**HELLO, "metadata": ["v"]}, "WRONG_TYPE", "metadata"),
        ({**HELLO, "conversation_id": "c" * 201}, "TEXT_TOO_LONG", "conversation_id"),
        ({**HELLO, "idempotency_key": ""}, "INVALID_VALUE", "idempotency_key"),
        ({**HELLO, "idempotency_key": "k" * 201}, "TEXT_TOO_LONG", "idempotency_key"),
        ({**HELLO, "query": "x"}, "UNKNOWN_FIELD", "query"),
    ],
)
async def test_a_bad_remember_is_refused_whole(
    tmp_path: Path, caller_in: CallerIn, body: Any, reason: str, field: str
) -> None:
    """Invalid input names its field and reason, and nothing is stored: neither the batch nor the agent."""
    async with caller_in(tmp_path) as call:
        with unless_unsayable(reason):
            response = await call("POST", f"{AGENT}/remember", body)
            error = response.json()["error"]
            assert (response.status_code, error["reason"]) == (400, reason)
            assert error["field_violations"][0]["field"] == field
            assert field.partition("[")[0] in error["message"]
        assert (await call("GET", "/v1/agents")).json()["agents"] == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"messages": NaN}',
        b'{"messages":[{"role":"user","content":"\\ud800"}]}',
        b"{}{}",
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(tmp_path: Path, raw: bytes) -> None:
    """Broken JSON, NaN, lone surrogates and values other than an object are INVALID_JSON."""
    async with rest_in(tmp_path) as call:
        headers = {"Content-Type": "application/json"}
        reason = await call.refused("POST", f"{AGENT}/remember", content=raw, headers=headers)
        assert reason == "INVALID_JSON"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"depth": 9}, "INVALID_DEPTH"),
        ({"depth": -1}, "INVALID_DEPTH"),
        ({"depth": 1.5}, "WRONG_TYPE"),
        ({"depth": True}, "WRONG_TYPE"),
        ({"depth": "2"}, "WRONG_TYPE"),
        ({"keywords": "cat"}, "WRONG_TYPE"),
        ({"keywords": [1]}, "WRONG_TYPE"),
        ({"keywords": [""]}, "INVALID_VALUE"),
        ({"keywords": [" \t"]}, "INVALID_VALUE"),
        ({"keywords": ["k"] * 65}, "TOO_MANY_ITEMS"),
        ({"keywords": ["k" * 201]}, "TEXT_TOO_LONG"),
        ({"relations": ["r"] * 65}, "TOO_MANY_ITEMS"),
        ({"relations": ["r" * 33]}, "TEXT_TOO_LONG"),
        ({"relations": [""]}, "INVALID_VALUE"),
        ({"relations": ["about", " "]}, "INVALID_VALUE"),
        ({"max_results": -1}, "INVALID_VALUE"),
        ({"max_results": 10_001}, "INVALID_VALUE"),
        ({"patience_ms": 30_001}, "INVALID_VALUE"),
        ({"keyword": ["cat"]}, "UNKNOWN_FIELD"),
    ],
)
async def test_a_bad_recall_is_refused(tmp_path: Path, caller_in: CallerIn, body: Any, reason: str) -> None:
    """Every bound of a cue has its reason."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        with unless_unsayable(reason):
            response = await call("POST", f"{AGENT}/recall", body)
            assert (response.status_code, response.json()["error"]["reason"]) == (400, reason)


async def test_put_creates_then_finds_then_refuses_differences(tmp_path: Path, caller_in: CallerIn) -> None:
    """PUT is 201, then 200 for the same parameters, then 409 PARAMETERS_DIFFER for others; PATCH changes them."""
    async with caller_in(tmp_path) as call:
        created = await call("PUT", AGENT, {"decay_rate": 0.9, "locale": "zh"})
        assert created.status_code == 201
        assert created.json()["parameters"]["decay_rate"] == 0.9
        assert (await call("PUT", AGENT, {"decay_rate": 0.9})).status_code == 200
        assert (await call("PUT", AGENT)).status_code == 200
        assert await call.refused("PUT", AGENT, {"decay_rate": 0.8}) == "PARAMETERS_DIFFER"
        patched = await call("PATCH", AGENT, {"decay_rate": 0.8, "locale": None})
        assert patched.json()["parameters"]["decay_rate"] == 0.8
        assert patched.json()["parameters"]["locale"] == "auto"
        assert (await call("GET", AGENT)).json()["parameters"] == patched.json()["parameters"]


async def test_parameters_are_at_the_top_level(tmp_path: Path) -> None:
    """PUT and PATCH refuse parameters under `parameters`, and say where they belong."""
    async with rest_in(tmp_path) as call:
        for method in ("PUT", "PATCH"):
            error = (await call(method, AGENT, {"parameters": {"decay_rate": 0.9}})).json()["error"]
            assert error["reason"] == "UNKNOWN_FIELD"
            assert error["message"] == (
                "parameters: no such field; send the parameters at the top level of the body"
            )


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"decay_rate": 0}, "INVALID_VALUE"),
        ({"decay_rate": 1.01}, "INVALID_VALUE"),
        ({"decay_rate": "0.9"}, "WRONG_TYPE"),
        ({"focus_limit": 0}, "INVALID_VALUE"),
        ({"focus_limit": 65}, "INVALID_VALUE"),
        ({"focus_limit": 2.5}, "WRONG_TYPE"),
        ({"focus_policy": "entities"}, "INVALID_VALUE"),
        ({"strategy": "slots", "max_nodes": 104}, "INVALID_PARAMETERS"),
        ({"segment_max_chars": 19}, "INVALID_VALUE"),
        ({"decay": 0.9}, "UNKNOWN_FIELD"),
        ({"decay": None}, "UNKNOWN_FIELD"),
    ],
)
async def test_parameters_are_bounded(
    tmp_path: Path, caller_in: CallerIn, parameters: Any, reason: str
) -> None:
    """Each parameter has its range, in PUT and PATCH; a refused PATCH changes nothing."""
    async with caller_in(tmp_path) as call:
        with unless_unsayable(reason):
            assert await call.refused("PUT", AGENT, parameters) == reason
        assert await call.refused("GET", AGENT) == "AGENT_NOT_FOUND"
        before = (await call("PUT", AGENT)).json()
        with unless_unsayable(reason):
            assert await call.refused("PATCH", AGENT, parameters) == reason
        assert (await call("GET", AGENT)).json() == before


async def test_idempotency_does_the_work_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """The same key and body return the first batch, also after a restart; another body is refused."""
    body = {**HELLO, "idempotency_key": "k1"}
    for life in range(2):
        async with caller_in(tmp_path) as call:
            first = await call("POST", f"{AGENT}/remember", body)
            again = await call("POST", f"{AGENT}/remember", body)
            assert first.json()["batch_id"] == again.json()["batch_id"] == "b1", life
            other = {"messages": [{"role": "user", "content": "Something else."}], "idempotency_key": "k1"}
            assert await call.refused("POST", f"{AGENT}/remember", other) == "IDEMPOTENCY_KEY_REUSED"
            await call("POST", f"{AGENT}/flush", {})
            assert len((await call("GET", f"{AGENT}/batches")).json()["batches"]) == 1


async def test_the_idempotency_header_is_the_field(tmp_path: Path) -> None:
    """`Idempotency-Key` equals the field. Two values and an empty one are refused."""
    body = {**HELLO, "idempotency_key": "k1"}
    async with rest_in(tmp_path) as call:
        await call("POST", f"{AGENT}/remember", body)
        by_header = await call("POST", f"{AGENT}/remember", HELLO, headers={"Idempotency-Key": "k1"})
        assert by_header.json()["batch_id"] == "b1"
        reason = await call.refused("POST", f"{AGENT}/remember", body, headers={"Idempotency-Key": "k2"})
        assert reason == "IDEMPOTENCY_KEYS_DIFFER"
        for headers in ([("Idempotency-Key", "")], [("Idempotency-Key", key) for key in ("k1", "k2")]):
            error = (await call("POST", f"{AGENT}/remember", HELLO, headers=headers)).json()["error"]
            assert error["reason"] == "INVALID_VALUE"
            assert error["message"].startswith("Idempotency-Key: ")
            assert error["field_violations"][0]["field"] == "Idempotency-Key"


async def test_a_full_inbox_refuses_and_keeps_what_it_has(tmp_path: Path, caller_in: CallerIn) -> None:
    """At max_queue_size batches remember is 429 QUEUE_FULL with Retry-After, and stores nothing."""
    model = ScriptedModel()
    model.always["segment"] = 60.0
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"max_queue_size": 2})
        for _ in range(2):
            assert (await call("POST", f"{AGENT}/remember", HELLO)).status_code == 202
        response = await call("POST", f"{AGENT}/remember", HELLO)
        assert (response.status_code, response.json()["error"]["reason"]) == (429, "QUEUE_FULL")
        assert int(response.headers["retry-after"]) >= 1
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 2


async def test_inspection_shows_the_network(tmp_path: Path, caller_in: CallerIn) -> None:
    """Nodes, links, focus and sources can be inspected, with current strengths."""
    batch = {
        "messages": [
            {
                "role": "user",
                "id": "m1",
                "speaker": "林月",
                "content": "外婆住在团岛的灯塔旁边，每天早上都去看海。",
                "timestamp": 5,
            },
            {"role": "assistant", "content": "The lighthouse keeper waved at the small boats every morning."},
        ],
        "conversation_id": "c1",
    }
    async with caller_in(tmp_path) as call:
        await settled(call, batch)
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert [node["id"] for node in nodes] == ["n1", "n2"]
        first = nodes[0]
        assert (first["label"], first["content"]) == ("林月: ", "外婆住在团岛的灯塔旁边，每天早上都去看海。")
        assert first["pinned"] == "none"
        assert first["created_at"] == 5
        assert first["original_length"] == len(first["content"])
        (source,) = first["sources"]
        told = batch["messages"][0]["content"].encode()  # type: ignore[index,union-attr]
        assert told[source["offset"] : source["offset"] + source["length"]].decode() in first["content"]
        assert (source["message_id"], source["speaker"], source["timestamp"], source["conversation_id"]) == (
            "m1",
            "林月",
            5,
            "c1",
        )
        assert nodes[1]["label"] == "assistant: "
        detail = (await call("GET", f"{AGENT}/nodes/n1")).json()
        assert detail["first_content"] == first["content"]
        named = {entity["id"]: entity["name"] for entity in detail["entities"]}
        assert "团岛" in named.values()
        assert {link["strength"] for link in detail["links_out"]} == {1.0}  # held, since n1 is in focus
        outgoing = {link["target"]: link["relation"] for link in detail["links_out"]}
        incoming = {link["source"]: link["relation"] for link in detail["links_in"]}
        assert (outgoing.pop("n2"), incoming.pop("n2")) == ("下文", "上文")
        assert outgoing == incoming  # one name for both directions
        assert outgoing.keys() == named.keys()
        assert detail["dangling"] == []
        focus = (await call("GET", f"{AGENT}/focus")).json()["nodes"]
        assert [node["id"] for node in focus] == ["n2", "n1"]
        assert await call.refused("GET", f"{AGENT}/nodes/n9") == "NODE_NOT_FOUND"
        assert await call.refused("GET", f"{AGENT}/nodes/zebra") == "NODE_NOT_FOUND"
        assert await call.refused("GET", f"{AGENT}/batches/b9") == "BATCH_NOT_FOUND"
        assert await call.refused("POST", f"{AGENT}/batches/b1/retry") == "BATCH_NOT_PARKED"


async def test_a_recall_reports_forgotten_memories(tmp_path: Path, caller_in: CallerIn) -> None:
    """A forgotten node is NODE_FORGOTTEN, and a memory that linked to it reports the gap."""
    async with caller_in(tmp_path) as call:
        await call(
            "PUT",
            AGENT,
            {"decay_rate": 0.3, "focus_limit": 2, "entities_per_memory": 0, "link_break_threshold": 0.001},
        )
        await settled(
            call,
            *(
                {
                    "messages": [
                        {"role": "user", "content": f"第{i}天我们去了{place}散步，还捡到了一个{thing}。"}
                    ]
                }
                for i, (place, thing) in enumerate(
                    [
                        ("海边", "贝壳"),
                        ("山上", "松果"),
                        ("公园", "风筝"),
                        ("河边", "石头"),
                        ("沙漠", "仙人掌"),
                        ("雪地", "脚印"),
                    ]
                )
            ),
        )
        assert await call.refused("GET", f"{AGENT}/nodes/n1") == "NODE_FORGOTTEN"
        dangling = [
            (await call("GET", f"{AGENT}/nodes/{node['id']}")).json()["dangling"]
            for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        ]
        assert any(link["target"] == "n1" for links in dangling for link in links)
        # Links that state only an order are reported if nothing matches.
        told = (await call("POST", f"{AGENT}/recall", {"keywords": ["灯塔"], "depth": 8})).json()["text"]
        assert "，但我想不起来了" in told
        links = (await call("GET", f"{AGENT}/links")).json()["links"]
        assert any(link["dangling"] and link["target"] == "n1" for link in links)


async def test_listings_page_without_loss_or_repeat(tmp_path: Path, caller_in: CallerIn) -> None:
    """Pages of any size together are the whole listing, for nodes, links, batches and agents."""
    async with caller_in(tmp_path) as call:
        await settled(
            call,
            *(
                {"messages": [{"role": "user", "content": f"Day {i}: we walked along the northern beach."}]}
                for i in range(7)
            ),
        )
        for name in ("bea", "Čeněk", "dan"):
            await call("PUT", f"/v1/agents/{name}")
        for path, key in (
            (f"{AGENT}/nodes", "nodes"),
            (f"{AGENT}/links", "links"),
            (f"{AGENT}/batches", "batches"),
            ("/v1/agents", "agents"),
        ):
            whole = (await call("GET", path, params={"page_size": 1000})).json()[key]
            assert len(whole) >= 4
            for size in (1, 2, 3):
                pages: list[Any] = []
                token = ""
                while True:
                    page = (await call("GET", path, params={"page_size": size, "page_token": token})).json()
                    assert len(page[key]) <= size
                    pages += page[key]
                    token = page["next_page_token"]
                    if not token:
                        break
                assert pages == whole, (path, size)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"page_size": 0}, "INVALID_PAGE"),
        ({"page_size": 1001}, "INVALID_PAGE"),
        ({"page_token": "???"}, "INVALID_PAGE"),
        ({"page_token": "bm9kZXM6eA"}, "INVALID_PAGE"),
        ({"page": 2}, "UNKNOWN_FIELD"),
    ],
)
async def test_bad_pages_are_refused(tmp_path: Path, caller_in: CallerIn, options: Any, reason: str) -> None:
    """An unusable page size or token is refused, and so is an unknown option."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        assert await call.refused("GET", f"{AGENT}/nodes", params=options) == reason


async def test_a_page_size_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """A page size that protobuf cannot express is INVALID_PAGE over REST too."""
    async with rest_in(tmp_path) as call:
        await settled(call)
        reason = await call.refused("GET", f"{AGENT}/nodes", params={"page_size": "many"})
        assert reason == "INVALID_PAGE"


async def test_batches_are_listed_by_state(tmp_path: Path, caller_in: CallerIn) -> None:
    """`state` filters; an unknown state is refused."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        assert len((await call("GET", f"{AGENT}/batches?state=digested")).json()["batches"]) == 1
        assert (await call("GET", f"{AGENT}/batches?state=parked")).json()["batches"] == []
        assert await call.refused("GET", f"{AGENT}/batches?state=lost") == "INVALID_VALUE"


async def test_compress_owes_passes_up_to_the_limit(tmp_path: Path, caller_in: CallerIn) -> None:
    """Requested passes run; more than max_owed_passes are refused, and so are fewer than one."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        done = (await call("GET", AGENT)).json()["finished_passes"]
        assert (await call("POST", f"{AGENT}/compress", {"passes": 3})).status_code == 200
        await call("POST", f"{AGENT}/flush", {"passes": True})
        info = (await call("GET", AGENT)).json()
        assert (info["finished_passes"], info["owed_passes"]) == (done + 3, 0)
        assert await call.refused("POST", f"{AGENT}/compress", {"passes": 101}) == "TOO_MANY_PASSES"
        assert await call.refused("POST", f"{AGENT}/compress", {"passes": 0}) == "INVALID_VALUE"
        assert await call.refused("POST", f"{AGENT}/flush", {"timeout_ms": 600_001}) == "INVALID_VALUE"


async def test_passes_can_be_owed_by_tokens(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under `pass_every_tokens`, batches add up to a pass, also over a restart of the agent; 0 is one a batch again."""

    async def remember(*numbers: int) -> int:
        await settled(
            call,
            *({"messages": [{"role": "user", "content": f"I saw {one} gulls today."}]} for one in numbers),
        )
        return int((await call("GET", AGENT)).json()["finished_passes"])

    async with caller_in(tmp_path) as call:
        assert (await call("PUT", AGENT, {"pass_every_tokens": 25})).status_code == 201
        assert await remember(1, 2, 3) == 0, "8 tokens each"
        await call("POST", f"{AGENT}/close")
        assert await remember(4) == 1, "32 of 25 tokens"
        assert await remember(5, 6, 7) == 2, "56 of 50 tokens"
        assert (await call("PATCH", AGENT, {"pass_every_tokens": 0})).status_code == 200
        assert await remember(8, 9) == 4
        refused = {"pass_every_tokens": 1_000_001}
        assert await call.refused("PATCH", AGENT, refused) == "INVALID_VALUE"


async def test_results_have_the_creation_time_of_their_node(tmp_path: Path, caller_in: CallerIn) -> None:
    """`created_at` is when it was said, or else when its message was accepted."""
    texts = {"I moved to Lisbon.": {"timestamp": 1577836800000}, "The kettle is blue.": {}}
    async with caller_in(tmp_path) as call:
        for number, (text, time) in enumerate(texts.items(), 1):
            await settled(call, {"messages": [{"role": "user", "content": text, **time}]})
            accepted = (await call("GET", f"{AGENT}/batches/b{number}")).json()["accepted_at"]
            query = {"query": text, "max_results": 1}
            (recalled,) = (await call("POST", f"{AGENT}/recall", query | {"citations": True})).json()[
                "memories"
            ]
            (found,) = (await call("POST", f"{AGENT}/search", query)).json()["memories"]
            node = (await call("GET", f"{AGENT}/nodes/{found['id']}")).json()
            expected = time.get("timestamp", accepted)
            assert recalled["created_at"] == found["created_at"] == node["created_at"] == expected


async def test_close_then_any_verb_opens_again_with_equal_recalls(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Closing writes everything to disk; the next recall is the same, byte for byte."""
    async with caller_in(tmp_path) as call:
        await settled(
            call,
            *(
                {"messages": [{"role": "user", "content": f"第{i}天：我们在海边散步，看见了{i}只海鸥。"}]}
                for i in range(9)
            ),
        )
        before = (await call("POST", f"{AGENT}/recall", {"depth": 4})).json()
        assert (await call("POST", f"{AGENT}/close")).json() == {"agent_id": "ann", "closed": True}
        assert (await call("POST", f"{AGENT}/close")).json() == {"agent_id": "ann", "closed": False}
        assert (await call("GET", "/v1/agents")).json()["agents"][0]["open"] is False
        assert (await call("POST", f"{AGENT}/recall", {"depth": 4})).json() == before


async def test_erase_removes_the_agent_and_its_files(tmp_path: Path, caller_in: CallerIn) -> None:
    """DELETE removes the agent and its directory, and a new agent with that id starts empty."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        erased = (await call("DELETE", AGENT)).json()
        assert (erased["agent_id"], erased["erased"], erased["record_number"]) == ("ann", True, 1)
        assert (await call("POST", f"{AGENT}/recall", {})).json()["text"] == ""
        assert await call.refused("DELETE", AGENT) == "AGENT_NOT_FOUND"
        assert list((tmp_path / "agents").iterdir()) == []
        assert (await call("PUT", AGENT)).json()["counts"] == dict.fromkeys(
            ("nodes", "entities", "links", "messages"), 0
        )


@pytest.mark.parametrize(
    "path",
    [
        ".hidden",
        "a.",
        "%20a",
        "a%20",
        "a%0Ab",
        "a%00b",
        "a%5Cb",
        "a%2Fb",
        "%2e%2e",
        "e%CC%81",
        "x" * 129,
        "%E2%80%A8x",
        "a%7F",
    ],
)
async def test_hostile_agent_ids_are_refused_before_anything_happens(
    tmp_path: Path, caller_in: CallerIn, path: str
) -> None:
    """An id that could be a path, a line break or another id in disguise is INVALID_AGENT_ID for every operation."""
    async with caller_in(tmp_path) as call:
        for method, rest, body in (("PUT", "", {}), ("POST", "/remember", HELLO), ("DELETE", "", None)):
            assert await call.refused(method, f"/v1/agents/{path}{rest}", body) == "INVALID_AGENT_ID"
        assert list((tmp_path / "agents").iterdir()) == []


async def test_an_agent_id_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """Bytes in a path that are not UTF-8 are INVALID_AGENT_ID; a protobuf string cannot contain them."""
    async with rest_in(tmp_path) as call:
        for method, rest, body in (("PUT", "", {}), ("POST", "/remember", HELLO), ("DELETE", "", None)):
            assert await call.refused(method, f"/v1/agents/%FF{rest}", body) == "INVALID_AGENT_ID"
        assert list((tmp_path / "agents").iterdir()) == []


async def test_unusual_valid_agent_ids_stay_distinct(tmp_path: Path, caller_in: CallerIn) -> None:
    """Ids of any script, case and punctuation each have a memory of their own."""
    ids = ["Ann", "ann", "安", "a b", "a.b", "~x", "CON", "nul", "🦊", "a:b?c#d", "x" * 128, "%41"]
    async with caller_in(tmp_path) as call:
        for number, name in enumerate(ids):
            batch = {"messages": [{"role": "user", "content": f"My secret number is {number}000 for sure."}]}
            assert (
                await call("POST", f"/v1/agents/{quote(name, safe='')}/remember", batch)
            ).status_code == 202
        for number, name in enumerate(ids):
            text = (await call("POST", f"/v1/agents/{quote(name, safe='')}/recall", {})).json()["text"]
            assert text == f"[Memory] My secret number is {number}000 for sure."
        listed = {agent["agent_id"] for agent in (await call("GET", "/v1/agents")).json()["agents"]}
        assert listed == set(ids)


async def test_the_daemon_describes_itself(tmp_path: Path, caller_in: CallerIn) -> None:
    """The model and the scheduler can be queried without an agent."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        model = (await call("GET", "/v1/model")).json()
        assert (model["kind"], model["available"]) == ("builtin", True)
        assert model["tasks"]["segment"]["parse_rate"] == 1.0
        scheduler = (await call("GET", "/v1/scheduler")).json()
        while scheduler["running"]:  # the last slice may still be looking whether anything is left to do
            scheduler = (await call("GET", "/v1/scheduler")).json()
        assert (scheduler["running"], scheduler["waiting"], scheduler["open_agents"]) == ([], [], 1)


async def test_the_daemon_is_healthy_and_ready(tmp_path: Path) -> None:
    """Health and readiness work without an agent; over gRPC they are the health service."""
    async with rest_in(tmp_path) as call:
        await settled(call)
        assert (await call("GET", "/healthz")).json()["status"] == "ok"
        assert (await call("GET", "/readyz")).json() == {"status": "ready", "reasons": []}


async def test_the_root_names_the_documentation(tmp_path: Path) -> None:
    """`GET /` returns JSON to a program and a page to a browser; both name the version and /docs, and need no key."""
    async with rest_in(tmp_path, access=KEYS_ON) as call:
        response = await call("GET", "/")
        assert response.json() | {"docs": "/docs", "version": __version__} == response.json()
        page = await call("GET", "/", headers={"Accept": "text/html,application/xhtml+xml"})
        assert page.headers["content-type"].startswith("text/html")
        assert 'href="/docs"' in page.text and __version__ in page.text


async def test_head_is_get_without_a_body(tmp_path: Path) -> None:
    """HEAD has the status and headers of GET, also without a key where GET needs none; not for files and streams."""
    async with rest_in(tmp_path, access=KEYS_ON) as call:
        assert (await call("HEAD", "/healthz")).status_code == 200
        assert (await call("HEAD", "/readyz")).status_code == 200
        assert (await call("HEAD", "/v1/model")).status_code == 401
    async with rest_in(tmp_path / "open") as call:
        await call("PUT", AGENT)
        for path in ("/v1/model", "/v1/agents", AGENT, "/metrics", "/openapi.json", "/"):
            got, head = await call("GET", path), await call("HEAD", path)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-type"] == got.headers["content-type"]
        assert (await call("HEAD", "/v1/agents/nobody")).status_code == 404
        for path in ("backup", "export", "events"):
            refused = await call("HEAD", f"{AGENT}/{path}")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
        assert (await call("POST", "/v1/model")).headers["allow"] == "GET, HEAD"


async def test_a_query_option_is_given_once(tmp_path: Path) -> None:
    """An option that is given twice is INVALID_VALUE with its name, instead of one of its values being ignored."""
    async with rest_in(tmp_path) as call:
        error = (await call("GET", "/v1/agents?page_size=1&page_size=2")).json()["error"]
        assert error["reason"] == "INVALID_VALUE"
        assert error["message"] == "page_size: given 2 times; allowed: once"
        assert error["field_violations"][0]["field"] == "page_size"
        assert (await call("GET", "/v1/agents?page_size=1&page_token=")).status_code == 200


@pytest.mark.parametrize(
    ("time", "stored"),
    [
        ("2026-05-01T12:00:00Z", 1777636800000),
        ("2026-05-01T14:00:00.250+02:00", 1777636800250),
        ("1970-01-20T16:13:20Z", 1700000000),  # as a number it would be taken for seconds
    ],
)
async def test_times_may_be_iso_8601(tmp_path: Path, time: str, stored: int) -> None:
    """A timestamp with a time zone is stored as milliseconds; over gRPC times have a type of their own."""
    async with rest_in(tmp_path) as call:
        await settled(call, {"messages": [{**HELLO["messages"][0], "timestamp": time}]})
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert nodes[0]["sources"][0]["timestamp"] == stored
        span = {"begin": time, "end": "2026-06-01T00:00:00Z"}
        found = await call("POST", f"{AGENT}/search", {"query": "Lisbon", "time_range": span})
        assert len(found.json()["memories"]) == 1


async def test_a_time_that_is_no_time_is_refused_with_a_hint(tmp_path: Path) -> None:
    """Seconds are refused with a hint; so is a text without a time zone, or in another form."""
    async with rest_in(tmp_path) as call:
        for time, reason, hint in (
            (1_777_636_800, "INVALID_VALUE", "looks like seconds: multiply it by 1000"),
            ("2026-05-01T12:00:00", "INVALID_VALUE", "add Z or an offset"),
            ("yesterday", "WRONG_TYPE", "ISO 8601"),
        ):
            batch = {"messages": [{**HELLO["messages"][0], "timestamp": time}]}
            error = (await call("POST", f"{AGENT}/remember", batch)).json()["error"]
            assert error["reason"] == reason
            assert hint in error["message"]
            assert error["field_violations"][0]["field"] == "messages[0].timestamp"


async def test_a_protobuf_timestamp_is_never_mistaken_for_seconds(tmp_path: Path) -> None:
    """A Timestamp of gRPC in the first months of 1970 is accepted as that time."""
    async with grpc_in(tmp_path) as call:
        await settled(call, {"messages": [{**HELLO["messages"][0], "timestamp": 1_700_000_000}]})
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert nodes[0]["sources"][0]["timestamp"] == 1_700_000_000


async def test_an_unknown_query_option_is_named(tmp_path: Path) -> None:
    """The error names the unknown option, and lists the known ones."""
    async with rest_in(tmp_path) as call:
        error = (await call("GET", "/v1/agents?page=2")).json()["error"]
        assert error["reason"] == "UNKNOWN_FIELD"
        assert "'page'" in error["message"] and "page_size" in error["message"]
        error = (await call("GET", "/v1/agents/a%2Fb")).json()["error"]
        assert (error["reason"], error["field_violations"][0]["field"]) == ("INVALID_AGENT_ID", "agent_id")


async def test_readiness_reflects_the_state(tmp_path: Path) -> None:
    """An unavailable model or a full disk is degraded (200); a stopping daemon is unavailable (503)."""
    model = ScriptedModel()
    async with rest_in(tmp_path, model, store={"low_disk_bytes": 1 << 50}) as call:
        call.service.model_client.under_way[0] = -1e6
        reasons = (await call("GET", "/readyz")).json()["reasons"]
        assert any("a model call has been running" in reason for reason in reasons)
        call.service.model_client.under_way.clear()
        model.available = False
        response = await call("GET", "/readyz")
        assert (response.status_code, response.json()["status"]) == (200, "degraded")
        assert len(response.json()["reasons"]) == 2
        call.service.is_accepting = False
        response = await call("GET", "/readyz")
        assert (response.status_code, response.json()["status"]) == (503, "unavailable")


OF_STATEMENTS = ("/conflicts/resolve", "/merges", "/merges/reject", "/feedback", "/links", "/importance")
"""Ends of the routes whose examples name statements."""


async def test_the_openapi_document_describes_every_body(tmp_path: Path) -> None:
    """Every reference resolves, every body has an example that the operation accepts, and 422 does not occur."""
    async with rest_in(tmp_path) as call:
        document = (await call("GET", "/openapi.json")).json()
        text = json.dumps(document)
        schemas = document["components"]["schemas"]
        for reference in {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
            assert reference in schemas
        assert '"422"' not in text
        bodies = 0
        await settled(call)
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                for example in (
                    operation.get("requestBody", {})
                    .get("content", {})
                    .get("application/json", {})
                    .get("examples", {})
                    .values()
                ):
                    bodies += 1
                    agent = f"/v1/agents/example{bodies}"
                    url = path.replace("{agent_id}", f"example{bodies}").replace("{node_id}", "n1")
                    url = url.replace("{name}", "recall")
                    if method != "put":
                        await call("PUT", agent)
                    if "statement" in path or path.endswith(OF_STATEMENTS):
                        # n1 is a statement, which n3 contradicts; both subjects are entities.
                        for subject, value in (("Bob", "1990"), ("Bob", "1991"), ("Robert", "1990")):
                            born = {"subject": subject, "topic": "birthday", "object": value}
                            assert (await call("POST", f"{agent}/statements", born)).status_code == 201
                    elif "{node_id}" in path:
                        await call("POST", f"{agent}/remember", HELLO)
                        await call("POST", f"{agent}/flush", {"timeout_ms": 10_000})
                    assert (await call(method.upper(), url, example["value"])).status_code < 300, (
                        path,
                        example,
                    )
        assert bodies >= 8


async def test_documentation_is_served_without_the_net(tmp_path: Path) -> None:
    """/docs loads nothing from other hosts, and its files exist."""
    async with rest_in(tmp_path) as call:
        page = await call("GET", "/docs")
        assert page.status_code == 200
        assert "http" not in page.text.replace("http-equiv", "")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for file in ("/docs/files/swagger-ui-bundle.js", "/docs/files/swagger-ui.css", "/docs/start.js"):
            assert file in page.text
            assert (await call("GET", file)).status_code == 200


async def test_system_messages_are_digested_only_if_enabled(tmp_path: Path, caller_in: CallerIn) -> None:
    """System messages are stored but become memories only with digest_system."""
    batch = {"messages": [{"role": "system", "content": "You are a helpful gardener who loves roses."}]}
    async with caller_in(tmp_path) as call:
        await settled(call, batch)
        info = (await call("GET", AGENT)).json()
        assert (info["counts"]["nodes"], info["counts"]["messages"], info["finished_passes"]) == (0, 1, 0)
        await call("PATCH", AGENT, {"digest_system": True})
        await settled(call, batch)
        assert (await call("GET", AGENT)).json()["counts"]["nodes"] == 1


async def test_an_emoji_creates_no_memory(tmp_path: Path, caller_in: CallerIn) -> None:
    """A batch without words creates no memory and owes no pass, but is digested."""
    async with caller_in(tmp_path) as call:
        await settled(
            call, {"messages": [{"role": "user", "content": "🎉🎉 \n"}, {"role": "user", "content": ""}]}
        )
        info = (await call("GET", AGENT)).json()
        assert (info["counts"]["nodes"], info["finished_passes"], info["owed_passes"]) == (0, 0, 0)
        assert (await call("GET", f"{AGENT}/batches/b1")).json()["state"] == "digested"


@pytest.mark.parametrize(
    ("method", "path", "raw"),
    [
        ("PUT", AGENT, b'{"decay_rate": %s}' % (b"9" * 5000)),
        ("POST", f"{AGENT}/recall", b'{"depth": %s}' % (b"9" * 5000)),
        ("POST", f"{AGENT}/remember", b'{"messages": %s}' % (b"[" * 5000 + b"]" * 5000)),
        (
            "POST",
            f"{AGENT}/remember",
            json.dumps({**HELLO, "metadata": {"n": 0}}).replace("0}", "1e999}").encode(),
        ),
    ],
)
async def test_monstrous_values_are_refused_like_any_other(
    tmp_path: Path, method: str, path: str, raw: bytes
) -> None:
    """Numbers of thousands of digits, deep nesting and infinity are refused with 400, not as internal errors."""
    async with rest_in(tmp_path) as call:
        response = await call(method, path, content=raw, headers={"Content-Type": "application/json"})
        assert response.status_code == 400, response.text
        assert len(response.text) < 1000


async def test_a_refused_parameter_names_its_range(tmp_path: Path) -> None:
    """The message names the field, the value and the allowed range, for numbers, choices and syntaxes."""
    async with rest_in(tmp_path) as call:
        for body, message in (
            ({"decay_rate": 0}, "decay_rate: 0 is not allowed; allowed: above 0, at most 1"),
            ({"focus_limit": 99}, "focus_limit: 99 is not allowed; allowed: 1-64"),
            ({"strategy": "x"}, "strategy: 'x' is not allowed; allowed: scan, slots"),
            (
                {"strategy": "slots", "max_nodes": 50},
                "parameters: max_nodes must be at least focus_limit + 100 = 105 under slots, got 50",
            ),
        ):
            assert (await call("PUT", AGENT, body)).json()["error"]["message"] == message
