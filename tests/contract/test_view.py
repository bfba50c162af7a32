"""`/ui` serves the files of the web view without a key, limits the page by its headers, and opens no other path."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Match, Route

from ebbtide.rest import view_files
from ebbtide.rest.view import CONTENT_SECURITY_POLICY, MISSING, NOT_PERMITTED, view_routes
from ebbtide.rest.view_files import is_view
from ebbtide.verbs.catalogue import REQUIREMENTS
from ebbtide.verbs.history import MAX_ROWS
from ebbtide.verbs.memory_map import MAX_NODES
from tests.support.callers import RestCaller, rest_in
from tests.support.forwarded import forwarded_rest_in
from tests.support.in_process import service_in, tell
from tests.support.keys import KEYS_ON
from tests.support.rest_in_process import raw, served
from tests.support.view import FILES, INDEX, LICENCES, SCRIPT, use_view

SCRIPT_PATH = "/ui/assets/index-B1a2c3D4.js"
PAGES = (
    "/ui",
    "/ui/",
    "/ui/a/ann",
    "/ui/a/ann/m/n17",
    "/ui/a/v1.0",
    "/ui/a/a%20b/search?q=x",
    "/ui/settings",
)


@pytest.fixture
def view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_view(monkeypatch, tmp_path / "files")


@pytest.fixture(params=[rest_in, forwarded_rest_in], ids=["direct", "another worker"])
async def call(view: None, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RestCaller]:
    """A daemon with a view that requires keys, and a caller without one."""
    async with request.param(tmp_path / "data", access=KEYS_ON) as caller:
        yield caller


async def test_the_page_and_its_files_need_no_key(call: RestCaller) -> None:
    """The page is at every path of the application; its files have their types. HEAD has the same headers."""
    for path in PAGES:
        page = await call("GET", path)
        assert (page.status_code, page.text) == (200, INDEX), path
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-cache"
    script = await call("GET", SCRIPT_PATH)
    assert (script.text, script.headers["content-type"]) == (SCRIPT, "text/javascript; charset=utf-8")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    icon = await call("GET", "/ui/icon-C0ffee00.svg")
    assert icon.headers["content-type"] == "image/svg+xml"
    licences = await call("GET", "/ui/licences")
    assert (licences.text, licences.headers["content-type"]) == (LICENCES, "text/plain; charset=utf-8")
    for path in (*PAGES, SCRIPT_PATH):
        head, got = await call("HEAD", path), await call("GET", path)
        del head.headers["x-request-id"], got.headers["x-request-id"]
        assert (head.status_code, head.headers) == (200, got.headers), path


async def test_the_page_of_a_memory_names_what_the_view_reads(view: None, tmp_path: Path) -> None:
    """The browser then reads it while it loads the scripts: the paths are those of the API, each once, and escaped."""
    async with rest_in(tmp_path / "data") as caller:
        for path, agent in {
            "/ui/a/ann": "ann",
            "/ui/a/ann/m/n17": "ann",
            "/ui/a/a%20b": "a%20b",
            "/ui/a/%3E,%20X:%22": "%3E%2C%20X%3A%22",
            "/ui/a/%E6%9E%97%E6%9C%88": "%E6%9E%97%E6%9C%88",
        }.items():
            link = (await caller("GET", path)).headers["link"]
            assert re.findall("<([^>]*)>([^,]*)", link) == [
                (f"/v1/agents/{agent}/{read}", "; rel=preload; as=fetch; crossorigin")
                for read in (f"map?page_size={MAX_NODES}", f"history?page_size={MAX_ROWS}")
            ]
        for path in ("/ui/", "/ui/a/ann/search", "/ui/a", SCRIPT_PATH):
            assert "link" not in (await caller("GET", path)).headers


async def test_with_keys_no_page_names_reads(call: RestCaller) -> None:
    """A browser sends no key with them, so the daemon would refuse them."""
    assert "link" not in (await call("GET", "/ui/a/ann")).headers


async def test_only_files_of_the_view_exist(call: RestCaller) -> None:
    """Other names are ROUTE_NOT_FOUND, as are the files of the build; only GET and HEAD are open."""
    for name in (
        "none.js",
        "assets/none.css",
        ".vite/manifest.json",
        ".vite/built-from",
    ):
        assert (await call("GET", f"/ui/{name}")).status_code == 404, name
    assert await call.refused("GET", "/ui/none.js") == "ROUTE_NOT_FOUND"
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert await call.refused(method, "/ui/a/ann") == "MISSING_KEY"


@pytest.mark.usefixtures("view")
async def test_other_methods_are_refused(tmp_path: Path) -> None:
    """Without keys, another method is METHOD_NOT_ALLOWED."""
    async with rest_in(tmp_path / "data") as call:
        for path in ("/ui", "/ui/a/ann"):
            response = await call("POST", path)
            assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


async def test_headers_limit_what_the_page_can_do(call: RestCaller) -> None:
    """Every file has the policies that stop a script which a memory contains."""
    for path in ("/ui", "/ui/a/ann", SCRIPT_PATH, "/ui/licences"):
        headers = (await call("GET", path)).headers
        assert headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert (
            headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        )
        assert {f"{name}=()" for name in NOT_PERMITTED} == set(headers["permissions-policy"].split(", "))


async def test_files_are_compressed_once_and_not_sent_again(call: RestCaller) -> None:
    """A client that accepts gzip gets it, others the file itself; a browser that has the file gets 304."""
    compressed = await call("GET", SCRIPT_PATH, headers={"Accept-Encoding": "gzip, br"})
    assert compressed.headers["content-encoding"] == "gzip" and compressed.text == SCRIPT
    assert int(compressed.headers["content-length"]) < len(SCRIPT) / 4
    plain = await call("GET", SCRIPT_PATH, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.text == SCRIPT
    assert plain.headers["vary"] == compressed.headers["vary"] == "Accept-Encoding"
    for path in ("/ui", SCRIPT_PATH):
        etag = (await call("GET", path)).headers["etag"]
        again = await call("GET", path, headers={"If-None-Match": f'"x", {etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert (await call("GET", path, headers={"If-None-Match": 'W/"x"'})).status_code == 200


@pytest.mark.usefixtures("view")
def test_a_file_is_compressed_when_it_is_read() -> None:
    """The compressed form is the same file, and small files have none."""
    files = view_files.read_files(view_files.FILES)
    assert files.keys() == FILES.keys() - {".vite/manifest.json", ".vite/built-from"}
    compressed = files["assets/index-B1a2c3D4.js"].compressed
    assert compressed is not None and gzip.decompress(compressed).decode() == SCRIPT
    assert files["assets/index-E5f6.css"].compressed is None


async def test_an_installation_without_the_view_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page names the command for a checkout or for a package, in English and Chinese, under the same policy."""
    monkeypatch.setattr(view_files, "FILES", tmp_path / "none")
    for is_checkout, command in ((True, "make serve"), (False, "pip install --force-reinstall")):
        monkeypatch.setattr(view_files, "is_checkout", lambda is_checkout=is_checkout: is_checkout)
        async with rest_in(tmp_path / f"data{is_checkout}", access=KEYS_ON) as call:
            for path in ("/ui", "/ui/a/ann"):
                page = await call("GET", path)
                assert page.status_code == 200
                assert "The web view is not in this installation" in page.text
                assert "此安装中没有网页界面" in page.text and page.text.count(command) == 2
                assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
            assert await call.refused("GET", "/ui/licences") == "ROUTE_NOT_FOUND"
            assert await call.refused("GET", SCRIPT_PATH) == "ROUTE_NOT_FOUND"
            assert (await call("GET", "/readyz")).status_code == 200
    assert "<script" not in MISSING


