"""A tab of a browser at a daemon, which records what must not happen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

TIMEOUT_MS = 20_000


class Visit:
    """A tab, the messages of its console, and its requests to other origins."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.messages: list[str] = []
        self.elsewhere: list[str] = []

    def open(self, path: str) -> Response:
        """Open a path of the daemon, such as /ui/, and wait until the page is loaded."""
        response = self.page.goto(f"{self.url}{path}")
        assert response is not None
        return response

    def saw(self, request: Any) -> None:
        """Note a request to another origin."""
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob") and f"{place.scheme}://{place.netloc}" != self.url:
            self.elsewhere.append(request.url)

    def check(self) -> None:
        """Assert that the console is empty and that no request left the origin."""
        assert self.messages == [], self.messages
        assert self.elsewhere == [], self.elsewhere


@contextlib.contextmanager
def visiting(browser: Browser, url: str, *, is_checked: bool = True, **options: Any) -> Iterator[Visit]:
    """Open a tab for the length of a block, in a context of its own with these options, and check it at the end."""
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_MS)
    try:
        visit = Visit(context.new_page(), url)
        context.on("console", lambda message: visit.messages.append(message.text))
        context.on("weberror", lambda fault: visit.messages.append(str(fault.error)))
        context.on("request", visit.saw)
        yield visit
        if is_checked:
            visit.check()
    finally:
        context.close()
