"""Failures that a person can act on: one sentence and an exit code, never a traceback.

Commands raise `Failure`. `app.main` turns errors of the daemon's own code into one. Any other exception is a bug and
shows its traceback.
"""

from __future__ import annotations

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
    return Failure(sentence(error.message), of_error(error.reason, error.http), reason=error.reason)


def sentence(text: str) -> str:
    """Return the text with a capital letter first and a full stop last."""
    text = text.strip()
    if not text:
        return ""
    # A word with an underscore or a bracket is the name of a field and stays as it is.
    first = text.split(maxsplit=1)[0]
    is_name = any(character in first for character in "_[.:/")
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
