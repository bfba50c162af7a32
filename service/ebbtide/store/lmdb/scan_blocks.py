"""Scan counters on disk: packed, so that a pass over thousands of nodes rewrites a few values.

Each value of the table holds the counters of 1024 ids; a block of zeros is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ebbtide.records import ScanColumns, ScanState
from ebbtide.store import layout


class Blocks(Protocol):
    """What is asked of a transaction."""

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """The value under a key."""

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Write a value."""

    def delete(self, table: bytes, key: bytes) -> None:
        """Delete what stands under a key."""


def columns(blocks: Iterable[tuple[bytes, bytes]]) -> ScanColumns:
    """The scan states of every node that was scanned, by id."""
    ids, rows = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=layout.SCAN_ROW)]
    for key, value in blocks:
        block = layout.from_scan_block(value)
        scanned = np.flatnonzero(block["count"])
        ids.append(scanned + layout.from_u64(key) * layout.SCANS_PER_BLOCK)
        rows.append(block[scanned])
    states = np.concatenate(rows)
    return ScanColumns(
        np.concatenate(ids), states["count"].astype(np.int64), states["last_pass"].astype(np.int64)
    )


def count(txn: Blocks, node_ids: Sequence[int] | NDArray[np.int64], pass_number: int) -> None:
    """Count one scan more of these nodes, in this pass."""
    for block, places in _touched(txn, node_ids):
        block["count"][places] += 1
        block["last_pass"][places] = pass_number


def reset(txn: Blocks, node_ids: Sequence[int] | NDArray[np.int64]) -> None:
    """Forget the scans of these nodes."""
    for block, places in _touched(txn, node_ids):
        block[places] = (0, 0)


def put(txn: Blocks, node_id: int, scan: ScanState) -> None:
    """Write one state as it stands."""
    for block, places in _touched(txn, [node_id]):
        block[places] = (scan.count, scan.last_pass)


def _touched(txn: Blocks, node_ids: Sequence[int] | NDArray[np.int64]) -> Iterator[tuple[Any, Any]]:
    """Each block that holds some of the ids, and their places in it; written back after it was changed."""
    ids = np.asarray(node_ids, dtype=np.int64)
    numbers = ids // layout.SCANS_PER_BLOCK
    for number in np.unique(numbers).tolist():
        key = layout.u64(number)
        block = layout.from_scan_block(txn.get(layout.SCANS, key) or layout.EMPTY_SCAN_BLOCK)
        yield block, ids[numbers == number] % layout.SCANS_PER_BLOCK
        if block["count"].any():
            txn.put(layout.SCANS, key, block.tobytes())
        else:
            txn.delete(layout.SCANS, key)
