"""`ebbtide delete`: delete memories with their links and sources.

This cannot be undone, so the command asks for confirmation. Without a terminal it requires `--yes`.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ebbtide.cli.console import counted, err, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url

MAX_SHOWN = 20


def delete(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    nodes: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE...", help="Memories, such as n12; or messages as search returns them, such as m12."
        ),
    ],
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Delete memories with their links and sources. Irreversible."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        if not yes:
            _ask(remote, agent, nodes)
        answer = remote.delete_nodes(agent, nodes)
    missing = [one["node_id"] for one in answer["results"] if one["reason"] == "NODE_NOT_FOUND"]
    waiting = [one["node_id"] for one in answer["results"] if one["reason"] == "BATCH_NOT_DIGESTED"]
    if as_json:
        write_json(answer)
    else:
        _report(answer)
    if missing:
        raise Failure(f"Not found: {', '.join(missing[:MAX_SHOWN])}.", ExitCode.NOT_FOUND)
    if waiting:
        raise Failure(f"Not digested yet: {', '.join(waiting[:MAX_SHOWN])}.", ExitCode.REFUSED)


def _ask(remote: Any, agent: str, nodes: list[str]) -> None:
    from ebbtide.ids import message_number

    if not sys.stdin.isatty():
        raise Failure(
            "Confirmation required, but standard input is not a terminal. Nothing was deleted; pass --yes.",
            ExitCode.USAGE,
        )
    for name in nodes[:MAX_SHOWN]:
        is_message = message_number(name) is not None
        content = "(part of a message)" if is_message else remote.get_node(agent, name)["content"]
        say(f"{name}  {content}")
    if len(nodes) > MAX_SHOWN:
        say(f"… and {len(nodes) - MAX_SHOWN} more", "dim")
    err().print("Delete for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was deleted.", ExitCode.REFUSED)


def _report(answer: dict[str, Any]) -> None:
    links = sum(one["links_removed"] for one in answer["results"])
    byte_count = sum(one["bytes_withdrawn"] for one in answer["results"])
    gone = counted(answer["deleted_count"], "memory", "memories")
    say(f"Deleted {gone}, {counted(links, 'link')}, {counted(byte_count, 'byte')} of messages.")
    citing = dict.fromkeys(name for one in answer["results"] for name in one["cited_by"])
    if citing:
        say(
            f"Other memories cite their words, which stay: {', '.join(citing)}. Delete these too to remove the words."
        )
