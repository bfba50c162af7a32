"""Times on the command line: a day, or a day with a time, in UTC unless a time zone is given.

A range of days includes its first and its last day. A time is exact.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def begin_ms(text: str) -> int:
    """Return the start of a range in ms since the epoch. A day starts at midnight."""
    return _milliseconds(_moment(text))


def end_ms(text: str) -> int:
    """Return the exclusive end of a range in ms since the epoch. A day is included completely."""
    moment = _moment(text)
    try:
        return _milliseconds(moment + timedelta(days=1) if _DAY.fullmatch(text) else moment)
    except OverflowError:
        raise typer.BadParameter(f"{text!r:.40} is the last possible day") from None


def check_range(since_ms: int | None, until_ms: int | None) -> None:
    """Raise a Failure if the range is empty."""
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise Failure("--until is over before --since begins, so the range is empty.", ExitCode.USAGE)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r:.40} is neither a day, as 2026-05-31, nor an ISO 8601 time, as 2026-05-31T18:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
