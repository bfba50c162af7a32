"""Format generated code as the project's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.tidy.pages import ROOT


def formatted(text: str, path: Path) -> str:
    """Return the code with sorted imports, simple fixes and the project's format, as if it were stored at `path`."""
    for options in (["check", "--fix-only", "--unsafe-fixes", "--exit-zero"], ["format"]):
        command = [sys.executable, "-m", "ruff", *options, "--quiet", "--stdin-filename", str(path), "-"]
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text
