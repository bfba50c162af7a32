"""`ebbtide clear`: remove everything that an agent has stored, and keep its id and parameters.

This cannot be undone, so the command asks for confirmation. Without a terminal it requires `--yes`.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ebbtide.cli.console import counted, err, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url


def clear(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Remove everything that an agent has stored; keep its id and parameters. Irreversible."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        if not yes:
            _ask(remote.get_agent(agent)["counts"], agent)
        answer = remote.clear_agent(agent)
    if as_json:
        write_json(answer)
        return
    memories = counted(answer["memories"], "memory", "memories")
    say(f"Cleared {agent}: {memories} and {counted(answer['messages'], 'message')} removed.")


def _ask(counts: dict[str, int], agent: str) -> None:
    if not sys.stdin.isatty():
        raise Failure(
            "Confirmation required, but standard input is not a terminal. Nothing was removed; pass --yes.",
            ExitCode.USAGE,
        )
    say(
        f"{agent}: {counted(counts['nodes'], 'memory', 'memories')}, {counted(counts['messages'], 'message')}"
    )
    err().print("Remove all of them for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was removed.", ExitCode.REFUSED)
