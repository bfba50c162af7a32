"""The heap of the C library: what glibc has to be told. With another C library all of this does nothing.

Opening an LMDB environment takes 2 MB of zeroes, of which hardly any is ever used. Fresh from the operating
system they cost nothing; in memory that was used before, every page must be cleared, and stays. Left to itself,
glibc uses memory again wherever a free piece is large enough: with every close and opening of an agent it would
hold 2 MB more, twenty times what an open agent holds otherwise. No option forbids that. Therefore a store is
opened within `fresh_pages()`, which holds every large free piece for that long, so that there is none to be used
again; and so is whatever grows by doubling once and then stays.

For everything else used memory is the better one: arrays that come and go within a recall would spend their
time on page faults. So it is kept, up to a bound, and `trim_heap()` is for when agents were closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

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


MAX_HELD_PIECES = 64
"""Pieces held within `fresh_pages` at most: more than KEPT_BYTES has room for."""

_MAPPED = 2
"""Bit in the word before a piece that tells that it comes straight from the operating system (glibc)."""


def _c_function(name: str, result: Any = ctypes.c_int, *arguments: Any) -> Callable[..., Any] | None:
    try:
        function: Any = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    function.restype, function.argtypes = result, arguments
    return cast("Callable[..., Any]", function)


_set_option = _c_function("mallopt", ctypes.c_int, ctypes.c_int, ctypes.c_int)
_trim = _c_function("malloc_trim", ctypes.c_int, ctypes.c_size_t)
_allocate = _c_function("malloc", ctypes.c_void_p, ctypes.c_size_t)
_free = _c_function("free", None, ctypes.c_void_p)


def configure_heap() -> None:
    """Set the bounds of this module for the process. Idempotent."""
    if _set_option is not None:
        _set_option(ARENA_MAX, ARENAS)
        _set_option(TRIM_THRESHOLD, KEPT_BYTES)
        _set_option(MMAP_THRESHOLD, LARGE_BYTES)


@contextlib.contextmanager
def fresh_pages() -> Iterator[None]:
    """Take what is large from the operating system for the length of a block, which stays on its thread."""
    _count_opening(1)
    held = _hold_free_pieces()
    try:
        yield
    finally:
        for piece in held:
            assert _free is not None
            _free(piece)
        _count_opening(-1)


def _hold_free_pieces() -> list[int]:
    """Allocate, untouched, every free piece that is large, of the part of the heap that this thread uses."""
    held: list[int] = []
    if _set_option is None or _allocate is None or _free is None:
        return held
    while len(held) < MAX_HELD_PIECES:
        piece = _allocate(FRESH_FROM_BYTES)
        if piece is None:
            break
        if ctypes.c_size_t.from_address(piece - ctypes.sizeof(ctypes.c_size_t)).value & _MAPPED:
            # It had to be asked of the operating system: nothing large is free any more.
            _free(piece)
            break
        held.append(piece)
    return held


def _count_opening(step: int) -> None:
    with _lock:
        _openings["count"] += step
        if _set_option is not None:
            _set_option(MMAP_THRESHOLD, FRESH_FROM_BYTES if _openings["count"] else LARGE_BYTES)


def trim_heap() -> None:
    """Return free memory to the operating system. Blocks for a few milliseconds; not for the event loop."""
    if _trim is not None:
        _trim(0)
