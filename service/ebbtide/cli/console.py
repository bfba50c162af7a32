"""Where output goes: data on standard output, everything said to a person on standard error.

So a pipe receives data only, whatever else is on the screen. With `--json` standard output carries JSON and
nothing else. Colours and progress bars appear on a terminal only.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from ebbtide.cli.failures import Failure

PLAIN_WIDTH = 100
"""Width of tables where there is no terminal and COLUMNS is not set."""


def out() -> Console:
    """Standard output, for what was asked for."""
    return _console(is_error_stream=False)


def err() -> Console:
    """Standard error, for what is said beside it."""
    return _console(is_error_stream=True)


def _console(*, is_error_stream: bool) -> Console:
    stream = sys.stderr if is_error_stream else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PLAIN_WIDTH
    return Console(stderr=is_error_stream, width=width, highlight=False, emoji=False)


def say(text: str, style: str = "") -> None:
    """Say something to the person at the terminal, word for word."""
    err().print(Text(text, style), soft_wrap=True)


def warn_of_open_key(path: Path, what: str) -> None:
    """Say so when a file that holds a key may be read by every user of the machine."""
    from ebbtide.store.encryption.keys import is_open_to_all

    if is_open_to_all(path):
        say(f"warning: every user of this machine may read {what}; chmod 600 {path}", "yellow")


def write_text(text: str) -> None:
    """Write data as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def write_json(value: Any) -> None:
    """Write one JSON document on one line."""
    write_text(json.dumps(value, ensure_ascii=False))


def report(failure: Failure) -> None:
    """Tell why a command ended early."""
    text = Text.assemble(("error: ", "bold red"), failure.message)
    err().print(text, soft_wrap=True)
    if failure.hint:
        say(failure.hint, "dim")


def progress(description: str) -> Progress:
    """A progress bar on standard error; invisible where that is no terminal."""
    console = err()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def moving() -> Progress:
    """A progress bar of bytes on standard error; invisible where that is no terminal."""
    console = err()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=32),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def local_time(time_ms: int) -> str:
    """A moment as the person's own clock shows it."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M")


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
