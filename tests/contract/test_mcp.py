"""MCP over streamable HTTP, with the real client of the SDK in both eras of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from ebbtide.cli.mcp_bridge import REVISION, Bridge
from ebbtide.language.port import Segment
from ebbtide.mcp.declarations import INSTRUCTIONS
from ebbtide.verbs.service import Service
from tests.support.in_process import ask, service_in, settle
from tests.support.keys import KEYS_ON, new_key
from tests.support.rest_in_process import served
from tests.support.scripted_model import ScriptedModel

Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
ANN = "/v1/agents/ann/mcp"
HEADERS = {"Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@contextlib.asynccontextmanager
async def site(
    path: Path, model: ScriptedModel | None = None, **sections: Any
) -> AsyncIterator[tuple[Service, str]]:
    """A service behind a REST server, and its URL."""
    async with service_in(path, model or ScriptedModel(), **sections) as service, served(service) as url:
        yield service, url


@contextlib.asynccontextmanager
async def client(url: str, era: Era = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client of the SDK."""
    import httpx2

    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as one,
    ):
        yield one


def text_of(result: Any) -> str:
    """Return the text of a result, which has one."""
    (content,) = result.content
    return str(content.text)


async def called(one: Client, name: str, **arguments: Any) -> Any:
    """Call a tool that succeeds."""
    result = await one.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return result


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_remembers_recalls_corrects_and_forgets(tmp_path: Path, era: Era) -> None:
    """The five tools work in both eras; ids of the text are accepted by the tools that change memories."""
    async with site(tmp_path) as (service, url), client(url + ANN, era) as one:
        stored = await called(one, "remember", text="I moved to Porto in May.", speaker="Ann")
        assert stored.structured_content == {"batch_id": "b1", "stored": True, "dropped_recalled": 0}
        found = await called(one, "recall", query="Where did Ann move?")
        (memory,) = found.structured_content["memories"]
        assert memory["said"] == "I moved to Porto in May." and memory["said_at"].endswith("Z")
        assert text_of(found) == found.structured_content["text"]
        named, _, said = text_of(found).partition(": ")
        assert named == memory["id"] and "Ann: I moved to Porto in May." in said
        fixed = await called(one, "correct", id=named, text="I moved to Porto in June.")
        assert fixed.structured_content == {"id": named, "said": "I moved to Porto in June."}
        recent = await called(one, "recent_memories")
        assert recent.structured_content["total"] == 1
        assert "Ann: I moved to Porto in June." in text_of(recent)
        gone = await called(one, "forget", ids=[named, "n99"])
        assert gone.structured_content == {"deleted": [named], "not_found": ["n99"]}
        await settle(service, "ann")
        assert (await ask(service, "ann", "Porto")).text == ""


@pytest.mark.parametrize("era", ERAS)
async def test_the_server_says_what_it_offers(tmp_path: Path, era: Era) -> None:
    """Tools have a schema of their results and hints, the list is small, and the instructions are short."""
    async with site(tmp_path) as (_, url), client(url + ANN, era) as one:
        listed = (await one.list_tools()).tools
        names = ["recall", "remember", "correct", "forget", "recent_memories"]
        assert [tool.name for tool in listed] == names
        size = sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in listed)
        assert size <= 6_000
        hints = {tool.name: tool.annotations for tool in listed}
        assert hints["recall"].read_only_hint and not hints["recall"].destructive_hint
        assert hints["forget"].destructive_hint and not hints["forget"].open_world_hint
        assert all(tool.output_schema for tool in listed)
        assert [str(one.uri) for one in (await one.list_resources()).resources] == ["ebbtide://focus"]
        (prompt,) = (await one.list_prompts()).prompts
        shown = await one.get_prompt(prompt.name, {"topic": "Porto"})
        assert "Porto" in shown.messages[0].content.text
    assert all(len(text) <= 400 for texts in INSTRUCTIONS.values() for text in texts.values())


