"""The TypeScript client in Deno: its tests and the shared cases of the clients.

`make test-integrations` installs Deno and runs this.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.conformance import FOLDER
from tests.support.node import make_project
from tests.support.process import Daemon

INSTALLED = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute() / "deno"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif("EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs Deno"),
]


def test_the_client_works_in_deno(tmp_path: Path, daemon: Daemon) -> None:
    """Every test that Node passes succeeds, against a real daemon."""
    project = make_project(tmp_path)
    # The package of npm has a start script, which is not run; the binary is in a package of its own.
    deno = next((INSTALLED / "node_modules" / "@deno").glob("*/deno"))
    tests = sorted(str(path) for path in (project / "test").glob("*.test.ts"))
    environment = {"EBBTIDE_TEST_URL": daemon.url, "CONFORMANCE_CASES": str(FOLDER), "HOME": str(tmp_path)}
    done = subprocess.run(
        [deno, "test", "--allow-all", "--no-check", "--node-modules-dir=manual", *tests],
        cwd=project,
        env={**os.environ, **environment, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed(?: \(\d+ steps\))? \| 0 failed", done.stdout)
    assert passed is not None and int(passed[1]) > 30, done.stdout + done.stderr
