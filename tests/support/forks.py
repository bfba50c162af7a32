"""Processes that start in milliseconds: forked from a server that has imported everything.

The server has one thread and opens no files of Ebbtide, so each process begins as one that was executed and has
finished its imports. It has a process id and an exit code of its own, and it can be killed. It is not the child of the
test's process. Tests about the start of a process, its memory or its command line execute a real one.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.preloaded"])

ROOT = Path(__file__).parents[2]

PATIENCE_S = 60.0
"""How long a function may take. One that takes longer hangs."""


class Hung(AssertionError):
    """A function did not return."""


class Forked:
    """`python -m MODULE …` in a forked process, with the methods of subprocess.Popen that tests use."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        stdout: Path,
        stderr: Path | None = None,
        stdin: Path | None = None,
    ) -> None:
        """Start the process. Its output is appended to files; `stderr` may be the same file as `stdout`."""
        files = (stdin or Path(os.devnull), stdout, stderr or stdout)
        self.args = [module, *arguments]
        self._process = _CONTEXT.Process(target=_run_module, args=(module, list(arguments), dict(env), files))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raise subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def run_command(
    *arguments: str,
    env: Mapping[str, str],
    module: str = "ebbtide",
    text: str = "",
    timeout_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE …` in a forked process; return its exit code and output, as subprocess.run does."""
    with tempfile.TemporaryDirectory() as folder:
        stdin, stdout, stderr = (Path(folder) / name for name in ("in", "out", "err"))
        stdin.write_text(text, encoding="utf-8")
        process = Forked(module, arguments, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            code = process.wait(timeout_s)
        finally:
            process.kill()
        outputs = (path.read_text(encoding="utf-8") for path in (stdout, stderr))
        return subprocess.CompletedProcess(process.args, code, *outputs)


def run_apart(log: Path, function: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """Run a module-level function in a process of its own; return its exit code and result.

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
    _redirect(Path(os.devnull), log, log)
    try:
        sending.send(("returned", function(*arguments)))
    except BaseException:
        sending.send(("raised", traceback.format_exc()))


def _run_module(
    module: str, arguments: list[str], env: dict[str, str], files: tuple[Path, Path, Path]
) -> None:
    _redirect(*files)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(ROOT)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        # The end of a real process calls these; multiprocessing does not.
        atexit._run_exitfuncs()


def _redirect(stdin: Path, stdout: Path, stderr: Path) -> None:
    """Make the files the standard streams of this process."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, path, flags in ((0, stdin, os.O_RDONLY), (1, stdout, append), (2, stderr, append)):
        descriptor = os.open(path, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  open for as long as the process lives
