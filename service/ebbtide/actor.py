"""Who asks: a name for the audit log, set where a caller is known and read where a verb begins.

The access layer sets it for the length of a request, to the id of a key; nobody sets it while nothing authenticates
callers. It is read before work goes to another thread or outlives its request, since neither takes it along.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

NO_ACTOR = "-"
"""Who asks where nobody knows."""

_actor: ContextVar[str] = ContextVar("actor", default=NO_ACTOR)


def actor() -> str:
    """Who asks."""
    return _actor.get()


def set_actor(name: str) -> None:
    """Let what is done from here on in this request be somebody's."""
    _actor.set(name)


@contextlib.contextmanager
def acting(name: str) -> Iterator[None]:
    """Let a request be somebody's, for the length of a block."""
    token = _actor.set(name)
    try:
        yield
    finally:
        _actor.reset(token)
