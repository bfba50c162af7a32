"""Shards: which of a daemon's workers owns an agent.

The assignment is a hash of the name of the agent's directory. It is not stored, so a restart with another number of
workers needs no migration.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """The agents of one worker."""

    index: int = 0
    count: int = 1

    def owner_of(self, directory: str) -> int:
        """Return the index of the worker that owns the agent in a directory."""
        if self.count == 1:
            return 0
        digest = hashlib.blake2b(directory.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % self.count

    def owns(self, directory: str) -> bool:
        """Return whether this worker owns the agent in a directory."""
        return self.owner_of(directory) == self.index


WHOLE = Shard()
"""All agents: a daemon without workers."""
