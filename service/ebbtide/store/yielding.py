"""Resting: long work on a store calls `rest` now and then, which lets requests pass, and ends cancelled work.

The store does not know whom it lets pass, nor why it may be cancelled: the daemon does (`priority.py`,
`verbs/transfers.py`). On the command line `rest` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Rest = Callable[[], None]
"""Called between two small pieces of long work. It takes a few milliseconds at most, or raises to cancel the work."""

ITEMS_BETWEEN = 16
"""Entries of a table looked at, or lines written, without a rest: well below a millisecond."""


def resting(items: Iterable[T], rest: Rest) -> Iterator[T]:
    """The items, with a rest between some of them. None is taken before it is asked for."""
    for count, item in enumerate(items, 1):
        yield item
        if count % ITEMS_BETWEEN == 0:
            rest()
