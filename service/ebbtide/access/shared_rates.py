"""Rate limits that the workers of a daemon share: token buckets in memory that every worker inherits.

A bucket is found by a hash of its name, among a few places for that hash; a new name takes the place that was unused
for the longest time. A lock of the file makes a take atomic. It ends with the process that has it.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct

from ebbtide.access.rates import MAX_BUCKETS, level_after

_BUCKET = struct.Struct("<Qdd")
"""The hash of a name, the tokens in its bucket, and the time of that number."""

PLACES = 8
"""Buckets among which a name is searched."""


class SharedBuckets:
    """Token buckets by name, like `Buckets`. Created before the workers."""

    def __init__(self, burst_s: float, most: int = MAX_BUCKETS) -> None:
        self._burst_s = burst_s
        self._groups = max(1, most // PLACES)
        self._file = os.memfd_create("ebbtide-rates", os.MFD_CLOEXEC)
        size = self._groups * PLACES * _BUCKET.size
        os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)

    def take(self, name: str, per_s: float, now_s: float) -> float:
        """Take a token from a bucket and return 0, or return the seconds until there is one."""
        key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) or 1
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            place, found = self._place(key)
            level, wait_s = level_after(found, per_s, self._burst_s, now_s)
            _BUCKET.pack_into(self._memory, place, key, level, now_s)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        return wait_s

    def _place(self, key: int) -> tuple[int, tuple[float, float] | None]:
        """Return the offset for a hash, and its bucket if there is one: tokens and time."""
        first = key % self._groups * PLACES * _BUCKET.size
        oldest, oldest_s = first, float("inf")
        for place in range(first, first + PLACES * _BUCKET.size, _BUCKET.size):
            known, level, since_s = _BUCKET.unpack_from(self._memory, place)
            if known == key:
                return place, (level, since_s)
            if not known:
                return place, None
            if since_s < oldest_s:
                oldest, oldest_s = place, since_s
        return oldest, None


class SharedLimits:
    """The rate limits that hold for all workers together. That of an agent is checked by its owner alone."""

    def __init__(self, burst_s: float) -> None:
        self.by_key = SharedBuckets(burst_s)
        self.by_remote = SharedBuckets(burst_s)
