"""axe finds no violation on any screen, in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ebbtide_client import Client
from tests.browser.visit import visiting
from tests.support.process import ROOT, Daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ("", "/m/{node}", "/search?q=Lisbon", "/live", "/review", "/forget", "/play")


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.full)])
def test_no_screen_has_a_barrier(browser: Browser, lived: Daemon, theme: str) -> None:
    """Names, contrast, order and roles are as WCAG requires, as far as axe can tell."""
    with Client(lived.url) as client:
        node = client.list_nodes("ann").nodes[0].id
    # The policy of the page would not let axe in.
    with visiting(browser, lived.url, bypass_csp=True, color_scheme=theme, locale="en-US") as visit:
        for path in ("/ui/", *(f"/ui/a/ann{screen.format(node=node)}" for screen in SCREENS)):
            visit.open(path)
            visit.page.wait_for_selector("main h1", state="attached")
            visit.page.wait_for_load_state("networkidle" if path == "/ui/" else "load")
            visit.page.add_script_tag(path=AXE)
            # The checks that pass are only counted, so axe need not describe each of their elements.
            found = visit.page.evaluate("() => axe.run({resultTypes: ['violations']})")
            problems = [(one["id"], [node["target"] for node in one["nodes"]]) for one in found["violations"]]
            assert problems == [], path
            assert len(found["passes"]) > 10
