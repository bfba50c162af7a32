"""`ebbtide focus`, `unfocus`, `pin`, `unpin` and `entities`: what an agent attends to and always keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ebbtide.cli.commands.inspect import in_focus
from ebbtide.cli.connection import connected
from ebbtide.cli.console import one_line, out, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url

Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")]
Memories = Annotated[list[str], typer.Argument(metavar="NODE...", help="Memories, such as n12.")]
Nodes = Annotated[list[str], typer.Argument(metavar="NODE...", help="Memories or entities, such as n12.")]


def pin(
    agent: Agent,
    nodes: Memories,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Pin memories: they are neither shortened nor forgotten."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        _change_pins(remote.pin_node, agent, nodes, as_json=as_json)


def unpin(
    agent: Agent,
    nodes: Memories,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Unpin memories: from now on they can be shortened and forgotten."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        _change_pins(remote.unpin_node, agent, nodes, as_json=as_json)


def focus(
    agent: Agent,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODE]...", help="Memories or entities, such as n12. None: show the focus."),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Move nodes to the front of the focus one by one, or show the focus."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        if nodes:
            _change_focus(remote.focus_node, agent, nodes, as_json=as_json)
        else:
            _show_focus(remote.get_focus(agent), as_json=as_json)


def unfocus(
    agent: Agent,
    nodes: Nodes,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Remove nodes from the focus. Their content stays as it is."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        _change_focus(remote.unfocus_node, agent, nodes, as_json=as_json)


def entities(
    agent: Agent,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    as_json: Json = False,
) -> None:
    """List the names that memories are linked with, and how much is known of each."""
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        found = client.list_entities(agent)
    if as_json:
        write_json({"entities": found})
    elif found:
        _show_entities(found)
    else:
        say(f"{agent} has no entities.", "dim")


Change = Callable[[str, str], dict[str, Any]]


def _change_pins(change: Change, agent: str, nodes: list[str], *, as_json: bool) -> None:
    """Pin or unpin nodes one by one. Show the changed ones, even if a later one fails."""
    changed: list[dict[str, Any]] = []
    try:
        for node in nodes:
            changed.append(change(agent, node))
    finally:
        if changed:
            _show_pins(changed, as_json=as_json)


def _change_focus(change: Change, agent: str, nodes: list[str], *, as_json: bool) -> None:
    """Change the focus node by node. Show the result, even if a later node fails."""
    found: dict[str, Any] = {}
    try:
        for node in nodes:
            found = change(agent, node)
    finally:
        if found:
            _show_focus(found, as_json=as_json)


def _show_pins(nodes: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        write_json({"nodes": nodes})
        return
    for node in nodes:
        state = "not pinned" if node["pinned"] == "none" else f"pinned {node['pinned'].replace('_', ' ')}"
        write_text(f"{node['id']:<6} {state}: {one_line(node['label'] + node['content'])}")


def _show_focus(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    for node_id, text in in_focus(found):
        write_text(f"{node_id:<6} {text}")
    if not found["nodes"] and not found["entities"]:
        say("Nothing is in focus.", "dim")


def _show_entities(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("id")
    table.add_column("name", overflow="fold")
    for name in ("memories", "forgotten", "scans"):
        table.add_column(name, justify="right")
    table.add_column("in focus")
    for entity in found:
        table.add_row(
            entity["id"],
            entity["name"],
            f"{entity['living_count']:,}",
            f"{entity['forgotten_count']:,}",
            f"{entity['scan_count']:,}",
            "yes" if entity["in_focus"] else "-",
        )
    out().print(table)
