"""`ebbtide import`: restore an agent from an export, or remember the data of another product.

An export is imported completely or not at all. Data of other products is read completely before anything is sent, and
remembered batch by batch. Messages that an agent has from an earlier import are skipped, so the same command continues
an import that was interrupted. Entries that cannot be imported are reported with their place and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.commands.restore import Replace, put, report_restored
from ebbtide.cli.connection import connected
from ebbtide.cli.console import counted, local_time, out, progress, say, write_json
from ebbtide.cli.credentials import Credentials, credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import bad_input
from ebbtide.cli.files.foreign.chats import Chat, Notes
from ebbtide.cli.files.foreign.formats import EMPTY, FORMATS, detected, read_chats
from ebbtide.cli.files.foreign.ledger import Ledger
from ebbtide.cli.files.foreign.plan import Plan, Selection, marks_of, requests_of
from ebbtide.cli.files.foreign.sources import paths_of, source_of
from ebbtide.cli.options import DEFAULT_URL, ApiKeyFile, CaFile, ClientCert, DataDir, Json, MasterKeyFile, Url
from ebbtide.cli.times import begin_ms

if TYPE_CHECKING:
    from ebbtide.cli.remote import RemoteClient

MAX_SHOWN = 20
GROUP = 100
"""Conversations whose marks are read at once."""

SAVE_EVERY = 20
"""Requests after which the marks of their messages are saved."""


Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Files, archives, or a folder with conversations.json."),
]
AgentOrOwn = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="The agent. Default for an export: its own id.", show_default=False),
]
Format = Annotated[str, typer.Option("--format", help=f"auto, {', '.join(FORMATS)}.")]
Conversations = Annotated[
    list[str] | None,
    typer.Option(
        "--conversations",
        metavar="ID|TITLE",
        help="Only conversations with this id, or with these words in the title; repeatable.",
    ),
]
Since = Annotated[
    int | None,
    typer.Option(
        "--since",
        parser=begin_ms,
        metavar="DAY|TIME",
        help="Only conversations with a message from this day or time (UTC) on.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most so many conversations, the newest ones.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be imported, and send nothing.")]


def import_file(
    files: Files,
    agent: AgentOrOwn = None,
    form: Format = "auto",
    conversations: Conversations = None,
    since: Since = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    replace: Replace = False,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Import an export, or the data of ChatGPT, Claude, Letta, LangChain, mem0 or an MCP memory server."""
    if form not in ("auto", *FORMATS):
        raise Failure(f"--format: {form} is unknown; use auto, {', '.join(FORMATS)}.", ExitCode.USAGE)
    paths = paths_of(files)
    if form == "auto":
        form = _form_of(paths)
    shown = credentials(api_key_file, ca_file, client_cert)
    selection = Selection(conversations or (), since, limit)
    if form == "ebbtide":
        if len(paths) > 1 or dry_run or selection != Selection():
            raise Failure("An export is imported completely: one file, without a selection.", ExitCode.USAGE)
        with connected(url, data_dir, shown, master_key_file, create=True) as client:
            done = put(client, paths[0], agent, replace=replace)
        (write_json if as_json else report_restored)(done)
        return
    if data_dir is not None:
        raise Failure("--data-dir: only an export of Ebbtide can be imported offline.", ExitCode.USAGE)
    if replace:
        raise Failure("--replace: only an export of Ebbtide replaces an agent.", ExitCode.USAGE)
    if agent is None and not dry_run:
        raise Failure("--agent is required for this format.", ExitCode.USAGE)
    notes, stored = Notes(), _Stored()
    with Plan(selection, notes) as plan:
        _read(paths, form, plan, notes)
        if agent is not None:
            _import(plan, agent, form, stored, url, shown, dry_run=dry_run)
        (_write if as_json else _report)(_Done(agent, form, plan, notes, stored, dry_run))


def _form_of(paths: Sequence[Path]) -> str:
    """Return the format of the files. Raise a Failure if they have several."""
    forms: dict[str, Path] = {}
    for path in paths:
        with source_of(path) as sources:
            for source in sources:
                forms.setdefault(detected(source), path)
    forms.pop(EMPTY, None)
    if len(forms) > 1:
        kinds = ", ".join(f"{path.name} is {form}" for form, path in forms.items())
        raise bad_input(f"The files have several formats ({kinds}); import them one by one.")
    if not forms:
        raise bad_input(f"{paths[0].name} contains nothing to import.")
    return next(iter(forms))


def _read(paths: Sequence[Path], form: str, plan: Plan, notes: Notes) -> None:
    with progress("reading") as bar:
        task = bar.add_task("reading", total=None)
        for path in paths:
            with source_of(path) as sources:
                for source in sources:
                    for chat in read_chats(source, form, notes):
                        plan.add(chat)
                        bar.update(task, completed=len(plan))
    plan.finish()
    if not len(plan) and not plan.not_selected and not notes.skipped and not notes.left_out:
        raise bad_input(f"{paths[0].name} contains nothing to import.")


