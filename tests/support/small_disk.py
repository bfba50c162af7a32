"""A small file system in memory, which can be filled completely."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(path: Path, *options: str) -> Iterator[Path]:
    """Mount a small file system in memory for the length of a block."""
    path.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", ",".join(("size=6m", *options)), "tmpfs", str(path)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"mounting is not permitted: {done.stderr.strip()}")
    try:
        yield path
    finally:
        if subprocess.run(["umount", str(path)]).returncode:
            subprocess.run(["umount", "-l", str(path)], check=True)


def fill_up(disk: Path, *, but: int = 0) -> Path:
    """Fill a disk but for this many bytes. Return the file that fills it."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while shutil.disk_usage(disk).free - but >= size:
                    file.write(bytes(size))
    return filler
