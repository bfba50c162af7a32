"""`ebbtide records`: JSON objects that an agent stores by namespace and key."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ebbtide.cli.console import one_line, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Json, Url

records = typer.Typer(help="Put, get, list and delete exact JSON objects by name.", no_args_is_help=True)

Namespace = Annotated[
    str,
    typer.Argument(
        metavar="NAMESPACE", help="The place of the record: labels separated by /, as in users/ann."
    ),
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The name of the record.")]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", help="Only if the record has this version; 0: only if there is none."),
]


@records.command("put")
def put(
    namespace: Namespace,
    key: Key,
    value: Annotated[str, typer.Argument(metavar="JSON", help="The value, a JSON object.")],
    agent: Agent = DEFAULT_AGENT,
    ttl_minutes: Annotated[
        int | None, typer.Option("--ttl-minutes", help="Minutes until the record expires.")
    ] = None,
    if_version: IfVersion = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index", metavar="PATH", help="Search only this text of the value, as in notes[*].text."
        ),
    ] = None,
    no_index: Annotated[bool, typer.Option("--no-index", help="Let no query find the record.")] = False,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Store a record, over one with the same name."""
    fields = {"ttl_minutes": ttl_minutes, "if_version": if_version, "index": index or None}
    op = _op("put", namespace, key, value=_object("JSON", value), **fields, no_index=no_index or None)
    done = _run(agent, op, url, credentials(api_key_file, ca_file, client_cert))
    if as_json:
        write_json(done)
    else:
        say(f"Stored version {done['version']}.", "dim")


@records.command("get")
def get(
    namespace: Namespace,
    key: Key,
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Print the value of a record."""
    done = _run(agent, _op("get", namespace, key), url, credentials(api_key_file, ca_file, client_cert))
    if done["record"] is None:
        raise Failure(f"There is no record {key} in {namespace}.", ExitCode.NOT_FOUND)
    if as_json:
        write_json(done["record"])
    else:
        write_json(done["record"]["value"])


@records.command("list")
def list_records(
    prefix: Annotated[
        str, typer.Argument(metavar="[NAMESPACE]", help="Only records here and below; default: all.")
    ] = "",
    agent: Agent = DEFAULT_AGENT,
    wanted: Annotated[
        str, typer.Option("--filter", metavar="JSON", help="Only records with these values, a JSON object.")
    ] = "",
    query: Annotated[
        str,
        typer.Option(
            "--query", metavar="TEXT", help="Only records with words of it, the most relevant first."
        ),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", help="Most records, 1 to 1000.")] = 100,
    offset: Annotated[int, typer.Option("--offset", help="How many to leave out first.")] = 0,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List records by namespace and key, one per line."""
    wanted_values = _object("--filter", wanted) if wanted else None
    op = {
        "op": "search",
        "prefix": _labels(prefix),
        "filter": wanted_values,
        "query": query or None,
        "limit": limit,
        "offset": offset,
    }
    found = _run(agent, op, url, credentials(api_key_file, ca_file, client_cert))["records"]
    if as_json:
        write_json(found)
        return
    for one in found:
        value = json.dumps(one["value"], ensure_ascii=False)
        write_text("  ".join(map(one_line, ("/".join(one["namespace"]), one["key"], value))))


@records.command("namespaces")
def namespaces(
    agent: Agent = DEFAULT_AGENT,
    max_depth: Annotated[
        int | None, typer.Option("--depth", help="Cut the namespaces to this many labels.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Most namespaces, 1 to 1000.")] = 100,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List the namespaces that have records."""
    op = {"op": "namespaces", "max_depth": max_depth, "limit": limit}
    found = _run(agent, op, url, credentials(api_key_file, ca_file, client_cert))["namespaces"]
    if as_json:
        write_json([one["labels"] for one in found])
        return
    for one in found:
        write_text(one_line("/".join(one["labels"])))


@records.command("delete")
def delete(
    namespace: Namespace,
    key: Annotated[
        str, typer.Argument(metavar="[KEY]", help="The name of the record; default: see --all.")
    ] = "",
    agent: Agent = DEFAULT_AGENT,
    deletes_all: Annotated[
        bool, typer.Option("--all", help="Delete all records in the namespace and below it.")
    ] = False,
    if_version: IfVersion = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Delete a record, or all records of a namespace. Irreversible."""
    if deletes_all == bool(key):
        raise Failure("Name the KEY of one record, or pass --all. Nothing was deleted.", ExitCode.USAGE)
    op = (
        {"op": "delete", "prefix": _labels(namespace)}
        if deletes_all
        else _op("delete", namespace, key, if_version=if_version)
    )
    done = _run(agent, op, url, credentials(api_key_file, ca_file, client_cert))
    if as_json:
        write_json({"deleted": done["deleted"]})
    else:
        say(f"Deleted {done['deleted']}.", "dim")


def _labels(path: str) -> list[str]:
    return path.split("/") if path else []


def _op(op: str, namespace: str, key: str, **fields: Any) -> dict[str, Any]:
    return {"op": op, "namespace": _labels(namespace), "key": key, **fields}


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Failure(
            f"{name} must be a JSON object, such as '{{\"dark\": true}}'. Nothing was changed.",
            ExitCode.USAGE,
        )
    return value


def _run(agent: str, op: dict[str, Any], url: str, shown: Any) -> dict[str, Any]:
    from ebbtide.cli.remote import RemoteClient

    given = {name: value for name, value in op.items() if value is not None}
    with RemoteClient(url, shown) as remote:
        [result] = remote.batch_records(agent, [given])
    return result
