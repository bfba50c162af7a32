"""Rate limits: token buckets, one per name, a bounded number of them.

A bucket contains one token per request of the allowed burst, and refills steadily. A request takes one token; without
one it gets the time to wait. When there are too many buckets, the least recently used one is dropped: it is full again,
or nearly, unless very many names are active at once.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Protocol

MAX_BUCKETS = 10_000
"""About 2 MB."""

OWN_BITS = 64
"""Bits of an IPv6 address that identify its owner, who chooses the others freely."""


def remote_of(address: str) -> str:
    """Return what counts as one remote: an IPv4 address, or the network of an IPv6 one. Other texts count as one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> OWN_BITS << OWN_BITS))


class RateLimits(Protocol):
    """Token buckets by name."""

    def take(self, name: str, per_s: float, now_s: float) -> float:
        """Take a token from a bucket and return 0, or return the seconds until there is one."""


def level_after(
    bucket: tuple[float, float] | None, per_s: float, burst_s: float, now_s: float
) -> tuple[float, float]:
    """Take a token from a bucket, given by its tokens and their time. Return its tokens and the time to wait.

    A bucket that does not exist is full.
    """
    size = max(1.0, per_s * burst_s)
    level, since_s = bucket or (size, now_s)
    level = min(size, level + max(0.0, now_s - since_s) * per_s)
    wait_s = 0.0 if level >= 1.0 else (1.0 - level) / per_s
    return (level if wait_s else level - 1.0), wait_s


class Buckets:
    """Token buckets by name."""

    def __init__(self, burst_s: float, most: int = MAX_BUCKETS) -> None:
        self._burst_s = burst_s
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The content of a bucket, and its time."""

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, per_s: float, now_s: float) -> float:
        """Take a token from a bucket and return 0, or return the seconds until there is one."""
        level, wait_s = level_after(self._levels.get(name), per_s, self._burst_s, now_s)
        self._levels[name] = (level, now_s)
        self._levels.move_to_end(name)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait_s