@dataclass(slots=True)
class _Stored:
    """The batches and messages that an import has stored or would store, and those that the agent had before."""

    batch_ids: list[str] = field(default_factory=list)
    messages: int = 0
    conversations: int = 0
    known_messages: int = 0
    known_conversations: int = 0


def _import(
    plan: Plan, agent: str, form: str, stored: _Stored, url: str, shown: Credentials, *, dry_run: bool
) -> None:
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, shown) as remote, progress("importing") as bar:
        ledger = Ledger(remote, agent, form)
        sender = None if dry_run else _Sender(remote, agent, ledger, stored)
        task = bar.add_task("importing", total=len(plan))
        try:
            for group in _groups(plan.chats()):
                ledger.load([chat.conversation_id for chat in group])
                for chat in group:
                    _import_chat(chat, ledger, stored, sender)
                    bar.advance(task)
                ledger.save()
        except BaseException as error:
            with suppress(Failure):
                ledger.save()
            if not isinstance(error, Failure) or not stored.messages:
                raise
            done = f"{counted(stored.messages, 'message')} stored; import again to continue."
            raise Failure(error.message, error.code, hint=done, reason=error.reason) from None


def _groups(chats: Iterator[Chat]) -> Iterator[list[Chat]]:
    group: list[Chat] = []
    for chat in chats:
        group.append(chat)
        if len(group) == GROUP:
            yield group
            group = []
    yield group


class _Sender:
    """Sends requests, and saves the marks of their messages."""

    def __init__(self, remote: RemoteClient, agent: str, ledger: Ledger, stored: _Stored) -> None:
        self.remote = remote
        self.agent = agent
        self.ledger = ledger
        self.stored = stored

    def send(self, body: dict[str, Any]) -> None:
        """Remember a batch."""
        self.stored.batch_ids.append(_remembered(self.remote, self.agent, body))
        if len(self.stored.batch_ids) % SAVE_EVERY == 0:
            self.ledger.save()


def _import_chat(chat: Chat, ledger: Ledger, stored: _Stored, sender: _Sender | None) -> None:
    marks = marks_of(chat)
    known = ledger.marks(chat.conversation_id)
    fresh = [index for index, mark in enumerate(marks) if mark not in known]
    stored.known_messages += len(marks) - len(fresh)
    if not fresh:
        stored.known_conversations += 1
        return
    for request, indexes in requests_of(chat, fresh):
        if sender is not None:
            sender.send(request.body)
            ledger.add(chat.conversation_id, [marks[index] for index in indexes])
        stored.messages += len(indexes)
    stored.conversations += 1


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


@dataclass(frozen=True, slots=True)
class _Done:
    """The content of a report."""

    agent: str | None
    form: str
    plan: Plan
    notes: Notes
    stored: _Stored
    dry_run: bool


def _write(done: _Done) -> None:
    span = done.plan.span
    write_json(
        {
            "agent_id": done.agent,
            "format": done.form,
            "dry_run": done.dry_run,
            "conversations": done.stored.conversations if done.agent else len(done.plan),
            "messages": done.stored.messages if done.agent else done.plan.messages,
            "already_stored": done.stored.known_messages,
            "begin": span and span[0],
            "end": span and span[1],
            "batch_ids": done.stored.batch_ids,
            "not_selected": done.plan.not_selected,
            "left_out": dict(done.notes.left_out),
            "skipped": [{"place": one.place, "why": one.why} for one in done.notes.skipped],
            "skipped_count": done.notes.skipped_count,
        }
    )


def _report(done: _Done) -> None:
    console = out()
    for line in _lines(done):
        console.print(line, markup=False, soft_wrap=True)
    notes = done.notes
    for one in notes.skipped[:MAX_SHOWN]:
        say(f"{one.place}: {one.why}", "yellow")
    if notes.skipped_count > MAX_SHOWN:
        say(f"… and {notes.skipped_count - MAX_SHOWN:,} more; --json lists them.", "dim")


def _lines(done: _Done) -> Iterator[str]:
    plan, stored = done.plan, done.stored
    conversations = counted(stored.conversations if done.agent else len(plan), "conversation")
    messages = counted(stored.messages if done.agent else plan.messages, "message")
    if done.dry_run:
        for_whom = f" for {done.agent}" if done.agent else ""
        yield f"{done.form}: {messages} of {conversations} would be stored{for_whom}."
    elif stored.known_messages and not stored.messages:
        yield f"Nothing new for {done.agent}."
    else:
        batches = counted(len(stored.batch_ids), "batch", "batches")
        yield f"{messages} of {conversations} stored for {done.agent}, in {batches}."
    if plan.span:
        yield f"Selected: messages from {local_time(plan.span[0])} to {local_time(plan.span[1])}."
    if stored.known_messages:
        yield f"Already stored: {counted(stored.known_messages, 'message')}."
    if plan.not_selected:
        yield f"Not selected: {counted(plan.not_selected, 'conversation')}."
    if done.notes.left_out:
        kinds = ", ".join(f"{what}: {count:,}" for what, count in sorted(done.notes.left_out.items()))
        yield f"Left out ({kinds})."
    if done.notes.skipped_count:
        yield f"Skipped: {counted(done.notes.skipped_count, 'odd part')}, listed here:"
