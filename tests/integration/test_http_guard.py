"""The REST interface against web pages, abusive clients and invalid requests."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.routing import Mount

from ebbtide.daemon import refuse_insecure_bind
from ebbtide.errors import Precondition
from ebbtide.metrics import Metrics
from ebbtide.rest import http_checks
from ebbtide.rest.app import create_app
from ebbtide.rest.connections import PIECE_BYTES, Connection
from ebbtide.telemetry import configure_log
from ebbtide.verbs import recall as recall_verb
from ebbtide.verbs.service import Service
from tests.support import looking
from tests.support.in_process import service_in, settings_for, settle, tell
from tests.support.keys import KEYS_ON
from tests.support.rest_in_process import Raw, raw, served
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Stopwatch, eventually

BATCH = {"messages": [{"role": "user", "content": "The kettle is blue."}]}
JSON = "Content-Type: application/json"


class Site:
    """A service, its REST server and a client."""

    def __init__(self, service: Service, url: str, client: httpx.AsyncClient, model: ScriptedModel) -> None:
        self.service = service
        self.url = url
        self.client = client
        self.model = model

    async def agents(self) -> list[str]:
        """Return the ids of all agents."""
        return [a["agent_id"] for a in (await self.client.get("/v1/agents")).json()["agents"]]


@contextlib.asynccontextmanager
async def site_in(path: Path, **sections: Any) -> AsyncIterator[Site]:
    model = ScriptedModel()
    sections["server"] = {"rest_port": 0, "shutdown_grace_s": 1, **sections.get("server", {})}
    async with (
        service_in(path, model, **sections) as service,
        served(service) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        yield Site(service, url, client, model)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path / "data") as made:
        yield made


def reason(response: httpx.Response) -> str:
    """Return the reason of an error body, after a check of its form."""
    body = response.json()
    assert response.headers["content-type"] == "application/json"
    if "detail" in body:
        # The shape of mem0.
        assert body.keys() == {"detail", "error", "reason"} and body["detail"] == body["error"]
        return str(body["reason"])
    error = body["error"]
    assert error["code"] == response.status_code
    assert error["message"]
    assert set(error) <= {"code", "status", "message", "reason", "metadata", "field_violations"}
    told: str = error["reason"]
    return told


# --- who asks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1"]
)
async def test_foreign_host_is_refused(site: Site, host: str) -> None:
    """A request to another host name (DNS rebinding) reaches no operation."""
    response = await site.client.post("/v1/agents/ann/remember", json=BATCH, headers={"Host": host})
    assert (response.status_code, reason(response)) == (421, "MISDIRECTED_REQUEST")
    assert await site.agents() == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]:8420", "127.0.0.53:8420", "ip6-localhost"]
)
async def test_loopback_names_are_accepted(site: Site, host: str) -> None:
    """Every loopback name is accepted, with any port."""
    assert (await site.client.get("/healthz", headers={"Host": host})).status_code == 200


async def test_allowed_host_is_accepted(tmp_path: Path) -> None:
    """A name in `allowed_hosts` is accepted, in any case; others are still refused."""
    async with site_in(tmp_path / "data", server={"allowed_hosts": ("Memory.example",)}) as site:
        assert (await site.client.get("/healthz", headers={"Host": "memory.EXAMPLE:8420"})).status_code == 200
        assert (await site.client.get("/healthz", headers={"Host": "other.example"})).status_code == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://", ""]
)
async def test_foreign_origin_is_refused(site: Site, origin: str) -> None:
    """A web page of another origin changes and reads nothing, also without a body."""
    await tell(site.service, "ann", "The kettle is blue.")
    for method, path in (("DELETE", ""), ("POST", "/close"), ("POST", "/recall"), ("GET", "/nodes")):
        response = await site.client.request(method, f"/v1/agents/ann{path}", headers={"Origin": origin})
        assert (response.status_code, reason(response)) == (403, "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in response.headers
    assert await site.agents() == ["ann"]


async def test_own_origin_is_accepted(site: Site) -> None:
    """The daemon's own pages (/docs) may call it."""
    response = await site.client.post("/v1/agents/ann/remember", json=BATCH, headers={"Origin": site.url})
    assert response.status_code == 202


