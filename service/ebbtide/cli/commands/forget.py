"""`ebbtide forget`: delete messages for good, with the memories made from them and their bytes on disk.

The command first shows what it would delete and where the same words remain, and asks for confirmation. Without a
terminal it requires `--yes`. `--dry-run` only shows.
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
from ebbtide.cli.times import begin_ms, check_range, end_ms

MAX_SHOWN = 20


def forget(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODE|MESSAGE]...", help="Memories such as n12, messages such as m12."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Every sentence and memory that contains this.")
    ] = None,
    conversations: Annotated[
        list[str] | None, typer.Option("--conversation", help="Messages of this conversation; repeatable.")
    ] = None,
    speakers: Annotated[
        list[str] | None, typer.Option("--speaker", help="Messages of this speaker; repeatable.")
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--since", parser=begin_ms, metavar="DAY|TIME", help="Messages from this day or time (UTC) on."
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until",
            parser=end_ms,
            metavar="DAY|TIME",
            help="Messages until the end of this day, or before this time (UTC).",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Json = False,
) -> None:
    """Delete for good: messages, the memories made from them, and the bytes on disk. Irreversible."""
    from ebbtide.cli.remote import RemoteClient
    from ebbtide.ids import message_number

    check_range(since, until)
    _check_selection(names, topic, conversations, speakers, since is not None, until is not None)
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
        _report(answer)
    if not dry_run and answer["proof"]["last_record"] and not answer["compacted"]:
        raise Failure(
            "Deleted, but the bytes are still in the file: there was no disk space to rewrite it.",
            ExitCode.UNAVAILABLE,
            hint="Free some disk space, then repeat the command.",
        )


def _check_selection(*given: object) -> None:
    """Raise a Failure if nothing is selected."""
    if not any(given):
        raise Failure(
            "Select what to delete: ids, --topic, --conversation, --speaker, --since or --until.",
            ExitCode.USAGE,
        )


def _ask(preview: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise Failure(
            "Confirmation required, but standard input is not a terminal. Nothing was deleted; pass --yes.",
            ExitCode.USAGE,
        )
    _report(preview)
    err().print("Delete for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was deleted.", ExitCode.REFUSED)


def _report(answer: dict[str, Any]) -> None:
    counts = answer["counts"]
    what = (
        f"{counted(counts['nodes'], 'memory', 'memories')}, {counted(counts['messages'], 'whole message')}, "
        f"{counted(counts['bytes'], 'byte')} of messages"
    )
    say(f"Would be deleted: {what}." if answer["dry_run"] else f"Deleted: {what}.")
    if counts["relations"]:
        losing = "would lose" if answer["dry_run"] else "lost"
        say(f"{counted(counts['relations'], 'link')} {losing} a name that mentions it.")
    if answer["also_found_count"]:
        places = ", ".join(answer["also_found_in"][:MAX_SHOWN])
        more = " …" if answer["also_found_count"] > MAX_SHOWN else ""
        say(f"The same words remain in {places}{more}.", "yellow")
    if answer["proof"]["last_record"]:
        say(
            f"Record {answer['proof']['last_record']} of the audit log: {answer['proof']['record_hash']}",
            "dim",
        )
