"""Work markers: one empty file for each agent that may have work in hand.

A start looks at one directory and opens only these agents, however many there are. A stale marker is harmless, a
missing one is not: a marker is on disk before the work is.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ebbtide.store.durable import sync_directory
from ebbtide.store.translation import translated


class WorkMarkers:
    """The markers of one data directory, by the names of agents' directories. Methods block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str) -> None:
        """Note durably that an agent may have work in hand."""
        try:
            (self.path / name).touch(mode=0o600)
            sync_directory(self.path)
        except OSError as error:
            raise translated(error, self.path) from error

    def remove(self, name: str) -> None:
        """Note that an agent is idle. Not synced: a stale marker is harmless."""
        with contextlib.suppress(OSError):
            (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Whether an agent is marked."""
        return (self.path / name).exists()

    def names(self) -> list[str]:
        """Every marked directory, in order."""
        return sorted(os.listdir(self.path))
