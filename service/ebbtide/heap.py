"""The heap of the C library: what glibc has to be told. With another C library all of this does nothing.

Opening an LMDB environment takes 2 MB of zeroes, of which hardly any is ever used. Fresh from the operating
system they cost nothing; in memory that was used before, every page must be cleared, and stays. Left to itself,
glibc uses memory again for whatever is as large as something that was ever freed: from the first close of an
agent on, every opening would hold 2 MB, twenty times what an open agent holds otherwise. Therefore a store is
opened within `fresh_pages()`; and so is whatever grows by doubling once and then stays.

For everything else used memory is the better one: arrays that come and go within a recall would spend their
time on page faults. So it is kept, up to a bound, and `give_back()` is for when agents were closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator

MIB = 1 << 20

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Names of options, as in <malloc.h>."""

FRESH_FROM_BYTES = MIB
"""Within `fresh_pages`, whatever is at least this large comes from the operating system."""

LARGE_BYTES = 8 * MIB
"""At other times: more than one array of all but the largest agents."""

KEPT_BYTES = 16 * MIB
"""Most free memory kept at the end of an arena."""

ARENAS = 2
"""Python's threads take turns, so more arenas than this only hold more free memory."""

_lock = threading.Lock()
_openings = {"count": 0}


def _c_function(name: str) -> Callable[..., int] | None:
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return function


_set_option = _c_function("mallopt")
_trim = _c_function("malloc_trim")


def configure_heap() -> None:
    """Set the bounds of this module for the process. Idempotent."""
    if _set_option is not None:
        _set_option(ARENA_MAX, ARENAS)
        _set_option(TRIM_THRESHOLD, KEPT_BYTES)
        _set_option(MMAP_THRESHOLD, LARGE_BYTES)


@contextlib.contextmanager
def fresh_pages() -> Iterator[None]:
    """Take what is large from the operating system for the length of a block, on whatever thread."""
    _count_opening(1)
    try:
        yield
    finally:
        _count_opening(-1)


def _count_opening(step: int) -> None:
    with _lock:
        _openings["count"] += step
        if _set_option is not None:
            _set_option(MMAP_THRESHOLD, FRESH_FROM_BYTES if _openings["count"] else LARGE_BYTES)


def give_back() -> None:
    """Return free memory to the operating system. Blocks for a few milliseconds; not for the event loop."""
    if _trim is not None:
        _trim(0)
