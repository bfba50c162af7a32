"""`ebbtide backup`: save agents as files, from a running daemon or from a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, moving, out, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.disk import written
from ebbtide.cli.files.one_by_one import OneByOne
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url


def backup(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help="The agents; default: all.")
    ] = None,
    into: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path("."),
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Back up agents, also while they are in use: one .ebb file each. A failure does not stop the others."""
    from ebbtide.ids import parse_agent_id
    from ebbtide.store.directory.data_directory import directory_name

    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{into} cannot be created: {error.strerror}.", ExitCode.REFUSED) from None
    made = []
    with (
        connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client,
        moving() as bar,
    ):
        row = OneByOne(agents or [one["agent_id"] for one in client.list_agents()], are_named=bool(agents))
        for agent_id in row:
            task = bar.add_task(f"backing up {agent_id}", total=None)
            with row.trying(agent_id):
                path = into / f"{directory_name(parse_agent_id(agent_id))}.ebb"
                with written(path) as file:
                    client.download(agent_id, "backup", file, lambda size, task=task: bar.advance(task, size))  # type: ignore[misc]
                made.append({"agent_id": agent_id, "file": str(path), "bytes": path.stat().st_size})
            bar.remove_task(task)
    if as_json:
        write_json({"backups": made, "failed": row.failed, "gone": row.gone})
    else:
        for one in made:
            out().print(f"{one['agent_id']}: {one['file']}, {one['bytes']:,} bytes", markup=False)
        out().print(f"{counted(len(made), 'agent')} backed up.", markup=False)
    row.end("of the agents could not be backed up")
