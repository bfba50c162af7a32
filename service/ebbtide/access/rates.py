"""Rates: token buckets, one for each name, so many at most.

A bucket holds as much as may come at once and is refilled steadily; a request takes one out, and finding none is told
how long to wait. When there are too many buckets the one that was not used for longest goes: it is full again, or
nearly, unless very many ask at once.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

MOST_BUCKETS = 10_000
"""About 2 MB."""

OWN_BITS = 64
"""Bits of an IPv6 address that are given to one owner; the others that owner chooses freely."""


def remote_of(address: str) -> str:
    """What counts as one remote: an IPv4 address, the network of an IPv6 one; whatever is no address, together."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> OWN_BITS << OWN_BITS))


class Buckets:
    """Token buckets by name."""

    def __init__(self, burst_s: float, most: int = MOST_BUCKETS) -> None:
        self._burst_s = burst_s
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What a bucket held, and when."""

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, per_s: float, now_s: float) -> float:
        """Take one from a bucket; 0, or where there is none, the seconds until there is."""
        size = max(1.0, per_s * self._burst_s)
        level, since_s = self._levels.get(name, (size, now_s))
        level = min(size, level + max(0.0, now_s - since_s) * per_s)
        wait_s = 0.0 if level >= 1.0 else (1.0 - level) / per_s
        self._levels[name] = (level - 1.0 if wait_s == 0.0 else level, now_s)
        self._levels.move_to_end(name)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait_s
