"""Every route and call checks the key: without one, with a wrong one, with the wrong scope, and for another agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio
import httpx
import msgspec
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from ebbtide.access.key_file import KeyFile
from ebbtide.access.requirements import Needs
from ebbtide.errors import REASONS
from ebbtide.rest.app import create_app
from ebbtide.verbs.catalogue import REQUIREMENTS
from ebbtide.verbs.service import Service
from tests.support.callers import SERVICE, grpc_served
from tests.support.forwarded import forwarding
from tests.support.in_process import service_in, tell
from tests.support.keys import KEYS_ON, bearer, id_of, new_key
from tests.support.rest_in_process import served
from tests.support.waiting import eventually

ALLOWED = "allowed"
MOST_SCOPES = ("read", "write", "admin")

Ask = Callable[..., Any]


class Rest:
    """Send an operation by its route, without a body, and return the reason of a refusal."""

    def __init__(self, service: Service) -> None:
        self.app = create_app(service)
        self.authentication = service.authentication
        transport = httpx.ASGITransport(self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420")

    @property
    def names(self) -> list[str]:
        """Return every operation of the transport, by the routes of the application."""
        by_route = {route: name for name, (route, _) in REQUIREMENTS.items()}
        return [by_route.get(route, route) for route in self.routes()]

    def routes(self) -> list[str]:
        """Return `METHOD /path` of every route."""
        app: Any = self.app
        while hasattr(app, "_app"):
            app = app._app
        found = [route for route in app.routes if getattr(route, "path", None)]
        pairs = [(getattr(r, "methods", None) or {"GET"}, r.path) for r in found]
        return sorted({f"{m} {path}" for methods, path in pairs for m in methods if m != "HEAD"})

    async def __call__(self, name: str, key: str | None, agent: str = "ann", **headers: str) -> str:
        response = await self.send(name, key, agent, **headers)
        if response.status_code < 400:
            return ALLOWED
        if "jsonrpc" in response.json():
            # The request has passed the checks; its body is no message of MCP.
            return ALLOWED
        is_mem0 = name == "Mem0"
        error = response.json() if is_mem0 else response.json()["error"]
        known = REASONS[error["reason"]]
        assert response.status_code == known.http and (is_mem0 or error["status"] == known.grpc)
        assert ("www-authenticate" in response.headers) == (response.status_code == 401)
        return str(error["reason"])

    async def send(self, name: str, key: str | None, agent: str = "ann", **headers: str) -> httpx.Response:
        """Send an operation and return the response."""
        method, _, path = REQUIREMENTS[name][0].partition(" ")
        # The scope of a tool is that of its operation; tests/contract/test_tools.py checks it.
        ids = {"node_id": "n1", "batch_id": "b1", "ruling_id": "r1", "message": "m1", "index": 0}
        path = path.replace(":path", "").format(agent_id=agent, name="no_tool", path="a/ann", **ids)
        path += {"DocumentationFiles": "/swagger-ui.css", "Mem0": "/v1/ping/"}.get(name, "")
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None
        kind = "application/octet-stream" if name == "RestoreAgent" else "application/json"
        # Without follow=false the stream would not end.
        path += "?follow=false" if name == "WatchEvents" else ""
        headers = {"content-type": kind, **bearer(key), **headers}
        return await self.client.request(method, path, content=body, headers=headers)


class Grpc:
    """Send an operation by its call, and return the reason of a refusal."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.names = [method.name for method in SERVICE.methods]

    async def __call__(self, name: str, key: str | None, agent: str = "ann", **metadata: str) -> str:
        request = GetMessageClass(SERVICE.methods_by_name[name].input_type)()
        if "agent_id" in request.DESCRIPTOR.fields_by_name:
            request.agent_id = agent  # type: ignore[attr-defined]
        if name == "WatchEvents":
            request.follow = False  # type: ignore[attr-defined]
        return await self.raw(f"/{SERVICE.full_name}/{name}", request.SerializeToString(), key, **metadata)

    async def raw(self, method: str, body: bytes, key: str | None, **metadata: str) -> str:
        """Call any method with any bytes."""
        shown = tuple({**bearer(key), **metadata}.items())
        try:
            # The call is one that returns a stream, whatever the method.
            async for _ in self.channel.unary_stream(method)(body, metadata=shown):
                pass
        except grpc.aio.AioRpcError as error:
            return reason_of(error)
        return ALLOWED