async def test_listed_origin_is_accepted(tmp_path: Path) -> None:
    """A page that CORS lists gets its preflight and its responses; any other page does not."""
    page = "http://localhost:3000"
    async with site_in(tmp_path / "data", server={"cors_origins": (page,)}) as site:
        asked = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        preflight = await site.client.options("/v1/agents/ann/remember", headers={"Origin": page, **asked})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == page
        done = await site.client.post("/v1/agents/ann/remember", json=BATCH, headers={"Origin": page})
        assert done.status_code == 202
        assert done.headers["access-control-allow-origin"] == page
        foreign = await site.client.options(
            "/v1/agents/ann/remember", headers={"Origin": "http://localhost:3001", **asked}
        )
        assert foreign.status_code == 403


POLICY = "cross-origin-resource-policy"
OPENS_A_TAB = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


MOUNTED = {"/docs/files": "swagger-ui.css", "/mem0": "v1/ping/"}
"""A path below each mount."""


def every_route(service: Service) -> list[tuple[str, str]]:
    """Return method and path of every route, including the app's documents and one of their files."""
    app: Any = create_app(service)
    found = []
    for route in app._app.routes:
        if isinstance(route, Mount):
            found.append(("GET", f"{route.path}/{MOUNTED[route.path]}"))
            continue
        path = (
            route.path.replace(":path", "").format(
                agent_id="ann",
                path="a/ann",
                node_id="n1",
                batch_id="b1",
                name="recall",
                ruling_id="r1",
                message="m1",
                index=0,
            )
            if "{" in route.path
            else route.path
        )
        found += [(method, path) for method in sorted(route.methods)]
    return found


@pytest.mark.parametrize(
    "site_values",
    [
        ["cross-site"],
        ["same-site"],
        ["Cross-Site"],
        ["SAME-ORIGIN"],
        ["unheard-of"],
        [""],
        ["same-origin", "cross-site"],
        ["cross-site", "none"],
        ["none, cross-site"],
    ],
)
async def test_no_route_answers_a_page_of_another_site(site: Site, site_values: list[str]) -> None:
    """A request that a browser marks as coming from another site reaches no route, with any method.

    An image or a script of a foreign page sends no `Origin`: only `Sec-Fetch-Site` identifies it.
    """
    await tell(site.service, "ann", "The kettle is blue.")
    walked = every_route(site.service)
    assert len(walked) > 40
    assert {("GET", "/docs"), ("GET", "/healthz"), ("GET", "/openapi.json"), ("GET", "/metrics")} <= {*walked}
    marks = [("Sec-Fetch-Site", value) for value in site_values]
    for method, path in [*walked, ("GET", "/nowhere"), ("DELETE", "/healthz"), ("OPTIONS", "/v1/agents")]:
        response = await site.client.request(method, path, headers=marks)
        assert response.status_code == 403, (method, path)
        assert response.headers[POLICY] == "same-origin"
        if method != "HEAD":
            assert reason(response) == "ORIGIN_NOT_ALLOWED"
    assert await site.agents() == ["ann"]


async def test_users_and_own_pages_are_answered(site: Site) -> None:
    """Requests of users, of /docs, and of programs without browser headers are answered on every route."""
    for marks in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
        for method, path in every_route(site.service):
            ending = "?follow=false" if path.endswith("/events") else ""
            response = await site.client.request(method, path + ending, headers=marks)
            assert response.status_code != 403, (method, path)
            assert response.headers[POLICY] == "same-origin", (method, path)


async def test_only_pages_open_from_a_link_on_another_site(site: Site) -> None:
    """A link opens only /, /docs and the web view; a frame, an image, a script and a form open not even them."""
    pages = [("GET", "/"), ("GET", "/docs"), ("GET", "/ui"), ("GET", "/ui/a/ann")]
    for method, path in pages:
        response = await site.client.request(method, path, headers={**OPENS_A_TAB, "Accept": "text/html"})
        assert response.status_code == 200
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    for method, path in every_route(site.service):
        # HEAD is GET without a body.
        if (method.replace("HEAD", "GET"), path) not in pages:
            response = await site.client.request(method, path, headers=OPENS_A_TAB)
            assert response.status_code == 403, (method, path)
    for changed in (
        {"Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Mode": "Navigate"},
        {"Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Dest": ""},
        {"Origin": "https://evil.example"},
    ):
        for page in ("/docs", "/ui"):
            response = await site.client.get(page, headers={**OPENS_A_TAB, **changed})
            assert (response.status_code, reason(response)) == (403, "ORIGIN_NOT_ALLOWED"), changed
    twice = [*OPENS_A_TAB.items(), ("Sec-Fetch-Dest", "iframe")]
    assert (await site.client.get("/docs", headers=twice)).status_code == 403
    assert (await site.client.post("/docs", headers=OPENS_A_TAB)).status_code == 403
    assert (await site.client.get("/ui/../v1/agents", headers=OPENS_A_TAB)).status_code == 403


