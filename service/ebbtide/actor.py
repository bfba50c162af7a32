"""The actor of a request, for the audit log: set after authentication, read when a verb begins.

The access layer sets it for a request to the id of the API key. Without authentication it stays unset. It must be read
before work moves to another thread or outlives the request, because a context variable does not follow.
"""

from __future__ import annotations

from contextvars import ContextVar

NO_ACTOR = "-"
"""The actor without authentication."""

_actor: ContextVar[str] = ContextVar("actor", default=NO_ACTOR)


def actor() -> str:
    """Return the actor of the current request."""
    return _actor.get()


def set_actor(name: str) -> None:
    """Set the actor for the rest of the current request."""
    _actor.set(name)
