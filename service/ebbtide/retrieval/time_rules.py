"""Rules for the parts of times in English and Chinese: patterns, and what their words mean.

A rule is a pattern and a reader. A reader turns the groups of a match into days, or None. `times.py` joins the parts.
A question and an event refer to the past: a year, a month or a weekday that is not stated is the latest one that has
begun. A plan lies ahead: it is the first one that has not ended. Weeks begin on Monday, seasons are those of the
northern hemisphere, and a winter belongs to the year in which it begins. Lunar holidays and ambiguous dates such as
5/7/2023 are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

HOUR: Final = 60
NOON: Final = 720
DAY: Final = 1_440
"""In minutes."""

MAX_COUNT: Final = 200
"""Largest number of days, weeks, months or years before or after the reference."""

MAX_YEARS_AHEAD: Final = 20
"""A year of two digits that is farther ahead is one of the last century."""

Reading = Literal["question", "event", "plan"]

Span = tuple[int, int]
"""Days or minutes since 1970-01-01, the end exclusive."""


@dataclass(frozen=True, slots=True)
class Now:
    """The reference time on the local clock, and how incomplete times are read."""

    minutes: int
    reading: Reading
    number: int
    year: int
    month: int
    day: int

    @classmethod
    def on(cls, minutes: int, reading: Reading) -> Now:
        """Return a reference time, in minutes since 1970-01-01."""
        return cls(minutes, reading, minutes // DAY, *civil(minutes // DAY))

    @property
    def is_plan(self) -> bool:
        """Whether incomplete times lie ahead."""
        return self.reading == "plan"


Reader = Callable[[dict[str, str], Now], Span | None]


class Rule(NamedTuple):
    """A pattern of a part of a time, and how its groups are read."""

    pattern: re.Pattern[str]
    reader: Reader
    is_weak: bool
    """Whether the part counts only in company."""
    is_capitalised: bool = False
    """Whether it must begin with a capital letter."""


# The calendar: H. Hinnant, "chrono-compatible low-level date algorithms". Years begin in March, so that the
# leap day is the last of a year.


def day_number(year: int, month: int, day: int = 1) -> int:
    """Return the days since 1970-01-01. Months above 12 or below 1 run into other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    shifted = year - (month <= 2)
    leap_days = shifted // 4 - shifted // 100 + shifted // 400
    return 365 * shifted + leap_days + (153 * ((month + 9) % 12) + 2) // 5 + day - 719_469


