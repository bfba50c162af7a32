"""Functions run in fresh processes that start in milliseconds: forked from a server that has imported everything.

The server has one thread and opens no files of Ebbtide, so each process begins as a new one would.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.operations"])

PATIENCE_S = 60.0
"""How long a function may take. One that takes longer hangs."""


class Hung(AssertionError):
    """A function did not return."""


def run_apart(log: Path, function: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """Run a module-level function in a process of its own; its exit code, and what it returned.

    Its output is appended to the log. Raises what the function raised, as AssertionError with the trace.
    """
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(sending, log, function, arguments))
    process.start()
    sending.close()
    try:
        kind, value = "ended", None
        if receiving.poll(PATIENCE_S):
            with contextlib.suppress(EOFError):
                kind, value = receiving.recv()
            process.join(PATIENCE_S)
        if process.exitcode is None:
            raise Hung(f"{function.__name__}{arguments} did not return; its output is in {log}")
        if kind == "raised":
            raise AssertionError(value)
        return process.exitcode, value
    finally:
        if process.exitcode is None:
            process.kill()
            process.join()
        receiving.close()
        process.close()


def _run(sending: Connection, log: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        sending.send(("returned", function(*arguments)))
    except BaseException:
        sending.send(("raised", traceback.format_exc()))