def test_this_is_a_checkout() -> None:
    """The tests run in a checkout."""
    assert view_files.is_checkout()


@pytest.mark.usefixtures("view")
async def test_a_daemon_without_the_view_has_no_such_route(tmp_path: Path) -> None:
    """With server.ui off, /ui is ROUTE_NOT_FOUND, and the home page has no link to it."""
    for has_view in (True, False):
        async with rest_in(tmp_path / f"data{has_view}", server={"ui": has_view}) as call:
            assert ((await call("GET", "/")).json().get("view") == "/ui") == has_view
            page = await call("GET", "/", headers={"Accept": "text/html"})
            assert ('href="/ui"' in page.text) == has_view and 'href="/docs"' in page.text
    async with rest_in(tmp_path / "off", server={"ui": False}) as call:
        for path in ("/ui", "/ui/", SCRIPT_PATH):
            assert await call.refused("GET", path) == "ROUTE_NOT_FOUND"


HOSTILE = (
    *("/ui/../v1/agents", "/ui/./../v1/agents", "/ui/a/../../v1/agents", "/ui//../v1/agents"),
    *("/ui/%2e%2e/v1/agents", "/ui/%2E%2E/v1/agents", "/ui/.%2e/v1/agents", "/ui/%252e%252e/v1/agents"),
    *("/ui/..%2fv1/agents", "/ui/..%5cv1/agents", "/ui/..\\v1\\agents", "/ui%2f..%2fv1/agents"),
    *("//ui", "//ui/../v1/agents", "/ui//v1/agents", "/ui/;/../v1/agents", "/ui?/../v1/agents"),
    *(
        "/./ui/../v1/agents",
        "/v1/agents/../../ui",
        "/v1/agents?/ui/",
        "/v1/agents/ui",
        "/v1/agents/%2e%2e/ui",
    ),
    *("/uiv1/agents", "/ui/../ui/../v1/agents", "/UI", "/ui%00/../v1/agents", "/%75i/../v1/agents"),
    *("http://127.0.0.1/ui/../v1/agents", "/ui/..;/v1/agents", "/ui/%c0%ae%c0%ae/v1/agents"),
)


