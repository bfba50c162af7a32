"""`ebbtide serve` with an event loop and job threads that stall on request, while a file exists.

The file is `<data directory>.stall`. A remembered text `stall HOW SECONDS` stalls the event loop, a recall with that
keyword stalls a job thread. HOW is the name of one of the functions below. Run as
`python -m tests.support.stalling_daemon serve …`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebbtide.cli.app import main
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Segment, Utterance

MODULE = "tests.support.stalling_daemon"


def stall_file(data_dir: Path) -> Path:
    """Return the file that enables stalls while it exists."""
    return data_dir.with_name(f"{data_dir.name}.stall")


def backtrack(_: float) -> None:
    """Keep the interpreter lock for years: a regular expression that backtracks."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def hold(seconds: float) -> None:
    """Keep the interpreter lock for this time, in one C call."""
    all(map((time.monotonic() + seconds).__gt__, iter(time.monotonic, None)))


def spin(seconds: float) -> None:
    """Run Python code, which releases the interpreter lock now and then."""
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        pass


def nap(seconds: float) -> None:
    """Block without the interpreter lock."""
    time.sleep(seconds)


WAYS = {stall.__name__: stall for stall in (backtrack, hold, spin, nap)}


def stall_if_asked(sign: Path, text: str) -> None:
    """Stall if the text is a request for it."""
    asked = re.fullmatch(r"stall (\w+) ([\d.]+)", text)
    if asked and sign.exists():
        WAYS[asked[1]](float(asked[2]))


if __name__ == "__main__":
    sign = stall_file(Path(sys.argv[sys.argv.index("--data-dir") + 1]))
    plain_segment, plain_recall = BuiltinModel.segment, Workspace.recall

    async def segment(self: BuiltinModel, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        for message in messages:
            stall_if_asked(sign, message.text)
        return await plain_segment(self, messages, max_chars=max_chars)

    def recall(self: Workspace, cue: Any) -> Any:
        for keyword in cue.keywords:
            stall_if_asked(sign, keyword)
        return plain_recall(self, cue)

    BuiltinModel.segment = segment  # type: ignore[method-assign]
    Workspace.recall = recall  # type: ignore[method-assign]
    main()
