"""The option `--agent`: it names the agent in every command, also where the agent is an argument.

Some commands always needed an agent and take it as their first argument. They read `--agent` as that argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from typer.core import TyperArgument, TyperCommand

from ebbtide.cli.failures import OPTIONS, Failure

NAMES: Final = ("--agent", "-a")


class AgentCommand(TyperCommand):
    """A command that takes its argument `agent` as an option too."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._argument = next((one for one in self.params if _is_agent(one)), None)
        if isinstance(self._argument, TyperArgument):
            self._argument.help = f"{self._argument.help} Or: --agent, -a."

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with the value of `--agent` as the first one."""
        return super().parse_args(ctx, args if self._argument is None else _with_agent_first(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A failure names a field that is an argument here as one, not as an option."""
        try:
            return super().invoke(ctx)
        except Failure as failure:
            for one in self.params:
                option = f"{OPTIONS.get(one.name or '')}: "
                if isinstance(one, TyperArgument) and failure.message.startswith(option):
                    failure.message = f"{one.name}: ".upper() + failure.message.removeprefix(option)
            raise


def _is_agent(parameter: Any) -> bool:
    return isinstance(parameter, TyperArgument) and parameter.name in ("agent", "agents")


def _with_agent_first(args: Sequence[str]) -> list[str]:
    agents: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        name, is_joined, value = word.partition("=")
        if word == "--":
            rest.append(word)
            break
        if name not in NAMES:
            rest.append(word)
        elif is_joined:
            agents.append(value)
        elif (following := next(words, None)) is not None:
            agents.append(following)
        else:
            rest.append(word)
    return [*agents, *rest, *words]
