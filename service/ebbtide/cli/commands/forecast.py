"""`ebbtide forecast`: which memories the next passes will shorten and forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.console import counted, one_line, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url

if TYPE_CHECKING:
    from ebbtide.cli.remote import RemoteClient

MAX_PASSES = 1000
IDS_AT_ONCE = 100
WIDTH = 46
"""Characters of the column before the texts."""


def forecast(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    passes: Annotated[
        int, typer.Option("--passes", min=1, max=MAX_PASSES, help="Number of compression passes from now on.")
    ] = 200,
    memories: Annotated[
        int | None,
        typer.Option(
            "--memories",
            min=0,
            max=1000,
            help="Memories of the unrelated batch before each pass. Default: the mean of the latest batches.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show which memories will be shortened and forgotten if nothing is mentioned again."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.forecast(agent, passes, memories)
        if as_json:
            write_json(found)
            return
        futures = _futures(found)
        nodes = _nodes(remote, agent, [f"n{number}" for number in futures])
    for number, future in futures.items():
        node_id = f"n{number}"
        write_text(f"{node_id:<6} {future:<{WIDTH}} {one_line(nodes[node_id]) if node_id in nodes else ''}")
    batch = found["assumes"]["memories_per_batch"]
    shortened, forgotten = (len(set(found[name]["id"])) for name in ("shortened", "forgotten"))
    if found["passes"] < passes:
        say(
            f"--passes {passes}: the daemon computed {found['passes']} of them within its time limit.",
            "yellow",
        )
    say(
        f"In {counted(found['passes'], 'pass', 'passes')}, if nothing is mentioned again and the parameters stay: "
        f"{shortened} shortened, {forgotten} forgotten. Passes count from now; in parentheses the characters left. "
        f"Assumed: {counted(batch, 'unrelated memory', 'unrelated memories')} before each pass.",
        "dim",
    )


def _nodes(remote: RemoteClient, agent: str, ids: list[str]) -> dict[str, str]:
    """Return the contents of nodes by id."""
    pages = [ids[first : first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE)]
    return {one["id"]: one["content"] for page in pages for one in remote.list_nodes(agent, (), {}, page)}


def _futures(found: dict[str, Any]) -> dict[int, str]:
    """Return by number of the memory what will happen to it, the first to be forgotten first."""
    cuts: dict[int, list[str]] = {}
    for number, after, length in zip(*found["shortened"].values(), strict=True):
        cuts.setdefault(number, []).append(f"{after} (to {length})")
    ends = dict(zip(*found["forgotten"].values(), strict=True))
    order = [*ends, *(number for number in cuts if number not in ends)]
    return {number: _future(cuts.get(number, []), ends.get(number)) for number in order}


def _future(cuts: list[str], end: int | None) -> str:
    parts = []
    if cuts:
        more = f" and {len(cuts) - 1} more" if len(cuts) > 1 else ""
        parts.append(f"shortened after {cuts[0]}{more}")
    if end is not None:
        parts.append(f"forgotten after {end}")
    return ", ".join(parts)
