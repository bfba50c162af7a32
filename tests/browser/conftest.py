"""Fixtures for tests of the web view in Chromium, on a real daemon.

They need the extra `browser`, a Chromium of the system and the built view (`make view`), and skip where one is missing,
but not in CI. The view's policy forbids `wait_for_function`: wait for an element instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

import build_view
from tests.browser.visit import Visit, visiting
from tests.support.node import skip_locally
from tests.support.process import Daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without windows.

    Playwright runs an event loop in this thread while it is open, so it must not outlive the file: asynchronous tests
    of other files would fail.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if find_spec("playwright") is None:
        skip_locally("playwright is not installed; `pip install -e '.[browser]'` installs it")
    if program is None:
        skip_locally("Chromium is not installed")
    if not build_view.is_current():
        skip_locally("the web view is not built from the present sources; `make view` builds it")
    from playwright.sync_api import sync_playwright

    # Chromium refuses to run as root with its sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=arguments)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, daemon: Daemon) -> Iterator[Visit]:
    """A tab at the daemon. The test fails on any message in its console and any request to another origin."""
    with visiting(browser, daemon.url) as opened:
        yield opened
