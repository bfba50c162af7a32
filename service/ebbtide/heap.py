"""Settings of the C library's heap (glibc). With another C library these functions do nothing.

Opening an LMDB environment allocates 2 MB of zeroes, most of which are never used. Fresh pages from the operating
system cost nothing. Recycled memory must be cleared, and then stays resident: each time an agent is opened, glibc would
keep
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

MIB = 1 << 20

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Option names from <malloc.h>."""

FRESH_FROM_BYTES = MIB
"""Within `fresh_pages`, blocks of at least this size come from the operating system."""

LARGE_BYTES = 8 * MIB
"""The same limit at other times: more than one array of all but the largest agents."""

KEPT_BYTES = 16 * MIB
"""Most free memory kept at the end of an arena."""

ARENAS = 2
"""Python's threads take turns, so more arenas would only keep more free memory."""

_lock = threading.Lock()
_openings = {"count": 0}


MAX_HELD_PIECES = 64
"""Most blocks occupied within `fresh_pages`: more than fit into KEPT_BYTES."""

_MAPPED = 2
"""Bit in the word before a block that marks it as mapped directly from the operating system (glibc)."""


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
    """Apply the limits of this module to the process. Idempotent."""
    if _set_option is not None:
        _set_option(ARENA_MAX, ARENAS)
        _set_option(TRIM_THRESHOLD, KEPT_BYTES)
        _set_option(MMAP_THRESHOLD, LARGE_BYTES)


@contextlib.contextmanager
def fresh_pages() -> Iterator[None]:
    """Take large blocks from the operating system within the block. Use it on one thread."""
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
    """Allocate, without touching them, all large free blocks of the arena that this thread uses."""
    held: list[int] = []
    if _set_option is None or _allocate is None or _free is None:
        return held
    while len(held) < MAX_HELD_PIECES:
        piece = _allocate(FRESH_FROM_BYTES)
        if piece is None:
            break
        if ctypes.c_size_t.from_address(piece - ctypes.sizeof(ctypes.c_size_t)).value & _MAPPED:
            # It came from the operating system: no large block is free any more.
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
