"""`ebbtide events`: print the events of an agent, one per line; with `--follow` also new ones."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ebbtide.cli.console import local_time, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url

FIELDS = ("node_id", "target_id", "batch_id", "message_id")
NUMBERS = {"pass_number": "pass", "node_count": "memories", "attempts": "attempts"}


def events(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    after: Annotated[
        int | None,
        typer.Option("--after", help="Only events after this number; -1: only new ones."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events.")] = False,
    as_json: Json = False,
) -> None:
    """Print the events of an agent in order."""
    from ebbtide.cli.remote import RemoteClient

    count = 0
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        for event in remote.watch_events(agent, after, follow=follow):
            count += 1
            if as_json:
                write_json(event)
            else:
                write_text(line_of(event))
    if not count and not as_json:
        say("No events.", "dim")


def line_of(event: dict[str, Any]) -> str:
    """Return one event as a line for a person."""
    parts = [event[name] for name in FIELDS if event[name]]
    if event["length"] is not None:
        before = event["length_before"]
        parts.append(f"{event['length']} characters" + ("" if before is None else f", were {before}"))
    parts += [f"{word} {event[name]}" for name, word in NUMBERS.items() if event[name] is not None]
    parts += event["focus"] + event["focus_entities"] + event["parameters"]
    return (
        f"{event['sequence']:>8}  {local_time(event['happened_at'])}  {event['kind']:<17}  {' '.join(parts)}"
    )
