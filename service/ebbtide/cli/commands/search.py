"""`ebbtide search`: list the memories that answer a question, best first, with their scores.

`recall` prints text for a language model; this lists single memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ebbtide.cli.commands.recall import exists, nothing_found, waiting_note
from ebbtide.cli.console import out, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Json, Url


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="A question, or words.")],
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    speaker: Annotated[
        list[str] | None, typer.Option("--speaker", help="Only messages of this speaker; repeatable.")
    ] = None,
    conversation: Annotated[
        list[str] | None,
        typer.Option("--conversation", "--source", help="Only messages of this conversation; repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only memories of this kind, or record for records; repeatable."),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max-results", help="Maximum number of memories; 0 means 10000.")
    ] = None,
    living: Annotated[
        bool,
        typer.Option(
            "--living", help="Living memories only: nothing forgotten, shortened or not yet digested."
        ),
    ] = False,
    own_words: Annotated[
        bool,
        typer.Option("--own-words", help="Each memory of a found passage by itself, with its own words."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Search everything that an agent received."""
    from ebbtide.cli.remote import RemoteClient

    text = " ".join(words)
    command: dict[str, Any] = {
        "query": text,
        "speakers": speaker or [],
        "sources": conversation or [],
    }
    if kind:
        command["kinds"] = kind
    if living:
        command["archive"] = "never"
    if own_words:
        command["own_words"] = True
    if most is not None:
        command["max_results"] = most
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        answer = remote.search(agent, command)
        found = _in_order(answer)
        is_unknown = not found and not exists(remote, agent)
    if as_json:
        write_json(answer)
        return
    if found:
        out().print(_table(found))
    else:
        say(f"There is no agent {agent}." if is_unknown else nothing_found([], agent, text), "dim")
    waiting = waiting_note(answer)
    if waiting:
        say(waiting, "dim")


def _in_order(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the memories and records of an answer, the best first."""
    found = list(answer["memories"])
    for record in answer.get("records", ()):
        place = "/".join((*record["namespace"], record["key"]))
        row = {"id": place, "node_ids": [], "state": "record", "content": record["text"]}
        found.insert(record["position"], {**row, "score": record["score"]})
    return found


def _table(memories: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("score", justify="right")
    table.add_column("memory", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("content", overflow="fold")
    for memory in memories:
        content = " ".join(memory["content"].split())
        names = ", ".join(memory["node_ids"]) or memory["id"]
        table.add_row(f"{memory['score']:.3f}", names, memory["state"], Text(content))
    return table
