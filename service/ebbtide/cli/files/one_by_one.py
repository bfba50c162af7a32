"""Many things done one after the other, where one that fails keeps no other from being done.

What went wrong is told at once, by name and with its reason, on standard error; at the end the command ends with a code
that says so. What is about all of them (no daemon answers, the folder cannot be written) ends the row instead.
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
"""Reasons of an agent that was listed and is not there any more."""


class OneByOne:
    """A row of things with names, and how it went."""

    def __init__(self, names: Iterable[str], *, are_asked_for: bool) -> None:
        self._names = list(names)
        self._are_asked_for = are_asked_for
        """Whether somebody named them; what was only listed may be gone by its turn."""
        self._failures: dict[str, Failure] = {}
        self.gone: list[str] = []
        self.is_over = False
        """Whether something is in the way of all that is left."""

    def __iter__(self) -> Iterator[str]:
        """The names in turn, until something is in the way of all of them."""
        for name in self._names:
            if self.is_over:
                return
            yield name

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """What fails in the block is told and kept; the only one that was asked for fails as it is."""
        try:
            yield
        except Exception as error:  # whatever a damaged file makes the code below us raise
            failure = _failure(error)
            if self._are_asked_for and len(self._names) == 1:
                raise
            if not self._are_asked_for and failure.reason in GONE:
                self.gone.append(name)
                say(f"{name}: was erased meanwhile.", "dim")
                return
            self._failures[name] = failure
            self.is_over = failure.ends_all
            say(f"{name}: {_told(failure)}", "red")

    @property
    def failed(self) -> list[dict[str, Any]]:
        """What went wrong, for JSON."""
        return [
            {"name": name, "reason": failure.reason, "message": failure.message}
            for name, failure in self._failures.items()
        ]

    def end(self, what: str) -> None:
        """A Failure if anything went wrong: `what` says what did not happen to so many of them.

        Its code is the one of damaged data where any was met, else that of the first that failed.
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


def _told(failure: Failure) -> str:
    is_told = not failure.reason or f"[{failure.reason}]" in failure.message
    return failure.message if is_told else f"{failure.message} [{failure.reason}]"
