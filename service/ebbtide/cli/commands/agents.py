"""`ebbtide agents`: list agents with their sizes."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ebbtide.cli.connection import connected
from ebbtide.cli.console import local_time, out, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.failures import program
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url


def agents(
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List all agents. No agent is opened."""
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        found = client.list_agents()
    if as_json:
        write_json({"agents": found})
        return
    if not found:
        say(f"No agents yet. `{program()} remember FILE` creates one.", "dim")
        return
    out().print(_table(found))
    if data_dir is not None:
        say("Counts are as of the last close.", "dim")


def _table(found: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("agent", overflow="fold")
    table.add_column("open")
    for name in ("memories", "links", "messages"):
        table.add_column(name, justify="right")
    table.add_column("created", no_wrap=True)
    for agent in found:
        if "problem" in agent:
            table.add_row(agent["agent_id"], "", "", "", "", agent["problem"], style="red")
            continue
        counts = agent["counts"]
        table.add_row(
            agent["agent_id"],
            "yes" if agent["open"] else "-",
            f"{counts['nodes']:,}",
            f"{counts['links']:,}",
            f"{counts['messages']:,}",
            local_time(agent["created_at"]),
        )
    return table
