"""Open files of the command line: inputs that must be regular files, outputs that exist completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raise a Failure for anything else: a pipe may have no end."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise Failure(f"{path} is {kind}, not a file.", ExitCode.BAD_INPUT)
        return path.open("rb")
    except FileNotFoundError:
        raise Failure(f"There is no file {path}.", ExitCode.BAD_INPUT) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", ExitCode.BAD_INPUT) from None


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing. It appears at its path after the block, complete and synced to disk."""
    partial = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        partial.replace(path)
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}.", ExitCode.REFUSED, ends_all=True
        ) from None
    finally:
        partial.unlink(missing_ok=True)
