"""Caches of results by text, which deletions clear.

A function that reads texts of users is cached with `text_cache` and not with `functools.lru_cache`, so that a deleted
text does not stay in a cache. The caches belong to the process and thus to all its agents. They are cleared as a whole:
it is rare, and they fill again with the next request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_CLEARS: Final[list[Callable[[], None]]] = []


def text_cache(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the last `size` results of a function of texts, until the caches are cleared."""

    def cached(function: Callable[P, T]) -> Callable[P, T]:
        found = lru_cache(maxsize=size)(function)
        _CLEARS.append(found.cache_clear)
        return cast("Callable[P, T]", found)

    return cached


def clear_text_caches() -> None:
    """Remove every text from the caches of this process."""
    for clear in _CLEARS:
        clear()
