"""`ebbtide export`: write an agent as JSON lines to a file or a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.connection import connected
from ebbtide.cli.console import moving, say
from ebbtide.cli.credentials import credentials
from ebbtide.cli.files.disk import written
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, MasterKeyFile, Url


def export(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    into: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The file, or - for standard output.")
    ] = "-",
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Export an agent as JSON lines: memories, links and messages, for people and programs."""
    with (
        connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client,
        moving() as bar,
    ):
        task = bar.add_task(f"exporting {agent}", total=None)

        def moved(size: int) -> None:
            bar.advance(task, size)

        if into == "-":
            try:
                client.download(agent, "export", sys.stdout.buffer, moved)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                # The reader closed the pipe. Without this, Python would report it again at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        with written(Path(into)) as file:
            client.download(agent, "export", file, moved)
    say(f"{agent}: {into}, {Path(into).stat().st_size:,} bytes.")
