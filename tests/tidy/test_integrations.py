"""The configurations in docs/integrations.md can be read, and their addresses and headers work."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.cli.app import COMMANDS
from ebbtide.mcp.declarations import DEFAULT, SEARCH_FETCH
from ebbtide.mcp.graph_declarations import GRAPH_TOOLS
from ebbtide.mcp.sets import SETS
from tests.support.in_process import service_in
from tests.support.keys import KEYS_ON, new_key
from tests.support.rest_in_process import served
from tests.tidy.pages import read

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
KEY = re.compile(r"\$\{[^}]*\}|\$EBBTIDE_API_KEY")


def configurations() -> list[dict[str, Any]]:
    """Return the server of each configuration on the page, as its address and headers, or its command."""
    page = read("docs/integrations.md")
    servers = []
    for language, block in re.findall(r"```(json|toml)\n(.*?)```", page, re.DOTALL):
        whole = json.loads(block) if language == "json" else tomllib.loads(block)
        (server,) = next(iter(whole.values())).values()
        servers.append(server)
    return servers


def test_the_page_has_a_configuration_for_every_client() -> None:
    """Seven files: five with an address, two with a command that exists and a set of tools that does."""
    servers = configurations()
    assert len(servers) == 7
    default, graph = (server["args"] for server in servers if "command" in server)
    assert default[0] in COMMANDS and graph[: len(default)] == default
    assert graph[len(default) :] == ["--tools", "graph"] and "graph" in SETS


async def test_every_address_and_header_works_with_keys_on(tmp_path: Path) -> None:
    """With the key in place of its variable, each configuration reaches the agent."""
    key = new_key(tmp_path, "read", "write", agents=["ann"])
    page = read("docs/integrations.md")
    command = re.search(r"claude mcp add .*? (http\S+) --header \"(\w+): ([^\"]*)\"", page)
    assert command is not None
    given = [(command[1], {command[2]: command[3]})]
    for server in configurations():
        if "command" in server:
            continue
        headers = server.get("headers") or {"Authorization": f"Bearer ${server['bearer_token_env_var']}"}
        given.append((server.get("url") or server["serverUrl"], headers))
    async with (
        service_in(tmp_path, access=KEYS_ON) as service,
        served(service) as url,
        httpx.AsyncClient(headers=ACCEPT, timeout=60) as client,
    ):
        for address, headers in given:
            sent = {name: KEY.sub(lambda _: key, value) for name, value in headers.items()}
            answer = await client.post(address.replace("http://127.0.0.1:8420", url), json=PING, headers=sent)
            assert answer.status_code == 200, (address, answer.text)


@pytest.mark.parametrize("tools", [DEFAULT, SEARCH_FETCH, GRAPH_TOOLS], ids=["default", "search", "graph"])
def test_the_tables_have_every_tool(tools: Mapping[str, Any]) -> None:
    """The page names the tools of each set."""
    page = read("docs/integrations.md")
    for name in tools:
        assert f"`{name}`" in page
