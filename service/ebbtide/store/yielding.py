"""Yielding: long work on a store calls `pause` between small steps, which lets requests run and cancels the work.

The daemon supplies the function (`priority.py`, `verbs/transfers.py`). On the command line `pause` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Pause = Callable[[], None]
"""Called between two small steps of long work. It returns after a few milliseconds at most, or raises to cancel."""

ITEMS_PER_PAUSE = 16
"""Entries read or lines written between two pauses: well below a millisecond."""


def with_pauses(items: Iterable[T], pause: Pause) -> Iterator[T]:
    """Yield the items, and call `pause` after every few of them."""
    for count, item in enumerate(items, 1):
        yield item
        if count % ITEMS_PER_PAUSE == 0:
            pause()
