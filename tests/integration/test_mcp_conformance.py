"""The conformance suite of MCP and its inspector, programs of npm, on a daemon.

`make test-integrations` installs them and runs this. The checks that may fail are in
tests/support/mcp_expected_failures.yml.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.mcp.sets import SETS
from tests.support.keys import new_key
from tests.support.node import node, skip_locally
from tests.support.process import Daemon, running_daemon

INTEGRATIONS = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute()
MODULES = INTEGRATIONS / "mcp" / "node_modules"
CONFORMANCE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"
BASELINE = Path(__file__).parents[1] / "support" / "mcp_expected_failures.yml"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        "EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs the suite"
    ),
]


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of npm."""
    executable = node()
    if executable is None:
        skip_locally("Node is not installed")
    command = [str(executable), str(program), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def open_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon without keys, with an agent that knows something."""
    with running_daemon(tmp_path_factory.mktemp("mcp") / "data") as daemon:
        said = {"messages": [{"role": "user", "content": "我喜欢茉莉花茶。"}]}
        daemon.client.post("/v1/agents/ann/remember", json=said).raise_for_status()
        daemon.client.post("/v1/agents/ann/flush", json={}).raise_for_status()
        yield daemon


def address(daemon: Daemon) -> str:
    """Return the address of the MCP server of an agent."""
    return f"{daemon.url.rstrip('/')}/v1/agents/ann/mcp"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_exactly_the_expected_checks_fail(open_daemon: Daemon, tmp_path: Path, revision: str) -> None:
    """A check that passed before fails the test, and so does an expected failure that passes."""
    options = (
        "--requirements",
        revision,
        "--expected-failures",
        str(BASELINE),
        "-o",
        str(tmp_path / "results"),
    )
    done = run(CONFORMANCE, "server", "--url", address(open_daemon), *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "\nTotal: " in done.stdout
    print(revision, done.stdout[done.stdout.index("\nTotal: ") :].splitlines()[1])


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("query", ["", "?lang=zh", *(f"?tools={name}" for name in SETS[1:])])
def test_the_inspector_accepts_the_schemas(open_daemon: Daemon, tmp_path: Path, query: str, era: str) -> None:
    """The inspector finds no fault in the schemas of any set of tools."""
    options = ("--method", "tools/list", "--strict", "--protocol-era", era)
    done = run(INSPECTOR, "--cli", address(open_daemon) + query, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert json.loads(done.stdout)["tools"]


def test_the_inspector_calls_a_tool_over_standard_input(open_daemon: Daemon, tmp_path: Path) -> None:
    """`ebbtide mcp` serves a client that starts it."""
    program = (sys.executable, "-m", "ebbtide", "mcp", "--agent", "ann", "--url", open_daemon.url)
    options = ("--method", "tools/call", "--tool-name", "recall", "--tool-arg", "query=茉莉花茶")
    done = run(INSPECTOR, "--cli", *program, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "我喜欢茉莉花茶。" in json.loads(done.stdout)["structuredContent"]["text"]


def test_the_inspector_needs_a_key(tmp_path: Path) -> None:
    """With keys on, the inspector works with a key, and ends with the code of a missing one without."""
    data = tmp_path / "data"
    key = new_key(data, "read", "write", agents=["ann"])
    with running_daemon(data, {"ACCESS__AUTHENTICATION": "keys"}) as daemon:
        options = ("--method", "tools/list")
        header = ("--header", f"Authorization: Bearer {key}")
        done = run(INSPECTOR, "--cli", address(daemon), *header, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        done = run(INSPECTOR, "--cli", address(daemon), *options, cwd=tmp_path)
        assert done.returncode == 3, (done.returncode, done.stdout[-2000:] + done.stderr[-2000:])