@pytest.mark.usefixtures("view")
@pytest.mark.parametrize("keys", [{}, KEYS_ON], ids=["no keys", "keys"])
async def test_no_path_that_begins_like_the_view_reaches_a_verb(tmp_path: Path, keys: dict[str, Any]) -> None:
    """A path that some server could read as one of /v1 is the page or an error, never an answer of a verb."""
    async with service_in(tmp_path / "data", access=keys) as service, served(service) as url:
        if not keys:
            await tell(service, "secret-agent", "Hello.")
        for target in HOSTILE:
            if not keys and target.startswith("/v1"):
                continue
            async with raw(url) as line:
                await line.send(f"GET {target} HTTP/1.1", "Host: 127.0.0.1")
                answer = await line.answer()
                assert b"secret-agent" not in answer.body and b'"agents"' not in answer.body, target
                assert answer.status in (400, 401, 404) or answer.body.decode() == INDEX, target
                # The path as a program decodes it is not open unless it is that of the page.
                for method in ("POST", "DELETE"):
                    if keys:
                        async with raw(url) as other:
                            await other.send(f"{method} {target} HTTP/1.1", "Host: 127.0.0.1")
                            assert (await other.answer()).status in (400, 401), (method, target)


PIECES = ("ui", "v1", "agents", "ann", "", ".", "..", "a", "%2e%2e", "..;", "\\..", "docs", "metrics", " ")


@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_an_open_path_has_no_other_route(pieces: list[str]) -> None:
    """No path that is open because it is the view's matches a route of anything else."""
    path = "/" + "/".join(pieces)
    others = [
        Route(route.partition(" ")[2], _never)
        for name, (route, _) in REQUIREMENTS.items()
        if name[:4] != "View"
    ]
    scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
    if is_view(path):
        assert [other.path for other in others if other.matches(scope)[0] is not Match.NONE] == []
        assert ".." not in pieces and "." not in pieces and "" not in pieces[:-1]
        own = view_routes(Path("none"))
        assert any(route.matches(scope)[0] is Match.FULL for route in own)


async def _never(_: Any) -> None:
    raise AssertionError("routes are only compared")
