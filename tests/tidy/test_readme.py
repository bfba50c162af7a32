"""The README is short, and what it tells people to type works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.support.process import Daemon
from tests.tidy.pages import marked_block, read

STATUSES = """
curl() { command curl --max-time 30 --write-out '\\n[%{http_code}]\\n' "$@"; }
"""
"""What makes curl tell the status of every answer."""


def test_quickstart_runs_as_printed(daemon: Daemon) -> None:
    """Every line of the quickstart succeeds, the recall brings back what was remembered, the log holds none of it."""
    if shutil.which("curl") is None and "CI" not in os.environ:
        pytest.skip("curl is not installed")
    port = daemon.url.rpartition(":")[2]
    script = marked_block(read("README.md"), "quickstart").replace("8420", port)
    assert port in script
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", STATUSES + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\[(\d+)\]$", done.stdout, re.MULTILINE) == ["202", "202", "200", "200", "200"]
    recalled = next(line for line in done.stdout.splitlines() if line.startswith('{"text"'))
    assert "I moved to Lisbon in May. My sister Clara helped me." in recalled
    assert "克拉拉下周来里斯本看我。" in recalled
    assert '"digested":true,"passes_done":true' in done.stdout
    assert '"id":"n1"' in done.stdout
    assert "Clara" not in daemon.log
    assert "\\u91cc" not in daemon.log  # 里斯本, as the log would write it


def test_the_answer_shown_is_the_answer_given(daemon: Daemon) -> None:
    """The recall that the README prints is, byte for byte, what the daemon answers."""
    page = read("README.md")
    shown = re.search(r"```json\n(.*?)\n```", page, re.DOTALL)
    assert shown is not None
    bodies = re.findall(r"-d '(\{.*?\})'$", marked_block(page, "quickstart"), re.MULTILINE)
    headers = {"content-type": "application/json"}
    answer = ""
    for verb, body in zip(("remember", "remember", "recall"), bodies, strict=False):
        response = daemon.client.post(f"/v1/agents/ann/{verb}", content=body.encode(), headers=headers)
        answer = response.text
    assert answer == shown[1]


def test_readme_stays_short() -> None:
    """The README is under 200 lines: the rest belongs to its own page."""
    assert len(read("README.md").splitlines()) < 200


def test_the_commands_it_names_exist() -> None:
    """Every `make` target that a page names stands in the Makefile."""
    targets = set(re.findall(r"^(\w+):", read("Makefile"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "docs/memory-model.md", "docs/operating.md"):
        named = set(re.findall(r"(?:^|`)make (\w+)", read(name), re.MULTILINE))
        assert named <= targets, name
