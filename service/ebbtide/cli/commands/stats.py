"""`ebbtide stats`: how much an agent has stored, exactly or with differential privacy."""

from __future__ import annotations

from typing import Annotated

import typer

from ebbtide.cli.console import say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url

COUNTS = ("messages", "memories", "pinned", "entities", "links")


def stats(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="Add the noise of differential privacy, and spend this much of the agent's privacy budget.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show how much an agent has stored."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.get_stats(agent, epsilon)
    if as_json:
        write_json(found)
        return
    for name in COUNTS:
        if found[name] is not None:
            write_text(f"{name:<9} {found[name]:>10,}")
    if epsilon is not None:
        spent, budget = found["privacy_spent"], found["privacy_budget"]
        say(f"With noise. {spent:g} of the privacy budget of {budget:g} is spent.", "dim")
