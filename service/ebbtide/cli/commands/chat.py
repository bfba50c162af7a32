"""`ebbtide chat`: a conversation with a model that has a memory, through the memory proxy of a running daemon."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ebbtide.cli.console import report, say
from ebbtide.cli.credentials import credentials
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Url


def chat(
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="The model. Default: the first of the model server.")
    ] = "",
) -> None:
    """Chat with a model that has a memory. Each line of the input is a message; the end of the input ends the chat.

    After an error the chat continues without the message. The exit code is that of the last message.

    The daemon needs a model server for its memory proxy: the setting proxy.upstreams.
    """
    import httpx

    from ebbtide.cli.proxy_chat import TIMEOUT_S, ProxyChat
    from ebbtide.cli.remote import RemoteClient

    given = credentials(api_key_file, ca_file, client_cert)
    with RemoteClient(url, given) as remote:
        remote.get_me()
    trust = True if given.trust is None else given.trust
    with httpx.Client(headers=given.headers, verify=trust, timeout=TIMEOUT_S, trust_env=False) as client:
        talk = ProxyChat.found(client, url, agent, model)
        say(f"{agent} talks with {talk.model}. Ctrl-D ends the chat.", "dim")
        code = 0
        is_typed = sys.stdin.isatty()
        while True:
            if is_typed:
                sys.stderr.write("> ")
                sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                break
            if not line.strip():
                continue
            code = 0
            try:
                say(f"memory: {talk.send(line.strip(), sys.stdout)}", "dim")
            except Failure as failure:
                report(failure)
                code = failure.code
    raise typer.Exit(code)
