"""Encrypts an agent anew, in a process that kills itself at the given step: `python -m … DATA_DIR AGENT STEP`.

Steps are everything that reaches the disk: files written, renamed and removed, directories synced, commits.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ebbtide.store import data_directory, durable, keys, lmdb_store, rewrite
from ebbtide.store.data_directory import DataDirectory
from ebbtide.store.seal import MasterKey
from ebbtide.vocabulary import AgentId

MASTER = b"m" * 32


class Steps:
    """Counts steps; the process does not survive the last one."""

    def __init__(self, last: int) -> None:
        self._left = last

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a step."""

        def step(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return step


def main(data_dir: str, agent: str, last: int) -> None:
    """Rewrite, and end early."""
    data = DataDirectory(
        Path(data_dir), initial_map_bytes=1 << 18, max_map_bytes=1 << 26, master_key=MasterKey(MASTER)
    )
    data.acquire()
    steps = Steps(last)
    for module in (data_directory, durable, keys, rewrite):
        for name in ("sync_directory", "replace_file"):
            if hasattr(module, name):
                setattr(module, name, steps.before(getattr(module, name)))
    for name in ("replace", "unlink", "mkdir"):
        setattr(Path, name, steps.before(getattr(Path, name)))
    lmdb_store.LmdbStore.write = steps.before(lmdb_store.LmdbStore.write)  # type: ignore[method-assign]
    rewrite.seal_agent(data, AgentId(agent))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
