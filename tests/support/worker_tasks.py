"""Functions for the tests of worker processes: they take too long, allocate too much, crash or fail."""

from __future__ import annotations

import os
import re
import signal
import time

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.text_caches import text_cache


def whose(text: str) -> int:
    """Return the id of the process that works on the text."""
    return os.getpid()


def backtrack(text: str) -> bool:
    """Match in exponential time in one C call, which keeps the interpreter lock."""
    return re.match(r"(?:a+)+$", text) is not None


def sleep(text: str, seconds: float) -> None:
    """Wait without using the processor."""
    time.sleep(seconds)


def allocate(text: str, size: int) -> int:
    """Allocate this many bytes at once."""
    return len(bytearray(size))


KEPT: list[bytearray] = []


def keep(text: str, size: int) -> int:
    """Allocate this many bytes and keep them."""
    KEPT.append(bytearray(b"x") * size)
    return os.getpid()


def refuse(text: str) -> None:
    """Raise an error with every field."""
    raise InvalidRequest(
        "not this text",
        reason="TEXT_TOO_LONG",
        metadata={"limit": "5"},
        violations=[FieldViolation("messages[0].content", "too long")],
        retry_after_s=1.5,
    )


def fail_strangely(text: str) -> None:
    """Raise an exception that cannot be pickled, whose message repeats the text."""

    class Local(Exception):
        pass

    raise Local(text)


def crash(text: str, number: int = signal.SIGKILL) -> None:
    """End the process at once, by a signal."""
    os.kill(os.getpid(), number)


def crash_once(text: str, marker: str) -> str:
    """End the process at the first call and return at the next one."""
    if not os.path.exists(marker):
        with open(marker, "w", encoding="utf-8"):
            pass
        crash(text)
    return "done"


def print_something(text: str) -> str:
    """Print, as a library may do by accident."""
    print("a line that is no frame")
    return text


@text_cache(8)
def first_read(text: str) -> float:
    """Return the time at which a text was first read, from a cache."""
    return time.monotonic()