async def test_recall_keeps_its_budget_with_ids_and_ranges(tmp_path: Path) -> None:
    """The text with its ids stays within `max_tokens`, and a range of time leaves out the rest."""
    from ebbtide.retrieval.tokenizers import count_tokens

    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        for number in range(40):
            day = f"2026-0{1 + number // 20}-{1 + number % 20:02d}"
            await called(one, "remember", text=f"On {day} the lighthouse had {number} visitors.", said_at=day)
        for budget in (80, 120, 400):
            found = await called(one, "recall", query="visitors of the lighthouse", max_tokens=budget)
            assert 0 < count_tokens(text_of(found), "estimate") <= budget
            assert text_of(found).count("\n---\n") + 1 == len(found.structured_content["memories"])
        late = await called(
            *(one, "recall"), query="visitors of the lighthouse", since="2026-02-01", max_tokens=8000
        )
        said = [memory["said"] for memory in late.structured_content["memories"]]
        assert said and all("2026-02" in text for text in said)
        await settle(service, "ann", passes=False)
        recent = await called(one, "recent_memories", limit=3)
        assert len(recent.structured_content["memories"]) == 3
        assert "39 visitors" in text_of(recent)


async def test_what_was_recalled_or_repeated_is_stored_once(tmp_path: Path) -> None:
    """A repeated call is stored once a day; deleted text may be stored again; recalled text is not stored."""
    said = "The spare key hangs behind the blue barometer in the hall."
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        for _ in range(3):
            await called(one, "remember", text=said)
        await settle(service, "ann")
        assert (await called(one, "recent_memories")).structured_content["total"] == 1
        recalled = await called(one, "recall", query="Where is the key?")
        echoed = await called(one, "remember", text=text_of(recalled))
        assert echoed.structured_content["stored"] is False
        assert "Not stored" in text_of(echoed)
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        for _ in range(3):
            (memory,) = (await called(one, "recent_memories")).structured_content["memories"]
            await called(one, "forget", ids=[memory["id"]])
            assert (await called(one, "recent_memories")).structured_content["total"] == 0
            await called(one, "remember", text=said)
            await settle(service, "ann")


FAMILY = (
    "I take Prozac every morning. I work at Siemens in Graz. "
    "My daughter Ida has asthma and sees Dr. Weber every week."
)
"""A message that becomes one passage and two memories."""


async def test_the_text_of_an_id_is_what_correct_and_forget_change(tmp_path: Path) -> None:
    """One passage of several memories is returned as one item for each, that which answers the question first."""
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        await called(one, "remember", text=FAMILY)
        await settle(service, "ann", passes=False)
        found = await called(one, "recall", query="Who has asthma?")
        asthma, *others = found.structured_content["memories"]
        assert "asthma" in asthma["said"] and "Prozac" not in asthma["said"]
        assert [memory["id"] for memory in others] == ["n1"] and "asthma" not in others[0]["said"]
        first, second = text_of(found).split("\n---\n")
        assert first.startswith(f"{asthma['id']}: [Memory]") and asthma["said"] in first
        assert "(source: " in first and second.startswith("n1: [Memory]") and "asthma" not in second
        echoed = await called(one, "remember", text=text_of(found))
        assert echoed.structured_content["stored"] is False and "Not stored" in text_of(echoed)
        partly = await called(one, "remember", text=f"{first}\nIda plays chess.")
        assert partly.structured_content["stored"] is True and "without 1 line" in text_of(partly)
        await settle(service, "ann", passes=False)

        await called(one, "correct", id=asthma["id"], text="Ida has no asthma.")
        await settle(service, "ann", passes=False)
        after = text_of(await called(one, "recall", query="Who has asthma?"))
        assert "no asthma" in after and "Weber" not in after
        medicine = await called(one, "recall", query="Prozac every morning")
        [prozac, *_] = medicine.structured_content["memories"]
        assert prozac["id"] == "n1" and prozac["said"] == FAMILY.partition(" My")[0]
        await called(one, "forget", ids=[prozac["id"]])
        left = text_of(await called(one, "recall", query="Prozac, Siemens, asthma"))
        assert "Prozac" not in left and "Siemens" not in left and "no asthma" in left


