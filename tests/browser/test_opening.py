"""The web view opens in a browser under its policy, with and without API keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ebbtide_client import Client
from tests.browser.visit import Visit, visiting
from tests.support.process import Daemon, running_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHOWN = "#view > *"
"""The first element that the application draws."""


@pytest.mark.parametrize("path", ["/ui", "/ui/", "/ui/a/v1.0", "/ui/a/%E6%9E%97%E6%9C%88/live"])
def test_the_application_starts_at_each_of_its_paths(daemon: Daemon, visit: Visit, path: str) -> None:
    """The page loads its script from the daemon and draws; nothing is written to the console."""
    with Client(daemon.url) as client:
        for agent in ("v1.0", "林月"):
            client.open_agent(agent)
    response = visit.open(path)
    assert response.status == 200
    visit.page.wait_for_selector(SHOWN, state="attached")


def test_the_application_starts_without_a_key(browser: Browser, tmp_path: Path) -> None:
    """With API keys required, a browser still loads the page and its files, which have no data."""
    with (
        running_daemon(tmp_path / "data", {"ACCESS__AUTHENTICATION": "keys"}) as daemon,
        visiting(browser, daemon.url, is_checked=False) as visit,
    ):
        visit.open("/ui/")
        visit.page.wait_for_selector(SHOWN, state="attached")
        # The browser itself writes a refused request of the application to the console.
        assert [text for text in visit.messages if "401" not in text] == []
        assert visit.elsewhere == []


@pytest.mark.parametrize(
    "script",
    [
        "document.body.innerHTML = '<img src=x onerror=alert(1)>'",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))",
        "document.write('<p>')",
    ],
)
def test_the_policy_stops_what_a_fault_of_the_page_could_run(
    browser: Browser, daemon: Daemon, script: str
) -> None:
    """Text cannot become HTML or a script, even for a script of the page itself."""
    from playwright.sync_api import Error

    with visiting(browser, daemon.url, is_checked=False) as visit:
        visit.open("/ui/")
        visit.page.wait_for_selector(SHOWN, state="attached")
        with pytest.raises(Error, match=r"Trusted|policy"):
            visit.page.evaluate(f"() => {{ {script} }}")
        assert visit.page.evaluate("() => typeof window.ran") == "undefined"


def test_another_page_cannot_frame_the_view(browser: Browser, daemon: Daemon) -> None:
    """The browser refuses to show the view in a frame, even in one of the daemon's own pages."""
    with visiting(browser, daemon.url, is_checked=False, bypass_csp=False) as visit:
        visit.page.set_content(f'<iframe src="{daemon.url}/ui/"></iframe>')
        frame = visit.page.frame_locator("iframe")
        assert frame.locator(SHOWN).count() == 0


def test_a_visit_reports_messages_and_requests_to_other_origins(browser: Browser, daemon: Daemon) -> None:
    """The check of every other test fails on a message in the console and on a request that leaves the origin."""
    for script in ("console.log('seen')", "setTimeout(() => { throw new Error('seen') })"):
        with visiting(browser, daemon.url, is_checked=False) as visit:
            visit.open("/ui/")
            with visit.page.context.expect_event("console" if "log" in script else "weberror"):
                visit.page.evaluate(f"() => {{ {script} }}")
            with pytest.raises(AssertionError, match="seen"):
                visit.check()
    with visiting(browser, daemon.url, is_checked=False) as visit:
        elsewhere = daemon.url.replace("127.0.0.1", "localhost")
        visit.page.set_content(f'<img src="{elsewhere}/ui/licences">')
        assert visit.elsewhere == [f"{elsewhere}/ui/licences"]
