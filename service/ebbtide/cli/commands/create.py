"""`ebbtide create`: create one memory from a text, which is not split."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ebbtide.cli.commands.listings import metadata_of
from ebbtide.cli.console import write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, Json, Url


def create(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The content of the memory.")],
    kind: Annotated[
        str | None, typer.Option("--kind", help="Its kind, a word of your own; default: episode.")
    ] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="The speaker.")] = None,
    keywords: Annotated[
        list[str] | None, typer.Option("--keyword", help="A keyword; repeatable. Default: those of the text.")
    ] = None,
    links: Annotated[
        list[str] | None,
        typer.Option(
            "--link",
            metavar="NODE=RELATION[:STRENGTH]",
            help="A link such as n1=about:0.5, instead of those with the focus; repeatable.",
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="NAME=VALUE", help="A field to store with it; repeatable."),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Create one memory from a text, at once and without a language model."""
    from ebbtide.cli.remote import RemoteClient

    fields = {
        "kind": kind,
        "speaker": speaker,
        "keywords": keywords or [],
        "links": [link_of(option) for option in links or ()],
        "metadata": metadata_of(metadata) or None,
    }
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        node = remote.create_node(agent, text, fields)
    if as_json:
        write_json(node)
    else:
        write_text(f"{node['id']:<6} {node['label']}{node['content']}")


def link_of(option: str) -> dict[str, Any]:
    """Return the link in an option of the form NODE=RELATION or NODE=RELATION:STRENGTH."""
    target, equals, rest = option.partition("=")
    relation, colon, strength = rest.rpartition(":")
    if not equals or not rest:
        raise Failure(f"--link {option}: allowed: NODE=RELATION or NODE=RELATION:STRENGTH.", ExitCode.USAGE)
    if not colon:
        return {"target": target, "relation": rest}
    try:
        return {"target": target, "relation": relation, "strength": float(strength)}
    except ValueError:
        return {"target": target, "relation": rest}
