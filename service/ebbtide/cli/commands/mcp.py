"""`ebbtide mcp`: an MCP server over standard input and output, for clients that start their servers."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import quote, urlencode

import typer

from ebbtide.cli.commands.tools import Lang, Language
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Url
from ebbtide.mcp.sets import SetName


def mcp(
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    tools: Annotated[SetName, typer.Option("--tools", help="The set of tools.")] = "default",
    lang: Lang = Language.EN,
) -> None:
    """Connect an MCP client that starts this command with a running daemon, over standard input and output."""
    import httpx

    from ebbtide.cli.mcp_bridge import TIMEOUT_S, Bridge
    from ebbtide.cli.remote import RemoteClient

    given = credentials(api_key_file, ca_file, client_cert)
    with RemoteClient(url, given) as remote:
        # A client shows what is written to standard error, if the daemon does not answer or refuses the key.
        remote.get_me()
    options = urlencode({"tools": tools, "lang": lang.value})
    address = f"{url.rstrip('/')}/v1/agents/{quote(agent, safe='')}/mcp?{options}"
    trust = True if given.trust is None else given.trust
    with httpx.Client(headers=given.headers, verify=trust, timeout=TIMEOUT_S, trust_env=False) as client:
        Bridge(client, address, sys.stdout.buffer).run(sys.stdin.buffer)