@pytest.mark.parametrize("listed", ["http://localhost:3000", "*"])
async def test_listed_origins_fetch_from_another_site(tmp_path: Path, listed: str) -> None:
    """A page that CORS lists may call across sites, with its preflight; without an `Origin` no page may."""
    page = "http://localhost:3000"
    marks = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    async with site_in(tmp_path / "data", server={"cors_origins": (listed,)}) as site:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        path = "/v1/agents/ann/remember"
        preflight = await site.client.options(path, headers={"Origin": page, **marks, **asked})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] in (page, "*")
        done = await site.client.post(path, json=BATCH, headers={"Origin": page, **marks})
        assert done.status_code == 202
        assert done.headers["access-control-allow-origin"] in (page, "*")
        assert done.headers[POLICY] == "same-origin", "which binds no fetch that CORS allows"
        for path in ("/v1/agents/ann", "/metrics"):
            assert (await site.client.get(path, headers=marks)).status_code == 403
        if listed != "*":
            foreign = {"Origin": "http://localhost:3001", **marks}
            assert (await site.client.get("/v1/agents/ann", headers=foreign)).status_code == 403


async def test_a_listed_page_reads_why_a_request_was_refused(tmp_path: Path) -> None:
    """Errors of the checks before the app are readable for listed origins only, with the headers that clients need."""
    page = "http://localhost:3000"
    async with site_in(tmp_path / "data", server={"cors_origins": (page,)}) as site:
        for origin, expected in ((page, page), ("http://localhost:3001", None)):
            response = await site.client.post(
                "/v1/agents/ann/remember",
                content=b"{}",
                headers={"Content-Type": "text/plain", "Origin": origin},
            )
            assert response.status_code == (415 if expected else 403)
            assert response.headers.get("access-control-allow-origin") == expected
            assert ("retry-after" in response.headers.get("access-control-expose-headers", "")) == bool(
                expected
            )


async def test_no_other_origin_may_embed_any_response(site: Site) -> None:
    """`Cross-Origin-Resource-Policy` is on files, streams, errors of every layer, and responses to malformed HTTP."""
    await tell(site.service, "ann", "The kettle is blue.")
    await settle(site.service, "ann")
    for method, path, status in (
        ("GET", "/v1/agents/ann/backup", 200),
        ("GET", "/v1/agents/ann/export", 200),
        ("GET", "/v1/agents/ann/events?follow=false", 200),
        ("GET", "/docs/files/swagger-ui.css", 200),
        ("HEAD", "/docs", 200),
        ("GET", "/metrics", 200),
        ("GET", "/healthz", 200),
        ("GET", "/nowhere", 404),
        ("DELETE", "/healthz", 405),
        ("GET", "/v1/agents/a%2Fb", 400),
        ("POST", "/v1/agents/ann/remember", 400),
    ):
        response = await site.client.request(method, path)
        assert (response.status_code, response.headers[POLICY]) == (status, "same-origin"), path
    refused = await site.client.get("/healthz", headers={"Host": "evil.example"})
    assert (refused.status_code, refused.headers[POLICY]) == (421, "same-origin")
    async with raw(site.url) as line:
        await line.send("NO HTTP AT ALL")
        answer = await line.answer()
        assert (answer.status, answer.headers[POLICY]) == (400, "same-origin")


def test_listening_beyond_this_machine_must_be_allowed(tmp_path: Path) -> None:
    """INSECURE_BIND for every address that is not loopback, unless `allow_insecure` is set."""
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", "8.8.8.8"):
        with pytest.raises(Precondition) as refused:
            refuse_insecure_bind(settings_for(tmp_path, server={"host": host}))
        assert refused.value.reason == "INSECURE_BIND"
        assert host in refused.value.message
        refuse_insecure_bind(settings_for(tmp_path, server={"host": host, "allow_insecure": True}))
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        refuse_insecure_bind(settings_for(tmp_path, server={"host": host}))


