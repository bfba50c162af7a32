"""Times on the command line: days are inclusive, times of day are exact, time zones are applied."""

from __future__ import annotations

import pytest
import typer

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.times import begin_ms, check_range, end_ms

MAY_8_MS = 1_683_504_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("typed", "begin", "end"),
    [
        ("2023-05-08", MAY_8_MS, MAY_8_MS + 24 * HOUR_MS),
        ("2023-05-08T02:00", MAY_8_MS + 2 * HOUR_MS, MAY_8_MS + 2 * HOUR_MS),
        ("2023-05-08T02:00+02:00", MAY_8_MS, MAY_8_MS),
        ("2023-05-08 00:00:00.001Z", MAY_8_MS + 1, MAY_8_MS + 1),
        ("1969-12-31", -24 * HOUR_MS, 0),
    ],
)
def test_intervals_are_parsed(typed: str, begin: int, end: int) -> None:
    """A day runs from its first to its last moment; a time of day is exact, in UTC or its zone."""
    assert (begin_ms(typed), end_ms(typed)) == (begin, end)


def test_an_empty_interval_is_refused() -> None:
    """An interval that ends before it begins is a usage error with the names of both options."""
    check_range(None, 5)
    check_range(begin_ms("2025-05-01"), end_ms("2025-05-01"))
    with pytest.raises(Failure) as caught:
        check_range(begin_ms("2025-05-03"), end_ms("2025-05-01"))
    assert caught.value.code == ExitCode.USAGE
    assert caught.value.message.startswith("--until is over before --since begins")


@pytest.mark.parametrize("typed", ["", "May", "2023-13-01", "08.05.2023", "9999-12-31"])
def test_an_invalid_time_is_refused(typed: str) -> None:
    """A text that is no day or time, or a day without a successor, is a usage error."""
    with pytest.raises(typer.BadParameter):
        end_ms(typed)
