"""A wall clock that a test moves, for a process that a test starts. The clocks that only count forward stay true.

It replaces functions of the C library, so it needs a C compiler, and has no effect on a program in Go.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("clock_shift.c")


class WallClock:
    """The wall clock of one process, in seconds ahead of the true one."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FILE": str(file)}
        self.shift(0)

    def shift(self, seconds: int) -> None:
        """Set how far the clock is ahead. It jumps at once."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)


def built_library(folder: Path) -> Path:
    """Compile the replacement of the clock into a folder. Skip the test without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler for the replacement of the wall clock")
    library = folder / "clock_shift.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)], check=True)
    return library
