"""Failures a person can do something about: one sentence and an exit code, never a traceback.

Commands raise `Failure`; errors of the daemon's own tree become one at the edge (`app.main`). Anything else
that escapes is a bug of ours and shows its traceback.
"""

from __future__ import annotations

from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.errors import EbbtideError


class Failure(Exception):
    """Why a command ends early. `hint` says what to do next, where there is something.

    `reason` is that of the error behind it, where there is one; `ends_all` says that it is not about one agent or
    file, so that with the next one it would go the same way.
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
    """The failure for an error raised in this process."""
    return Failure(sentence(error.message), of_error(error.reason, error.http), reason=error.reason)


def sentence(text: str) -> str:
    """The text as a sentence: a capital first, a full stop last."""
    text = text.strip()
    if not text:
        return ""
    # A word with an underscore or a bracket is a field's name and stays as it is written.
    first = text.split(maxsplit=1)[0]
    is_name = any(character in first for character in "_[.:/")
    head = text if is_name else text[0].upper() + text[1:]
    return head if head[-1] in ".!?。" else f"{head}."