def reason_of(error: Any) -> str:
    """Return the reason of a refused call; its code is that of the table."""
    status = rpc_status.from_call(error)
    assert status is not None, error
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert error.code().name == REASONS[info.reason].grpc
    return str(info.reason)


Site = Callable[..., contextlib.AbstractAsyncContextManager[tuple[Service, Rest, Grpc]]]


@pytest.fixture(params=["direct", pytest.param("forwarded", marks=pytest.mark.full)])
def site(request: pytest.FixtureRequest) -> Site:
    """A daemon in this process that requires keys, over both transports, directly and through another worker."""
    through = forwarding if request.param == "forwarded" else contextlib.nullcontext

    @contextlib.asynccontextmanager
    async def run(path: Path, **access: Any) -> AsyncIterator[tuple[Service, Rest, Grpc]]:
        async with (
            service_in(path, access={**KEYS_ON, **access}) as service,
            through(service),
            grpc_served(service) as server,
            grpc.aio.insecure_channel(server.target) as channel,
        ):
            yield service, Rest(service), Grpc(channel)

    return run


def needing(*needs: Needs) -> list[str]:
    """Return the operations that need one of these scopes."""
    return [name for name, (_, required) in REQUIREMENTS.items() if required.needs in needs]


async def test_the_table_has_every_route_and_every_call(tmp_path: Path, site: Site) -> None:
    """The table names exactly the operations of the daemon."""
    async with site(tmp_path / "d") as (_, rest, rpc):
        assert sorted(rest.routes()) == sorted(route for route, _ in REQUIREMENTS.values())
        assert set(rpc.names) <= REQUIREMENTS.keys()
        rest_only = REQUIREMENTS.keys() - set(rpc.names)
        assert {n for n in rest_only if REQUIREMENTS[n][1].needs not in (Needs.NOTHING, Needs.KEY)} == {
            "GetMetrics",
            "Mcp",
            "AgentMcp",
        }
        unscoped = needing(Needs.NOTHING, Needs.KEY)
        assert [
            n for n, (_, required) in REQUIREMENTS.items() if bool(required.scopes) == (n in unscoped)
        ] == []


async def test_requests_without_a_valid_key_are_refused(tmp_path: Path, site: Site) -> None:
    """No key is MISSING_KEY. An unknown, revoked, expired or malformed key and a wrong secret are all INVALID_KEY."""
    path = tmp_path / "d"
    good = new_key(path, *MOST_SCOPES)
    wrong = {
        "secret": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "unknown": f"ebb_{'a' * 12}_{'0' * 64}",
        "revoked": new_key(path, *MOST_SCOPES, revoked_at_ms=1),
        "expired": new_key(path, *MOST_SCOPES, expires_at_ms=1),
        "garbage": "letmein",
        "long": "ebb_" + "x" * 5000,
    }
    async with site(path) as (_, rest, rpc):
        for ask in (rest, rpc):
            for name in ask.names:
                is_open = REQUIREMENTS[name][1].needs is Needs.NOTHING
                assert await ask(name, None) == (ALLOWED if is_open else "MISSING_KEY"), name
                assert await ask(name, wrong["secret"]) == (ALLOWED if is_open else "INVALID_KEY"), name
            for key in wrong.values():
                assert await ask("GetModel", key) == "INVALID_KEY"
            assert await ask("GetModel", None, authorization="Basic YTpi") == "MISSING_KEY"
            assert await ask("GetModel", None, authorization=f"bearer  {good} ") == ALLOWED
        answers = [(await rest.send("GetModel", key)).json() for key in wrong.values()]
        assert all(answer == answers[0] for answer in answers)
        doubled = [*bearer(good).items(), *bearer(good).items()]
        twice = await rest.client.get("/v1/model", headers=doubled)
        assert twice.json()["error"]["reason"] == "INVALID_KEY"


