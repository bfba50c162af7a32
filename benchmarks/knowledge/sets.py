"""Read and validate the labelled sets for structured memory. `README.md` describes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"
LANGUAGES = ("en", "zh")
PARTS = ("dev", "held_out")

Interval = tuple[int | None, int | None]
"""Half open, in milliseconds since the epoch. A missing end is open."""


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a set."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def milliseconds(moment: str | None) -> int | None:
    """Return a date or a local time as milliseconds since the epoch, as if the local time were UTC."""
    if moment is None:
        return None
    return int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)


def _required(moment: str) -> int:
    value = milliseconds(moment)
    assert value is not None
    return value


@dataclass(frozen=True, slots=True)
class TimeCase:
    """A sentence with the interval that its words state, or none."""

    id: str
    lang: str
    part: str
    reading: str
    reference: int
    text: str
    words: str | None
    interval: Interval
    compare: str
    also: tuple[Interval, ...]

    def accepts(self, answer: Interval | None) -> bool:
        """Whether a reader accepts this answer; None means that no time was found."""
        if self.words is None or answer is None or answer == (None, None):
            return self.words is None and answer in (None, (None, None))
        if self.compare == "start":
            return answer[0] == self.interval[0]
        if self.compare == "within":
            return self._contains(answer)
        return answer == self.interval or answer in self.also

    def _contains(self, answer: Interval) -> bool:
        (low, high), (since, until) = self.interval, answer
        assert low is not None
        assert high is not None
        return since is not None and until is not None and low <= since < until <= high


def _interval(since: str | None, until: str | None) -> Interval:
    return milliseconds(since), milliseconds(until)


def read_times() -> list[TimeCase]:
    """Return the expressions of time."""
    return [
        TimeCase(
            **{name: row[name] for name in ("id", "lang", "part", "reading", "text", "words", "compare")},
            reference=_required(row["reference"]),
            interval=_interval(row["since"], row["until"]),
            also=tuple(_interval(*pair) for pair in row["also"]),
        )
        for row in rows_of("times")
    ]
