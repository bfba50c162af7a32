"""Habits: events that happen again at the same weekday, hour or day of the month.

An event is a habit if it happened on at least four days in a span of at least 21, in four different weeks, days or
months, and if its times are concentrated: the mean of their directions on the circle has a length of at least 0.8. So
four days of one holiday are no habit. The module has no clock and no time zone: the caller gives the offset from UTC.
"""

from __future__ import annotations

import cmath
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide.ids import NodeId
from ebbtide.memory.merge_proposals import fingerprint
from ebbtide.memory.statements import DAY_MS
from ebbtide.statements import Assertion

MIN_TIMES: Final = 4
MIN_DAYS: Final = 21
MIN_CONCENTRATION: Final = 0.8
MINUTE_MS: Final = 60_000
_COARSE: Final = ("week", "month", "season", "year")
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Happening:
    """When something happened, and whether the hour is known."""

    time_ms: int
    has_hour: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """When something happens again and again; at least one of the three is known."""

    weekday: int | None = None
    """0 is Monday."""
    day: int | None = None
    """The day of the month."""
    hour: int | None = None

    def in_words(self, is_chinese: bool) -> str:
        """Return the time in words, such as "every Monday at 7:00" and 每周一7点."""
        if is_chinese:
            when = "每天" if self.day is None else f"每月{self.day}日"
            when = when if self.weekday is None else f"每周{'一二三四五六日'[self.weekday]}"
            return when if self.hour is None else f"{when}{self.hour}点"
        when = "every day" if self.day is None else f"every month on day {self.day}"
        when = when if self.weekday is None else f"every {_WEEKDAYS[self.weekday]}"
        return when if self.hour is None else f"{when} at {self.hour}:00"


def habit_of(happenings: Iterable[Happening], offset_minutes: int = 0) -> Habit | None:
    """Return the habit that happenings of one kind form; None if they form none. A day counts once."""
    by_day: dict[int, int | None] = {}
    for one in sorted(happenings, key=lambda one: (one.time_ms, not one.has_hour)):
        day, rest_ms = divmod(one.time_ms + offset_minutes * MINUTE_MS, DAY_MS)
        if by_day.get(day) is None:
            by_day[day] = rest_ms if one.has_hour else None
    days = sorted(by_day)
    if len(days) < MIN_TIMES or days[-1] - days[0] < MIN_DAYS:
        return None
    months = [_month_of(day) for day in days]
    weekday = _centre([weekday_of(day) / 7 for day in days], days, 4)
    shares = [(day - begin) / length for day, (begin, length) in zip(days, months, strict=True)]
    date = _centre(shares, days, 15)
    exact = [(day, ms) for day in days if (ms := by_day[day]) is not None]
    hour = _centre([ms / DAY_MS for _, ms in exact], [day for day, _ in exact], 1)
    if weekday is None and date is None and hour is None:
        return None
    lengths = sorted(length for _, length in months)
    return Habit(
        None if weekday is None else round(weekday * 7) % 7,
        None if date is None else round(date * lengths[len(lengths) // 2]) % lengths[-1] + 1,
        None if hour is None else round(hour * 24) % 24,
    )


def _centre(shares: Sequence[float], days: Sequence[int], half_cycle_days: int) -> float | None:
    """Return the mean of shares of a cycle; None if they are not concentrated, or from too few cycles.

    Two days are of two cycles if at least half a cycle is between them.
    """
    cycle_count, last = 0, -math.inf
    for day in days:
        if day - last >= half_cycle_days:
            cycle_count, last = cycle_count + 1, day
    if cycle_count < MIN_TIMES:
        return None
    mean = sum(cmath.exp(2j * math.pi * share) for share in shares) / len(shares)
    if abs(mean) < MIN_CONCENTRATION:
        return None
    return cmath.phase(mean) / (2 * math.pi) % 1


def weekday_of(day: int) -> int:
    """Return the weekday of a day since 1970-01-01, a Thursday; 0 is Monday."""
    return (day + 3) % 7


def _month_of(day: int) -> tuple[int, int]:
    """Return (first day, number of days) of the month of a day, both counted from 1970-01-01."""
    # The calendar repeats after 400 years. Years begin in March, so that the leap day is the last one of its year.
    era, of_era = divmod(day + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    begin, end = (153 * month + 2) // 5, (153 * (month + 1) + 2) // 5
    if month == 11:  # February
        following = era * 400 + year + 1
        is_leap = following % 4 == 0 and (following % 100 != 0 or following % 400 == 0)
        end = begin + (29 if is_leap else 28)
    return day - (of_year - begin), end - begin


def habits(
    assertions: Iterable[Assertion], root: Callable[[NodeId], NodeId], offset_minutes: int = 0
) -> Iterator[tuple[Habit, list[Assertion]]]:
    """Yield each habit with the assertions of events that form it, by merged subject, slot and value."""
    by_print: dict[object, list[Assertion]] = defaultdict(list)
    for one in assertions:
        if (
            one.kind == "event"
            and one.modality == "asserted"
            and not one.negated
            and one.granularity not in _COARSE
        ):
            by_print[fingerprint(one, root)].append(one)
    for same in by_print.values():
        if len(same) >= MIN_TIMES:
            habit = habit_of((_happening(one, offset_minutes) for one in same), offset_minutes)
            if habit is not None:
                yield habit, sorted(same, key=lambda one: one.entry)


def _happening(one: Assertion, offset_minutes: int) -> Happening:
    """Return when an event happened. The hour is known if its words or its caller say it, not from the message.

    Words for a part of the day, such as "this morning", say no hour.
    """
    if one.since_ms is None:
        return Happening(one.told_at_ms)
    is_midnight = (one.since_ms + offset_minutes * MINUTE_MS) % DAY_MS == 0
    has_hour = {"minute": True, "hour": not one.time_words, "": not is_midnight}.get(one.granularity, False)
    return Happening(one.since_ms, has_hour)
