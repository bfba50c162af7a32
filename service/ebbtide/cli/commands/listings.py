"""`ebbtide messages`, `ebbtide nodes`: list what an agent has, all of it or by metadata. `ebbtide attachment`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, local_time, one_line, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.disk import written
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url

Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="NAME=VALUE",
        help='Only what was stored with this value; repeatable. 3, true and "3" are read as in JSON.',
    ),
]


def messages(
    agent: Agent,
    metadata: Metadata = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    as_json: Json = False,
) -> None:
    """List stored messages in the order of arrival."""
    wanted = metadata_of(metadata)
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        found = client.list_messages(agent, wanted)
    if as_json:
        write_json({"messages": found})
        return
    for one in found:
        who = one["speaker"] or one["role"]
        when = local_time(one["accepted_at"] if one["timestamp"] is None else one["timestamp"])
        text = "(deleted)" if one["content"] is None else one["content"]
        write_text(f"{one['id']:<6} {when}  {who}: {text}")
        for index, attached in enumerate(one["attachments"]):
            write_text(f"       attachment {index}: {attached['mime']}, {attached['size']:,} bytes")
    if not found:
        say("No messages.", "dim")


def attachment(
    agent: Agent,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The message, such as m1.")],
    index: Annotated[int, typer.Argument(metavar="[INDEX]", min=0, help="Its position in the message.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write. Default: standard output.")
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Write an attachment of a message to a file, or to standard output."""
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        content = client.get_attachment(agent, message, index)
    if out is None:
        sys.stdout.buffer.write(content)
        return
    with written(out) as file:
        file.write(content)
    say(f"Wrote {counted(len(content), 'byte')} to {out}.")


def nodes(
    agent: Agent,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Only these kinds: episode, entity, a kind of statements, or your own; repeatable. "
            "Default: episode and your own.",
        ),
    ] = None,
    metadata: Metadata = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="NODE", help="Only this node, such as n1; repeatable.")
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    as_json: Json = False,
) -> None:
    """List living memories by id, or nodes of other kinds."""
    wanted = metadata_of(metadata)
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        found = client.list_nodes(agent, kinds or (), wanted, ids or ())
    if as_json:
        write_json({"nodes": found})
        return
    for one in found:
        write_text(f"{one['id']:<6} {one_line(one['label'] + (one['content'] or one['phrase']))}")
    if not found:
        say("No memories." if kinds is None and not ids else "No such nodes.", "dim")


def metadata_of(options: list[str] | None) -> dict[str, Any]:
    """Return the metadata in options of the form NAME=VALUE. A value that is no JSON is a text."""
    found: dict[str, Any] = {}
    for option in options or ():
        name, equals, value = option.partition("=")
        if not equals:
            raise Failure(f"--metadata {option}: allowed: NAME=VALUE.", ExitCode.USAGE)
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
