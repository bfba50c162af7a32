"""The sources of the web view: their types, and the tests of what needs no browser."""

from __future__ import annotations

from tests.support.node import ROOT, node, run_node, skip_locally

WEB = ROOT / "web"


def run_tool(path: str, *arguments: str) -> str:
    """Run a tool of the view's lock file with Node."""
    tool = WEB / "node_modules" / path
    if node() is None or not tool.is_file():
        skip_locally("the tools of the web view are not installed; `make view` installs them")
    return run_node(WEB, str(tool), *arguments)


def test_types_agree() -> None:
    """The compiler finds no fault. A text that one language lacks is one."""
    run_tool("typescript/bin/tsc", "--noEmit")


def test_the_spiral_and_the_lives_are_right() -> None:
    """Places on the spiral, frames, and the replay of lives against slow readings of the same story."""
    assert " passed" in run_tool("vitest/vitest.mjs", "run", "--no-color")
