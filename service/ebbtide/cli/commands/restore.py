"""`ebbtide restore`: restore agents from files, into a running daemon or a data directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli.client import MemoryClient
from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, moving, out, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.disk import opened
from ebbtide.cli.files.one_by_one import OneByOne
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url

Replace = Annotated[
    bool,
    typer.Option("--replace", help="Overwrite an agent with the same id."),
]


def restore(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Backups, or exports.")],
    new_id: Annotated[
        str | None, typer.Option("--as", metavar="AGENT", help="Restore under another id.")
    ] = None,
    replace: Replace = False,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Restore agents from backups or exports. A file that fails changes nothing and does not stop the others."""
    if new_id is not None and len(files) > 1:
        raise Failure("--as takes one file.", ExitCode.USAGE)
    done = []
    with connected(
        url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file, create=True
    ) as client:
        row = OneByOne(map(str, files), are_named=True)
        for name in row:
            with row.trying(name):
                done.append(put(client, Path(name), new_id, replace=replace))
    if as_json:
        write_json({"restored": done, "failed": row.failed})
    else:
        for one in done:
            report_restored(one)
    row.end("of the files could not be restored")


def put(client: MemoryClient, path: Path, new_id: str | None, *, replace: bool) -> dict[str, Any]:
    """Restore one file and return the result."""
    from ebbtide.store.transfer.receiving import agent_id_of

    with opened(path) as file, moving() as bar:
        owner = new_id or agent_id_of(file)
        task = bar.add_task(f"restoring {owner}", total=os.fstat(file.fileno()).st_size)
        return client.upload(
            owner,
            file,
            replace=replace,
            rename=new_id is not None,
            progress=lambda size: bar.advance(task, size),
        )


def report_restored(done: dict[str, Any]) -> None:
    """Print the result for a person."""
    memories = counted(done["counts"]["nodes"], "memory", "memories")
    messages = counted(done["counts"]["messages"], "message")
    out().print(f"{done['agent_id']}: {memories} of {messages} restored.", markup=False)
    if done["replaced"]:
        say("The previous agent with this id was overwritten.", "dim")
