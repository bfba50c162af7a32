"""`ebbtide forget`: what an agent was told taken away for good, with what was made of it and its bytes on disk.

It looks first, tells what would go and what says the same elsewhere, and asks; where nobody can be asked it does
nothing without `--yes`. `--dry-run` stops after the look.
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
from ebbtide.cli.times import begin_ms, check_stretch, end_ms

MOST_SHOWN = 20


def forget(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whose memory.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODE|MESSAGE]...", help="Memories such as n12, messages such as m12."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Every sentence and memory that names this.")
    ] = None,
    conversations: Annotated[
        list[str] | None, typer.Option("--conversation", help="What was said in it; repeatable.")
    ] = None,
    speakers: Annotated[
        list[str] | None, typer.Option("--speaker", help="What this speaker said; repeatable.")
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--since", parser=begin_ms, metavar="DAY|TIME", help="What was said from here on (UTC)."
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until",
            parser=end_ms,
            metavar="DAY|TIME",
            help="What was said until the end of this day, or before this time (UTC).",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Json = False,
) -> None:
    """Forget for good: memories, what they were made from, and the bytes on disk. Irreversible."""
    from ebbtide.cli.remote import RemoteClient
    from ebbtide.ids import message_number

    check_stretch(since, until)
    messages = [name for name in names or [] if message_number(name) is not None]
    span = {"begin": since, "end": until}
    body: dict[str, Any] = {
        "nodes": [name for name in names or [] if name not in messages],
        "messages": messages,
        "conversations": conversations or [],
        "speakers": speakers or [],
        **({} if topic is None else {"topic": topic}),
        **({} if span == {"begin": None, "end": None} else {"time_range": span}),
    }
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        if not (yes or dry_run):
            _ask(remote.forget_memories(agent, {**body, "dry_run": True}))
        answer = remote.forget_memories(agent, {**body, "dry_run": dry_run})
    if as_json:
        write_json(answer)
    else:
        _tell(answer)
    if not dry_run and answer["proof"]["last_record"] and not answer["compacted"]:
        raise Failure(
            "It is forgotten, but its bytes are still in the file: there was no room to write it anew.",
            ExitCode.UNAVAILABLE,
            hint="Make room on the disk, then ask again.",
        )


def _ask(looked_up: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise Failure("Nobody can be asked here; nothing was forgotten.", ExitCode.USAGE, hint="Say --yes.")
    _tell(looked_up)
    err().print("Forget for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was forgotten.", ExitCode.REFUSED)


def _tell(answer: dict[str, Any]) -> None:
    counts = answer["counts"]
    what = (
        f"{counted(counts['nodes'], 'memory', 'memories')}, {counted(counts['messages'], 'whole message')}, "
        f"{counted(counts['bytes'], 'byte')} of what was said"
    )
    say(f"Would go: {what}." if answer["dry_run"] else f"Gone: {what}.")
    if counts["relations"]:
        losing = "would lose" if answer["dry_run"] else "lost"
        say(f"Besides, {counted(counts['relations'], 'link')} {losing} a name that told of it.")
    if answer["also_found_count"]:
        places = ", ".join(answer["also_found_in"][:MOST_SHOWN])
        more = " …" if answer["also_found_count"] > MOST_SHOWN else ""
        say(f"The same words stay in {places}{more}.", "yellow")
    if answer["proof"]["last_record"]:
        say(
            f"Record {answer['proof']['last_record']} of the audit log: {answer['proof']['record_hash']}",
            "dim",
        )
