"""Times as they are typed: days belong to a stretch whole, times of day are exact, zones are obeyed."""

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
def test_a_stretch_is_typed(typed: str, begin: int, end: int) -> None:
    """From the first moment of a day, and to its last; a time of day is the time it says, in UTC or its zone."""
    assert (begin_ms(typed), end_ms(typed)) == (begin, end)


def test_a_stretch_of_nothing_is_refused() -> None:
    """What ends before it begins is told by the names of both options, as usage."""
    check_range(None, 5)
    check_range(begin_ms("2025-05-01"), end_ms("2025-05-01"))
    with pytest.raises(Failure) as caught:
        check_range(begin_ms("2025-05-03"), end_ms("2025-05-01"))
    assert caught.value.code == ExitCode.USAGE
    assert caught.value.message.startswith("--until is over before --since begins")


@pytest.mark.parametrize("typed", ["", "May", "2023-13-01", "08.05.2023", "9999-12-31"])
def test_what_is_no_time_is_refused(typed: str) -> None:
    """A text that names no day or time, or a day that nothing follows, is a fault of the command line."""
    with pytest.raises(typer.BadParameter):
        end_ms(typed)
