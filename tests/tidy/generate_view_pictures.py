"""Write the pictures of the web view in docs/: `make shots`.

An agent lives through the story of the demo, and Chromium draws it. Size, language and colours are fixed; the content
changes only with the story, the engine or the view.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.sync_api import ViewportSize, sync_playwright

from ebbtide.cli.demo.narration import Language
from ebbtide.cli.demo.story import AGENT, Story, demo_settings
from ebbtide.daemon import opened
from ebbtide.han import contains_han
from ebbtide_client import Client
from tests.support.chromium import chromium, launched
from tests.support.process import ROOT, running_daemon

SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}


class Shot(NamedTuple):
    """One picture: its name, the language of story and page, and the colours."""

    name: str
    language: Language
    colours: Literal["dark", "light"]


SHOTS: Final = (
    Shot("web-memory", "en", "dark"),
    Shot("web-memory-zh", "zh", "light"),
)


def main() -> None:
    """Write all pictures."""
    program = chromium()
    assert program is not None, "Chromium is not installed"
    for shot in SHOTS:
        with tempfile.TemporaryDirectory() as folder:
            # Before Playwright runs an event loop in this thread.
            asyncio.run(_live(Path(folder), shot.language))
            with running_daemon(Path(folder)) as daemon:
                _take(program, daemon.url, shot)


def _take(program: str, url: str, shot: Shot) -> None:
    with Client(url) as client:
        nodes = client.list_nodes(AGENT, page_size=1000).nodes
        fitting = [node for node in nodes if contains_han(node.content) == (shot.language == "zh")]
        chosen = max(fitting, key=lambda node: (len(node.rewrites), node.importance))
    with sync_playwright() as playwright:
        browser = launched(playwright, program)
        locale = "zh-CN" if shot.language == "zh" else "en-US"
        page = browser.new_page(viewport=SIZE, color_scheme=shot.colours, locale=locale)
        page.goto(f"{url}/ui/a/{AGENT}/m/{chosen.id}")
        page.wait_for_selector("html[data-drawn]")
        page.wait_for_selector(".changes li")
        page.wait_for_selector(".links .tag")
        page.wait_for_selector(".future .forecast-note:not([role])")
        page.wait_for_timeout(2_000)
        page.screenshot(path=ROOT / "docs" / f"{shot.name}.png")
        browser.close()


async def _live(folder: Path, language: Language) -> None:
    async with opened(demo_settings(folder)) as service:
        async for _ in Story(service, language).events():
            pass


if __name__ == "__main__":
    main()
