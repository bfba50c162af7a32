"""`ebbtide remember`: store a conversation in an agent's memory.

The whole file is validated before the first request, against the request models and default limits of the daemon.
Then it is sent batch by batch. A batch is one unit of the memory's time: many small batches fade sooner.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.console import counted, out, progress, say, write_json
from ebbtide.cli.credentials import credentials
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import (
    ANY_AGENT,
    Request,
    bad_input,
    cut,
    read_conversation,
    read_whole,
    refused_message,
)
from ebbtide.cli.files.messages import is_unicode
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Json, Url

if TYPE_CHECKING:
    from ebbtide.cli.remote import RemoteClient

DEFAULT_BATCH_SIZE = 40
MAX_MESSAGES = 1000
SHOWN_IDS = 8


def remember(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File with the conversation, or - for standard input.")
    ],
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    conversation_id: Annotated[
        str | None, typer.Option("--conversation-id", help="Id that groups the batches of one conversation.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, max=MAX_MESSAGES, help="Messages per batch.")
    ] = DEFAULT_BATCH_SIZE,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all batches are digested.")] = False,
    extraction: Annotated[
        bool, typer.Option("--extraction", help="With --wait: also until statements are extracted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remember a conversation: JSON, JSON lines, or plain text."""
    from ebbtide.cli.remote import RemoteClient

    name = "standard input" if file == "-" else file
    conversation = read_conversation(_read(file), name)
    requests = cut(conversation.batches, batch_size, conversation_id)
    check(requests, name)
    bodies = [request.body for request in requests]
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        stored = _send(remote, agent, bodies)
        flushed = _wait(remote, agent, extraction=extraction) if wait else None
    if as_json:
        write_json({"agent_id": agent, "batches": stored, "flushed": flushed})
        return
    _report(agent, stored, flushed)
    if conversation.skipped:
        say(f"{counted(conversation.skipped, 'message')} without text skipped.", "dim")


def _read(file: str) -> bytes:
    from ebbtide.cli.files.disk import opened

    if file == "-":
        return read_whole(sys.stdin.buffer, "standard input")
    with opened(Path(file)) as source:
        return read_whole(source, file)


def check(requests: list[Request], name: str) -> None:
    """Validate every request with the daemon's own models. Raise a Failure for the first invalid one."""
    from ebbtide.errors import InvalidRequest
    from ebbtide.settings import LimitSettings
    from ebbtide.verbs.remember import RememberRequest
    from ebbtide.verbs.requests import validated

    limits = LimitSettings()
    for request in requests:
        try:
            validated(RememberRequest, {"agent_id": ANY_AGENT, **request.body}, limits)
        except InvalidRequest as error:
            raise _refused(error.message, request, name) from None
        if not is_unicode(json.dumps(request.body, ensure_ascii=False)):
            raise bad_input(f"{name}: a field of the batch contains a lone surrogate.")
        size = len(json.dumps(request.body, ensure_ascii=False).encode())
        if size > limits.max_body_bytes:
            raise bad_input(
                f"{name}: a batch of {len(request.places)} messages has {size:,} bytes, more than the "
                f"{limits.max_body_bytes:,} a request may have; choose a smaller --batch-size."
            )


def _refused(error: str, request: Request, name: str) -> Failure:
    """Return the failure for a batch, with the place of the message in the file."""
    found = refused_message(error)
    if found is None:
        return bad_input(f"{name}: {error}.")
    return bad_input(f"{name}, {request.places[found[0]]}: {found[1]}.")


def _send(remote: RemoteClient, agent: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = []
    with progress("remembering") as bar:
        task = bar.add_task("remembering", total=len(bodies), visible=len(bodies) > 1)
        for body in bodies:
            try:
                answer = remote.remember(agent, body)
            except Failure as failure:
                raise _cut_off(failure, stored, len(bodies)) from None
            stored.append({**answer, "messages": len(body["messages"])})
            bar.advance(task)
    return stored


def _cut_off(failure: Failure, stored: list[dict[str, Any]], total: int) -> Failure:
    """Return the failure with the number of stored batches: sending the file again would store them twice."""
    if not stored:
        return failure
    last = stored[-1]["batch_id"]
    done = f"{len(stored)} of {total} batches are stored (up to {last}), the others are not."
    return Failure(failure.message, failure.code, hint=f"{done} {failure.hint}".strip())


def _wait(remote: RemoteClient, agent: str, *, extraction: bool) -> dict[str, Any]:
    with progress("digesting") as bar:
        task = bar.add_task("digesting", total=None)
        most = 0
        while True:
            flushed = remote.flush(agent, extraction=extraction)
            pending = flushed["pending_batches"]
            is_read = not flushed["unextracted_messages"] or flushed["extraction_paused"] == "max_statements"
            if flushed["digested"] and (is_read or not extraction):
                return flushed
            most = max(most, pending)
            bar.update(task, total=most, completed=most - pending)


def _report(agent: str, stored: list[dict[str, Any]], flushed: dict[str, Any] | None) -> None:
    ids = [batch["batch_id"] for batch in stored]
    shown = " ".join(ids) if len(ids) <= SHOWN_IDS else f"{ids[0]} … {ids[-1]}"
    messages = counted(sum(batch["messages"] for batch in stored), "message")
    batches = counted(len(stored), "batch", "batches")
    console = out()
    console.print(f"{shown}: {messages} in {batches} stored for {agent}.", markup=False)
    for line in _ingest_notes(stored):
        console.print(line, markup=False)
    if flushed is None:
        console.print(_waiting(stored[-1]["pending_batches"]))
    elif flushed["parked_batches"]:
        parked = counted(flushed["parked_batches"], "batch", "batches")
        console.print(f"Digested, except {parked} parked after failures.")
    else:
        console.print("All digested.")
    if flushed is not None and flushed["extraction_paused"] == "max_statements":
        unread = counted(flushed["unextracted_messages"], "message")
        console.print(f"Extraction pauses at max_statements: {unread} to read when there is room.")


def _ingest_notes(stored: list[dict[str, Any]]) -> list[str]:
    """Return lines about personal data and skipped messages."""
    kinds: Counter[str] = Counter()
    for batch in stored:
        kinds.update(batch["pii"])
    found = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    lines, repeats = (sum(batch[name] for batch in stored) for name in ("dropped_recalled", "collapsed"))
    return [
        *([f"Personal data: {found}."] if found else []),
        *([f"{counted(lines, 'line')} skipped: returned by a recall before."] if lines else []),
        *([f"{counted(repeats, 'message')} skipped as repeated."] if repeats else []),
    ]


def _waiting(pending: int) -> str:
    if pending == 1:
        return "1 batch is waiting to be digested."
    return f"{pending:,} batches are waiting to be digested."
