"""A small disk: a file system of its own in memory, which can be filled to the last byte."""

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
    """A small file system of its own in memory."""
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
    """Leave no more than so many bytes of room on a small disk; the file that takes it up."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while shutil.disk_usage(disk).free - but >= size:
                    file.write(bytes(size))
    return filler
