"""docs/api.md and the OpenAPI document have the same routes, fields and reasons."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.errors import REASONS
from ebbtide.rest.app import create_app
from ebbtide.verbs.catalogue import CATALOGUE
from tests.support.in_process import service_in
from tests.tidy.generate_api import TABLES, render
from tests.tidy.pages import read

METHODS = ("get", "put", "post", "patch", "delete")


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """The OpenAPI document as the daemon serves it."""
    async with service_in(tmp_path / "data") as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield (await client.get("/openapi.json")).json()


def operations(document: dict[str, Any]) -> set[str]:
    """Return `METHOD /path` of every operation."""
    return {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
        if method in METHODS
    }


def section(page: str, heading: str) -> str:
    """Return the text below a heading, up to the next one of its rank."""
    found = re.search(rf"^### {re.escape(heading)}$(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def test_the_page_has_the_routes_of_the_daemon(document: dict[str, Any]) -> None:
    """Every operation has a section of its own on the page, and the page has no others."""
    page = read("docs/api.md")
    told = re.findall(r"^### ([A-Z]+ /\S+)$", page, re.MULTILINE)
    assert len(told) == len(set(told))
    assert set(told) == operations(document)


def test_an_operation_has_one_name(document: dict[str, Any]) -> None:
    """The RPC's name equals the operation's in snake case and OpenAPI's in camel case; no two operations share one."""
    for operation in CATALOGUE:
        if operation.is_rpc:
            assert operation.verb.__name__ == operation.verb_name
        documented = document["paths"][operation.path][operation.method.lower()]
        assert documented["operationId"] == operation.id
    assert len({operation.name for operation in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_operations_are_those_of_the_catalogue(name: str) -> None:
    """Each page has the table of operations that `python -m tests.tidy.generate_api` generates from the catalogue."""
    page = read(f"docs/{name}")
    assert render(name, page) == page


def test_every_route_has_an_example(document: dict[str, Any]) -> None:
    """Each section shows a request with its response."""
    page = read("docs/api.md")
    bare = [
        operation
        for operation in sorted(operations(document))
        if not re.search(r"```http\n[A-Z]+ /.*?\nHTTP/1\.1 \d{3} ", section(page, operation), re.DOTALL)
    ]
    assert bare == []


def test_every_field_and_option_is_named(document: dict[str, Any]) -> None:
    """The section of a route names all fields of its request body and all its query options."""
    page = read("docs/api.md")
    schemas = document["components"]["schemas"]
    missing = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            text = section(page, f"{method.upper()} {path}")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            name = body["schema"]["$ref"].rpartition("/")[2] if body else ""
            fields = (
                [] if not name or name.startswith("AgentParameters") else list(schemas[name]["properties"])
            )
            missing += [f"{method} {path}: {f}" for f in fields if f"`{f}`" not in text]
    for option in ("page_size", "page_token", "state"):
        assert option in page
    assert missing == []


def test_fields_of_messages_are_named(document: dict[str, Any]) -> None:
    """The section of the route that accepts messages names every field of a message."""
    text = section(read("docs/api.md"), "POST /v1/agents/{agent_id}/remember")
    fields = document["components"]["schemas"]["Message"]["properties"]
    assert [name for name in fields if f"`messages[].{name}`" not in text] == []


def test_reasons_on_the_page_exist() -> None:
    """The page names exactly the errors of the daemon that a request can cause."""
    words = set(re.findall(r"`([A-Z]{3,}(?:_[A-Z]+)*)`", read("docs/api.md")))
    words -= {"POST", "PUT", "PATCH", "GET", "DELETE", "HEAD"}
    words = {word for word in words if not word.startswith("NaN")}
    at_start_only = {
        "CLUSTER_UNUSABLE",
        "DATA_DIRECTORY_LOCKED",
        "INSECURE_BIND",
        "KEY_FILE_UNUSABLE",
        "MISSING_EXTRA",
        "TLS_UNUSABLE",
    }
    assert words == REASONS.keys() - at_start_only
