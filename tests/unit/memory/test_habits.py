"""Habits: four times in three weeks at the same weekday, hour or day of the month."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ebbtide.memory.habits import Habit, Happening, _month_of, habit_of, habits, weekday_of
from ebbtide.records import Source
from ebbtide.statements import Assertion

MONDAY = datetime(2026, 3, 2, 19, 0, tzinfo=UTC)


def at(*days: float, has_hour: bool = False) -> list[Happening]:
    """Return happenings so many days after a Monday evening."""
    return [
        Happening(round((MONDAY + timedelta(days=day)).timestamp() * 1000), has_hour=has_hour) for day in days
    ]


def test_every_monday_is_a_habit() -> None:
    """Four Mondays in 21 days are a habit, three are none, nor are four within 20 days."""
    assert habit_of(at(0, 7, 14, 21)) == Habit(weekday=0)
    assert habit_of(at(0, 7, 21)) is None
    assert habit_of(at(0, 7, 13, 20)) is None
    assert habit_of(at(0, 7, 14, 21, 21.01, 21.02)) == Habit(weekday=0)


def test_the_hour_counts_only_where_it_is_known() -> None:
    """An hour of the words is a habit; the time of the message is none."""
    days = (0, 5, 9, 13, 17, 22)
    assert habit_of(at(*days, has_hour=True)) == Habit(hour=19)
    assert habit_of(at(*days)) is None
    assert habit_of(at(0, 7, 14, 21, has_hour=True)) == Habit(weekday=0, hour=19)


def test_every_month_is_a_habit_on_its_day() -> None:
    """The first days of months, and days around the end of a month, are close together."""
    first = [date(2026, month, 1) for month in (3, 4, 5, 6)]
    days = [(one - MONDAY.date()).days for one in first]
    assert habit_of(at(*days)) == Habit(day=1)
    assert habit_of(at(*(day - (day % 2) for day in days))) == Habit(day=31)


def test_scattered_days_and_one_holiday_are_no_habit() -> None:
    """Different weekdays are no habit, nor are the four days of one weekend and a day of the next month."""
    assert habit_of(at(0, 8, 16, 24, 32)) is None
    assert habit_of(at(0, 1, 2, 3, 28)) is None


def test_the_time_zone_decides_the_day() -> None:
    """Monday 19:00 in London is Tuesday 03:00 in Shanghai."""
    assert habit_of(at(0, 7, 14, 21, has_hour=True), 480) == Habit(weekday=1, hour=3)


@pytest.mark.parametrize(
    ("habit", "english", "chinese"),
    [
        (Habit(weekday=0, hour=7), "every Monday at 7:00", "每周一7点"),
        (Habit(weekday=6), "every Sunday", "每周日"),
        (Habit(hour=7), "every day at 7:00", "每天7点"),
        (Habit(day=31), "every month on day 31", "每月31日"),
    ],
)
def test_a_habit_has_words(habit: Habit, english: str, chinese: str) -> None:
    """A habit is worded in both languages."""
    assert (habit.in_words(False), habit.in_words(True)) == (english, chinese)


def test_days_have_the_weekday_and_month_of_the_calendar() -> None:
    """Weekday and month of a day agree with the calendar, in leap years and across centuries."""
    begin = date(1970, 1, 1)
    for day in [*range(-40_000, 60_000, 17), *range(10_950, 12_500)]:
        shown = begin + timedelta(days=day)
        first, length = _month_of(day)
        assert weekday_of(day) == shown.weekday()
        assert begin + timedelta(days=first) == shown.replace(day=1)
        assert (shown.replace(day=28) + timedelta(days=4)).replace(day=1) == begin + timedelta(
            days=first + length
        )


def ran(entry: int, day: float, **fields: Any) -> Assertion:
    """Return an assertion that the user ran, so many days after a Monday evening."""
    fields = {"kind": "event", "slot": "ran", "object": "5 km"} | fields
    told_at_ms = at(day)[0].time_ms
    return Assertion(
        entry=entry,
        statement=entry,
        subject=1,
        source=Source(entry, 0, 1),
        told_at_ms=told_at_ms,
        known_at_ms=0,
        **fields,
    )


def test_habits_are_found_among_events_of_one_kind() -> None:
    """Events with the same subject, topic and value form a habit; facts, plans, denials and vague times do not."""
    mondays = [ran(entry, 7 * entry) for entry in range(1, 5)]
    others = [ran(10 + entry, 7 * entry, object="10 km") for entry in range(1, 4)]
    assert list(habits([*others, *mondays], lambda entity: entity)) == [(Habit(weekday=0), mondays)]
    for field in ({"kind": "fact"}, {"modality": "planned"}, {"negated": True}, {"granularity": "month"}):
        said = [*mondays[:3], ran(4, 28, **field)]
        assert list(habits(said, lambda entity: entity)) == []


@pytest.mark.parametrize(
    ("granularity", "words", "hour"), [("hour", "this morning", None), ("minute", "6 am", 6), ("hour", "", 6)]
)
def test_a_part_of_the_day_says_no_hour(granularity: str, words: str, hour: int | None) -> None:
    """Events of "this morning" give no hour to a habit; those with a time of the clock, or of the caller, do."""
    said = [
        ran(
            entry,
            7 * entry,
            since_ms=at(7 * entry)[0].time_ms - 13 * 3_600_000,
            granularity=granularity,
            time_words=words,
        )
        for entry in range(1, 5)
    ]
    assert list(habits(said, lambda entity: entity)) == [(Habit(weekday=0, hour=hour), said)]
