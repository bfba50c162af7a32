"""Measure the web view: `make bench-web`, or `python -m benchmarks.web --quick`.

A daemon serves the view, and Chromium draws memories of several sizes without a GPU and with an empty cache. The times
of a picture are ratios to those of an empty page, best of ten in turns. `web_reads.py` measures what the view costs the
daemon. The targets are in the table; the exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.lives import kept_lives
from benchmarks.plan import Plan
from benchmarks.processes import running
from benchmarks.stores import install
from benchmarks.synthetic import SCALES
from benchmarks.web_reads import Row, build_in_a_clone, history_jobs, map_job, recall_meanwhile, row
from ebbtide.rest.view_files import FILES, is_built
from tests.support.chromium import chromium, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUNS: Final = 10
SLIDER_STEPS: Final = 30
TIMEOUT_MS: Final = 60_000

EMPTY: Final = b"<!doctype html><html data-drawn><body></body></html>"
SLIDE: Final = """
async (steps) => {
  const range = document.querySelector(".slider input");
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  const last = Number(range.max);
  const times = [];
  await frame();
  let begun = performance.now();
  for (let step = 0; step < steps; step++) {
    set.call(range, String(Math.round((last * step) / steps)));
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await frame();
    const now = performance.now();
    times.push(now - begun);
    begun = now;
  }
  return times;
}
"""
"""Moves the slider in each frame, and returns the milliseconds of the frames."""


@dataclass(frozen=True, slots=True)
class Size:
    """Targets for a number of lives: the picture in times of an empty page, and a frame of the slider."""

    count: int
    ratio: float
    frame_ms: float | None


SIZES: Final = (Size(5_000, 2, 20), Size(50_000, 4, 50), Size(100_000, 6, None))


def _sizes() -> tuple[int, int, int]:
    """Return the compressed bytes of the first scripts, of the styles, and of the largest script loaded later."""
    manifest = json.loads((FILES / ".vite" / "manifest.json").read_text("utf-8"))
    entry = next(one for one in manifest.values() if one.get("isEntry"))
    first, waiting = set(), [entry]
    while waiting:
        chunk = waiting.pop()
        if chunk["file"] not in first:
            first.add(chunk["file"])
            waiting += [manifest[name] for name in chunk.get("imports", [])]
    scripts = {one["file"] for one in manifest.values() if one["file"].endswith(".js")}
    styles = {name for one in manifest.values() for name in one.get("css", [])}
    styles |= {one["file"] for one in manifest.values() if one["file"].endswith(".css")}
    return (
        sum(map(_compressed, first)),
        sum(map(_compressed, styles)),
        max(map(_compressed, scripts - first), default=0),
    )


def _compressed(name: str) -> int:
    return len(gzip.compress((FILES / name).read_bytes()))


@contextmanager
def _empty_page() -> Iterator[str]:
    """Serve the empty page, and yield its address.

    It opens in a process of its own, as the view does. Playwright could supply it, but only with a detour of every
    request of the browser through this process.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(EMPTY)))
            self.send_header("cross-origin-opener-policy", "same-origin")
            self.end_headers()
            self.wfile.write(EMPTY)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    try:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        protocol = context.new_cdp_session(page)
        protocol.send("Network.enable")
        protocol.send("Network.setCacheDisabled", {"cacheDisabled": True})
        yield page
    finally:
        context.close()


def _opening_ms(page: Page, address: str) -> float:
    """Return the time from navigation to the first picture."""
    page.goto(address, wait_until="commit")
    page.wait_for_selector("html[data-drawn]", state="attached")
    return float(page.evaluate("() => performance.now()"))


def _ratio(page: Page, empty: str, picture: str) -> float:
    """Return how many times as long the picture takes as an empty page, best of RUNS each, in turns.

    The page is left at the picture.
    """
    _opening_ms(page, picture)  # opens the agent
    times = [[_opening_ms(page, address) for address in (empty, picture)] for _ in range(RUNS)]
    best: list[float] = [min(kind) for kind in zip(*times, strict=True)]
    return best[1] / best[0]


def _pictures(browser: Browser, empty: str, url: str, size: Size) -> list[Row]:
    with _page(browser) as page:
        ratio = _ratio(page, empty, f"{url}/ui/a/{_agent(size.count)}")
        rows = [row(f"first picture of {size.count:,} lives", ratio, size.ratio, "×", digits=2)]
        if size.frame_ms is not None:
            frame = statistics.median(page.evaluate(SLIDE, SLIDER_STEPS))
            rows.append(row(f"slider at {size.count:,}", frame, size.frame_ms, "ms"))
        return rows


def _agent(count: int) -> str:
    return f"lives-{count}"


def measure(plan: Plan) -> list[Row]:
    """Return the rows of the table. Raise SystemExit without Chromium, playwright or a built view."""
    program = chromium()
    if program is None or not is_built(FILES):
        raise SystemExit("Chromium and the built view are needed: apt-get install chromium; make view")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit("playwright is needed: pip install -e '.[browser]'") from None
    first, styles, later = _sizes()
    rows = [
        row("scripts of the first page, compressed", first / 1000, 45, "kB", digits=1),
        row("styles, compressed", styles / 1000, 6, "kB", digits=1),
        row("largest script loaded later", later / 1000, 35, "kB", digits=1),
    ]
    sizes = SIZES[: plan.times(len(SIZES), 1)]
    data_dir = plan.fresh("pictures")
    for size in sizes:
        install(kept_lives(plan.kept, size.count), data_dir, _agent(size.count))
    plan.tell("pictures")
    with running(data_dir) as daemon, _empty_page() as empty, sync_playwright() as playwright:
        browser = launched(playwright, program, "--disable-gpu")
        for size in sizes:
            rows += _pictures(browser, empty, daemon.url, size)
        browser.close()
    plan.tell("reads")
    rows += [map_job(plan), *history_jobs(plan), recall_meanwhile(plan)]
    if plan.is_quick:
        return rows
    plan.tell("a fresh clone")
    return [*rows, build_in_a_clone(plan.fresh("clone"))]


def main() -> int:
    """Print the table. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="Measure the web view in Chromium.")
    parser.add_argument("--quick", action="store_true", help="only 5,000 lives, few repeats, no fresh clone")
    is_quick = parser.parse_args().quick
    console, progress = Console(), Console(stderr=True)
    kept = Path(tempfile.gettempdir()) / "ebbtide-benchmarks"
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=kept) as work:
        rows = measure(
            Plan(kept, Path(work), tuple(SCALES), is_quick, 1, lambda what: progress.print(f"… {what}"))
        )
    table = Table("what", "measured", "target", "")
    for one in rows:
        verdict = {True: "met", False: "missed", None: ""}[one.is_met]
        table.add_row(one.name, one.value, one.target, verdict)
    console.print(table)
    return int(any(one.is_met is False for one in rows))


if __name__ == "__main__":
    sys.exit(main())
