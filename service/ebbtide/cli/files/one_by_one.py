"""Work on several agents or files in turn. A failure of one does not stop the others.

Each failure is printed at once on standard error, and the command ends with its exit code. A failure that concerns
all of them (no daemon answers, the folder cannot be written) stops the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ebbtide.cli.console import say
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, as_failure
from ebbtide.errors import EbbtideError

GONE = frozenset({"AGENT_NOT_FOUND", "AGENT_BEING_ERASED"})
"""Reasons for an agent that was deleted after it was listed."""


class OneByOne:
    """Names to work on, and their failures."""

    def __init__(self, names: Iterable[str], *, are_named: bool) -> None:
        self._names = list(names)
        self._are_named = are_named
        """Whether the person named them. Listed ones may be deleted in the meantime."""
        self._failures: dict[str, Failure] = {}
        self.gone: list[str] = []
        self.is_over = False
        """Whether a failure concerns all remaining names."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names until a failure concerns all of them."""
        for name in self._names:
            if self.is_over:
                return
            yield name

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """Print and record a failure in the block. Raise it if only one name was given."""
        try:
            yield
        except Exception as error:  # a damaged file may cause any exception
            failure = _failure(error)
            if self._are_named and len(self._names) == 1:
                raise
            if not self._are_named and failure.reason in GONE:
                self.gone.append(name)
                say(f"{name}: was deleted in the meantime.", "dim")
                return
            self._failures[name] = failure
            self.is_over = failure.ends_all
            say(f"{name}: {_text(failure)}", "red")

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Return the failures as JSON."""
        return [
            {"name": name, "reason": failure.reason, "message": failure.message}
            for name, failure in self._failures.items()
        ]

    def end(self, what: str) -> None:
        """Raise a Failure if there was any; `what` describes it.

        Its code is DAMAGED if any failure has that code, else that of the first failure.
        """
        if not self._failures:
            return
        codes = [failure.code for failure in self._failures.values()]
        code = ExitCode.DAMAGED if ExitCode.DAMAGED in codes else codes[0]
        raise Failure(f"{len(codes):,} {what}.", code)


def _failure(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, EbbtideError):
        return as_failure(error)
    return Failure(f"Unreadable: {type(error).__name__}: {error}", ExitCode.DAMAGED)


def _text(failure: Failure) -> str:
    is_complete = not failure.reason or f"[{failure.reason}]" in failure.message
    return failure.message if is_complete else f"{failure.message} [{failure.reason}]"