def civil(number: int) -> tuple[int, int, int]:
    """Return year, month and day of a day number."""
    era, day_of_era = divmod(number + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def months(year: int, month: int, count: int = 1) -> Span:
    """Return the days of some months from one on."""
    return day_number(year, month), day_number(year, month + count)


def _days(year: int, month: int, day: int, until: int) -> Span | None:
    """Return the range of days of a month, or None if the days do not exist."""
    begin, end = months(year, month)
    return (begin + day - 1, begin + until) if 1 <= day <= until <= end - begin else None


def _unit(now: Now, unit: str, offset: int) -> Span:
    """Return the calendar day, week, month, quarter or year at an offset from the current one."""
    if unit in ("week", "weekend"):
        monday = now.number - (now.number + 3) % 7 + 7 * offset
        return (monday + 5 * (unit == "weekend"), monday + 7)
    if unit == "month":
        return months(now.year, now.month + offset)
    if unit == "quarter":
        return months(now.year, now.month - (now.month - 1) % 3 + 3 * offset, 3)
    if unit == "year":
        return months(now.year + offset, 1, 12)
    return now.number + offset, now.number + offset + 1


def _occurrence(which: str, now: Now, in_year: Callable[[int], Span | None]) -> Span | None:
    """Return an occurrence of a yearly period: this one, the last completed, the next, or the latest begun."""
    spans = [span for year in range(now.year - 8, now.year + 9) if (span := in_year(year))]
    if now.is_plan and not which:
        return next((span for span in spans if span[1] > now.number), None)
    if which == "next":
        return next((span for span in spans if span[0] > now.number), None)
    spans.reverse()
    if which == "last":
        return next((span for span in spans if span[1] <= now.number), None)
    begun = next((span for span in spans if span[0] <= now.number), None)
    if which == "this" and not (begun and begun[1] > now.number):
        return in_year(now.year)
    return begun


# Words as numbers.


def by_word(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the meaning of each word from the words of each meaning."""
    return {word: meaning for meaning, several in words.items() for word in several}


_OFFSETS = {
    "before last": -2, "last": -1, "previous": -1, "past": -1, "this past": -1, "this": 0, "next": 1, "coming": 1,
    "this coming": 1, "following": 1, "after next": 2, "上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2,
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2, "去": -1, "今": 0, "明": 1,
}  # fmt: skip
_NAMED_DAYS = {
    "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0,
    "tonight": 0, "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2,
    "大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3,
}  # fmt: skip
_COUNTS = {
    "a": 1, "an": 1, "another": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90,
}  # fmt: skip
_VAGUE = {"few": (2, 5), "several": (3, 7), "couple": (2, 2), "几": (2, 9), "数": (2, 9)}
_SEASONS = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12,
}  # fmt: skip
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
_UNITS |= {"季度": "quarter", "小时": "hour", "钟头": "hour", "分钟": "minute"}
_UNITS |= dict.fromkeys(("night", "morning", "afternoon", "evening"), "day")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DECADES = ("twentie", "thirtie", "fortie", "fiftie", "sixtie", "seventie", "eightie", "ninetie")
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5,
    "last": -1, "最后一": -1,
}  # fmt: skip
_DAY_WORDS = {
    "twenty-first": 21, "twenty-second": 22, "twenty-third": 23, "twenty-fourth": 24, "twenty-fifth": 25,
    "thirty-first": 31, "thirtieth": 30, "twentieth": 20, "twelfth": 12, "eleventh": 11, "tenth": 10, "ninth": 9,
    "eighth": 8, "seventh": 7, "sixth": 6, "fifth": 5, "fourth": 4, "third": 3, "second": 2, "first": 1,
}  # fmt: skip
_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HOLIDAYS = {
    "christmas eve": (12, 24), "christmas": (12, 25), "boxing day": (12, 26), "new year's eve": (12, 31),
    "new year's day": (1, 1), "new year's": (1, 1), "halloween": (10, 31), "valentine's day": (2, 14),
    "平安夜": (12, 24), "圣诞": (12, 25), "元旦": (1, 1), "跨年夜": (12, 31), "情人节": (2, 14), "妇女节": (3, 8),
    "劳动节": (5, 1), "五一": (5, 1), "儿童节": (6, 1), "六一": (6, 1), "教师节": (9, 10), "国庆": (10, 1),
    "十一": (10, 1), "万圣节": (10, 31),
}  # fmt: skip


def number_of(said: str) -> int:
    """Return a number in digits or Chinese numerals (up to 999, or digit by digit), or -1."""
    if said.isdecimal():
        return int(said)
    said = said.replace("廿", "二十")
    if "百" in said:
        hundreds, _, rest = said.partition("百")
        below = number_of(rest.lstrip("零〇")) if rest else 0
        return _DIGITS[hundreds] * 100 + below if hundreds in _DIGITS and below >= 0 else -1
    if "十" in said:
        tens, _, ones = said.partition("十")
        if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
            return -1
        return _DIGITS.get(tens, 1) * 10 + _DIGITS.get(ones, 0)
    return int("".join(str(_DIGITS[digit]) for digit in said)) if all(d in _DIGITS for d in said) else -1


def _month_number(said: str) -> int:
    return _MONTH_NAMES.index(said[:3]) + 1 if said[:3] in _MONTH_NAMES else number_of(said)


def year_of(said: dict[str, str], now: Now) -> int | None:
    """Return the year stated as a number or relative to the current one, or None."""
    if "year" in said:
        year = number_of(said["year"])
        if len(said["year"]) == 2:
            return year + (2000 if year <= now.year % 100 + MAX_YEARS_AHEAD else 1900)
        return year
    return now.year + _OFFSETS[said["of"]] if "of" in said else None


def _which(said: dict[str, str]) -> str:
    word = " ".join(said.get("which", "").split())
    return {"past": "last", "previous": "last", "this past": "last", "following": "next"}.get(word, word)


# Readers turn the groups of a match into days, or None. Those of `EXACT` return minutes.


def read_date(said: dict[str, str], now: Now) -> Span | None:
    """Read a year, a season, a month, or days of a month, with or without the year."""
    year = year_of(said, now)
    if year is not None and not 1900 <= year <= 2100:
        return None

    def in_year(year: int) -> Span | None:
        if "season" in said:
            return months(year, _SEASONS[said["season"]], 3)
        if "month" not in said:
            return months(year, 1, 12)
        month = _month_number(said["month"])
        if not 1 <= month <= 12:
            return None
        if "day" not in said:
            return months(year, month)
        day = _DAY_WORDS.get(said["day"]) or number_of(said["day"])
        return _days(year, month, day, number_of(said["until"]) if "until" in said else day)

    return in_year(year) if year is not None else _occurrence(_which(said), now, in_year)


def _read_day_month_year(said: dict[str, str], now: Now) -> Span | None:
    """Read two numbers and a year if only one of the two can be the month, or both are equal."""
    month, day = sorted((int(said["first"]), int(said["second"])))
    if not 1 <= month <= 12 or (day <= 12 and day != month):
        return None
    if "year" in said:
        return _days(int(said["year"]), month, day, day)
    return _occurrence("", now, lambda year: _days(year, month, day, day))


def _read_unit(said: dict[str, str], now: Now) -> Span | None:
    """Read this, last or next week, month or year, or a day within it."""
    unit = _UNITS.get(said["unit"], said["unit"])
    which = " ".join(said.get("which", "this").split())
    if which == "this past" and unit == "weekend":
        return read_weekday({"weekend": unit}, now)
    begin, end = _unit(now, unit, _OFFSETS[which])
    rest = said.get("rest", "")
    if rest == "末":
        return begin + 5, end
    if rest and unit == "week":
        weekday = _weekday(rest)
        return begin + weekday, begin + weekday + 1
    if rest:
        day = number_of(rest.rstrip("日号"))
        last = number_of(said["until"].rstrip("日号")) if "until" in said else day
        return (begin + day - 1, begin + last) if 1 <= day <= last <= end - begin else None
    return begin, end


def _read_edge(said: dict[str, str], now: Now) -> Span | None:
    """Read the beginning or the end of a month or a year that is not named."""
    unit, name = _UNITS.get(said["unit"], said["unit"]), PORTIONS[said["edge"]]
    edge = portion(_unit(now, unit, 0), name)
    if now.is_plan:
        return portion(_unit(now, unit, 1), name) if edge[1] <= now.number else edge
    return portion(_unit(now, unit, -1), name) if edge[0] > now.number else edge


def _read_quarter(said: dict[str, str], now: Now) -> Span | None:
    """Read a quarter or a half of a year."""
    year = year_of(said, now)
    size, word = (3, said["quarter"]) if "quarter" in said else (6, said["half"])
    index = {"上": 1, "下": 2}.get(word, _ORDINALS.get(word, number_of(word)))
    if not 1 <= index <= 12 // size or (year is not None and not 1900 <= year <= 2100):
        return None

    def in_year(year: int) -> Span:
        return months(year, size * (index - 1) + 1, size)

    return in_year(year) if year is not None else _occurrence("", now, in_year)


def _read_decade(said: dict[str, str], now: Now) -> Span | None:
    """Read the ten years of a decade; without a century, those of 1930 to 2029."""
    word = said["decade"].strip("'")
    if word in _DECADES:
        decade = 20 + 10 * _DECADES.index(word)
    else:
        decade = number_of(word) if len(word) < 4 else int(word) % 100
    if "century" in said:
        century = 1900 if said["century"] in ("上世纪", "二十世纪", "20世纪") else 2000
    else:
        century = (
            int(word) - decade if word.isdecimal() and len(word) == 4 else 1900 if decade >= 30 else 2000
        )
    return months(century + decade, 1, 120) if 0 <= decade < 100 and decade % 10 == 0 else None


def _read_named_day(said: dict[str, str], now: Now) -> Span | None:
    return _unit(now, "day", _NAMED_DAYS[" ".join(said["named"].split())])


def counted(said: str) -> Span:
    """Return the minimum and maximum of a count: "a few" is a range."""
    last = said.removesuffix("of").split()[-1]
    count = _COUNTS[last] if last in _COUNTS else number_of(last)
    return _VAGUE.get(last, (count, count))


def _shifted(day: int, unit: str, count: int) -> int:
    """Return a day a number of days, weeks, months or years later; the last of a month that is too short."""
    if unit in ("month", "year"):
        year, month, of_month = civil(day)
        begin, end = months(year, month + count * (12 if unit == "year" else 1))
        return min(begin + of_month - 1, end - 1)
    return day + count * {"week": 7, "weekend": 7, "fortnight": 14}.get(unit, 1)


def _read_ago(said: dict[str, str], now: Now) -> Span | None:
    """Read a number of days, weeks, months or years before today, or after it.

    A question means a calendar unit, because questions are vague. A statement means that day, and a calendar unit for
    months and years.
    """
    least, most = counted(said["count"])
    if not 0 <= least <= most <= MAX_COUNT or not _is_meant(said, now):
        return None
    unit = _UNITS.get(said["unit"], said["unit"])
    sign = 1 if "after" in said or "tense" in said else -1
    if unit == "fortnight":
        least, most, unit = 2 * least, 2 * most, "week"
    if now.reading == "question" or unit in ("weekend", "month", "year"):
        first, second = _unit(now, unit, sign * least), _unit(now, unit, sign * most)
    else:
        first, second = (
            (day, day + 1) for day in (_shifted(now.number, unit, sign * each) for each in (least, most))
        )
    return min(first[0], second[0]), max(first[1], second[1])


def _is_meant(said: dict[str, str], now: Now) -> bool:
    """Return whether a count after the reference means a time.

    "In three days" is one in a plan only, and a duration otherwise. "Three days later" continues a story in a question.
    """
    if "tense" in said:
        return now.is_plan
    return now.reading != "question" or "after" not in said or said["after"].startswith("from")


def _read_half(said: dict[str, str], now: Now) -> Span | None:
    """Read half a year ago as the month six before, and half a month ago as 15 days. More years or months may precede.

    A question means the week of that day.
    """
    sign = 1 if "after" in said else -1
    count = counted(said["count"])[0] if "count" in said else 0
    if not 0 <= count <= MAX_COUNT or not _is_meant(said, now):
        return None
    if said["unit"] in ("年", "year"):
        return _unit(now, "month", (12 * count + 6) * sign)
    day = _shifted(now.number, "month", count * sign) + 15 * sign
    if now.reading == "question":
        return _unit(Now.on(day * DAY, "question"), "week", 0)
    return day, day + 1


def _read_minutes(said: dict[str, str], now: Now) -> Span | None:
    """Read a number of hours or minutes before or after the reference time, in minutes."""
    unit = _UNITS.get(said["unit"], said["unit"])
    size = HOUR if unit == "hour" else 1
    if not _is_meant(said, now):
        return None
    least, most = counted(said["count"]) if "count" in said else (0, 0)
    if not 0 <= least <= most <= 1000:
        return None
    sign = 1 if "after" in said or "tense" in said else -1
    more = size // 2 if "half" in said else 0
    begin, end = sorted(
        (now.minutes + sign * (least * size + more), now.minutes + sign * (most * size + more))
    )
    return begin, end + 1


def _read_rolling(said: dict[str, str], now: Now) -> Span | None:
    """Read the last number of days, weeks, months or years up to and including today, or the next ones."""
    count = counted(said.get("count", "1"))[1]
    if not 0 <= count <= MAX_COUNT or ("tense" in said and not now.is_plan):
        return None
    unit = _UNITS.get(said["unit"], said["unit"])
    if "after" in said or "tense" in said:
        return now.number, _shifted(now.number, unit, count) + 1
    return _shifted(now.number, unit, -count), now.number + 1


def _weekday(said: str) -> int:
    return _WEEKDAY_NAMES.index(said[:3]) if said.isascii() else min(6, "一二三四五六日天".index(said))


def read_weekday(said: dict[str, str], now: Now) -> Span | None:
    """Read a weekday: the latest one not after today, or for a plan the first one after today.

    "Last" is the latest one before today, "this" is of this week, "next" is of the next week, and "coming" is the first
    one after today.
    """
    if "weekend" in said:
        begin, end = _unit(now, "weekend", 0)
        return (begin, end) if begin <= now.number or now.is_plan else (begin - 7, end - 7)
    back = (now.number + 3 - _weekday(said["weekday"])) % 7
    which = _which(said)
    if "of" in said or which in ("this", "next"):
        begin, _ = _unit(now, "week", _OFFSETS[said.get("of", which)])
        day = begin + _weekday(said["weekday"])
    elif which in ("coming", "this coming") or (now.is_plan and which != "last"):
        day = now.number - back + 7
    elif which == "before last":
        day = now.number - (back or 7) - 7
    else:
        day = now.number - (back or 7) if which == "last" else now.number - back
    return day, day + 1


def read_day_of_month(said: dict[str, str], now: Now) -> Span | None:
    """Read a day of a month that is not named: the latest one, or for a plan the first one from today on.

    With a weekday it is the nearest such day.
    """
    if said["day"].isdecimal() and len(said["day"]) > 2:
        return None
    day = number_of(said["day"])
    last = number_of(said.get("until", said["day"]))
    step = 1 if now.is_plan else -1
    order = (
        (0, step, -step, 2 * step, -2 * step, 3 * step) if "weekday" in said else range(0, 13 * step, step)
    )
    for offset in order:
        year, month, _ = civil(months(now.year, now.month + offset)[0])
        span = _days(year, month, day, last)
        if span is None:
            continue
        if "weekday" in said:
            if (span[0] + 3) % 7 == _weekday(said["weekday"]):
                return span
        elif span[1] > now.number if now.is_plan else span[0] <= now.number:
            return span
    return None


def _read_nth(said: dict[str, str], now: Now) -> Span | None:
    """Read the first week or the last Friday of a month."""
    index = _ORDINALS.get(said["nth"], number_of(said["nth"]))
    if "month" in said:
        month = read_date({name: word for name, word in said.items() if name in ("month", "year", "of")}, now)
    else:
        month = _unit(now, "month", _OFFSETS[said.get("which", "this")])
    if month is None:
        return None
    begin, end = month
    if "weekday" not in said:
        first = end - 7 if index < 0 else begin + 7 * (index - 1)
        return (first, min(end, first + 7)) if begin <= first < end else None
    weekday = _weekday(said["weekday"])
    if index < 0:
        last = end - 1
        day = last - ((last + 3) % 7 - weekday) % 7
    else:
        day = begin + (weekday - (begin + 3) % 7) % 7 + 7 * (index - 1)
    return (day, day + 1) if begin <= day < end else None


def _read_holiday(said: dict[str, str], now: Now) -> Span | None:
    """Read a holiday with a fixed date. A question means it only with its year, because people talk of it for weeks."""
    year = year_of(said, now)
    if year is None and now.reading == "question" and "which" not in said:
        return None
    if "thanksgiving" in said["holiday"]:

        def in_year(year: int) -> Span:
            begin = day_number(year, 11)
            day = begin + (3 - (begin + 3) % 7) % 7 + 21
            return day, day + 1
    else:
        month, day = _HOLIDAYS[" ".join(said["holiday"].split())]

        def in_year(year: int) -> Span:
            first = day_number(year, month, day)
            return first, first + 1

    return in_year(year) if year is not None else _occurrence(_which(said), now, in_year)


def read_clock(said: dict[str, str], now: Now) -> Span | None:
    """Read a time of day: its first minute and the end, in minutes; None if there is no such time."""
    if "noon" in said:
        minute = DAY // 2 if said["noon"] in ("noon", "midday", "正午") else 0
        return minute, minute + 1
    hour = number_of(said["hour"]) if said["hour"] not in _COUNTS else _COUNTS[said["hour"]]
    minute = 0
    if "minute" in said:
        minute = number_of(said["minute"]) if said["minute"] not in _COUNTS else _COUNTS[said["minute"]]
    minute = {"半": 30, "一刻": 15, "三刻": 45, "half": 30, "quarter": 15}.get(
        said.get("fraction", ""), minute
    )
    if said.get("to"):
        hour, minute = hour - 1, 60 - minute
    if not (0 <= hour <= 24 and 0 <= minute < 60) or (hour == 24 and minute):
        return None
    meridiem = said.get("meridiem", "")[:1]
    if meridiem:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if meridiem == "p" else 0)
    begin = hour * HOUR + minute
    return begin, begin + 1


def part_of(said: dict[str, str]) -> str:
    """Return the part of the day that the words of a rule name, or an empty text."""
    word = said.get("part") or (said.get("named") or said.get("unit") or "").split(" ")[-1]
    return word if word in PART_NAMES else ""


def is_certain(said: dict[str, str]) -> bool:
    """Return whether the words of a time of day say which half of the day it is in."""
    if "noon" in said or "meridiem" in said:
        return True
    hour = said["hour"]
    return (hour.isdecimal() and (int(hour) > 12 or (hour[0] == "0" and len(hour) == 2))) or hour in (
        "零",
        "〇",
    )


def read_part(said: dict[str, str], now: Now) -> Span | None:
    """Read a part of the day without its day."""
    return PARTS[PART_NAMES[said["part"]]]


EXACT: Final[frozenset[Reader]] = frozenset({_read_minutes})

# Parts of the day.

PARTS: Final[dict[str, Span]] = {
    "small hours": (0, 6 * HOUR),
    "morning": (6 * HOUR, 12 * HOUR),
    "noon": (12 * HOUR, 13 * HOUR),
    "afternoon": (12 * HOUR, 18 * HOUR),
    "evening": (18 * HOUR, DAY),
    "night": (18 * HOUR, DAY),
}
"""In minutes from midnight."""

PART_NAMES: Final = by_word(
    {
        "small hours": ("凌晨", "半夜", "深夜"),
        "morning": ("morning", "晨", "早", "清晨", "清早", "早上", "早晨", "上午", "一早", "大清早"),
        "noon": ("中午", "正午"),
        "afternoon": ("afternoon", "下午", "午后"),
        "evening": ("evening", "傍晚", "黄昏"),
        "night": ("night", "tonight", "晚", "夜", "晚上", "夜里", "夜晚", "晚间"),
    }
)

PORTIONS: Final = by_word(
    {
        "early": ("early", "beginning", "start", "初", "上旬", "初期"),
        "middle": ("mid", "middle", "中", "中旬", "中期"),
        "late": ("late", "end", "底", "末", "下旬", "末期"),
        "first half": ("first half", "上半月"),
        "second half": ("second half", "下半月"),
    }
)
_OF_WEEK: Final = {
    "early": (0, 2),
    "middle": (2, 4),
    "late": (4, 7),
    "first half": (0, 3),
    "second half": (3, 7),
}
_OF_MONTH: Final = {
    "early": (0, 10),
    "middle": (10, 20),
    "late": (20, 31),
    "first half": (0, 15),
    "second half": (15, 31),
}


def portion(days: Span, name: str) -> Span:
    """Return a portion of a week, a month, a quarter or a year, in days. One of a day or two is all of it."""
    begin, end = days
    if end - begin <= 2:
        return days
    count = round((end - begin) / 30.4)
    if count <= 1:
        first, last = (_OF_WEEK if end - begin <= 7 else _OF_MONTH)[name]
        return begin + first, min(begin + last, end)
    year, month, _ = civil(begin)
    part = max(1, count // 4)
    first, last = {
        "early": (0, part),
        "middle": ((count - part) // 2, (count + part) // 2),
        "late": (count - part, count),
        "first half": (0, count // 2),
        "second half": (count // 2, count),
    }[name]
    return months(year, month + first, last - first)


# The rules.

FOLDED: Final = str.maketrans(
    {chr(ord("A") + step): chr(ord("a") + step) for step in range(26)}
    | {chr(0xFF10 + step): str(step) for step in range(10)}
    | dict(
        zip(
            "’／－–～：，週號個兩後這禮過間幾數點時鐘聖誕節國慶從來為農曆鐘頭",
            "'/--~:,周号个两后这礼过间几数点时钟圣诞节国庆从来为农历钟头",
            strict=True,
        )
    )
)
"""Case, wide digits and the traditional characters of dates. Positions stay the same."""

_B, _E, _S = r"(?<![a-z0-9_])", r"(?![a-z0-9_])", r"\s{1,3}"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = r"(?P<weekday>mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_ON_WEEKDAY = rf"(?:(?:on{_S})?(?:{_WEEKDAY}|(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\.?),?{_S})?"
_DAY_WORD = rf"(?P<day>{'|'.join(_DAY_WORDS)})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:\s?(?:-|to)\s?(?P<until>\d{1,2})(?:st|nd|rd|th)?)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF_YEAR = rf"(?:,?{_S}(?:(?:of|in){_S})?(?:{_YEAR}|(?P<of>last|this|next){_S}year){_E})"
_COUNT = (
    r"(?P<count>\d{1,3}|(?:a\s)?(?:few|couple(?:\sof)?)|several|an?|another|one|two|three|four|five|six|seven|eight|nine"
    r"|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety)"
)
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"
_WHICH = rf"(?P<which>this{_S}(?:past|coming)|last|past|previous|this|next|coming|following)"
_NTH = r"(?P<nth>first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th|last)"
_ZH_NTH = (
    r"(?:第(?=[一二三四五1-5])|(?=最后))(?P<nth>[一二三四五1-5]|最后一)个?(?:周|星期|礼拜)"
    r"(?P<weekday>[一二三四五六日天])?"
)
_PREPOSITION = r"(?:by|until|till|on|since|from|before|after|through|starting|around|about)"
_N = "[0-9〇零一二三四五六七八九十廿两]"
_NB = "[0-9〇零一二三四五六七八九十百两]"
_ZH_DAY = (
    rf"(?:的?(?P<day>{_N}{{1,3}}(?=[日号])|{_N}{{2,3}}(?![{_N[1:-1]}个天年月多来几万千百点时分秒岁块元名位人%.]))[日号]?"
    rf"(?:(?:到|至|-|~)(?P<until>{_N}{{1,3}})[日号])?)?"
)
_TAIL = rf"(?P<month>{_N}{{1,3}})月份?{_ZH_DAY}|(?P<season>[春夏秋冬])(?:[天季]|{_E})"
_OFFSET = r"(?P<which>上上|上|这|本|下下|下)一?个?"
_NOT_A_DATE = "(?![兰嫂花雪天桂])"
_PART = (
    "(?P<part>凌晨|半夜|深夜|清晨|清早|大清早|一早|早上|早晨|上午|中午|正午"
    "|下午|午后|傍晚|黄昏|晚上|夜里|夜晚|晚间|[早晚](?!一点)(?=[0-9一二三四五六七八九十两]{1,3}点))"
)
_ZH_HOUR = rf"(?:(?<![0-9.{_N[1:-1]}周期拜])|(?<=[周期拜][一二三四五六日天]))(?P<hour>{_N}{{1,3}})点"
_ZH_MINUTE = (
    r"(?:钟(?![情爱])|整|(?P<fraction>半|一刻|三刻)"
    rf"|(?P<minute>{_N}{{1,3}}(?=分)|{_N}{{2,3}}(?![{_N[1:-1]}点个]))分?)"
)
_DAY_PART = r"(?P<part>morning|afternoon|evening|night)"
_HOLIDAY = (
    r"(?P<holiday>christmas(?:\seve)?|boxing\sday|new\syear's(?:\s(?:eve|day))?|halloween|valentine's\sday"
    r"|thanksgiving)"
)
_UNIT_S = r"(?P<unit>day|week|weekend|fortnight|month|year|night)s?"
_MINUTES = r"(?P<unit>hour|minute)s?"
_HOUR = r"(?P<hour>[01]?\d|2[0-4])"
_MERIDIEM = r"(?P<meridiem>am|pm|a\.m\.?|p\.m\.?)"
_HOUR_WORD = r"(?P<hour>one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|1[0-2]|[1-9])"
_ZH_UNIT = r"(?P<unit>天|日|周|星期|礼拜|年|(?<=个)月)"

_STRONG: dict[Reader, tuple[str, ...]] = {
    read_date: (
        rf"{_B}{_ON_WEEKDAY}(?:the{_S})?{_DAY}{_S}(?:of{_S})?{_MONTH}{_E}\.?{_OF_YEAR}?",
        rf"{_B}{_ON_WEEKDAY}{_MONTH}\.?{_S}(?:the{_S})?{_DAY}{_E}{_OF_YEAR}?",
        rf"{_B}(?:on{_S})?the{_S}{_DAY_WORD}{_S}of{_S}{_MONTH}{_E}{_OF_YEAR}?",
        rf"{_B}{_MONTH}{_S}(?:the{_S}|(?<!may )(?<!march )){_DAY_WORD}{_E}{_OF_YEAR}?",
        rf"{_B}{_MONTH}\.?{_OF_YEAR}",
        r"(?<![\d/.-])(?P<month>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\d/.-])",
        rf"{_B}(?:in|since|of|from|until|by|before|after|summer|spring|autumn|fall|winter){_S}'(?P<year>\d\d){_E}",
        rf"(?<![0-9〇零一二三四五六七八九])(?!六七|七八|八九)(?P<year>[06-9][0-9]|[〇零六七八九][〇零一二三四五六七八九])年"
        rf"(?![前后来代了间级的多])(?:{_TAIL})?",
        rf"{_B}(?:{_WHICH}|in|during|until|since|late|early|mid|end{_S}of){_S}(?:late{_S}|early{_S}|mid-?\s?)?"
        rf"{_MONTH}{_E}(?!'s){_OF_YEAR}?",
        rf"{_B}{_SEASON}{_OF_YEAR}",
        rf"{_B}(?:{_WHICH}|in(?:{_S}the)?|during(?:{_S}the)?|over{_S}the){_S}{_SEASON}{_E}{_OF_YEAR}?",
        rf"{_B}(?:in|during|since|of|from|by|before|after|year|until|till|late|early|mid|around|throughout|the){_S}"
        rf"{_YEAR}{_E}(?![-/.]\d)",
        r"(?<![\d/.-])(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?![\d/-]|\.\d)",
        rf"(?<![\d/.-]){_YEAR}[-/](?P<month>\d{{1,2}})(?![\d/-]|\.\d)",
        rf"(?<![0-9])(?P<year>[0-9]{{4}}|[0-9]{{2}}(?=年{_N})|[〇零一二三四五六七八九]{{4}})年(?:的?(?:{_TAIL}))?",
        rf"(?<![以之])(?P<of>大前年|前年|去年|今年|明年|后年|(?:今|去|明)(?=[春夏秋冬]))(?:的?(?:{_TAIL}))?",
        rf"(?<![0-9第年历〇一二三四五六七八九十.-])(?P<month>{_N}{{1,2}})月份?{_NOT_A_DATE}{_ZH_DAY}",
        r"(?:(?P<which>这|本)个?|在|那年)(?P<season>[春夏秋冬])[天季]",
    ),
    _read_day_month_year: (
        rf"(?<![\d/.-])(?P<first>\d{{1,2}})[/.](?P<second>\d{{1,2}})[/.]{_YEAR}(?![\d/-])",
        rf"{_B}{_PREPOSITION}{_S}(?P<first>\d{{1,2}})/(?P<second>\d{{1,2}})(?![\d/.-])",
    ),
    _read_unit: (
        rf"{_B}(?:the{_S})?(?P<unit>week|weekend|month|year|night){_S}(?P<which>before{_S}last|after{_S}next){_E}",
        rf"{_B}{_WHICH}{_S}(?P<unit>month),?{_S}on{_S}the{_S}(?P<rest>\d{{1,2}})(?:st|nd|rd|th){_E}",
        rf"{_B}{_WHICH}{_S}(?P<unit>week|weekend|month|quarter|year|night|morning|afternoon|evening){_E}",
        rf"(?<![早晚马路网街线]){_OFFSET}(?P<unit>周(?![围边到身遭])|星期|礼拜)"
        r"(?P<rest>末|[一二三四五六日天](?![个年天月次]))?",
        rf"{_B}(?:the{_S})?(?P<rest>\d{{1,2}})(?:st|nd|rd|th){_S}of{_S}(?:the|{_WHICH}){_S}(?P<unit>month){_E}",
        rf"(?<![早晚马]){_OFFSET}(?P<unit>月|季度)的?(?P<rest>{_N}{{1,3}}[日号])?",
    ),
    _read_edge: (
        rf"{_B}(?P<unit>month|year)(?:[- ]|'s{_S})(?P<edge>end){_E}",
        r"(?<![个一二三四五六七八九十0-9两几去今明后前每半年])(?P<unit>[年月])(?P<edge>初(?![一二三四五六七八九十])|[底末]|中(?![国学午秋心]))",
    ),
    _read_quarter: (
        rf"{_B}h(?P<half>[12]){_S}(?:of{_S})?(?:{_YEAR}|(?P<of>last|this|next){_S}year){_E}",
        rf"{_B}(?:the{_S})?(?P<quarter>first|second|third|fourth){_S}quarter(?:{_OF_YEAR}|{_E})",
        rf"{_B}q(?P<quarter>[1-4])(?:(?:{_S}|')(?:of{_S})?(?:{_YEAR}|(?P<of>last|this|next){_S}year))?{_E}",
        r"(?:(?P<year>[0-9]{4})年|(?P<of>前年|去年|今年|明年|后年))?的?第?(?P<quarter>[一二三四1-4])季度",
        r"(?:(?P<year>[0-9]{4})年|(?P<of>前年|去年|今年|明年|后年))?的?(?P<half>[上下])半年",
    ),
    _read_decade: (
        rf"{_B}(?:in{_S}|since{_S})?the{_S}(?:(?:early|mid|late)[- ])?(?P<decade>(?:19|20)\d0|'?[2-9]0|twentie|thirtie"
        rf"|fortie|fiftie|sixtie|seventie|eightie|ninetie)s{_E}",
        r"(?P<century>上世纪|本世纪|二十世纪|20世纪|二十一世纪|21世纪)(?P<decade>[一二三四五六七八九]十|[1-9]0)年代",
        r"(?<![0-9世纪])(?P<decade>[一二三四五六七八九]十|[1-9]0)年代",
    ),
    _read_named_day: (
        rf"{_B}(?P<named>(?:the{_S})?day{_S}before{_S}yesterday|(?:the{_S})?day{_S}after{_S}tomorrow|yesterday|today"
        rf"|tonight|tomorrow|last{_S}night){_E}",
        r"(?<![以之从目今然最先])(?P<named>大前|前|昨|今|明|大后|后)(?:[天日](?!培养|形成|因素|努力)|(?P<part>[晚早晨夜])上?)"
        r"(?![本皇])",
    ),
    _read_ago: (
        rf"{_B}{_COUNT}{_S}(?P<unit>day|week|weekend|fortnight|month|year|night)s?{_S}"
        rf"(?:ago|back|(?P<after>from{_S}(?:now|today)|later(?!{_S}than)|hence)){_E}",
        rf"{_B}(?P<tense>in){_S}(?:about{_S}|around{_S}|just{_S}|exactly{_S})?{_COUNT}{_S}{_UNIT_S}"
        rf"(?:'?{_S}time)?{_E}(?!{_S}(?:ago|back))",
        rf"(?P<count>{_NB}{{1,4}}|[几数])(?:多?个多?)?{_ZH_UNIT}多?(?:以|之)?前(?!后)",
        rf"(?:再?过)(?P<count>{_NB}{{1,4}}|[几])个?(?P<after>)(?P<unit>天|周|星期|礼拜|年|(?<=个)月)(?:以|之)?后?",
        rf"(?P<count>{_NB}{{1,4}}|[几数])个?{_ZH_UNIT}(?P<after>(?:以|之)?后)",
    ),
    _read_half: (
        r"(?<!个)半个?(?P<unit>年|月)多?(?:以|之)?前",
        rf"(?P<count>{_NB}{{1,3}})(?P<unit>年)半多?(?:(?:以|之)?前|(?P<after>(?:以|之)?后))",
        rf"(?P<count>{_NB}{{1,3}})个半(?P<unit>月)多?(?:(?:以|之)?前|(?P<after>(?:以|之)?后))",
        rf"{_B}{_COUNT}{_S}(?P<unit>year|month)s?{_S}and{_S}a{_S}half{_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
        rf"{_B}{_COUNT}{_S}and{_S}a{_S}half{_S}(?P<unit>year|month)s?{_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
        r"半个?(?P<unit>年|月)(?P<after>(?:以|之)?后)",
        rf"{_B}half{_S}a{_S}(?P<unit>year){_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
    ),
    _read_minutes: (
        rf"{_B}{_COUNT}{_S}{_MINUTES}{_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
        rf"{_B}{_COUNT}{_S}(?P<unit>hour)s?{_S}(?P<half>and{_S}a{_S}half){_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
        rf"{_B}(?P<half>half){_S}an{_S}{_MINUTES}{_S}(?:ago|(?P<after>from{_S}now|later(?!{_S}than))){_E}",
        rf"{_B}(?P<tense>in){_S}(?!a{_S}m)(?:about{_S}|around{_S}|just{_S})?{_COUNT}{_S}{_MINUTES}{_E}(?!{_S}(?:ago|back))",
        rf"{_B}(?P<tense>in){_S}(?:about{_S}|around{_S})?(?P<half>half){_S}an{_S}{_MINUTES}{_E}",
        rf"(?P<count>{_NB}{{1,4}}|[几])个?(?P<half>半)?(?P<unit>小时|钟头|分钟)(?:(?:以|之)?前|(?P<after>(?:以|之)?后))",
        r"(?P<half>半)个?(?P<unit>小时|钟头)(?:(?:以|之)?前|(?P<after>(?:以|之)?后))",
    ),
    _read_rolling: (
        rf"{_B}(?:last|past|previous|(?P<after>next|coming)){_S}{_COUNT}{_S}(?P<unit>day|week|month|year|night)s{_E}",
        rf"{_B}(?P<tense>within)(?:{_S}the{_S}next)?{_S}{_COUNT}{_S}(?P<unit>day|week|month|year)s?{_E}",
        rf"(?P<count>{_NB}{{1,3}})个?(?P<unit>天|周|星期|礼拜|(?<=个)月|年)(?P<tense>(?:之|以)?内)",
        rf"(?:最近|过去|近|(?P<after>未来|接下来|今后))的?(?P<count>{_N}{{1,3}}|[几数])个?"
        r"(?P<unit>天|日|周|星期|礼拜|月|年)",
    ),
    read_weekday: (
        rf"(?<!every )(?<!each )(?<!black )(?<!good ){_B}(?:(?:the{_S})?{_WHICH}{_S}|on{_S})?(?P<weekday>{_WEEKDAY})"
        rf"(?:{_S}(?:of{_S})?(?P<of>last|this|next){_S}week)?{_E}",
        rf"{_B}(?P<of>last|this|next){_S}week{_S}(?:on{_S})?(?P<weekday>{_WEEKDAY}){_E}",
        rf"{_B}(?:{_WHICH}{_S}|{_PREPOSITION}{_S}(?!sun|sat|wed)){_SHORT_WEEKDAY}{_E}\.?"
        rf"(?:{_S}(?P<of>last|this|next){_S}week{_E})?",
        rf"{_B}(?:the{_S})(?P<weekday>{_WEEKDAY}){_S}(?P<which>before{_S}last){_E}",
        rf"(?<![每{_N[1:-1]}])(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?![次个年月回遍])",
        r"(?P<weekend>周末|双休日)",
        rf"{_B}(?:on|at|over|during){_S}the{_S}(?P<weekend>weekend){_E}",
    ),
    read_day_of_month: (
        rf"{_B}(?:on{_S})?(?P<weekday>{_WEEKDAY}),?{_S}the{_S}(?P<day>\d{{1,2}})(?:st|nd|rd|th){_E}",
        rf"{_B}(?:{_PREPOSITION}|than){_S}the{_S}(?P<day>\d{{1,2}})(?:st|nd|rd|th)(?:{_S}(?:to|-){_S}the{_S}(?P<until>\d{{1,2}})"
        rf"(?:st|nd|rd|th))?{_E}(?!{_S}(?:floor|street|st|avenue|ave|time|grade|place|day|week|month|year|century|"
        rf"anniversary|birthday|try|attempt|of|page|row|hole|lap|edition|version))",
        rf"(?<![0-9a-z第年月路街道巷弄村牌座位楼栋院区桥坊〇一二三四五六七八九十.-])(?P<day>{_N}{{1,3}})号(?:(?:到|至|-|~)(?P<until>{_N}{{1,3}})号)?"
        r"(?![线楼门馆院店机球员车桌厅室床房台仓公路码窗柜选位字称召色电菜地田井坑库层炉箱])",
    ),
    _read_nth: (
        rf"{_B}(?:the{_S})?{_NTH}{_S}(?:week|(?P<weekday>{_WEEKDAY})){_S}(?:of|in){_S}(?:{_MONTH}{_E}{_OF_YEAR}?|"
        rf"(?:the|(?P<which>this|last|next)){_S}month{_E})",
        rf"(?:(?P<year>[0-9]{{4}})年)?(?P<month>{_N}{{1,2}})月份?的?{_ZH_NTH}",
        rf"{_OFFSET}月的?{_ZH_NTH}",
    ),
    _read_holiday: (
        rf"{_B}(?:{_WHICH}{_S}|(?:on|at|by|before|after|until|since|around|over){_S})?{_HOLIDAY}{_E}(?!{_S}(?:tree|card|"
        rf"cookie|present|song|carol|movie|market|lights?|cactus|resolution|list))s?{_OF_YEAR}?",
        r"(?:(?P<year>[0-9]{4})年|(?P<of>前年|去年|今年|明年|后年))?的?(?P<holiday>平安夜|圣诞(?=节|[^树老歌卡礼帽])|元旦|跨年夜"
        r"|情人节|妇女节|劳动节|儿童节|教师节|万圣节|国庆(?=节|[^门])|五一(?=节|假期|长假|期间|那天|小长假)"
        r"|六一(?=节|那天)|十一(?=假期|长假|黄金周|期间))节?",
    ),
    read_clock: (
        rf"{_B}{_HOUR}(?:[:.](?P<minute>[0-5]\d))?\s?{_MERIDIEM}{_E}",
        rf"(?<![0-9.:/]){_HOUR}:(?P<minute>[0-5]\d)(?![0-9:])(?::[0-5]\d)?",
        rf"{_B}(?P<noon>noon|midday|midnight){_E}",
        rf"(?<![{_N[1:-1]}])(?P<noon>零点|午夜|正午)(?![{_N[1:-1]}几个])",
        rf"{_B}{_HOUR_WORD}{_S}o'clock(?:\s?{_MERIDIEM})?{_E}",
        rf"{_B}(?P<fraction>half|quarter){_S}(?:past|(?P<to>to)){_S}{_HOUR_WORD}(?:\s?{_MERIDIEM})?{_E}",
        rf"{_PART}(?:的|大概|大约|约)?(?P<hour>{_N}{{1,3}})(?:点|时(?!候|间)){_ZH_MINUTE}?",
        rf"{_ZH_HOUR}{_ZH_MINUTE}",
        rf"{_ZH_HOUR}(?=见|开会|出发|集合|起床|睡觉|开始|下班|上班|吃饭|开饭|开门|关门)",
    ),
}
"""The rules that count by themselves."""

_WEAK: dict[Reader, tuple[str, ...]] = {
    read_date: (
        rf"{_B}{_MONTH}{_E}(?!'s)(?:{_OF_YEAR})?",
        rf"(?<![\d/.:$\u20ac\u00a3\u00a5#a-z_]){_YEAR}(?![\d/:a-z_]|\.\d)",
        rf"{_B}{_SEASON}{_E}",
    ),
    _read_unit: (rf"{_B}(?:the|this|of|in){_S}(?P<unit>week|month|quarter|year){_E}",),
    read_day_of_month: (rf"(?<![0-9a-z])(?P<day>{_N}{{1,3}})[日号]",),
    read_clock: (
        rf"{_B}(?:at|since|from|until|till|by|around|about|before|after|between){_S}(?:about{_S}|around{_S})?{_HOUR_WORD}"
        rf"{_E}(?![%/.:,-]?\d)",
        rf"(?<=to ){_HOUR_WORD}{_E}(?![%/.:,-]?\d)",
        rf"{_ZH_HOUR}(?![子心头滴])",
    ),
    read_part: (
        rf"{_B}(?:(?:in|during|on){_S})?(?:the{_S})?{_DAY_PART}{_E}",
        rf"{_B}at{_S}(?P<part>night){_E}",
        _PART,
    ),
}

_CAPITALISED: tuple[tuple[str, bool], ...] = (
    (rf"{_B}{_PREPOSITION}{_S}{_SHORT_WEEKDAY}{_E}\.?", False),
    (rf"{_B}{_SHORT_WEEKDAY}{_E}\.?", True),
)
"""Short weekdays that may be other words, and whether they are weak."""


RULES: Final = (
    *(
        Rule(re.compile(pattern), reader, table is _WEAK)
        for table in (_STRONG, _WEAK)
        for reader, patterns in table.items()
        for pattern in patterns
    ),
    *(Rule(re.compile(pattern), read_weekday, is_weak, True) for pattern, is_weak in _CAPITALISED),
)

_ASCII_RULES = tuple(rule for rule in RULES if rule.pattern.pattern.isascii())
"""The rules for English. All others require a Chinese character."""

_HAN_RULES = tuple(
    rule
    for rule in RULES
    if rule not in _ASCII_RULES or rule.pattern.pattern.startswith(("(?<![0-9", r"(?<![\d"))
)
"""The rules for Chinese, and those for numbers. All others require a Latin letter."""

_MAY_DATE = re.compile(
    "[0-9]|day|night|morning|afternoon|evening|week|month|quarter|year|tomorrow|spring|summer|autumn|fall|winter|noon|"
    "o'clock|hour|minute|ties|christmas|halloween|thanksgiving"
    "|boxing|past|quarter|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) (?:to|until|till|and)|"
    + "|".join((*_MONTH_NAMES, *_WEEKDAY_NAMES))
)
"""A part of every time in English."""


_HAS_LATIN = re.compile("[a-z]")


def rules_for(folded: str) -> Sequence[Rule]:
    """Return the rules that may apply to a text. Most questions in English contain no time."""
    if not folded.isascii():
        return RULES if _HAS_LATIN.search(folded) else _HAN_RULES
    return _ASCII_RULES if _MAY_DATE.search(folded) else ()
