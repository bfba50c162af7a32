"""A benchmark in its quick form, run as a command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.process import ROOT


def run_quickly(
    module: str, given: Mapping[str, Path | str], timeout_s: float, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module --quick` with these options and return what it printed. Fail when the command does."""
    options = [text for name, value in given.items() for text in (name, str(value))]
    done = subprocess.run(
        [sys.executable, "-m", module, "--quick", *options],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done
