"""Processes that are measured from outside. This module ends only processes that it started."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clients import KeepAlive
from ebbtide.access.requirements import SCOPES
from tests.support.keys import KEYS_ON, new_key
from tests.support.process import ROOT, Daemon

WITH_KEYS = {f"ACCESS__{name.upper()}": value for name, value in KEYS_ON.items()}
"""Settings of a daemon that requires API keys."""


@contextlib.contextmanager
def running(
    data_dir: Path, settings: Mapping[str, Any] | None = None, *, module: str = "ebbtide"
) -> Iterator[Daemon]:
    """Run `ebbtide serve` on a data directory for the length of a block.

    `settings` take precedence over the EBBTIDE_* variables of the environment.
    """
    daemon = Daemon(data_dir, {**from_environment(), **(settings or {})}, module=module, executed=True)
    try:
        yield daemon.start()
        daemon.stop()
        # In a kept data directory the log would grow from run to run.
        daemon.log_path.unlink()
    finally:
        daemon.close()


def from_environment() -> dict[str, str]:
    """Return the settings in EBBTIDE_* variables, without the prefix. Only settings have a section and `__`."""
    prefix = "EBBTIDE_"
    return {
        name.removeprefix(prefix): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and "__" in name
    }


@contextlib.contextmanager
def connected(daemon: Daemon, key: str = "") -> Iterator[KeepAlive]:
    """Return a connection to a daemon, which may require a key."""
    with KeepAlive(daemon.url, key) as client:
        yield client


def key_for(data_dir: Path) -> str:
    """Create an API key with all permissions for the agents of a data directory."""
    return new_key(data_dir, *SCOPES)


@contextlib.contextmanager
def bare_server(kind: str, store: Path) -> Iterator[str]:
    """Start a server of bare_servers.py and return its address."""
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