# --- what arrives --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json; charset=gbk",
        "application/jsonp",
    ],
)
async def test_bodies_are_json_only(site: Site, content_type: str | None) -> None:
    """The content types of web forms and other charsets are refused, and nothing is stored."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    body = json.dumps(BATCH).encode()
    response = await site.client.post("/v1/agents/ann/remember", content=body, headers=headers)
    assert (response.status_code, reason(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert await site.agents() == []


async def test_compressed_body_is_refused(site: Site) -> None:
    """A compressed body is refused, so that 8 KiB cannot become 8 GiB."""
    response = await site.client.post(
        "/v1/agents/ann/remember",
        content=gzip.compress(json.dumps(BATCH).encode()),
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    )
    assert (response.status_code, reason(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8"]
)
async def test_explicit_utf8_charset_is_accepted(site: Site, content_type: str) -> None:
    """An explicit UTF-8 charset is accepted."""
    body = json.dumps({"messages": [{"role": "user", "content": "蓝色的水壶"}]}, ensure_ascii=False)
    response = await site.client.post(
        "/v1/agents/ann/remember", content=body.encode(), headers={"Content-Type": content_type}
    )
    assert response.status_code == 202
    await settle(site.service, "ann")
    assert [n.content for n in await looking.nodes(site.service, "ann")] == ["蓝色的水壶"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"",
        b"{}",
        b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        json.dumps(BATCH).encode("utf-16"),
        b'{"messages": [{"role": "user", "content": NaN}]}',
        b'{"messages": 1e999}',
        b"[" * 100_000,
    ],
)
async def test_unreadable_bodies_are_bad_requests(site: Site, body: bytes) -> None:
    """An unreadable body is a 400 with a reason, never a 500, and stores nothing."""
    response = await site.client.post(
        "/v1/agents/ann/remember", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
    assert reason(response) in {"INVALID_JSON", "MISSING_FIELD", "WRONG_TYPE", "EMPTY_MESSAGES"}
    assert await site.agents() == []


async def test_large_bodies_are_refused_declared_or_not(tmp_path: Path) -> None:
    """A body over the limit is refused: before it is read if its length is declared, else once it exceeds the limit."""
    async with site_in(tmp_path / "data", limits={"max_body_bytes": 4096}) as site:
        async with raw(site.url) as line:
            await line.send(
                "POST /v1/agents/ann/remember HTTP/1.1", "Host: localhost", JSON, "Content-Length: 4097"
            )
            answer = await line.answer(2)
            assert answer.status == 413, "before a single byte of it has come"
            assert json.loads(answer.body)["error"]["reason"] == "BODY_TOO_LARGE"

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b" " * 1000

        headers = {"Content-Type": "application/json"}
        response = await site.client.post("/v1/agents/ann/remember", content=chunks(), headers=headers)
        assert (response.status_code, reason(response)) == (413, "BODY_TOO_LARGE")
        exactly = json.dumps(BATCH).encode().ljust(4096)
        response = await site.client.post("/v1/agents/ann/remember", content=exactly, headers=headers)
        assert response.status_code == 202


async def test_chunked_body_within_the_limit_is_accepted(site: Site) -> None:
    """A body without a declared length is accepted."""

    async def chunks() -> AsyncIterator[bytes]:
        body = json.dumps(BATCH).encode()
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    headers = {"Content-Type": "application/json"}
    response = await site.client.post("/v1/agents/ann/remember", content=chunks(), headers=headers)
    assert response.status_code == 202


async def test_endless_and_contradictory_lengths_never_reach_a_verb(site: Site) -> None:
    """Lengths that no proxy agrees on (request smuggling) are refused by the parser."""
    for lines in (
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: -1",),
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip",),
    ):
        async with raw(site.url) as line:
            await line.send(
                "POST /v1/agents/ann/remember HTTP/1.1", "Host: localhost", JSON, *lines, body=b"0"
            )
            line.writer.write_eof()
            assert b" 202 " not in await line.ends(3)
    assert await site.agents() == []


# --- what is answered ------------------------------------------------------------------------------------


async def test_unknown_routes_and_methods_have_the_one_error_body(site: Site) -> None:
    """404 and 405 have the form of every other error; FastAPI's own form never appears."""
    for method, path in (
        ("GET", "/v1"),
        ("GET", "/v2/agents"),
        ("GET", "/v1/agents/ann/nodes/n1/x"),
        ("POST", "/v1/agents/ann/remember/"),
        ("GET", "/v1/agents/../healthz"),
    ):
        async with raw(site.url) as line:
            await line.send(f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Length: 0")
            answer = await line.answer()
            assert (answer.status, json.loads(answer.body)["error"]["reason"]) == (404, "ROUTE_NOT_FOUND")
    for method, path in (
        ("GET", "/v1/agents/ann/remember"),
        ("POST", "/v1/agents"),
        ("DELETE", "/healthz"),
        ("PUT", "/v1/agents/ann/recall"),
    ):
        response = await site.client.request(method, path)
        assert (response.status_code, reason(response)) == (405, "METHOD_NOT_ALLOWED")
        assert response.headers["allow"]
    response = await site.client.get("/v1/agents?page_sise=3")
    assert (response.status_code, reason(response)) == (400, "UNKNOWN_FIELD")
    response = await site.client.get("/v1/agents?page_size=many")
    assert (response.status_code, reason(response)) == (400, "INVALID_PAGE")


@pytest.mark.parametrize("keys", [{}, {"access": KEYS_ON}], ids=["open", "keys"])
async def test_nobody_finds_an_oauth_server(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Where clients of MCP look for one after a 401, they get a 404; another 401 would tell them that there is one."""
    async with site_in(tmp_path, **keys) as site:
        for path in ("oauth-protected-resource/mcp", "oauth-authorization-server", "openid-configuration"):
            answer = await site.client.get(f"/.well-known/{path}")
            assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "ROUTE_NOT_FOUND")
        assert (await site.client.post("/register", json={"client_name": "x"})).status_code == 404
        refused = await site.client.get("/v1/agents")
        assert refused.status_code == (401 if keys else 200)


async def test_long_responses_are_compressed_on_request(site: Site) -> None:
    """A long response is compressed with gzip if the client accepts it; the content is the same."""
    await tell(site.service, "ann", *(f"Fact number {number}." for number in range(60)))
    await settle(site.service, "ann")
    plain = await site.client.get("/v1/agents/ann/nodes", headers={"Accept-Encoding": "identity"})
    packed = await site.client.get("/v1/agents/ann/nodes", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 3
    short = await site.client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in short.headers


async def test_request_ids_are_returned_or_created(site: Site) -> None:
    """A valid request id is returned, any other replaced; errors have one too."""
    for good in ("abc-1", "a" * 128, "trace:1.2_3"):
        response = await site.client.get("/healthz", headers={"X-Request-Id": good})
        assert response.headers["x-request-id"] == good
    made = set()
    for bad in ("", "a" * 129, "a b", 'x" y="z', "é"):
        response = await site.client.get("/healthz", headers={"X-Request-Id": bad.encode("latin-1")})
        made.add(response.headers["x-request-id"])
        assert bad not in made
    assert len(made) == 5
    refused = await site.client.get("/nowhere", headers={"Host": "evil.example", "X-Request-Id": "abc-2"})
    assert (refused.status_code, refused.headers["x-request-id"]) == (421, "abc-2")


@pytest.mark.parametrize("agent", ["a?b", "a#b", "a%b", "a%3Fb", "记忆", "a b", "a&b=c;d", "ann", "🙂"])
async def test_location_of_a_batch_leads_to_it(site: Site, agent: str) -> None:
    """The `Location` of a 202 can be followed, for any agent id, and refers to no other agent."""
    path = f"/v1/agents/{quote(agent, safe='')}"
    response = await site.client.post(f"{path}/remember", json=BATCH)
    assert response.status_code == 202
    assert response.headers["location"] == f"{path}/batches/b1"
    followed = await site.client.get(response.headers["location"])
    assert (followed.status_code, followed.json()["batch_id"]) == (200, "b1")
    assert await site.agents() == [agent]


async def test_internal_error_reveals_no_details_and_logs_no_content(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An unexpected exception is a 500 without details, and the log does not contain its message.

    This includes the server library, whose traceback would contain it and could forge log lines.
    """
    configure_log("error", "json")  # to the standard error that is captured here
    await tell(site.service, "ann", "The kettle is blue.")

    async def broken(*_: Any, **__: Any) -> None:
        raise ValueError("said: SECRETKETTLE\n{forged line}")

    monkeypatch.setattr(recall_verb, "caught_up", broken)
    response = await site.client.post("/v1/agents/ann/recall", json={})
    assert (response.status_code, reason(response)) == (500, "INTERNAL")
    assert "SECRETKETTLE" not in response.text
    assert (await site.client.get("/healthz")).status_code == 200
    everything = "".join(capfd.readouterr())
    assert "SECRETKETTLE" not in everything
    assert "{forged line}" not in everything
    [line] = everything.splitlines()
    assert json.loads(line)["error_type"] == "ValueError", "one line, once"


# --- answers at once ---------------------------------------------------------------------------------------


async def test_answers_are_sent_without_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a response waits for the acknowledgement of another part, on either event loop."""
    delays: list[int] = []
    inner = Connection.connection_made

    def noted(self: Connection, transport: Any) -> None:
        taken = transport.get_extra_info("socket")
        delays.append(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        inner(self, transport)

    monkeypatch.setattr(Connection, "connection_made", noted)
    async with site_in(tmp_path) as site:
        assert (await site.client.get("/healthz")).status_code == 200
    assert delays
    assert all(delays)


async def test_a_large_answer_waits_for_its_client_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most two pieces of a response are in a connection's buffer; when the client reads, it arrives complete."""
    made: list[Connection] = []
    inner = Connection.connection_made

    def noted(self: Connection, transport: Any) -> None:
        made.append(self)
        inner(self, transport)

    monkeypatch.setattr(Connection, "connection_made", noted)
    monkeypatch.setattr(Metrics, "text", lambda _: bytes(16 << 20))
    async with site_in(tmp_path) as site, raw(site.url) as line:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await line.send("GET /metrics HTTP/1.1", "Host: localhost", "Connection: close")
        await eventually(lambda: made and made[0].is_waiting_for_client and made[0].held_bytes)
        assert made[0].held_bytes == 16 << 20
        for _ in range(20):
            assert made[0].transport.get_write_buffer_size() <= 2 * PIECE_BYTES + 1000
            await asyncio.sleep(0.01)
        line.writer.transport.resume_reading()  # type: ignore[attr-defined]
        whole = await line.ends(20)
        assert len(whole.partition(b"\r\n\r\n")[2]) == 16 << 20
        assert made[0].held_bytes == 0


# --- rude clients ------------------------------------------------------------------------------------------


async def test_queued_request_is_cancelled_when_its_caller_disconnects(site: Site) -> None:
    """A disconnected client cancels a remember whose job has not started; the next request is served."""
    await tell(site.service, "ann", "The kettle is blue.")
    await settle(site.service, "ann")
    agent = looking.opened_agent(site.service, "ann")
    await eventually(lambda: agent.is_idle)
    may_end = threading.Event()
    blocker = asyncio.create_task(agent.run(lambda: may_end.wait(20)))
    body = json.dumps(BATCH).encode()
    line = await Raw.to(site.url)
    try:
        await line.send(
            "POST /v1/agents/ann/remember HTTP/1.1",
            "Host: localhost",
            JSON,
            f"Content-Length: {len(body)}",
            body=body,
        )
        await eventually(lambda: agent.users == 1 and agent.mailbox.waiting_count == 1)
        line.hang_up()
        await eventually(lambda: agent.users == 0)
    finally:
        line.hang_up()
        may_end.set()
        await blocker
    response = await site.client.post("/v1/agents/ann/flush", json={})
    assert response.json()["pending_batches"] == 0
    assert [b.batch_id for b in await looking.batches(site.service, "ann")] == ["b1"], "nothing was stored"


async def test_waiting_flush_ends_when_its_caller_disconnects(site: Site) -> None:
    """A waiting flush or recall releases its agent when the caller disconnects."""
    site.model.always["segment"] = 3600.0
    await tell(site.service, "ann", "The kettle is blue.")
    agent = looking.opened_agent(site.service, "ann")
    for verb, body in (("flush", b'{"timeout_ms": 60000}'), ("recall", b'{"patience_ms": 30000}')):
        line = await Raw.to(site.url)
        await line.send(
            f"POST /v1/agents/ann/{verb} HTTP/1.1",
            "Host: localhost",
            JSON,
            f"Content-Length: {len(body)}",
            body=body,
        )
        await eventually(lambda: agent.users == 1)
        line.hang_up()
        await eventually(lambda: agent.users == 0, 2)


async def test_half_sent_bodies_store_nothing(site: Site) -> None:
    """An incomplete body reaches no operation, even if its beginning is valid JSON."""
    body = json.dumps(BATCH).encode()
    for declared in ("Content-Length: 4000", "Transfer-Encoding: chunked"):
        line = await Raw.to(site.url)
        part = body if "Length" in declared else f"{len(body):x}\r\n".encode() + body + b"\r\n"
        await line.send("POST /v1/agents/ann/remember HTTP/1.1", "Host: localhost", JSON, declared, body=part)
        await asyncio.sleep(0.1)
        line.hang_up()
    await asyncio.sleep(0.1)
    assert await site.agents() == []
    assert (await site.client.post("/v1/agents/ann/remember", json=BATCH)).status_code == 202


async def test_slow_clients_delay_no_other_client(site: Site) -> None:
    """A hundred clients that send byte by byte, or read nothing, do not affect others."""
    await tell(site.service, "ann", "The kettle is blue.")
    await settle(site.service, "ann")
    lines = [await Raw.to(site.url) for _ in range(100)]
    try:
        for number, line in enumerate(lines):
            if number % 2:
                line.writer.write(b"POST /v1/agents/ann/remember HTTP/1.1\r\nHost: loc")
            else:
                await line.send(
                    "POST /v1/agents/ann/remember HTTP/1.1",
                    "Host: localhost",
                    JSON,
                    "Content-Length: 500",
                    body=b'{"messages": ',
                )
        watch = Stopwatch()
        for _ in range(20):
            response = await site.client.post("/v1/agents/ann/recall", json={"keywords": ["kettle"]})
            assert "kettle" in response.json()["text"]
        assert watch.s < 8, "a silent client is closed after ten seconds"
    finally:
        for line in lines:
            line.hang_up()
    assert (await site.client.get("/v1/agents/ann/batches")).json()["batches"][1:] == []


async def test_body_that_never_arrives_times_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declared body that never arrives is answered with 504 after the timeout."""
    monkeypatch.setattr(http_checks, "BODY_TIMEOUT_S", 0.2)
    async with raw(site.url) as line:
        await line.send(
            "POST /v1/agents/ann/remember HTTP/1.1", "Host: localhost", JSON, "Content-Length: 500"
        )
        answer = await line.answer(3)
        assert (answer.status, json.loads(answer.body)["error"]["reason"]) == (504, "REQUEST_TIMED_OUT")


async def test_connections_are_reused_after_refusals(site: Site) -> None:
    """Many requests use one connection, including refused ones with a body; each gets its own response."""
    body = json.dumps(BATCH).encode()
    async with raw(site.url) as line:
        for number in range(30):
            bad = number % 3 == 1
            await line.send(
                "POST /v1/agents/ann/remember HTTP/1.1",
                "Host: evil.example" if bad else "Host: localhost",
                JSON,
                f"X-Request-Id: r{number}",
                f"Content-Length: {len(body)}",
                body=body,
            )
            answer = await line.answer()
            assert (answer.status, answer.headers["x-request-id"]) == (421 if bad else 202, f"r{number}")
    await settle(site.service, "ann")
    assert len(await looking.batches(site.service, "ann")) == 20


async def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    """Requests sent without waiting are all answered, in order, and all stored."""
    body = json.dumps(BATCH).encode()
    async with raw(site.url) as line:
        for number in range(10):
            await line.send(
                "POST /v1/agents/ann/remember HTTP/1.1",
                "Host: localhost",
                JSON,
                f"X-Request-Id: r{number}",
                f"Content-Length: {len(body)}",
                body=body,
            )
        for number in range(10):
            answer = await line.answer()
            assert (answer.status, answer.headers["x-request-id"]) == (202, f"r{number}")
            assert json.loads(answer.body)["batch_id"] == f"b{number + 1}"
