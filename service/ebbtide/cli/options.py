"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_URL = "http://127.0.0.1:8420"
DEFAULT_AGENT = "default"

Agent = Annotated[str, typer.Option("--agent", "-a", help="Whose memory.", show_default=True)]
Url = Annotated[str, typer.Option("--url", envvar="EBBTIDE_URL", help="Where the daemon listens.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and only JSON.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Work offline on this data directory, which no daemon may hold.",
        show_default=False,
    ),
]
