"""Requests of a named actor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ebbtide.actor import actor, set_actor


@contextlib.contextmanager
def acting(name: str) -> Iterator[None]:
    """Set the actor within the block."""
    before = actor()
    set_actor(name)
    try:
        yield
    finally:
        set_actor(before)