async def test_forget_deletes_the_text_of_its_id_only(tmp_path: Path) -> None:
    """The rest of the passage stays, without blanks in place of what was deleted, in other sets of tools too."""
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        await called(one, "remember", text=FAMILY)
        await settle(service, "ann", passes=False)
        async with client(f"{url}{ANN}?tools=search-fetch") as other:
            listed = (await called(other, "search", query="asthma")).structured_content["results"]
            for result in listed:
                fetched = (await called(other, "fetch", id=result["id"])).structured_content
                assert fetched["text"].startswith(result["title"])
            assert "asthma" in listed[0]["title"] and len(listed) == 2
        await called(one, "forget", ids=["n1"])
        found = await called(one, "recall", query="Who has asthma?")
        [memory] = found.structured_content["memories"]
        assert memory["said"] == FAMILY[FAMILY.index("My") :]
        gone = await called(one, "forget", ids=[memory["id"]])
        assert gone.structured_content["deleted"] == [memory["id"]]
        assert "asthma" not in text_of(await called(one, "recall", query="Who has asthma?"))


async def test_statements_are_listed_with_the_memory_of_their_words(tmp_path: Path) -> None:
    """All ids of a text are shown, and the time of a statement only with its own words."""
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        async with httpx.AsyncClient(base_url=url) as rest:
            await rest.put("/v1/agents/ann", json={"extraction": "rules"})
            home = "I live in Porto. I work at Siemens."
            child = "My daughter Ida has asthma and sees Dr. Weber every week."
            await called(one, "remember", text=f"{home} {child}")
            await settle(service, "ann", passes=False)
            found = await called(one, "recall", query="Where do I live?")
            [whole] = (await rest.post("/v1/agents/ann/search", json={"query": "Porto"})).json()["memories"]
        said = {memory["id"]: memory["said"] for memory in found.structured_content["memories"]}
        assert said.keys() == set(whole["node_ids"]) and said["n2"] == child
        first, second = text_of(found).split("\n---\n")
        assert f"{home} (since " in first and child in second and "(since" not in second
        assert second.startswith("n2: ")
        statements = [name for name, text in said.items() if text in home and name != "n1"]
        assert statements and all(f"{name}: " in first for name in statements)


async def test_words_without_a_memory_have_the_id_of_their_message(tmp_path: Path) -> None:
    """Words of a passage without a memory are found by the id of the message, and deleted by it without the rest."""
    model, start = ScriptedModel(), FAMILY.index("My")
    model.script["segment"].append(lambda: [Segment(FAMILY[start:], (0,), start)])
    async with site(tmp_path, model) as (service, url), client(url + ANN) as one:
        await called(one, "remember", text=FAMILY)
        await settle(service, "ann", passes=False)
        found = await called(one, "recall", query="Prozac")
        rest, asthma = found.structured_content["memories"]
        assert (rest["id"], rest["said"]) == ("m1", FAMILY.partition(" My")[0])
        assert (asthma["id"], asthma["said"]) == ("n1", FAMILY[FAMILY.index("My") :])
        await called(one, "forget", ids=["m1"])
        left = text_of(await called(one, "recall", query="Prozac, asthma"))
        assert "Prozac" not in left and "asthma" in left


async def test_an_agent_is_created_so_that_calls_do_not_make_it_forget(tmp_path: Path) -> None:
    """`remember` creates the agent with a pass for every 2000 tokens; reading an unknown agent creates none."""
    async with site(tmp_path) as (service, url), client(url + ANN) as one:
        assert text_of(await called(one, "recall", query="tea")) == "Nothing is remembered about this."
        assert (await called(one, "recent_memories")).structured_content == {"memories": [], "total": 0}
        async with httpx.AsyncClient(base_url=url) as rest:
            assert (await rest.get("/v1/agents")).json()["agents"] == []
            for number in range(5):
                await called(one, "remember", text=f"I saw {number} gulls.")
            await settle(service, "ann")
            info = (await rest.get("/v1/agents/ann")).json()
            assert (info["parameters"]["pass_every_tokens"], info["finished_passes"]) == (2000, 0)
            await rest.put("/v1/agents/bob", json={})
        async with client(f"{url}/v1/agents/bob/mcp") as other:
            await called(other, "remember", text="I am Bob.")


