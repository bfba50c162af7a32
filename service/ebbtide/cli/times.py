"""Times as they are typed at a command line: a day, or a day and a time of day, in UTC unless they say otherwise.

A stretch of time is told by the days it begins and ends with, both of them included; a time of day is exact.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def begin_ms(text: str) -> int:
    """The time a stretch begins with, in ms since the epoch: a day from its first moment on."""
    return _milliseconds(_moment(text))


def end_ms(text: str) -> int:
    """The time before which a stretch ends, in ms since the epoch: a day belongs to it whole."""
    moment = _moment(text)
    try:
        return _milliseconds(moment + timedelta(days=1) if _DAY.fullmatch(text) else moment)
    except OverflowError:
        raise typer.BadParameter(f"{text!r:.40} has no day after it") from None


def check_stretch(since_ms: int | None, until_ms: int | None) -> None:
    """A Failure that names both options where nothing can lie between them."""
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise Failure("--until is over before --since begins: nothing can lie between them.", ExitCode.USAGE)


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
