"""`ebbtide inspect`: show an agent, or one of its memories or entities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, local_time, out, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url
from ebbtide.cli.pictures import importance_bar, indented

LATEST_BATCHES = 5
MAX_LINKS = 12
INDENT = "  "


def inspect(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="A memory or an entity, such as n12.")
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    as_json: Json = False,
) -> None:
    """Show an agent, or one of its memories or entities with its links."""
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        if node is not None:
            found = client.get_node(agent, node)
            if as_json:
                write_json(found)
            else:
                _show_node(out(), found)
            return
        info = client.get_agent(agent)
        batches = client.list_batches(agent)[-LATEST_BATCHES:]
        if as_json:
            write_json({**info, "latest_batches": batches})
            return
        focus = client.get_focus(agent)
    _show_agent(out(), info, focus, batches)


# --- an agent ----------------------------------------------------------------------------------------


def _show_agent(
    console: Console,
    info: dict[str, Any],
    focus: dict[str, Any],
    batches: list[dict[str, Any]],
) -> None:
    counts = info["counts"]
    console.print(Text(info["agent_id"], "bold"), soft_wrap=True)
    holds = (
        f"{counted(counts['nodes'], 'memory', 'memories')}, "
        f"{counted(counts['entities'], 'entity', 'entities')}, {counted(counts['links'], 'link')}, "
        f"{counted(counts['messages'], 'message')}"
    )
    _field(console, "contains", holds)
    _field(console, "since", local_time(info["created_at"]))
    _field(console, "passes", f"{info['finished_passes']:,} done, {info['owed_passes']:,} owed")
    waits = f"{info['pending_batches']:,} waiting, {info['parked_batches']:,} parked"
    _field(console, "batches", waits)
    _heading(console, "parameters")
    changed = changed_parameters(info["parameters"])
    for name, (value, default) in changed.items():
        _field(console, name, f"{value} (default {default})")
    if not changed:
        _line(console, "all at their defaults", "dim")
    _heading(console, "in focus: memories, then entities, newest first")
    for node_id, text in in_focus(focus):
        _line(console, f"{node_id:<6} {text}")
    if not focus["nodes"] and not focus["entities"]:
        _line(console, "nothing", "dim")
    _heading(console, "latest batches")
    for batch in batches:
        _line(console, _batch_line(batch))
        if batch["last_error"]:
            _line(console, f"       {batch['last_error']}", "red")
    if not batches:
        _line(console, "none", "dim")


def in_focus(focus: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the id and the description of each node in focus: memories, then entities."""
    for memory in focus["nodes"]:
        yield memory["id"], memory["phrase"]
    for entity in focus["entities"]:
        yield entity["id"], f"{entity['name']} ({counted(entity['living_count'], 'memory', 'memories')})"


def changed_parameters(parameters: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the parameters that differ from their defaults: (value, default) by name."""
    from ebbtide.parameters import AgentParameters

    defaults = AgentParameters().model_dump(mode="json")
    return {
        name: (value, defaults.get(name)) for name, value in parameters.items() if value != defaults.get(name)
    }


def _batch_line(batch: dict[str, Any]) -> str:
    became = ""
    if batch["state"] == "digested":
        became = f" → {counted(len(batch['node_ids']), 'memory', 'memories')}"
    when = local_time(batch["accepted_at"])
    messages = counted(batch["message_count"], "message")
    return f"{batch['batch_id']:<6} {when}  {batch['state']}, {messages}{became}"


# --- a memory ----------------------------------------------------------------------------------------


def _show_node(console: Console, node: dict[str, Any]) -> None:
    console.print(Text.assemble((node["id"], "bold"), "  ", (node["phrase"], "bold")), soft_wrap=True)
    if node["kind"] != "entity":
        _line(console, node["label"] + node["content"])
    console.print()
    bar = importance_bar(node["importance"])
    label = Text(f"{INDENT}{'importance':<12}", "dim")
    console.print(Text.assemble(label, bar, f"  {node['importance']:.3f}"), soft_wrap=True)
    protected = "yes: protected"
    if node["kind"] == "entity":
        protected = "yes: supports its newest memories"
        _field(console, "kind", "entity: a name that memories are linked with")
    else:
        _field(console, "kept", f"{len(node['content']):,} of {node['original_length']:,} characters")
        _field(console, "keywords", ", ".join(node["keywords"]) or "-")
        _field(console, "about", ", ".join(entity["name"] for entity in node["entities"]) or "-")
        _field(console, "pinned", "no" if node["pinned"] == "none" else node["pinned"].replace("_", " "))
        _field(console, "created", local_time(node["created_at"]))
    _field(console, "in focus", protected if node["in_focus"] else "no")
    _field(console, "scans", f"{node['scan_count']:,}")
    _links(console, "supported by (links in)", node["links_in"], "source")
    _links(console, "leads to (links out)", node["links_out"], "target")
    _links(console, "leads to something forgotten", node["dangling"], "target")
    if node["kind"] != "entity":
        _origin(console, node)


def _origin(console: Console, node: dict[str, Any]) -> None:
    """Show where a memory came from and how it was shortened."""
    _heading(console, "sources")
    for place in node["sources"]:
        who = place["speaker"] or place["role"]
        span = f"bytes {place['offset']}-{place['offset'] + place['length']}"
        _line(console, f"{place['batch_id']}, message {place['message_index'] + 1} ({who}), {span}")
    _heading(console, "rewrites")
    for rewrite in node["rewrites"]:
        _line(
            console,
            f"pass {rewrite['pass_number']}: {rewrite['length_before']} → "
            f"{rewrite['length_after']} characters at importance {rewrite['importance']:.3f} "
            f"({rewrite['model']})",
        )
    if not node["rewrites"]:
        _line(console, "none: the content is unchanged", "dim")


def _links(console: Console, heading: str, links: list[dict[str, Any]], end: str) -> None:
    _heading(console, f"{heading}: {len(links)}")
    table = Table.grid(padding=(0, 2))
    for link in sorted(links, key=lambda link: -link["strength"])[:MAX_LINKS]:
        bar = importance_bar(link["strength"], "cyan")
        table.add_row(f"{INDENT}{link[end]}", bar, f"{link['strength']:.3f}", link["relation"])
    if links:
        console.print(table)
    if len(links) > MAX_LINKS:
        _line(console, f"… and {len(links) - MAX_LINKS} weaker ones", "dim")


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(indented(text, console.width, INDENT), style), soft_wrap=True)


def _field(console: Console, name: str, value: str) -> None:
    console.print(Text.assemble((f"{INDENT}{name:<12}", "dim"), " ", value), soft_wrap=True)
