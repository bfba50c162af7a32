"""Resting: long work on a store calls something now and then, by which whoever is in a hurry passes.

The store does not know who that is; the daemon says so (`courtesy.py`), and on the command line nobody is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Rest = Callable[[], None]
"""Called between two small pieces of long work; it may take its time, but not much."""

ITEMS_BETWEEN = 16
"""Entries of a table looked at, or lines written, without a rest: well below a millisecond."""


def resting(items: Iterable[T], rest: Rest) -> Iterator[T]:
    """The items, with a rest between some of them. None is taken before it is asked for."""
    for count, item in enumerate(items, 1):
        yield item
        if count % ITEMS_BETWEEN == 0:
            rest()