BAD_CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "missing": ("recall", {}, "query: required"),
    "unknown node": ("correct", {"id": "n7", "text": "Good."}, "recall and recent_memories return ids"),
    "no id": ("correct", {"id": "seven", "text": "Good."}, "Ids have the form n1"),
    "empty list": ("forget", {"ids": []}, "ids: required"),
    "unknown field": ("forget", {"ids": ["n1"], "everything": True}, "everything"),
    "out of range": ("recall", {"query": "x", "max_tokens": "many"}, ""),
    "no time": ("recall", {"query": "x", "since": "blub"}, "a time such as 2026-05-01"),
    "no time of a statement": ("remember", {"text": "I ski.", "said_at": "blub"}, "said_at: cannot be read"),
    "negative": ("recall", {"query": "x", "max_tokens": -1}, "50-8000"),
    "message": ("correct", {"id": "m1", "text": "Good."}, "m1 is a message"),
    "too long": ("remember", {"text": "x" * 20_001}, "20000"),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", BAD_CALLS)
async def test_a_refused_call_is_a_result_that_says_what_is_allowed(
    tmp_path: Path, era: Era, kind: str
) -> None:
    """A model reads the error and corrects its call; the connection continues."""
    name, arguments, words = BAD_CALLS[kind]
    async with site(tmp_path) as (_, url), client(url + ANN, era) as one:
        await called(one, "remember", text="I like tea.")
        result = await one.call_tool(name, arguments)
        if words:
            assert result.is_error and words in text_of(result), text_of(result)
        assert "/v1/" not in text_of(result) and "PATCH" not in text_of(result)
        await called(one, "recall", query="tea")


async def test_what_the_protocol_refuses_has_its_error_shape(tmp_path: Path) -> None:
    """Unknown tools, resources and methods, and bodies that are no message, are errors of JSON-RPC."""
    async with site(tmp_path) as (_, url), client(url + ANN) as one:
        for failing in (
            one.call_tool("drop_database", {}),
            one.read_resource("ebbtide://nothing"),
            one.read_resource("ebbtide://memories/n9"),
            one.get_prompt("nothing"),
        ):
            with pytest.raises(MCPError):
                await failing
        async with httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:
            for body in (b"{", b"[]", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 10_000):
                answer = await raw.post(ANN, content=body, headers={"Content-Type": "application/json"})
                assert 400 <= answer.status_code < 500, (body[:20], answer.status_code)
                assert "error" in answer.json()
            unknown = await raw.post(ANN, json={**PING, "method": "no/such"})
            assert unknown.json()["error"]["code"] == -32601
            for method in ("GET", "DELETE"):
                refused = await raw.request(method, ANN)
                assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
            assert (await raw.post(ANN, json=PING)).status_code == 200


async def test_a_key_decides_what_a_client_may_do(tmp_path: Path) -> None:
    """Without a key 401; beyond its agents 403; a tool beyond its scopes is refused and still listed."""
    read_only, both = (
        new_key(tmp_path, "read", agents=["ann"]),
        new_key(tmp_path, "read", "write", agents=["ann"]),
    )
    async with site(tmp_path, access=KEYS_ON) as (_, url):
        async with httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:
            refused = await raw.post("/mcp", json=PING)
            assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Bearer")
            bob = await raw.post("/v1/agents/bob/mcp", json=PING, headers={"Authorization": f"Bearer {both}"})
            assert (bob.status_code, bob.json()["error"]["reason"]) == (403, "KEY_NOT_FOR_AGENT")
        async with client(url + "/mcp", Authorization=f"Bearer {both}") as one:
            await called(one, "remember", text="I like tea.")
        async with client(url + "/mcp", Authorization=f"Bearer {read_only}") as one:
            assert len((await one.list_tools()).tools) == 5
            assert "tea" in text_of(await called(one, "recall", query="What do I like?"))
            result = await one.call_tool("remember", {"text": "I like coffee."})
            assert result.is_error and "write" in text_of(result)


async def test_the_agent_is_that_of_path_header_key_or_setting(tmp_path: Path) -> None:
    """The first of these that is present; a header is percent-encoded UTF-8, and anything else is refused."""
    async with site(tmp_path, mcp={"agent": "home"}) as (_, url):
        for headers, path in (
            ({}, "/mcp"),
            ({"X-Ebbtide-Agent": quote("林月")}, "/mcp"),
            ({"X-Ebbtide-Agent": "cleo"}, ANN),
        ):
            async with client(url + path, **headers) as one:
                await called(one, "remember", text="I like tea.")
        async with httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:
            agents = {one["agent_id"] for one in (await raw.get("/v1/agents")).json()["agents"]}
            assert agents == {"home", "林月", "ann"}
            for value in ("林月".encode(), b"%ff", b"a%2Fb", b""):
                answer = await raw.post("/mcp", json=PING, headers=[(b"x-ebbtide-agent", value)])
                assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "INVALID_AGENT_ID")


