"""Fast arithmetic on half-precision vectors: stored in 16 bits, multiplied in 32.

Half precision is accurate enough for unit vectors and takes half the memory, but numpy multiplies it one number at a
time, and its conversion to 32 bits takes four to six times as long as `to_single`. The bits of a half fit into those of
a single, shifted by 13, which yields the number divided by 2^112 because of the different exponent bias. Products
correct this in the other factor.

Many rows are multiplied by numkong, which usearch installs, with the conversion in registers. It needs both factors in
half precision, so a vector becomes the sum of two halves, unless it is rounded to halves already.

One product of n × 256 with a vector, one core, in ms, and memory held:

| n | 32 bits | 16 bits, numpy | converted by numpy | `products` | with numkong | and a rounded vector |
|---|---|---|---|---|---|---|
| 1 000 | 0.02 (1.0 MB) | 1.0 | 0.44 | 0.07 (0.5 MB) | | |
| 6 000 | 0.08 (6.1 MB) | 6.3 | 2.7 | 0.34 (3.1 MB) | 0.28 | 0.15 |
| 20 000 | 1.7 (20 MB) | 21 | 9.1 | 1.6 (10 MB) | 0.9 | 0.5 |
| 100 000 | 10 (102 MB) | 100 | 46 | 7.8 (51 MB) | 4.3 | 2.2 |
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

HalfArray = NDArray[np.float16]
SingleArray = NDArray[np.float32]

STRIDE = 4096
"""Rows converted at a time: 4 MB at 256 numbers, which fits into the caches of a core."""

MANY_ROWS = 4096
"""Rows from which on numkong is imported: 8 ms and 3 MB, once."""

_SMALLER = np.float32(2048)
"""Scale of the second half of a vector, which keeps it out of the range of lower precision."""

_FAST_WITH = ("haswell", "neonhalf")
"""Instruction sets of which numkong needs one to be fast."""

_SCALE = np.float32(2.0**112)
_NOT_COPIES_OF_THE_SIGN = np.int32(~0x70000000)


def _shifted(half_array: HalfArray, into: NDArray[np.int32]) -> SingleArray:
    """Return finite numbers divided by 2^112."""
    # As a signed number the half keeps its sign: copies of it fill the upper bits.
    np.copyto(into, half_array.view(np.int16))
    np.left_shift(into, 13, out=into)
    np.bitwise_and(into, _NOT_COPIES_OF_THE_SIGN, out=into)
    return into.view(np.float32)


def to_single(half_array: HalfArray) -> SingleArray:
    """Return finite halves as singles, exactly."""
    singles = _shifted(half_array, np.empty(half_array.shape, dtype=np.int32))
    singles *= _SCALE
    return singles


def products(rows: HalfArray, factors: SingleArray) -> SingleArray:
    """Return the products of rows (n, d) with a vector (d), in singles."""
    if len(rows) >= MANY_ROWS and (numkong := _numkong()) is not None:
        return _products_by(numkong, rows, factors)
    factors = factors * _SCALE
    found = np.empty(len(rows), dtype=np.float32)
    room = np.empty((min(STRIDE, len(rows)), rows.shape[1]), dtype=np.int32)
    for begin in range(0, len(rows), STRIDE):
        part = rows[begin : begin + STRIDE]
        np.dot(_shifted(part, room[: len(part)]), factors, out=found[begin : begin + len(part)])
    return found


def _products_by(numkong: Any, rows: HalfArray, factors: SingleArray) -> SingleArray:
    larger = factors.astype(np.float16)
    smaller = ((factors - larger.astype(np.float32)) * _SMALLER).astype(np.float16)
    halves = np.stack([larger, smaller] if smaller.any() else [larger])
    found = np.asarray(numkong.cdist(np.ascontiguousarray(rows), halves, metric="dot"))
    together: SingleArray = found[:, 0].astype(np.float32)
    if len(halves) > 1:
        together += found[:, 1] / _SMALLER
    return together


@cache
def _numkong() -> Any:
    """Return the library, or None if it is not installed or would be slow on this processor."""
    try:
        import numkong
    except ImportError:
        return None
    known = numkong.get_capabilities()
    return numkong if any(known.get(name) for name in _FAST_WITH) else None
