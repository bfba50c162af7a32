"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.times import begin_ms, end_ms

DEFAULT_URL = "http://127.0.0.1:8420"
DEFAULT_AGENT = "default"

Agent = Annotated[str, typer.Option("--agent", "-a", help="The agent.", show_default=True)]
Url = Annotated[str, typer.Option("--url", envvar="EBBTIDE_URL", help="Address of the daemon.")]
ApiKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--api-key-file",
        envvar="EBBTIDE_API_KEY_FILE",
        help="File with the API key. Default: the variable EBBTIDE_API_KEY.",
        show_default=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--ca-file", envvar="EBBTIDE_CA_FILE", help="Certificate authority of the daemon (PEM)."),
]
ClientCert = Annotated[
    Path | None,
    typer.Option(
        "--client-cert",
        envvar="EBBTIDE_CLIENT_CERT",
        help="Client certificate and key (PEM, one file).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and only JSON, on standard output.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Work offline on this data directory. No daemon may use it.",
        show_default=False,
    ),
]

MasterKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--master-key-file",
        help="File with the master key, if agents are encrypted.",
        show_default=False,
    ),
]

# --- filters and options of a query -------------------------------------------------------------------------------

Query = Annotated[
    str | None,
    typer.Option(
        "--query", "-q", help="A question in plain words, answered from everything the agent received."
    ),
]
Mode = Annotated[
    str | None, typer.Option("--mode", help="auto (hybrid with a --query), associative or hybrid.")
]
Speakers = Annotated[
    list[str] | None,
    typer.Option("--speaker", help="Only messages of this speaker; repeatable; with --query."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="Only messages of this conversation; repeatable; with --query."),
]
Since = Annotated[
    int | None,
    typer.Option(
        "--since",
        parser=begin_ms,
        metavar="DAY|TIME",
        help="Only messages from this day or time (UTC) on.",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until",
        parser=end_ms,
        metavar="DAY|TIME",
        help="Only messages until the end of this day, or before this time (UTC).",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help="Only memories of this kind, or record for records; repeatable; with --query."
    ),
]
StartNodes = Annotated[
    list[str] | None,
    typer.Option("--start-node", help="Start from this node instead of the focus; repeatable; with --query."),
]
Without = Annotated[
    list[str] | None,
    typer.Option("--without", help="Do not use this signal; repeatable; with --query."),
]
ArchiveUse = Annotated[
    str | None,
    typer.Option("--archive", help="When to search the archive: always, never or when_needed; with --query."),
]
TokenBudget = Annotated[
    int | None, typer.Option("--token-budget", help="Maximum number of tokens in the text; with --query.")
]
KeySentences = Annotated[
    bool,
    typer.Option("--key-sentences", help="Shorten memories that do not fit into --token-budget."),
]
PatienceMs = Annotated[
    int | None,
    typer.Option("--patience-ms", help="Maximum wait for batches that are not digested yet, 0-30000."),
]
Explain = Annotated[bool, typer.Option("--explain", help="With --json: return how the answer was computed.")]
Dates = Annotated[
    bool | None,
    typer.Option(
        "--dates/--no-dates",
        help="Put the date before each memory. Default: with --query.",
        show_default=False,
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="How to count tokens: estimate, characters, words or utf8_bytes."),
]
