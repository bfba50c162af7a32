"""Failures that a person can act on: one sentence and an exit code, never a traceback.

Commands raise `Failure`. `app.main` turns errors of the daemon's own code into one. Any other exception is a bug and
shows its traceback.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.errors import EbbtideError


class Failure(Exception):
    """Why a command ends early. `hint` says what to do next.

    `reason` is that of the underlying error. `ends_all` says that the next agent or file would fail the same way.
    """

    def __init__(
        self, message: str, code: ExitCode, *, hint: str = "", reason: str = "", ends_all: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.reason = reason
        self.ends_all = ends_all


def as_failure(error: EbbtideError) -> Failure:
    """Return the failure for an error that was raised in this process."""
    message, step = in_options(error.message, error.reason)
    return Failure(sentence(message), of_error(error.reason, error.http), hint=step, reason=error.reason)


NEXT_STEPS = {
    "AGENT_NOT_FOUND": "`{program} agents` lists the agents; `{program} remember` creates one.",
    "NODE_NOT_FOUND": "`{program} search` finds memories with their ids.",
    "NOT_A_STATEMENT": "`{program} statements list` lists statements with their ids.",
    "RULING_NOT_FOUND": "`{program} statements rulings` lists rulings with their ids.",
    "AGENT_EXISTS": "Pass --replace to overwrite it.",
}
"""The next step on the command line, by reason, for errors whose message gives the step of another interface."""

OPTIONS = {
    "citations": "--sources",
    "kinds": "--kind",
    "query": "--query",
    "relations": "--relation",
    "sources": "--source",
    "speakers": "--speaker",
    "start_nodes": "--start-node",
    "time_range": "--since, --until",
    "time_range.begin": "--since",
    "time_range.end": "--until",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("archive", "depth", "explain", "key_sentences", "max_results", "mode", "patience_ms"),
            *("token_budget", "tokenizer", "topic", "without"),
        )
    },
}
"""The option that sets a field of a request."""

_OTHER_INTERFACE = re.compile(r"GET /v1/|replace=true")
_FIELD = re.compile(r"([a-z_.]++)(?:\[\d++\])?: ")


def in_options(message: str, reason: str = "") -> tuple[str, str]:
    """Return an error's message with options in place of fields, and the next step if it replaces the message's."""
    if reason in NEXT_STEPS and _OTHER_INTERFACE.search(message):
        return message.partition(". ")[0].partition("; ")[0], NEXT_STEPS[reason].replace(
            "{program}", program()
        )
    field = _FIELD.match(message)
    if field is None or field[1] not in OPTIONS:
        return message, ""
    rest = message[field.end() :].replace("give query", "give --query").replace("this field", "this option")
    return f"{OPTIONS[field[1]]}: {rest}", ""


def new_key_command() -> str:
    """Return a command that creates an API key."""
    return f"{program()} keys create --scope read,write --all-agents"


def sentence(text: str) -> str:
    """Return the text with a capital letter first and a full stop last."""
    text = text.strip()
    if not text:
        return ""
    # A word with an underscore or a bracket is the name of a field and stays as it is.
    first = text.split(maxsplit=1)[0]
    is_name = first.startswith("--") or any(character in first for character in "_[.:/")
    head = text if is_name else text[0].upper() + text[1:]
    return head if head[-1] in ".!?。" else f"{head}."


def program() -> str:
    """Return how to call this program in a hint: `ebbtide` if it is on the PATH, else the path of the script."""
    script = Path(sys.argv[0])
    if shutil.which("ebbtide"):
        return "ebbtide"
    if script.name == "ebbtide" and script.is_file():
        try:
            return shlex.quote(str(script.absolute().relative_to(Path.cwd())))
        except ValueError:
            return shlex.quote(str(script))
    return f"{shlex.quote(sys.executable)} -m ebbtide"
