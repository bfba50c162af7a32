"""`ebbtide serve` with a monitor of its event loop: `python -m benchmarks.watched_daemon serve ...`.

The daemon is unchanged. One extra task sleeps for a millisecond again and again, and records how much too late it
woke. On SIGTERM, before the daemon exits, the records are written to `lag_file`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from ebbtide import daemon
from ebbtide.cli.app import main
from ebbtide.settings import Settings

MODULE = "benchmarks.watched_daemon"
NAP_S = 0.001


def lag_file(data_dir: Path) -> Path:
    """Return the path of a daemon's records: pairs of doubles, time (monotonic, s) and lag (ms)."""
    return data_dir.with_name(f"{data_dir.name}.lag")


def read_lags(data_dir: Path, begin_s: float, end_s: float) -> list[float]:
    """Return the lags of the event loop in ms between two moments."""
    notes = array("d", lag_file(data_dir).read_bytes())
    return [lag for moment, lag in zip(notes[::2], notes[1::2], strict=True) if begin_s <= moment <= end_s]


async def _watch(notes: array[float]) -> None:
    while True:
        begun_s = time.monotonic()
        await asyncio.sleep(NAP_S)
        now_s = time.monotonic()
        notes.extend((now_s, (now_s - begun_s - NAP_S) * 1000))


if __name__ == "__main__":
    serve = daemon.serve
    place = lag_file(Path(sys.argv[sys.argv.index("--data-dir") + 1]))

    async def watched(settings: Settings, on_ready: Callable[[str], None] | None = None) -> None:
        """Serve with the monitor."""
        notes = array("d")
        watch = asyncio.create_task(_watch(notes))
        try:
            await serve(settings, on_ready)
        finally:
            watch.cancel()
            place.write_bytes(notes.tobytes())

    daemon.serve = watched
    main()
