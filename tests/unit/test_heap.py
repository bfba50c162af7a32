"""The settings of the C library's heap have the intended effect."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbtide.heap import configure_heap, fresh_pages, trim_heap

MIB = 1 << 20

LIBRARY = ctypes.CDLL(None)

pytestmark = pytest.mark.skipif(not hasattr(LIBRARY, "mallinfo2"), reason="this is told to glibc only")


FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd")
FURTHER_FIELDS = ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class Tally(ctypes.Structure):
    """`struct mallinfo2`, as in <malloc.h>."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (*FIELDS, *FURTHER_FIELDS))


def pieces_from_the_system() -> int:
    """Return how many allocations come directly from the operating system."""
    LIBRARY.mallinfo2.restype = Tally
    count: int = LIBRARY.mallinfo2().hblks
    return count


def allocate(size: int) -> int:
    """Allocate this many bytes and write to all of them."""
    LIBRARY.malloc.restype = ctypes.c_void_p
    address: int = LIBRARY.malloc(ctypes.c_size_t(size))
    ctypes.memset(address, 1, size)
    return address


def free(address: int) -> None:
    """Free an allocation."""
    LIBRARY.free(ctypes.c_void_p(address))


def resident_bytes() -> int:
    """Return the anonymous memory of this process."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{os.getpid()}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def in_a_fresh_process(check: Callable[[], None]) -> None:
    """Run a check in a process with an unused heap, because existing free memory would be used first."""
    code = f"from tests.unit import test_heap; test_heap.{check.__name__}()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def large_is_fresh() -> None:
    """Run the check of the test of `fresh_pages`."""
    configure_heap()
    free(allocate(2 * MIB))
    before = pieces_from_the_system()
    usual = allocate(2 * MIB)
    assert pieces_from_the_system() == before
    with fresh_pages():
        with fresh_pages():
            pass
        fresh = allocate(2 * MIB)
        assert pieces_from_the_system() == before + 1
    free(fresh)
    assert pieces_from_the_system() == before
    again = allocate(2 * MIB)
    assert pieces_from_the_system() == before
    free(usual)
    free(again)


def large_is_fresh_beside_free_pieces() -> None:
    """Run the check of the test with free blocks."""
    configure_heap()
    pieces = [allocate(MIB // 2) for _ in range(16)]
    kept = allocate(1000)
    for piece in pieces:
        free(piece)
    before = pieces_from_the_system()
    with fresh_pages():
        fresh = [allocate(2 * MIB), allocate(MIB + 1)]
    assert pieces_from_the_system() == before + len(fresh)
    usual = allocate(2 * MIB)
    assert pieces_from_the_system() == before + len(fresh)
    for piece in (*fresh, usual, kept):
        free(piece)


def free_goes_back() -> None:
    """Run the check of the test of `trim_heap`."""
    configure_heap()
    pieces = [allocate(MIB) for _ in range(64)]
    for piece in pieces[:-1]:
        free(piece)
    held = resident_bytes()
    trim_heap()
    assert resident_bytes() < held - 50 * MIB
    free(pieces[-1])


def test_large_allocations_are_fresh_within_the_block_only() -> None:
    """Within `fresh_pages`, even after an inner block, 2 MB come from the operating system; otherwise they do not."""
    in_a_fresh_process(large_is_fresh)


def test_large_allocations_are_fresh_despite_free_heap() -> None:
    """Within `fresh_pages`, 2 MB come from the operating system though 8 MB are free; afterwards those are used."""
    in_a_fresh_process(large_is_fresh_beside_free_pieces)


def test_trim_heap_returns_free_memory() -> None:
    """Free memory between used blocks stays with the process until `trim_heap`."""
    in_a_fresh_process(free_goes_back)
