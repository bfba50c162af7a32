"""Processes that are measured from outside. Only what was started here is ended here."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clients import KeepAlive
from tests.support.process import ROOT, Daemon


@contextlib.contextmanager
def running(
    data_dir: Path, settings: Mapping[str, Any] | None = None, *, module: str = "ebbtide"
) -> Iterator[Daemon]:
    """`ebbtide serve` on a data directory, ended with the block."""
    daemon = Daemon(data_dir, settings, module=module)
    try:
        yield daemon.start()
        daemon.stop()
    finally:
        daemon.close()


@contextlib.contextmanager
def connected(daemon: Daemon) -> Iterator[KeepAlive]:
    """A connection to a daemon."""
    with KeepAlive(daemon.url) as client:
        yield client


@contextlib.contextmanager
def bare_server(kind: str, store: Path) -> Iterator[str]:
    """A server of bare_servers.py; where it listens."""
    command = [sys.executable, "-m", "benchmarks.bare_servers", kind, str(store)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            place = process.stdout.readline().strip()
            if not place:
                raise RuntimeError(f"the bare {kind} server did not start")
            yield place
        finally:
            process.kill()
