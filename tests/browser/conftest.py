"""Fixtures for tests of the web view in Chromium, on a real daemon.

They need the extra `browser`, a Chromium of the system and the built view (`make view`), and skip where one is missing,
but not in CI. The view's policy forbids `wait_for_function`: wait for an element instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

import build_view
from ebbtide_client import Client
from tests.browser.lived import live_through
from tests.browser.visit import Visit, visiting
from tests.support.chromium import chromium, launched
from tests.support.node import skip_locally
from tests.support.process import Daemon, running_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without windows.

    Playwright runs an event loop in this thread while it is open, so it must not outlive the file: asynchronous tests
    of other files would fail.
    """
    program = chromium()
    if find_spec("playwright") is None:
        skip_locally("playwright is not installed; `pip install -e '.[browser]'` installs it")
    if program is None:
        skip_locally("Chromium is not installed")
    if not build_view.is_current():
        skip_locally("the web view is not built from the present sources; `make view` builds it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = launched(playwright, program)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, daemon: Daemon) -> Iterator[Visit]:
    """A tab at the daemon. The test fails on any message in its console and any request to another origin."""
    with visiting(browser, daemon.url) as opened:
        yield opened


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with the agent `ann`, which has shortened and forgotten memories."""
    with running_daemon(tmp_path_factory.mktemp("lived")) as daemon, Client(daemon.url) as client:
        live_through(client, "ann")
        yield daemon


@pytest.fixture
def client(lived: Daemon) -> Iterator[Client]:
    """A client of the daemon."""
    with Client(lived.url) as client:
        yield client


@pytest.fixture
def tab(browser: Browser, lived: Daemon) -> Iterator[Visit]:
    """A tab in English at the daemon, checked at its end."""
    with visiting(browser, lived.url, locale="en-US") as visit:
        yield visit
