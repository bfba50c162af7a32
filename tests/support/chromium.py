"""Chromium of the system, which Playwright drives."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the path of Chromium, or None if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def launched(playwright: Playwright, program: str, *flags: str) -> Browser:
    """Return a running Chromium without windows."""
    # Chromium refuses to run as root with its sandbox.
    unboxed = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=program, args=[*unboxed, *flags])
