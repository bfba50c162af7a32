"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.times import begin_ms, end_ms

DEFAULT_URL = "http://127.0.0.1:8420"
DEFAULT_AGENT = "default"

Agent = Annotated[str, typer.Option("--agent", "-a", help="Whose memory.", show_default=True)]
Url = Annotated[str, typer.Option("--url", envvar="EBBTIDE_URL", help="Where the daemon listens.")]
ApiKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--api-key-file",
        envvar="EBBTIDE_API_KEY_FILE",
        help="File with the API key; else the variable EBBTIDE_API_KEY.",
        show_default=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--ca-file", envvar="EBBTIDE_CA_FILE", help="Authority of the daemon's certificate (PEM)."),
]
ClientCert = Annotated[
    Path | None,
    typer.Option(
        "--client-cert",
        envvar="EBBTIDE_CLIENT_CERT",
        help="Certificate and key to show the daemon (PEM, one file).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and only JSON.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Work offline on this data directory, which no daemon may hold.",
        show_default=False,
    ),
]

MasterKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--master-key-file",
        help="File of the master key, where agents are encrypted.",
        show_default=False,
    ),
]

# --- what narrows a question -------------------------------------------------------------------------------

Query = Annotated[
    str | None,
    typer.Option("--query", "-q", help="A question in plain words, over everything the agent ever heard."),
]
Mode = Annotated[
    str | None, typer.Option("--mode", help="auto (hybrid with a --query), associative or hybrid.")
]
Speakers = Annotated[
    list[str] | None,
    typer.Option("--speaker", help="Only what this speaker said; repeatable; with --query."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="Only what was said in this conversation; repeatable; with --query."),
]
Since = Annotated[
    int | None,
    typer.Option(
        "--since",
        parser=begin_ms,
        metavar="DAY|TIME",
        help="Only what was said from this day or time (UTC) on; with --query.",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until",
        parser=end_ms,
        metavar="DAY|TIME",
        help="Only what was said until the end of this day, or before this time (UTC); with --query.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Only memories of this kind; repeatable; with --query."),
]
StartNodes = Annotated[
    list[str] | None,
    typer.Option("--start-node", help="Start from this node instead of the focus; repeatable; with --query."),
]
Without = Annotated[
    list[str] | None,
    typer.Option("--without", help="Leave out this signal; repeatable; with --query."),
]
NoArchive = Annotated[
    bool,
    typer.Option("--no-archive", help="Tell only what lives, as it is now; with --query."),
]
ArchiveUse = Annotated[
    str | None,
    typer.Option(
        "--archive", help="When the archive takes part: always, never or when_needed; with --query."
    ),
]
TokenBudget = Annotated[
    int | None, typer.Option("--token-budget", help="Most tokens of the answer to a --query.")
]
KeySentences = Annotated[
    bool,
    typer.Option("--key-sentences", help="Shorten what does not fit into the --token-budget whole."),
]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="What counts tokens: estimate, characters, words or utf8_bytes."),
]
