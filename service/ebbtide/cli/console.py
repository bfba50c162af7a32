"""Output: data on standard output, everything for the person on standard error.

A pipe receives data only. With `--json`, standard output contains JSON and nothing else. Colours and progress bars
appear on a terminal only. `rich` is imported when something is formatted: commands that print plain text start faster.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.cli.failures import Failure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

PLAIN_WIDTH = 100
"""Width of tables without a terminal and without COLUMNS."""


def out() -> Console:
    """Return a console on standard output, for results."""
    return _console(is_error_stream=False)


def err() -> Console:
    """Return a console on standard error, for messages."""
    return _console(is_error_stream=True)


def _console(*, is_error_stream: bool) -> Console:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class PlainConsole(Console):
        """A console on which no text can control the terminal."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else without_controls(text), style, control)

    stream = sys.stderr if is_error_stream else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PLAIN_WIDTH
    return PlainConsole(stderr=is_error_stream, width=width, highlight=False, emoji=False)


def say(text: str, style: str = "") -> None:
    """Print a message to the person, without markup."""
    if not sys.stderr.isatty():
        # No colour and no wrapping: the console would add nothing but its import.
        sys.stderr.write(f"{text}\n")
        return
    from rich.text import Text

    err().print(Text(text, style), soft_wrap=True)


def warn_of_open_key(path: Path, what: str) -> None:
    """Warn if every user of the machine may read a file with a key."""
    from ebbtide.store.encryption.keys import is_open_to_all

    if is_open_to_all(path):
        say(f"warning: every user of this machine may read {what}; chmod 600 {path}", "yellow")


def write_text(text: str) -> None:
    """Write a text. On a terminal, replace control characters, which could change the display."""
    if sys.stdout.isatty():
        text = without_controls(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def without_controls(text: str) -> str:
    """Return the text with a replacement character for each control character but tabs and line ends."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return the text with a space for every run of white space, line breaks included."""
    return " ".join(text.split())


def write_json(value: Any) -> None:
    """Write one JSON document on one line."""
    write_text(json.dumps(value, ensure_ascii=False))


def report(failure: Failure) -> None:
    """Print why a command ended early."""
    if not sys.stderr.isatty():
        say(f"error: {failure.message}")
        if failure.hint:
            say(failure.hint)
        return
    from rich.text import Text

    text = Text.assemble(("error: ", "bold red"), failure.message)
    err().print(text, soft_wrap=True)
    if failure.hint:
        say(failure.hint, "dim")


def progress(description: str) -> Progress:
    """Return a progress bar on standard error. It is invisible without a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

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
    """Return a progress bar of bytes on standard error. It is invisible without a terminal."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TransferSpeedColumn,
    )

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
    """Return a time in the local time zone."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