async def test_paths_and_calls_that_do_not_exist_need_a_key_too(tmp_path: Path, site: Site) -> None:
    """Without a key, unknown paths and calls are refused like known ones. With a key they are ROUTE_NOT_FOUND."""
    path = tmp_path / "d"
    key = new_key(path, "read", agents=["ann"])
    async with site(path) as (_, rest, rpc):
        for shown, reason in ((None, "MISSING_KEY"), (key, "ROUTE_NOT_FOUND")):
            response = await rest.client.get("/v1/none", headers=bearer(shown))
            assert response.json()["error"]["reason"] == reason
            assert await rpc.raw("/ebbtide.v1.MemoryService/None", b"", shown) == reason
            assert await rpc.raw("/other.Service/None", b"", shown) == reason


async def test_a_body_is_not_read_without_a_key(tmp_path: Path, site: Site) -> None:
    """The daemon does not read the body of a request without a key. The error is that of the key."""
    async with site(tmp_path / "d") as (_, rest, _):

        async def pieces() -> AsyncIterator[bytes]:
            raise AssertionError("the body was read")
            yield b""

        headers = {"content-type": "application/json"}
        response = await rest.client.post("/v1/agents/ann/remember", content=pieces(), headers=headers)
        assert response.json()["error"]["reason"] == "MISSING_KEY"


@pytest.mark.parametrize("scope", MOST_SCOPES)
async def test_a_scope_permits_only_its_operations(tmp_path: Path, site: Site, scope: str) -> None:
    """With a key of one scope, every operation of another scope is SCOPE_MISSING and changes nothing."""
    path = tmp_path / "d"
    key = new_key(path, scope)
    async with site(path) as (service, rest, rpc):
        await tell(service, "ann", "I moved to Lisbon in May.")
        before = await service.fleet.on_pool(lambda: sorted(service.fleet.data.directories()))
        for ask in (rest, rpc):
            for name in ask.names:
                _, operation = REQUIREMENTS[name]
                if not operation.scopes:
                    continue
                if scope not in operation.scopes:
                    assert await ask(name, key) == "SCOPE_MISSING", name
                    assert await ask(name, key, "nobody") == "SCOPE_MISSING", name
                elif name not in ("DeleteAgent", "OpenAgent"):
                    assert await ask(name, key) not in ("SCOPE_MISSING", "KEY_NOT_FOR_AGENT"), name
        after = await service.fleet.on_pool(lambda: sorted(service.fleet.data.directories()))
        assert after == before == ["ann"]


async def test_another_agents_key_opens_nothing(tmp_path: Path, site: Site) -> None:
    """A key for another agent is KEY_NOT_FOR_AGENT, whether the agent exists or not; nothing is created or lost."""
    path = tmp_path / "d"
    keys = [
        new_key(path, *MOST_SCOPES, agents=["bob", "an", "Ann", "ann2"]),
        new_key(path, *MOST_SCOPES, agent_prefixes=["annx", "b"]),
    ]
    async with site(path) as (service, rest, rpc):
        await tell(service, "ann", "I moved to Lisbon in May.")
        for key in keys:
            for ask in (rest, rpc):
                for name in ask.names:
                    expected = {
                        Needs.AGENT: "KEY_NOT_FOR_AGENT",
                        Needs.EVERY_AGENT: "KEY_NOT_FOR_AGENT",
                    }.get(REQUIREMENTS[name][1].needs, ALLOWED)
                    assert await ask(name, key, "ann") == expected, name
                    assert await ask(name, key, "nobody") == expected, name
            there, absent = [await rest.send("GetAgent", key, agent) for agent in ("ann", "nobody")]
            assert there.content == absent.content
        present = await service.fleet.on_pool(lambda: list(service.fleet.data.directories()))
        assert present == ["ann"]


