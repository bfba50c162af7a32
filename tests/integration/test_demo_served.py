"""`ebbtide demo --serve` prints the address of the view, lives through the story, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.process import ROOT
from tests.support.waiting import wait_until

ADDRESS = re.compile(r"(http://\S+)/ui/a/(\S+)\?tour=1")


def test_the_demo_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    """The agent at the printed address remembers and is shortened. SIGTERM ends the demo and removes its memory."""
    command = [sys.executable, "-m", "ebbtide", "demo", "--serve", "--fast"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = next(filter(None, map(ADDRESS.search, process.stderr)))
            with httpx.Client(base_url=found[1]) as client:
                agent = f"/v1/agents/{found[2]}"
                wait_until(lambda: client.get(agent).json().get("finished_passes", 0) > 3, timeout_s=60)
                assert client.get("/ui").status_code == 200
            assert [path for path in tmp_path.iterdir() if path.name.startswith("ebbtide-demo-")]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("ebbtide-demo-")]


def test_the_served_demo_prints_no_json() -> None:
    """Two forms of output at once are refused."""
    command = [sys.executable, "-m", "ebbtide", "demo", "--serve", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--serve" in done.stderr and "Traceback" not in done.stderr