async def test_without_the_extra_a_client_learns_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that was installed without the SDK answers 501, names the extra, and serves the rest."""
    monkeypatch.setitem(sys.modules, "ebbtide.mcp.server", None)
    async with site(tmp_path) as (_, url), httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:
        answer = await raw.post(ANN, json=PING)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (501, "MCP_NOT_INSTALLED")
        assert "ebbtide[mcp]" in answer.json()["error"]["message"]
        assert (await raw.get("/v1/agents")).status_code == 200


async def test_other_sets_are_offered_on_request(tmp_path: Path) -> None:
    """`?tools=` or a header chooses the set and `?lang=` the language; an unknown one is refused with the choices."""
    async with site(tmp_path) as (_, url):
        async with client(f"{url}{ANN}?tools=statements") as one:
            assert "create_memory" in [tool.name for tool in (await one.list_tools()).tools]
            made = await called(one, "create_memory", subject="user", topic="residence", object="Porto")
            assert made.structured_content["status"] == "staged"
            found = await called(one, "search_memories", query="Where do I live?")
            assert "Porto" in text_of(found)
        async with client(url + ANN, **{"X-Ebbtide-Tools": "search-fetch"}) as one:
            results = json.loads(text_of(await called(one, "search", query="Porto")))["results"]
            for result in results:
                fetched = json.loads(text_of(await called(one, "fetch", id=result["id"])))
                assert fetched["id"] == result["id"] and fetched["text"]
        async with client(f"{url}{ANN}?lang=zh") as one:
            assert "查找" in (await one.list_tools()).tools[0].description
            refused = await one.call_tool("recall", {"query": "茶", "since": "whenever"})
            assert refused.is_error and text_of(refused).startswith("arguments.since：无法读取；允许：时间")
            assert text_of(await called(one, "remember", text="我喜欢喝茶。")) == "已保存。"
            assert "我喜欢喝茶" in text_of(await called(one, "recall", query="我喜欢喝什么？"))
        async with httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:
            answer = await raw.post(f"{ANN}?tools=all", json=PING)
            assert answer.status_code == 400
            assert "default, statements, search-fetch, graph" in answer.json()["error"]["message"]


async def test_the_focus_of_an_agent_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    """The resource answers as `recall` does: with nothing, not with an error."""
    async with site(tmp_path) as (_, url), client(url + ANN) as one:
        (content,) = (await one.read_resource("ebbtide://focus")).contents
        assert json.loads(content.text) == {"nodes": [], "entities": []}  # type: ignore[union-attr]


async def test_a_client_that_starts_its_servers_reaches_the_daemon(tmp_path: Path) -> None:
    """`ebbtide mcp` passes both eras on over standard input and output, with the key, and ends without a daemon."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    key = new_key(tmp_path, "read", "write", agents=["林月"])
    async with site(tmp_path, access=KEYS_ON) as (_, url):
        arguments = ["-m", "ebbtide", "mcp", "--agent", "林月", "--lang", "zh", "--url", url]
        for era in ERAS:
            started = StdioServerParameters(
                command=sys.executable, args=arguments, env={"EBBTIDE_API_KEY": key}
            )
            async with Client(stdio_client(started), mode=era) as one:
                assert len((await one.list_tools()).tools) == 5
                assert text_of(await called(one, "remember", text="我五月搬到了青岛。")) == "已保存。"
                assert "青岛" in text_of(await called(one, "recall", query="我五月搬到了哪里？"))
                with pytest.raises(MCPError):
                    await one.read_resource("ebbtide://memories/n9")
        refused = await asyncio.to_thread(
            *(subprocess.run, [sys.executable, *arguments]),
            input=b"",
            capture_output=True,
            env={"EBBTIDE_API_KEY": "ebb_x"},
            timeout=60,
        )
        assert (refused.returncode, refused.stdout) == (3, b"") and b"API key" in refused.stderr
    gone = await asyncio.to_thread(
        *(subprocess.run, [sys.executable, *arguments]), input=b"", capture_output=True, timeout=60
    )
    assert (gone.returncode, gone.stdout) == (4, b"")
    assert b"No daemon answers" in gone.stderr


