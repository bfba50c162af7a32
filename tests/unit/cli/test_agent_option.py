"""The option --agent names the agent in every command, and an agent as the first argument still works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from click import Command

from ebbtide.cli.agent_option import AgentCommand
from ebbtide.cli.app import make_app


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Command]]:
    """Yield every command with its words."""
    for name, one in group.commands.items():
        words = f"{path} {name}".strip()
        yield from commands(one, words) if hasattr(one, "commands") else [(words, one)]


COMMANDS = dict(commands(typer.main.get_command(make_app())))
WITH_ARGUMENT = {
    words: command
    for words, command in COMMANDS.items()
    if any(one.name in ("agent", "agents") and one.param_type_name == "argument" for one in command.params)
}


def read(command: Command, args: list[str]) -> dict[str, Any]:
    """Return the parameters that a command reads from its arguments."""
    context = command.make_context("command", args)
    return dict(context.params)


def required(command: Command) -> list[str]:
    """Return a value for each required argument except the agent."""
    others = [one for one in command.params if one.param_type_name == "argument" and one.required]
    return ["n1" for one in others if one.name not in ("agent", "agents")]


def test_the_commands_with_an_argument_are_known() -> None:
    """The walk finds the commands that take an agent as an argument, in groups too."""
    assert {"stats", "clear", "forget", "check", "audit show", "encryption destroy"} <= WITH_ARGUMENT.keys()
    assert all(isinstance(one, AgentCommand) for one in COMMANDS.values())


@pytest.mark.parametrize("words", sorted(WITH_ARGUMENT))
def test_every_command_takes_the_option(words: str) -> None:
    """Before and after other arguments, in each form, the option is read as the first argument."""
    command, others = WITH_ARGUMENT[words], required(WITH_ARGUMENT[words])
    expected = read(command, ["ann", *others])
    assert expected.get("agent", expected.get("agents")) in ("ann", ["ann"], ("ann",))
    for option in (["--agent", "ann"], ["--agent=ann"], ["-a", "ann"]):
        assert read(command, [*option, *others]) == read(command, [*others, *option]) == expected
    assert any("--agent" in str(getattr(one, "help", "")) for one in command.params)


def test_other_arguments_stay() -> None:
    """Options, nodes and what follows -- are read as before."""
    found = read(COMMANDS["delete"], ["n1", "--agent", "ann", "n2", "--yes"])
    assert (found["agent"], list(found["nodes"]), found["yes"]) == ("ann", ["n1", "n2"], True)
    found = read(COMMANDS["delete"], ["--yes", "--", "ann", "--agent", "n2"])
    assert (found["agent"], list(found["nodes"])) == ("ann", ["--agent", "n2"])
