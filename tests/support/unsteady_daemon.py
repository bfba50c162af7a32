"""`ebbtide serve` with a wall clock that is wrong, and a model that may return nonsense.

The file `<data directory>.clock` contains the error of the clock in seconds. The model returns nonsense for texts with
the word `nonsense` while the file `<data directory>.nonsense` exists.

Run as `python -m tests.support.unsteady_daemon serve …`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ebbtide.cli.app import main
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import BadReply, Segment, Utterance

MODULE = "tests.support.unsteady_daemon"


def clock_file(data_dir: Path) -> Path:
    """Return the file with the error of the clock in seconds. Replace it by a rename."""
    return data_dir.with_name(f"{data_dir.name}.clock")


def nonsense_file(data_dir: Path) -> Path:
    """Return the file that makes the model return nonsense while it exists."""
    return data_dir.with_name(f"{data_dir.name}.nonsense")


def set_clock(data_dir: Path, offset_s: float) -> None:
    """Set the clock of a running daemon."""
    fresh = clock_file(data_dir).with_suffix(".new")
    fresh.write_text(str(offset_s))
    fresh.replace(clock_file(data_dir))


if __name__ == "__main__":
    place = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    plain = BuiltinModel.segment

    real_time_ns = time.time_ns

    def time_ns() -> int:
        offset_s = float(clock_file(place).read_text()) if clock_file(place).exists() else 0.0
        return real_time_ns() + round(offset_s * 1000) * 1_000_000

    async def segment(self: BuiltinModel, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        if nonsense_file(place).exists() and any("nonsense" in message.text for message in messages):
            raise BadReply("nonsense")
        return await plain(self, messages, max_chars=max_chars)

    # The whole process gets this wall clock; the monotonic clock does not change.
    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
    BuiltinModel.segment = segment  # type: ignore[method-assign]
    main()