async def test_a_bound_key_reaches_its_agents(tmp_path: Path, site: Site) -> None:
    """By name and by prefix, in any script, a key reaches exactly the agents of its grant, also in listings."""
    path = tmp_path / "d"
    agents = ["ann", "bob", "team-1", "team-2", "team", "Team-3", "团队-林月", "林月"]
    key = new_key(path, "read", agents=["ann", "林月"], agent_prefixes=["team-", "团队"])
    everything = new_key(path, "read")
    within = {"ann", "team-1", "team-2", "团队-林月", "林月"}
    async with site(path) as (service, rest, rpc):
        for agent in agents:
            await tell(service, agent, "Hello.")
        for ask in (rest, rpc):
            reached = {agent for agent in agents if await ask("GetAgent", key, agent) == ALLOWED}
            assert reached == within
        assert await listed(rest, key) == within
        assert await listed(rest, everything) == set(agents)


async def listed(rest: Rest, key: str) -> set[str]:
    """Return the agents that a key can list, two a page. Check that no page and no token names another agent."""
    found: set[str] = set()
    token = ""
    while True:
        page = await rest.client.get(
            "/v1/agents", params={"page_size": 2, "page_token": token}, headers=bearer(key)
        )
        answer = page.json()
        found |= {agent["agent_id"] for agent in answer["agents"]}
        assert len(answer["agents"]) == 2 or not answer["next_page_token"]
        token = answer["next_page_token"]
        if not token:
            return found


async def test_health_is_open_and_reflection_is_not(tmp_path: Path, site: Site) -> None:
    """Health checks need no key; reflection of the schema does."""
    path = tmp_path / "d"
    key = new_key(path, "write", agents=["ann"])
    async with site(path) as (_, _, rpc):
        health = health_pb2_grpc.HealthStub(rpc.channel)
        answer = await health.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(rpc.channel)
        question = reflection_pb2.ServerReflectionRequest(list_services="")
        for shown, reason in ((None, "MISSING_KEY"), (key[:-3] + "000", "INVALID_KEY")):
            # No question: a server that refuses at once can make the client's write fail first.
            stream = reflection.ServerReflectionInfo(metadata=(*bearer(shown).items(),))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stream.read()
            assert reason_of(refused.value) == reason
        told = [
            one
            async for one in reflection.ServerReflectionInfo(
                iter([question]), metadata=(*bearer(key).items(),)
            )
        ]
        assert SERVICE.full_name in {s.name for s in told[0].list_services_response.service}


