"""`ebbtide serve` that kills itself inside a compaction, at the step that stands in a file.

Steps are the writing of each piece of the fresh file, its sync, its taking of the place, and the opening after that.
The file is `<data directory>.step`; what steps there were is told in `<data directory>.steps`. Run as
`python -m tests.support.cut_compaction serve …`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ebbtide.cli.app import main
from ebbtide.store import lmdb_store
from ebbtide.store.lmdb_store import LmdbStore

MODULE = "tests.support.cut_compaction"


def step_file(data_dir: Path) -> Path:
    """Before which step it ends."""
    return data_dir.with_name(f"{data_dir.name}.step")


def steps_file(data_dir: Path) -> Path:
    """The names of the steps that were taken, one a line."""
    return data_dir.with_name(f"{data_dir.name}.steps")


class Steps:
    """Counts steps of compactions; the process does not survive the last one."""

    def __init__(self, data_dir: Path) -> None:
        self._left = int(step_file(data_dir).read_text())
        self._told = steps_file(data_dir)
        self._is_compacting = False

    def step(self, name: str) -> None:
        """One more, if it is within a compaction."""
        if self._is_compacting:
            with self._told.open("a") as told:
                told.write(f"{name}\n")
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a step."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self.step(function.__name__)
            return function(*arguments, **options)

        return counted

    def within(self, compact: Callable[[LmdbStore], None]) -> Callable[[LmdbStore], None]:
        """The compaction in which steps count."""

        def compacting(store: LmdbStore) -> None:
            self._is_compacting = True
            compact(store)
            self._is_compacting = False

        return compacting


if __name__ == "__main__":
    steps = Steps(Path(sys.argv[sys.argv.index("--data-dir") + 1]))
    copy_tables = lmdb_store.copy_tables

    def in_steps(source: Any, tables: Any, into: Any, new_tables: Any, between: Callable[[], bool]) -> bool:
        def counted() -> bool:
            steps.step("piece")
            return between()

        return copy_tables(source, tables, into, new_tables, counted)

    lmdb_store.copy_tables = in_steps
    for name in ("sync_file", "sync_directory", "open_environment"):
        setattr(lmdb_store, name, steps.before(getattr(lmdb_store, name)))
    Path.replace = steps.before(Path.replace)  # type: ignore[method-assign]
    LmdbStore.compact = steps.within(LmdbStore.compact)  # type: ignore[method-assign]
    main()