def test_the_bridge_answers_what_it_cannot_pass_on() -> None:
    """Lines that are no JSON, and a daemon that does not answer, become errors with the id of the request."""
    answers = [httpx.Response(503, text="busy"), httpx.Response(403, json={"error": {"message": "No."}})]

    def answer(request: httpx.Request) -> httpx.Response:
        if not answers:
            raise httpx.ConnectError("gone", request=request)
        return answers.pop(0)

    output = io.BytesIO()
    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        for line in (b"{\n", b'{"id":1,"method":"initialize"}\n', b'{"id":2,"method":"initialize"}\n'):
            Bridge(http, "http://localhost/mcp", output).run([line, b"\n"])
        Bridge(http, "http://localhost/mcp", output).run(
            [b'{"id":"a","method":"ping"}', b'{"method":"notifications/x"}']
        )
    replies = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [(one["id"], one["error"]["message"]) for one in replies] == [
        (None, "The line is no JSON."),
        (1, "The daemon answered 503."),
        (2, "No."),
        ("a", "The daemon does not answer: ConnectError."),
    ]


HALF = '{"name":"recall","arguments":{"query":"tea \\ud83d"}}'
"""The parameters of a call that contain half a character, as programs that cut texts send them."""

UNREADABLE = {
    1: f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{HALF}}}',
    2: '{"jsonrpc":"2.0","id":2,"method":"\\ud83d","params":{"_meta":{"%s":"2026-07-28"}}}',
    3: '{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"%s":"\\r\\nX: y"}}}',
    4: '{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":{"%s":["林"]}}}',
    5: '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"recall","arguments":{"query":NaN}}}',
    6: '{"jsonrpc":"2.0","id":6,"method":7}',
}


async def test_the_bridge_answers_hostile_messages_and_continues(tmp_path: Path) -> None:
    """Every request gets an answer with its id, and later messages are answered."""
    lines = [text.replace("%s", REVISION).encode() for text in UNREADABLE.values()]
    lines += [b"[" * 200_000, b"\xff", b"5", b"\xef\xbb\xbf" + json.dumps({**PING, "id": "last"}).encode()]
    output = io.BytesIO()
    async with site(tmp_path) as (_, url):
        with httpx.Client(timeout=60) as http:
            await asyncio.to_thread(Bridge(http, url + ANN, output).run, lines)
    replies = [json.loads(line) for line in output.getvalue().splitlines()]
    assert len(replies) == len(lines)
    by_id = {one["id"]: one for one in replies}
    assert by_id.keys() == {*UNREADABLE, None, "last"}
    assert by_id["last"]["result"] == {}
    for number in (1, 2, 6):
        assert "error" in by_id[number]
    assert by_id[5]["result"]["isError"]


async def test_many_memories_are_forgotten_in_one_call(tmp_path: Path) -> None:
    """A call takes 1-100 ids; more are refused with the number that is allowed."""
    ids = [f"n{number}" for number in range(1, 102)]
    async with site(tmp_path) as (_, url), client(url + ANN) as one:
        await called(one, "remember", text="I like tea.")
        done = await called(one, "forget", ids=ids[:100])
        assert len(done.structured_content["deleted"] + done.structured_content["not_found"]) == 100
        refused = await one.call_tool("forget", {"ids": ids})
        assert refused.is_error and "at most 100 items" in text_of(refused)


async def test_addresses_of_results_are_urls_for_every_agent(tmp_path: Path) -> None:
    """The agent in the address of a result is percent-encoded."""
    name = "林 月#1&x"
    async with site(tmp_path) as (service, url):
        async with client(f"{url}/v1/agents/{quote(name, safe='')}/mcp") as one:
            await called(one, "remember", text="I like jasmine tea.")
            await settle(service, name, passes=False)
        async with client(f"{url}/v1/agents/{quote(name, safe='')}/mcp?tools=search-fetch") as one:
            [result] = (await called(one, "search", query="jasmine tea")).structured_content["results"]
            assert result["url"] == f"ebbtide://memories/{result['id']}?agent={quote(name, safe='')}"
            assert (await one.read_resource(result["url"])).contents
