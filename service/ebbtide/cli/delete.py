"""`ebbtide delete`: memories deleted for good, with their links and what they were made from.

It cannot be undone, so it asks first, unless told not to; where nobody can be asked it does nothing without `--yes`.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ebbtide.cli.console import counted, err, say, write_json
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_URL, Json, Url

MOST_SHOWN = 20


def delete(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whose memory.")],
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="Memories, such as n12.")],
    url: Url = DEFAULT_URL,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Json = False,
) -> None:
    """Delete memories, with their links and what they were made from. Irreversible."""
    from ebbtide.cli.remote import Remote

    with Remote(url) as remote:
        if not yes:
            _ask(remote, agent, nodes)
        answer = remote.delete_nodes(agent, nodes)
    missing = [one["node_id"] for one in answer["results"] if not one["deleted"]]
    if as_json:
        write_json(answer)
    else:
        _tell(answer)
    if missing:
        raise Failure(f"There is no living memory {', '.join(missing[:MOST_SHOWN])}.", ExitCode.NOT_FOUND)


def _ask(remote: Any, agent: str, nodes: list[str]) -> None:
    if not sys.stdin.isatty():
        raise Failure("Nobody can be asked here; nothing was deleted.", ExitCode.USAGE, hint="Say --yes.")
    for name in nodes[:MOST_SHOWN]:
        say(f"{name}  {remote.node(agent, name)['content']}")
    if len(nodes) > MOST_SHOWN:
        say(f"… and {len(nodes) - MOST_SHOWN} more", "dim")
    err().print("Delete for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was deleted.", ExitCode.REFUSED)


def _tell(answer: dict[str, Any]) -> None:
    links = sum(one["links_removed"] for one in answer["results"])
    byte_count = sum(one["bytes_withdrawn"] for one in answer["results"])
    gone = counted(answer["deleted_count"], "memory", "memories")
    say(f"Deleted {gone}, {counted(links, 'link')}, {counted(byte_count, 'byte')} of what was said.")
