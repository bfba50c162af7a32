"""Measure the web view in a browser: `make bench-web`, or `python -m benchmarks.web --quick`.

A daemon serves the view, and Chromium draws memories of several sizes without a GPU. The times of a picture are ratios
to those of an empty page, best of five in turns. For sizes that no daemon of this benchmark reaches in minutes,
the benchmark supplies the map and the history, over HTTP and compressed as a daemon sends them. The targets are in the
table; the exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.processes import running
from ebbtide.rest.view_files import FILES, is_built
from tests.support.chromium import chromium, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

RUNS: Final = 5
LIVING: Final = 1_300
"""Living memories of a large agent: what default parameters keep at any age."""

SLIDER_STEPS: Final = 30
TIMEOUT_MS: Final = 60_000

EMPTY: Final = "<!doctype html><html data-drawn><body></body></html>"
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
class Row:
    """One line of the table."""

    name: str
    value: str
    target: str
    is_met: bool


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


def agent_of(count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the map and the history of an agent that made `count` memories, as the routes send them."""
    chance = np.random.default_rng(count)
    ids = np.arange(1, count + 1)
    passes = max(10, count // 5)
    born = ids * passes // (count + 1)
    ended = np.where(ids <= count - LIVING, np.minimum(passes, born + chance.integers(100, 300, count)), 0)
    lengths = chance.integers(40, 200, count)
    times = chance.integers(0, 4, count)
    owner = np.repeat(ids, times)
    step = np.concatenate([np.arange(1, one + 1) for one in times]) if count else owner
    at = born[owner - 1] + 40 * step
    kept = (at <= passes) & ((ended[owner - 1] == 0) | (at < ended[owner - 1]))
    living = ended == 0
    forgotten = ~living
    shortened = {
        "id": owner[kept],
        "pass_number": at[kept],
        "length": np.maximum(1, lengths[owner - 1] >> step)[kept],
    }
    left = lengths.copy()
    for row, length in zip(shortened["id"], shortened["length"], strict=True):
        left[row - 1] = length
    page = {"last_event": 1, "next_page_token": ""}
    nodes = {
        "id": ids[living],
        "kind": np.zeros(living.sum(), int),
        "importance": chance.random(living.sum()).round(3),
        "length": left[living],
        "original_length": lengths[living],
        "scans": times[living],
        "created_at": ids[living],
    }
    no_links: dict[str, Any] = {"source": [], "target": [], "relation": [], "strength": []}
    whole_map = {
        **page, "pass_number": passes, "next_node": count + 1, "focus": ids[-5:], "kinds": ["episode"],
        "nodes": nodes, "relations": [], "links": no_links,
    }  # fmt: skip
    history = {
        **page, "first_pass": 0, "passes": passes, "complete": True,
        "born": {"id": ids, "after": born, "length": lengths},
        "shortened": shortened,
        "forgotten": {"id": ids[forgotten], "pass_number": ended[forgotten]},
        "erased": {"id": [], "event": []},
        "focus": {"pass_number": [], "offset": [], "id": []},
    }  # fmt: skip
    return _listed(whole_map), _listed(history)


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _listed(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@contextmanager
def _supplied(bodies: dict[str, Any]) -> Iterator[str]:
    """Serve compressed JSON by path, and yield the address.

    Playwright can supply a body too, but it takes longer to pass on the history of 100,000 lives than the view takes to
    show it.
    """
    packed = {path: gzip.compress(json.dumps(body).encode(), 4) for path, body in bodies.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = packed[self.path]
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _from(address: str) -> Callable[[Route], None]:
    return lambda route: route.continue_(url=address)


@contextmanager
def _page(browser: Browser, url: str, count: int) -> Iterator[Page]:
    whole_map, history = agent_of(count)
    bodies = {"/map": whole_map, "/history": history, "/nodes": {"nodes": [], "next_page_token": ""}}
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    with _supplied(bodies) as address:
        try:
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.route("**/empty", lambda route: route.fulfill(content_type="text/html", body=EMPTY))
            for path in bodies:
                page.route(f"**/v1/agents/large{path}*", _from(address + path))
            page.route("**/v1/agents/large/events*", lambda route: route.abort())
            page.goto(f"{url}/ui/")
            yield page
        finally:
            context.close()


def _opening_ms(page: Page, address: str) -> float:
    """Return the time from navigation to the first picture."""
    page.goto(address, wait_until="commit")
    page.wait_for_selector("html[data-drawn]", state="attached")
    return float(page.evaluate("() => performance.now()"))


def _ratio(page: Page, url: str) -> float:
    """Return how many times as long the picture takes as an empty page, best of RUNS each, in turns.

    The page is left at the picture.
    """
    addresses = (f"{url}/empty", f"{url}/ui/a/large")
    times = [[_opening_ms(page, address) for address in addresses] for _ in range(RUNS)]
    empty, picture = map(min, zip(*times, strict=True))
    return picture / empty


def _measured(browser: Browser, url: str, count: int, ratio: float, frame_ms: float | None) -> list[Row]:
    with _page(browser, url, count) as page:
        found = _ratio(page, url)
        rows = [Row(f"first picture of {count:,} lives", f"{found:.1f} ×", f"≤ {ratio:g} ×", found <= ratio)]
        if frame_ms is not None:
            frame = statistics.median(page.evaluate(SLIDE, SLIDER_STEPS))
            rows.append(
                Row(f"slider at {count:,}", f"{frame:.0f} ms", f"≤ {frame_ms:g} ms", frame <= frame_ms)
            )
        return rows


def measure(*, quick: bool) -> list[Row]:
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
        Row("scripts of the first page, compressed", f"{first / 1000:.1f} kB", "≤ 45 kB", first <= 45_000),
        Row("styles, compressed", f"{styles / 1000:.1f} kB", "≤ 6 kB", styles <= 6_000),
        Row("largest script loaded later", f"{later / 1000:.1f} kB", "≤ 35 kB", later <= 35_000),
    ]
    sizes: list[tuple[int, float, float | None]] = [(5_000, 2, 20)]
    if not quick:
        sizes += [(50_000, 4, 50), (100_000, 6, None)]
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder)) as daemon,
        sync_playwright() as playwright,
    ):
        browser = launched(playwright, program, "--disable-gpu")
        for count, ratio, frame_ms in sizes:
            rows += _measured(browser, daemon.url, count, ratio, frame_ms)
        browser.close()
    return rows


def main() -> int:
    """Print the table. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="Measure the web view in Chromium.")
    parser.add_argument("--quick", action="store_true", help="only 5,000 lives")
    rows = measure(quick=parser.parse_args().quick)
    table = Table("what", "measured", "target", "")
    for row in rows:
        table.add_row(row.name, row.value, row.target, "met" if row.is_met else "missed")
    Console().print(table)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
