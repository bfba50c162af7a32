"""The command line `ebbtide`: its commands, and the one place where errors become sentences.

Each command is a plain function in a module of its own. Only the module of the command that runs is imported, and
that one imports heavy packages when it needs them: a start takes a fraction of a second of CPU time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer

from ebbtide import __version__
from ebbtide.cli.agent_option import AgentCommand
from ebbtide.cli.console import report, write_text
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, as_failure, program
from ebbtide.errors import EbbtideError

TRY = "Try it"
USE = "Use a running daemon"
LOOK = "Look after it"
MOVE = "Back it up, move it"

COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": ("ebbtide.cli.demo.command", "demo", TRY),
    "curve": ("ebbtide.cli.commands.curve", "curve", TRY),
    "serve": ("ebbtide.cli.commands.serve", "serve", USE),
    "remember": ("ebbtide.cli.commands.remember", "remember", USE),
    "create": ("ebbtide.cli.commands.create", "create", USE),
    "recall": ("ebbtide.cli.commands.recall", "recall", USE),
    "search": ("ebbtide.cli.commands.search", "search", USE),
    "pin": ("ebbtide.cli.commands.focus", "pin", USE),
    "unpin": ("ebbtide.cli.commands.focus", "unpin", USE),
    "focus": ("ebbtide.cli.commands.focus", "focus", USE),
    "unfocus": ("ebbtide.cli.commands.focus", "unfocus", USE),
    "delete": ("ebbtide.cli.commands.delete", "delete", USE),
    "clear": ("ebbtide.cli.commands.clear", "clear", USE),
    "forget": ("ebbtide.cli.commands.forget", "forget", USE),
    "profile": ("ebbtide.cli.commands.statements", "profile", LOOK),
    "why": ("ebbtide.cli.commands.statements", "why", LOOK),
    "statements": ("ebbtide.cli.commands.statements", "statements", USE),
    "consolidate": ("ebbtide.cli.commands.statements", "consolidate", USE),
    "records": ("ebbtide.cli.commands.records", "records", USE),
    "tools": ("ebbtide.cli.commands.tools", "tools", USE),
    "chat": ("ebbtide.cli.commands.chat", "chat", USE),
    "mcp": ("ebbtide.cli.commands.mcp", "mcp", USE),
    "agents": ("ebbtide.cli.commands.agents", "agents", LOOK),
    "stats": ("ebbtide.cli.commands.stats", "stats", LOOK),
    "forecast": ("ebbtide.cli.commands.forecast", "forecast", LOOK),
    "inspect": ("ebbtide.cli.commands.inspect", "inspect", LOOK),
    "messages": ("ebbtide.cli.commands.listings", "messages", LOOK),
    "attachment": ("ebbtide.cli.commands.listings", "attachment", LOOK),
    "nodes": ("ebbtide.cli.commands.listings", "nodes", LOOK),
    "entities": ("ebbtide.cli.commands.focus", "entities", LOOK),
    "events": ("ebbtide.cli.commands.events", "events", LOOK),
    "check": ("ebbtide.cli.commands.check", "check", LOOK),
    "keys": ("ebbtide.cli.commands.keys", "keys", LOOK),
    "audit": ("ebbtide.cli.commands.audit", "audit", LOOK),
    "encryption": ("ebbtide.cli.commands.encryption", "encryption", LOOK),
    "cluster": ("ebbtide.cli.commands.cluster", "cluster", LOOK),
    "backup": ("ebbtide.cli.commands.backup", "backup", MOVE),
    "restore": ("ebbtide.cli.commands.restore", "restore", MOVE),
    "export": ("ebbtide.cli.commands.export", "export", MOVE),
    "import": ("ebbtide.cli.commands.import_file", "import_file", MOVE),
}
"""Every command: module, name in it, and heading in the help."""


def make_app(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with the named commands."""
    made = typer.Typer(
        name="ebbtide",
        help="A memory daemon for AI agents that forgets gracefully and knows what it forgot.",
        epilog=f"New here? Try: {program()} demo",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_ebbtide)
    for name in names:
        module, attribute, panel = COMMANDS[name]
        command: Any = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            for one in command.registered_commands:
                one.cls = AgentCommand
            made.add_typer(command, name=name, rich_help_panel=panel)
        else:
            made.command(name, cls=AgentCommand, rich_help_panel=panel)(command)
    return made


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _print_version(value: bool) -> None:
    if value:
        write_text(f"ebbtide {__version__}")
        raise typer.Exit


def _ebbtide(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code. A failure prints one sentence, a bug its traceback."""
    given = sys.argv[1:] if arguments is None else arguments
    # Anything but the name of a command needs all of them: help, completion, the message about an unknown one.
    app = make_app(given[:1]) if given and given[0] in COMMANDS else make_app()
    try:
        app(arguments, prog_name="ebbtide")
    except (Failure, EbbtideError) as error:
        failure = error if isinstance(error, Failure) else as_failure(error)
        report(failure)
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