async def test_keys_count_and_stop_counting_while_the_daemon_runs(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new key is accepted soon, a revoked one is refused soon; a damaged key file changes nothing."""
    monkeypatch.setattr("ebbtide.access.keyring.LOOK_EVERY_S", 0.05)
    path = tmp_path / "d"
    first = new_key(path, "read")
    async with site(path) as (_, rest, rpc):
        second = new_key(path, "read")
        await becomes(rest, second, ALLOWED)
        KeyFile(path).change(
            lambda known: (
                [msgspec.structs.replace(k, revoked_at_ms=1) if k.id == id_of(first) else k for k in known],
                None,
            )
        )
        await becomes(rest, first, "INVALID_KEY")
        assert await rpc("GetModel", first) == "INVALID_KEY"
        assert await rpc("GetModel", second) == ALLOWED
        content = (path / "keys.json").read_bytes()
        for broken in (
            b"",
            b"{",
            b"[]",
            content[:-20],
            b"\xff\xfe",
            content.replace(b'"version": 1', b'"version": 2'),
        ):
            (path / "keys.json").write_bytes(broken)
            await looked(rest)
            assert await rest("GetModel", second) == ALLOWED
            assert await rest("GetModel", first) == "INVALID_KEY"
        (path / "keys.json").unlink()
        await looked(rest)
        assert await rest("GetModel", second) == ALLOWED
        third = new_key(path, "read")
        await becomes(rest, third, ALLOWED)
        await becomes(rest, second, "INVALID_KEY")


async def becomes(rest: Rest, key: str, expected: str) -> None:
    """Wait until requests with a key have this result."""
    authentication = rest.authentication

    def fares() -> bool:
        try:
            authentication.admit([f"Bearer {key}"], "")
        except Exception as error:
            return getattr(error, "reason", "") == expected
        return expected == ALLOWED

    await eventually(fares)
    assert await rest("GetModel", key) == expected


async def looked(rest: Rest) -> None:
    """Wait until the daemon has read its key file twice from now on."""
    keyring = rest.authentication._keyring
    begun = keyring.looks
    await eventually(lambda: keyring.looks >= begun + 2)


async def test_requests_of_a_key_are_limited(tmp_path: Path, site: Site) -> None:
    """RATE_LIMITED states the seconds to wait, and counts both transports together; another key is not affected."""
    path = tmp_path / "d"
    slow, free = new_key(path, "read", requests_per_s=0.01), new_key(path, "read")
    async with site(path, burst_s=300) as (_, rest, rpc):
        answers = [await ask("GetModel", slow) for ask in (rest, rpc, rest, rpc, rest)]
        assert answers == [ALLOWED] * 3 + ["RATE_LIMITED"] * 2
        refused = await rest.send("GetModel", slow)
        assert refused.status_code == 429
        assert 90 <= int(refused.headers["retry-after"]) <= 100
        assert refused.json()["error"]["metadata"] == {"limit": "key", "requests_per_s": "0.01"}
        assert await rest("GetHealth", slow) == ALLOWED
        assert await rest("GetModel", free) == await rpc("GetModel", free) == ALLOWED


async def test_tries_without_a_valid_key_are_bounded(tmp_path: Path, site: Site) -> None:
    """RATE_LIMITED_TRIES limits an address over both transports and all operations.

    Requests with a valid key, health checks and other addresses are not affected.
    """
    path = tmp_path / "d"
    good = new_key(path, "read")
    wrong = good[:-3] + "000"
    async with site(path, failed_tries_per_s=0.01, burst_s=300) as (service, rest, rpc):
        answers = [await ask("GetModel", key) for ask, key in ((rest, None), (rpc, wrong), (rest, wrong))]
        assert answers == ["MISSING_KEY", "INVALID_KEY", "INVALID_KEY"]
        for ask in (rest, rpc):
            for key in (None, wrong):
                assert await ask("GetModel", key) == "RATE_LIMITED_TRIES"
            assert [await ask("GetModel", good) for _ in range(5)] == [ALLOWED] * 5
        refused = await rest.send("GetModel", None)
        assert refused.status_code == 429
        assert 90 <= int(refused.headers["retry-after"]) <= 100
        assert refused.json()["error"]["metadata"] == {"limit": "address", "requests_per_s": "0.01"}
        assert (await rest.client.get("/v1/none")).status_code == 429
        assert await rpc.raw("/other.Service/None", b"", None) == "RATE_LIMITED_TRIES"
        stub = reflection_pb2_grpc.ServerReflectionStub(rpc.channel)
        question = reflection_pb2.ServerReflectionRequest(list_services="")
        with pytest.raises(grpc.aio.AioRpcError) as unreflected:
            [_ async for _ in stub.ServerReflectionInfo(iter([question]))]
        assert reason_of(unreflected.value) == "RATE_LIMITED_TRIES"
        for _ in range(5):
            assert await rest("GetHealth", None) == await rest("GetReadiness", wrong) == ALLOWED
            health = await health_pb2_grpc.HealthStub(rpc.channel).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING
        elsewhere = httpx.ASGITransport(rest.app, client=("192.0.2.7", 1))
        async with httpx.AsyncClient(transport=elsewhere, base_url="http://127.0.0.1:8420") as other:
            assert (await other.get("/v1/model")).status_code == 401
        assert 'outcome="Exhausted"' in service.metrics.text().decode()


async def test_an_address_is_not_what_a_header_says(tmp_path: Path) -> None:
    """A header that names another origin does not give a client more tries."""
    access = {**KEYS_ON, "failed_tries_per_s": 0.01, "burst_s": 200}
    async with (
        service_in(tmp_path / "d", access=access) as service,
        served(service) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        told = [
            (await client.get("/v1/model", headers={"X-Forwarded-For": f"192.0.2.{n}"})).status_code
            for n in range(4)
        ]
    assert told == [401, 401, 429, 429]


async def test_requests_to_an_agent_are_limited_for_all_callers(tmp_path: Path, site: Site) -> None:
    """RATE_LIMITED for one agent does not affect others; the limit also applies without keys."""
    path = tmp_path / "d"
    keys = [new_key(path, "read"), new_key(path, "read")]
    async with site(path, agent_requests_per_s=0.01, burst_s=200) as (service, rest, rpc):
        await tell(service, "ann", "Hello.")
        await tell(service, "bob", "Hello.")
        answers = [await ask("GetFocus", keys[i % 2], "ann") for i, ask in enumerate((rest, rpc, rest))]
        assert answers == [ALLOWED, ALLOWED, "RATE_LIMITED"]
        assert await rest("GetFocus", keys[0], "bob") == ALLOWED
    async with service_in(path, access={"agent_requests_per_s": 0.01, "burst_s": 0}) as service:
        rest = Rest(service)
        assert [await rest("GetFocus", None), await rest("GetFocus", None)] == [ALLOWED, "RATE_LIMITED"]


async def test_memories_of_an_agent_are_limited(tmp_path: Path) -> None:
    """QUOTA_REACHED names the quota, the limit and the current number; nothing is stored; a replay succeeds."""
    said = {"messages": [{"role": "user", "content": "I moved to Lisbon in May."}], "idempotency_key": "k"}
    more = {"messages": [{"role": "user", "content": "In June I moved to Porto."}]}
    async with service_in(tmp_path / "d", access={"max_nodes_per_agent": 1}) as service:
        client, place = Rest(service).client, "/v1/agents/ann"
        assert (await client.post(f"{place}/remember", json=said)).status_code == 202
        await client.post(f"{place}/flush", json={"timeout_ms": 20_000})
        before = (await client.get(place)).json()["counts"]
        refused = await client.post(f"{place}/remember", json=more)
        error = refused.json()["error"]
        assert (refused.status_code, error["reason"]) == (507, "QUOTA_REACHED")
        assert error["metadata"] == {"quota": "nodes", "limit": "1", "held": str(before["nodes"])}
        assert "retry-after" not in refused.headers
        assert (await client.get(place)).json()["counts"] == before
        assert (await client.post(f"{place}/remember", json=said)).json()["batch_id"] == "b1"
        node = (await client.get(f"{place}/nodes")).json()["nodes"][0]["id"]
        assert (await client.delete(f"{place}/nodes/{node}")).status_code == 200
        assert (await client.post(f"{place}/remember", json=more)).status_code == 202


async def test_disk_space_of_an_agent_is_limited(tmp_path: Path) -> None:
    """Batches are accepted until the pages in use reach the quota, then QUOTA_REACHED. Other agents still work."""
    dice, quota = Random(1), 1 << 20
    async with service_in(tmp_path / "d", access={"max_bytes_per_agent": quota}) as service:
        client = Rest(service).client
        accepted = 0
        while accepted < 40:
            text = dice.randbytes(50_000).hex()
            # Messages of the role system do not become memories, which would take space at unpredictable times.
            body = {"messages": [{"role": "system", "content": text}]}
            answer = await client.post("/v1/agents/ann/remember", json=body)
            if answer.status_code != 202:
                break
            accepted += 1
        error = answer.json()["error"]
        assert (error["reason"], error["metadata"]["quota"]) == ("QUOTA_REACHED", "bytes")
        assert quota <= int(error["metadata"]["held"]) < 2 * quota
        assert 5 <= accepted < 25
        assert (await client.get("/v1/agents/ann")).json()["counts"]["messages"] == accepted
        assert (await client.post("/v1/agents/bob/remember", json=body)).status_code == 202


async def test_agents_created_by_a_key_are_limited(tmp_path: Path, site: Site) -> None:
    """One agent too many is QUOTA_REACHED, by the key's own limit or the setting, also for concurrent requests."""
    path = tmp_path / "d"
    own = new_key(path, "write", agent_prefixes=["team-"], max_agents=2)
    usual = new_key(path, "write", agent_prefixes=["林"])
    async with site(path, max_agents_per_key=3) as (service, rest, rpc):
        await tell(service, "other", "Hello.")
        await tell(service, "林0", "Hello.")
        assert [await rest("OpenAgent", own, f"team-{n}") for n in range(3)] == [
            ALLOWED,
            ALLOWED,
            "QUOTA_REACHED",
        ]
        assert await rest("OpenAgent", own, "team-0") == ALLOWED
        assert await rpc("OpenAgent", own, "team-9") == "QUOTA_REACHED"
        answers = await asyncio.gather(*(rest("OpenAgent", usual, f"林{n}") for n in range(1, 8)))
        assert sorted(answers) == ["QUOTA_REACHED"] * 5 + [ALLOWED] * 2
        erased = await service.fleet.on_pool(lambda: sorted(service.fleet.data.directories()))
        assert len(erased) == 6


async def test_the_log_contains_the_key_id_and_no_secret(
    tmp_path: Path, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log line of a request contains the key's id, over both transports; no secret of any key is in the log."""
    from ebbtide.telemetry import configure_log

    path = tmp_path / "d"
    key = new_key(path, "read")
    configure_log("info", "json")
    async with site(path) as (_, rest, rpc):
        await rest("GetModel", key)
        await rpc("GetModel", key)
        await rest("GetModel", key[:-1])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    named = [line for line in lines if line.get("event") == "request" and line.get("key") == id_of(key)]
    assert {line["part"] for line in named} == {"rest", "rpc"}
    assert key[20:] not in json.dumps(lines)


async def test_a_browsers_preflight_needs_no_key(tmp_path: Path) -> None:
    """A preflight of an allowed origin succeeds and allows Authorization. Without CORS every preflight is refused."""
    page = "http://localhost:3000"
    asked = {
        "Origin": page,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with service_in(tmp_path / "a", access=KEYS_ON, server={"cors_origins": [page]}) as service:
        allowed = await Rest(service).client.options("/v1/agents/ann/recall", headers=asked)
        assert allowed.status_code == 200
        assert "authorization" in allowed.headers["access-control-allow-headers"]
    async with service_in(tmp_path / "b", access=KEYS_ON) as service:
        same = {**asked, "Origin": "http://127.0.0.1:8420"}
        refused = await Rest(service).client.options("/v1/agents/ann/recall", headers=same)
        assert refused.status_code == 401


async def test_everything_is_open_when_authentication_is_off(tmp_path: Path) -> None:
    """Without authentication no request needs a key, and a key that is sent is ignored."""
    async with service_in(tmp_path / "d") as service, grpc_served(service) as server:
        await tell(service, "ann", "Hello.")
        async with grpc.aio.insecure_channel(server.target) as channel:
            for ask in (Rest(service), Grpc(channel)):
                assert await ask("GetAgent", None) == ALLOWED
                assert await ask("GetScheduler", "letmein") == ALLOWED
