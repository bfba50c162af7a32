"""`ebbtide audit show` and `ebbtide audit verify`: print audit logs, and check that they are intact.

Both work on a running daemon or on a data directory. Without an agent they use the log of deleted agents; a daemon
requires an API key for all agents for that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.client import MemoryClient
from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, local_time, out, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.one_by_one import OneByOne
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url

ERASED = "(erased agents)"
"""Name of the log of deleted agents in the output."""

audit = typer.Typer(help="Show audit logs: who changed which memory, and when. Check that they are intact.")


@audit.command()
def show(
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="The agent; default: the log of deleted agents.")
    ] = None,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show an agent's audit log."""
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        records = client.list_erased_agents() if agent is None else client.list_audit_records(agent)
    if as_json:
        write_json({"records": records})
        return
    if not records:
        say("No records.", "dim")
        return
    out().print(_table(records))


@audit.command()
def verify(
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="The agent; default: all logs.")
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Was the text of this file deleted?",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Check the hash chain of audit logs. Exit code 7 if one is broken, 6 if a --text was not deleted.

    A log that cannot be read does not stop the others.
    """
    texts = [] if text is None else [_read(text)]
    with connected(url, data_dir, credentials(api_key_file, ca_file, client_cert), master_key_file) as client:
        agents = [one["agent_id"] for one in client.list_agents()] if agent is None else [agent]
        row = OneByOne(agents, are_named=agent is not None)
        found = []
        for name in row:
            with row.trying(name):
                found.append((name, client.verify_audit(name, texts)))
        erased = None
        if agent is None and not row.is_over:
            with row.trying(ERASED):
                erased = _erased(client, texts)
    results = found if erased is None else [*found, (ERASED, erased)]
    if as_json:
        # Separate from agents: an agent may have any name.
        logs = dict(found)
        write_json({"logs": logs, "erased_agents": erased, "failed": row.failed, "gone": row.gone})
    else:
        for name, one in results:
            _report(name, one)
    broken = [name for name, one in results if not one["intact"]]
    if broken:
        raise Failure(f"The audit log is broken: {', '.join(broken)}.", ExitCode.DAMAGED)
    row.end("of the audit logs could not be read")
    if text is not None and not any(one["texts"][0]["erased"] for _, one in results):
        raise Failure(f"No record shows that the text of {text} was deleted.", ExitCode.NOT_FOUND)


def _erased(client: MemoryClient, texts: list[str]) -> dict[str, Any] | None:
    try:
        return client.verify_erased_agents(texts)
    except Failure as failure:
        if failure.reason != "KEY_NOT_FOR_AGENT":
            raise
    # A key for some agents has verified all of those. The log of the others is not accessible to it.
    say("Skipped the log of deleted agents (erased agents): it requires a key for all agents.", "dim")
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: cannot be read as UTF-8 text.", ExitCode.BAD_INPUT) from error


def _report(name: str, found: dict[str, Any]) -> None:
    if found["intact"]:
        last = f", last {found['record_hash']}" if found["records"] else ""
        count = found["records"]
        whole = f"{counted(count, 'record')} {'is whole' if count == 1 else 'follow each other'}"
        say(f"{name}: {whole if count else 'no records'}{last}.")
    else:
        say(f"{name}: record {found['broken_record']} {found['problem']}.", "red")
    for one in found["texts"]:
        if one["erased"]:
            say(f"{name}: the text was deleted, see record {one['record']}.")


def _table(records: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    is_of_many = "agent_id" in records[0]
    table.add_column("record", justify="right")
    if is_of_many:
        table.add_column("agent", overflow="fold")
    table.add_column("when", no_wrap=True)
    table.add_column("who")
    table.add_column("what")
    table.add_column("details", overflow="fold")
    for record in records:
        details = "  ".join(f"{name}={_short(value)}" for name, value in record["details"].items())
        whose = (record["agent_id"],) if is_of_many else ()
        cells = (local_time(record["at"]), record["actor"], record["action"], details)
        table.add_row(str(record["number"]), *whose, *cells)
    return table


def _short(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
