"""`ebbtide import`: restore an agent from an export, or remember the data of another memory system.

An export is imported completely or not at all. Data of other systems is remembered batch by batch. The idempotency
keys are derived from the content, so the same file imported again is stored once. Entries that cannot be imported are
reported with their place and the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.commands.remember import check
from ebbtide.cli.commands.restore import Replace, put, report_restored
from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, out, progress, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import Request, bad_input, read_whole
from ebbtide.cli.files.disk import opened
from ebbtide.cli.files.foreign import FORMATS, Skipped, detected, read_foreign
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url

if TYPE_CHECKING:
    from ebbtide.cli.remote import RemoteClient

MAX_SHOWN = 20
DETECTION_BYTES = 64 << 10
"""Bytes that are read to detect the format."""


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file.")],
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", help="The agent. Default for an export: its own id.", show_default=False
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"auto, {', '.join(FORMATS)}.")] = "auto",
    replace: Replace = False,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Import an export, or the data of mem0 or of an MCP memory server."""
    from ebbtide.cli.remote import RemoteClient

    if form not in ("auto", *FORMATS):
        raise Failure(f"--format: {form} is unknown; use auto, {', '.join(FORMATS)}.", ExitCode.USAGE)
    if form == "auto":
        with opened(file) as source:
            form = detected(source.read(DETECTION_BYTES), file.name)
    shown = credentials(api_key_file, ca_file, client_cert)
    if form == "ebbtide":
        with connected(url, data_dir, shown, master_key_file, create=True) as client:
            done = put(client, file, agent, replace=replace)
        (write_json if as_json else report_restored)(done)
        return
    if data_dir is not None:
        raise Failure("--data-dir: only an export of Ebbtide can be imported offline.", ExitCode.USAGE)
    if agent is None:
        raise Failure("--agent is required for this format.", ExitCode.USAGE)
    with opened(file) as source:
        found = read_foreign(read_whole(source, file.name), file.name, form)
    if not found.requests and not found.skipped:
        raise bad_input(f"{file.name} contains nothing to import.")
    check(found.requests, file.name)
    with RemoteClient(url, shown) as remote:
        stored = _send(remote, agent, found.requests)
    _report(agent, form, found.requests, stored, found.skipped, as_json)


def _send(remote: RemoteClient, agent: str, requests: list[Request]) -> list[str]:
    stored: list[str] = []
    with progress("importing") as bar:
        task = bar.add_task("importing", total=len(requests))
        for request in requests:
            try:
                stored.append(_remembered(remote, agent, request.body))
            except Failure as failure:
                done = (
                    f"{len(stored)} of {len(requests)} batches are stored; import the file again to continue."
                )
                raise Failure(failure.message, failure.code, hint=done) from None
            bar.advance(task)
    return stored


def _remembered(remote: RemoteClient, agent: str, body: dict[str, Any]) -> str:
    while True:
        try:
            batch_id: str = remote.remember(agent, body)["batch_id"]
            return batch_id
        except Failure as failure:
            if "[QUEUE_FULL]" not in failure.message:
                raise
        # The inbox is full: wait until some of it is digested.
        before = remote.get_agent(agent)["pending_batches"]
        if remote.flush(agent)["parked_batches"] >= before:
            raise Failure("The inbox is full of parked batches.", ExitCode.REFUSED)


def _report(
    agent: str, form: str, requests: list[Request], stored: list[str], skipped: list[Skipped], as_json: bool
) -> None:
    messages = sum(len(request.body["messages"]) for request in requests)
    if as_json:
        left_out = [{"place": one.place, "why": one.why} for one in skipped]
        write_json(
            {
                "agent_id": agent,
                "format": form,
                "batch_ids": stored,
                "messages": messages,
                "skipped": left_out,
            }
        )
        return
    stored_text = f"{counted(messages, 'message')} in {counted(len(stored), 'batch', 'batches')}"
    out().print(f"{stored_text} stored for {agent}.", markup=False)
    for one in skipped[:MAX_SHOWN]:
        say(f"{one.place}: {one.why}", "yellow")
    if len(skipped) > MAX_SHOWN:
        say(f"… and {len(skipped) - MAX_SHOWN:,} more; --json lists them all.", "dim")
