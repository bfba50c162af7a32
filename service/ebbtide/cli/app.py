"""The command line `ebbtide`: its commands, and the one place where errors become sentences.

Commands are plain functions, one file each; what is heavy they import when they run, so that `--help` and
completion stay quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ebbtide import __version__
from ebbtide.cli.commands.agents import agents
from ebbtide.cli.commands.audit import audit
from ebbtide.cli.commands.backup import backup
from ebbtide.cli.commands.check import check
from ebbtide.cli.commands.curve import curve
from ebbtide.cli.commands.delete import delete
from ebbtide.cli.commands.encryption import encryption
from ebbtide.cli.commands.events import events
from ebbtide.cli.commands.export import export
from ebbtide.cli.commands.forget import forget
from ebbtide.cli.commands.import_file import import_file
from ebbtide.cli.commands.inspect import inspect
from ebbtide.cli.commands.keys import keys
from ebbtide.cli.commands.recall import recall
from ebbtide.cli.commands.remember import remember
from ebbtide.cli.commands.restore import restore
from ebbtide.cli.commands.search import search
from ebbtide.cli.commands.serve import serve
from ebbtide.cli.console import report, write_text
from ebbtide.cli.demo.command import demo
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, as_failure
from ebbtide.errors import EbbtideError

app = typer.Typer(
    name="ebbtide",
    help="A memory daemon for AI agents that forgets gracefully and knows what it forgot.",
    epilog="New here? Try: ebbtide demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

TRY = "Try it"
USE = "Use a running daemon"
LOOK = "Look after it"
MOVE = "Back it up, move it"

app.command("demo", rich_help_panel=TRY)(demo)
app.command("curve", rich_help_panel=TRY)(curve)
app.command("serve", rich_help_panel=USE)(serve)
app.command("remember", rich_help_panel=USE)(remember)
app.command("recall", rich_help_panel=USE)(recall)
app.command("search", rich_help_panel=USE)(search)
app.command("delete", rich_help_panel=USE)(delete)
app.command("forget", rich_help_panel=USE)(forget)
app.command("agents", rich_help_panel=LOOK)(agents)
app.command("inspect", rich_help_panel=LOOK)(inspect)
app.command("events", rich_help_panel=LOOK)(events)
app.command("check", rich_help_panel=LOOK)(check)
app.add_typer(keys, name="keys", rich_help_panel=LOOK)
app.add_typer(audit, name="audit", rich_help_panel=LOOK)
app.command("backup", rich_help_panel=MOVE)(backup)
app.command("restore", rich_help_panel=MOVE)(restore)
app.command("export", rich_help_panel=MOVE)(export)
app.command("import", rich_help_panel=MOVE)(import_file)
app.add_typer(encryption, rich_help_panel=LOOK)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        write_text(f"ebbtide {__version__}")
        raise typer.Exit


@app.callback()
def _ebbtide(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code. A failure is one sentence; a bug shows its traceback."""
    try:
        app(arguments, prog_name="ebbtide")
    except (Failure, EbbtideError) as error:
        failure = error if isinstance(error, Failure) else as_failure(error)
        report(failure)
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
