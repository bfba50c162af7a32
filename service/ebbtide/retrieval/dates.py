"""Dates: find the days that a query refers to, in English and Chinese.

The rules are a table of patterns and readers. Of two overlapping matches the earlier one is used, then the longer one.
A year, month or week that is not stated is inferred from the reference time and never lies after it, unless the words
say so ("next week"). Days are in UTC, weeks begin on Monday, seasons are those of the northern hemisphere, and a winter
belongs to the year in which it begins.

A date after "since", or before 以来, extends to the reference time. Other words before a date are ignored ("before May"
means May), because dates only boost results and exclude none. Times of day, lunar holidays and ambiguous dates such as
5/7/2023 are not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

DAY_MS = 86_400_000

MAX_CHARACTERS = 4_000
"""Characters of a query that are read."""

MAX_RANGES, MAX_MATCHES = 8, 64
"""Ranges per text, and matches per rule."""

Span = tuple[int, int]
"""Days since 1970-01-01, the end exclusive."""


@dataclass(frozen=True, slots=True)
class DateRange:
    """A range of days in ms, end exclusive, with its words, and whether it depends on the reference time."""

    begin_ms: int
    end_ms: int
    text: str
    is_relative: bool


@dataclass(frozen=True, slots=True)
class _Today:
    """The day of the reference time."""

    number: int
    year: int
    month: int


Reader = Callable[[dict[str, str], _Today], Span | None]


def date_ranges(text: str, reference_ms: int) -> list[DateRange]:
    """Return the unique date ranges of a text in order. Incomplete dates are resolved with the reference time."""
    text = text[:MAX_CHARACTERS]
    folded = text.translate(_FOLDED)
    number = reference_ms // DAY_MS
    today = _Today(number, *_civil(number)[:2])
    found: list[tuple[int, int, Span, bool]] = []
    for pattern, reader in _rules_for(folded):
        for match in islice(pattern.finditer(folded), MAX_MATCHES):
            groups = {name: said for name, said in match.groupdict().items() if said is not None}
            span = reader(groups, today)
            if span is not None:
                if _extends_to_now(folded, match.start(), match.end()):
                    span = span[0], max(span[1], today.number + 1)
                found.append((match.start(), -match.end(), span, "year" not in groups))
    found.sort(key=lambda one: one[:2])
    ranges: dict[Span, DateRange] = {}
    taken = 0
    for begin, negative_end, span, is_relative in found:
        if begin < taken:
            continue
        taken = -negative_end
        words = text[begin:taken].strip()
        ranges.setdefault(span, DateRange(span[0] * DAY_MS, span[1] * DAY_MS, words, is_relative))
    return list(ranges.values())[:MAX_RANGES]


def _rules_for(folded: str) -> Sequence[tuple[re.Pattern[str], Reader]]:
    """Return the rules that may apply to a text. Most questions in English contain no date."""
    if not folded.isascii():
        return _RULES
    return _ASCII_RULES if _MAY_DATE.search(folded) else ()


_SINCE = re.compile(r"(?<![a-z])since(?:\s{1,3}|$)")
_SINCE_THEN = re.compile(r"份?(?:以来|至今|到现在|到今天)")


def _extends_to_now(folded: str, begin: int, end: int) -> bool:
    """Return whether a date follows or begins with "since", or a word such as 以来 follows it."""
    around = folded[max(0, begin - 8) : begin + 6].rstrip()
    since = _SINCE.search(around)
    is_since = since is not None and max(0, begin - 8) + since.end() >= begin
    return is_since or _SINCE_THEN.match(folded, end) is not None


# The calendar: H. Hinnant, "chrono-compatible low-level date algorithms". Years begin in March, so that the
# leap day is the last of a year.


def _day_number(year: int, month: int, day: int = 1) -> int:
    """Return the days since 1970-01-01. Months above 12 or below 1 run into other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    shifted = year - (month <= 2)
    leap_days = shifted // 4 - shifted // 100 + shifted // 400
    return 365 * shifted + leap_days + (153 * ((month + 9) % 12) + 2) // 5 + day - 719_469


def _civil(number: int) -> tuple[int, int, int]:
    """Return year, month and day of a day number."""
    era, day_of_era = divmod(number + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _months(year: int, month: int, count: int = 1) -> Span:
    return _day_number(year, month), _day_number(year, month + count)


def _days(year: int, month: int, day: int, until: int) -> Span | None:
    """Return the range of days of a month, or None if the days do not exist."""
    begin, end = _months(year, month)
    return (begin + day - 1, begin + until) if 1 <= day <= until <= end - begin else None


def _unit(today: _Today, unit: str, offset: int) -> Span:
    """Return the calendar day, week, month, quarter or year at an offset from the current one."""
    if unit in ("week", "weekend"):
        monday = today.number - (today.number + 3) % 7 + 7 * offset
        return (monday + 5 * (unit == "weekend"), monday + 7)
    if unit == "month":
        return _months(today.year, today.month + offset)
    if unit == "quarter":
        return _months(today.year, today.month - (today.month - 1) % 3 + 3 * offset, 3)
    if unit == "year":
        return _months(today.year + offset, 1, 12)
    return today.number + offset, today.number + offset + 1


def _occurrence(which: str, today: _Today, in_year: Callable[[int], Span | None]) -> Span | None:
    """Return an occurrence of a yearly period: this one, the last completed, the next, or the latest begun."""
    spans = [span for year in range(today.year - 8, today.year + 9) if (span := in_year(year))]
    if which == "next":
        return next((span for span in spans if span[0] > today.number), None)
    spans.reverse()
    if which == "last":
        return next((span for span in spans if span[1] <= today.number), None)
    begun = next((span for span in spans if span[0] <= today.number), None)
    if which == "this" and not (begun and begun[1] > today.number):
        return in_year(today.year)
    return begun


# Words as numbers.

_OFFSETS = {"before last": -2, "last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}
_OFFSETS |= {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_OFFSETS |= {
    "大前年": -3,
    "前年": -2,
    "去年": -1,
    "今年": 0,
    "明年": 1,
    "后年": 2,
    "去": -1,
    "今": 0,
    "明": 1,
}
_NAMED_DAYS = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0}
_NAMED_DAYS |= {"tomorrow": 1, "the day after tomorrow": 2}
_NAMED_DAYS |= {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_COUNTS |= {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30}
_VAGUE = {"few": (2, 5), "several": (3, 7), "couple": (2, 2), "几": (2, 9), "数": (2, 9)}
_SEASONS = {
    "spring": 3,
    "summer": 6,
    "autumn": 9,
    "fall": 9,
    "winter": 12,
    "春": 3,
    "夏": 6,
    "秋": 9,
    "冬": 12,
}
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
_UNITS |= {"季度": "quarter"} | dict.fromkeys(("night", "morning", "afternoon", "evening"), "day")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}


def _number(said: str) -> int:
    """Return a number in digits or Chinese numerals (up to 99, or digit by digit), or -1."""
    if said.isdecimal():
        return int(said)
    if "十" in said:
        tens, _, ones = said.partition("十")
        if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
            return -1
        return _DIGITS.get(tens, 1) * 10 + _DIGITS.get(ones, 0)
    return int("".join(str(_DIGITS[digit]) for digit in said)) if all(d in _DIGITS for d in said) else -1


def _month_number(said: str) -> int:
    return _MONTH_NAMES.index(said[:3]) + 1 if said[:3] in _MONTH_NAMES else _number(said)


def _year_number(said: dict[str, str], today: _Today) -> int | None:
    """Return the year stated as a number or relative to the current one, or None."""
    if "year" in said:
        year = _number(said["year"])
        return year + 2000 if len(said["year"]) == 2 else year
    return today.year + _OFFSETS[said["of"]] if "of" in said else None


def _which(said: dict[str, str]) -> str:
    word = said.get("which", "")
    return {"past": "last", "previous": "last", "coming": "next"}.get(word, word)


# Readers turn the groups of a match into days, or None.


def _read_date(said: dict[str, str], today: _Today) -> Span | None:
    """Read a year, a season, a month, or days of a month, with or without the year."""
    year = _year_number(said, today)
    if year is not None and not 1900 <= year <= 2100:
        return None

    def in_year(year: int) -> Span | None:
        if "season" in said:
            return _months(year, _SEASONS[said["season"]], 3)
        if "month" not in said:
            return _months(year, 1, 12)
        month = _month_number(said["month"])
        if not 1 <= month <= 12:
            return None
        if "day" not in said:
            return _months(year, month)
        day = _number(said["day"])
        return _days(year, month, day, _number(said.get("until", said["day"])))

    return in_year(year) if year is not None else _occurrence(_which(said), today, in_year)


def _read_day_month_year(said: dict[str, str], today: _Today) -> Span | None:
    """Read two numbers and a year if only one of the two can be the month, or both are equal."""
    month, day = sorted((int(said["first"]), int(said["second"])))
    is_clear = 1 <= month <= 12 and (day > 12 or day == month)
    return _days(int(said["year"]), month, day, day) if is_clear else None


def _read_unit(said: dict[str, str], today: _Today) -> Span | None:
    """Read this, last or next week, month or year, or a day within it."""
    unit = _UNITS.get(said["unit"], said["unit"])
    begin, end = _unit(today, unit, _OFFSETS[said.get("which", "before last")])
    rest = said.get("rest", "")
    if rest == "末":
        return begin + 5, end
    if rest and unit == "week":
        weekday = _weekday(rest)
        return begin + weekday, begin + weekday + 1
    if rest:
        day = _number(rest.rstrip("日号"))
        return (begin + day - 1, begin + day) if 1 <= day <= end - begin else None
    return begin, end


def _read_named_day(said: dict[str, str], today: _Today) -> Span | None:
    return _unit(today, "day", _NAMED_DAYS[" ".join(said["named"].split())])


def _counted(said: str) -> Span:
    """Return the minimum and maximum of a count: "a few" is a range."""
    last = said.removesuffix("of").split()[-1]
    count = _COUNTS[last] if last in _COUNTS else _number(last)
    return _VAGUE.get(last, (count, count))


def _read_ago(said: dict[str, str], today: _Today) -> Span | None:
    """Read a number of days, weeks, months or years before today (or after), as a calendar unit."""
    least, most = _counted(said["count"])
    if not 0 <= least <= most <= 200:
        return None
    unit = _UNITS.get(said["unit"], said["unit"])
    sign = 1 if "after" in said else -1
    first, second = _unit(today, unit, sign * least), _unit(today, unit, sign * most)
    return min(first[0], second[0]), max(first[1], second[1])


def _read_half(said: dict[str, str], today: _Today) -> Span | None:
    """Read half a year ago as the month six before, and half a month ago as the week two before."""
    return _unit(today, "month", -6) if said["unit"] == "年" else _unit(today, "week", -2)


def _read_rolling(said: dict[str, str], today: _Today) -> Span | None:
    """Read the last number of days, weeks, months or years up to and including today."""
    count = _counted(said.get("count", "1"))[1]
    if not 0 <= count <= 200:
        return None
    unit = _UNITS.get(said["unit"], said["unit"])
    if unit in ("month", "year"):
        year, month, day = _civil(today.number)
        begin, end = _months(year, month - count * (12 if unit == "year" else 1))
        return min(begin + day - 1, end - 1), today.number + 1
    return today.number - count * (7 if unit == "week" else 1), today.number + 1


def _weekday(said: str) -> int:
    return _WEEKDAY_NAMES.index(said[:3]) if said.isascii() else "一二三四五六日天".index(said) % 7


def _read_weekday(said: dict[str, str], today: _Today) -> Span | None:
    """The latest such day not after today; "last" before today, "this" of this week, "next" after today."""
    if "weekend" in said:
        begin, end = _unit(today, "weekend", 0)
        return (begin, end) if begin <= today.number else (begin - 7, end - 7)
    back = (today.number + 3 - _weekday(said["weekday"])) % 7
    which = _which(said)
    if "of" in said or which == "this":
        begin, _ = _unit(today, "week", _OFFSETS[said.get("of", "this")])
        day = begin + _weekday(said["weekday"])
    elif which == "next":
        day = today.number - back + 7
    else:
        day = today.number - (back or 7) if which == "last" else today.number - back
    return day, day + 1


# The rules.

_FOLDED = str.maketrans(
    {chr(ord("A") + step): chr(ord("a") + step) for step in range(26)}
    | {chr(0xFF10 + step): str(step) for step in range(10)}
    | dict(zip("’／－–週號個兩後這禮過間幾數", "'/--周号个两后这礼过间几数", strict=True))
)
"""Case, wide digits and the traditional characters of dates. Positions stay the same."""

_B, _E, _S = r"(?<![a-z0-9_])", r"(?![a-z0-9_])", r"\s{1,3}"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:\s?(?:-|to)\s?(?P<until>\d{1,2})(?:st|nd|rd|th)?)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF_YEAR = rf"(?:,?{_S}(?:(?:of|in){_S})?(?:{_YEAR}|(?P<of>last|this|next){_S}year){_E})"
_COUNT = (
    r"(?P<count>\d{1,3}|(?:a\s)?(?:few|couple(?:\sof)?)|several|an?|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve|twenty|thirty)"
)
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"
_WHICH = r"(?P<which>last|past|previous|this|next|coming)"
_N = "[0-9〇零一二三四五六七八九十两]"
_TAIL = (
    rf"(?P<month>{_N}{{1,3}})月份?(?:的?(?P<day>{_N}{{1,3}})(?:[日号]|(?={_E})))?"
    rf"|(?P<season>[春夏秋冬])(?:[天季]|{_E})"
)
_OFFSET = r"(?P<which>上上|上|这|本|下下|下)一?个?"

_PATTERNS: dict[Reader, tuple[str, ...]] = {
    _read_date: (
        rf"{_B}(?:{_WEEKDAY},?{_S})?{_DAY}{_S}(?:of{_S})?{_MONTH}{_E}\.?{_OF_YEAR}?",
        rf"{_B}(?:{_WEEKDAY},?{_S})?{_MONTH}\.?{_S}(?:the{_S})?{_DAY}{_E}{_OF_YEAR}?",
        rf"{_B}{_MONTH}\.?{_OF_YEAR}",
        rf"{_B}(?:{_WHICH}|in|during|until|since|late|early|mid|end{_S}of){_S}(?:late{_S}|early{_S}|mid-?\s?)?"
        rf"{_MONTH}{_E}{_OF_YEAR}?",
        rf"{_B}{_SEASON}{_OF_YEAR}",
        rf"{_B}(?:{_WHICH}|in(?:{_S}the)?|during(?:{_S}the)?|over{_S}the){_S}{_SEASON}{_E}{_OF_YEAR}?",
        rf"{_B}(?:in|during|since|of|from|by|before|after|year|until|till|late|early|mid|around|throughout|the){_S}"
        rf"{_YEAR}{_E}(?![-/.]\d)",
        r"(?<![\d/.-])(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?![\d/-]|\.\d)",
        rf"(?<![\d/.-]){_YEAR}[-/](?P<month>\d{{1,2}})(?![\d/-]|\.\d)",
        rf"(?<![0-9])(?P<year>[0-9]{{4}}|[0-9]{{2}}(?=年{_N})|[〇零一二三四五六七八九]{{4}})年的?(?:{_TAIL})?",
        rf"(?<![以之])(?P<of>大前年|前年|去年|今年|明年|后年|(?:今|去|明)(?=[春夏秋冬]))的?(?:{_TAIL})?",
        rf"(?<![0-9第年〇一二三四五六七八九十.-])(?P<month>{_N}{{1,2}})月份?(?:的?(?P<day>{_N}{{1,3}})[日号])?",
        r"(?:(?P<which>这|本)个?|在|那年)(?P<season>[春夏秋冬])[天季]",
    ),
    _read_day_month_year: (
        rf"(?<![\d/.-])(?P<first>\d{{1,2}})[/.](?P<second>\d{{1,2}})[/.]{_YEAR}(?![\d/-])",
    ),
    _read_unit: (
        rf"{_B}(?:the{_S})?(?P<unit>week|weekend|month|year|night){_S}before{_S}last{_E}",
        rf"{_B}{_WHICH}{_S}(?P<unit>week|weekend|month|quarter|year|night|morning|afternoon|evening){_E}",
        rf"(?<![早晚马路网街线]){_OFFSET}(?P<unit>周(?![围边到身遭])|星期|礼拜)"
        r"(?P<rest>末|[一二三四五六日天](?![个年天月次]))?",
        rf"(?<![早晚马]){_OFFSET}(?P<unit>月|季度)的?(?P<rest>{_N}{{1,3}}[日号])?",
    ),
    _read_named_day: (
        rf"{_B}(?P<named>the{_S}day{_S}before{_S}yesterday|the{_S}day{_S}after{_S}tomorrow|yesterday|today|tonight"
        rf"|tomorrow|last{_S}night){_E}",
        r"(?<![以之从目今然最])(?P<named>大前|前|昨|今|明|大后|后)[天日晚早晨夜](?![本皇])",
    ),
    _read_ago: (
        rf"{_B}{_COUNT}{_S}(?P<unit>day|week|weekend|month|year|night)s?{_S}(?:ago|back|(?P<after>from{_S}now)){_E}",
        rf"(?P<count>{_N}{{1,3}}|[几数])(?:多?个多?)?(?P<unit>天|日|周|星期|礼拜|年|(?<=个)月)多?(?:以|之)?前",
    ),
    _read_half: (r"半个?(?P<unit>年|月)多?(?:以|之)?前",),
    _read_rolling: (
        rf"{_B}(?:last|past|previous){_S}{_COUNT}{_S}(?P<unit>day|week|month|year|night)s{_E}",
        rf"(?:最近|过去|近)的?(?P<count>{_N}{{1,3}}|[几数])个?(?P<unit>天|日|周|星期|礼拜|月|年)",
    ),
    _read_weekday: (
        rf"(?<!every )(?<!each ){_B}(?:{_WHICH}{_S}|on{_S})?(?P<weekday>{_WEEKDAY})"
        rf"(?:{_S}(?:of{_S})?(?P<of>last|this|next){_S}week)?{_E}",
        rf"(?<![每{_N[1:-1]}])(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?![次个年月回遍])",
        r"(?P<weekend>周末)",
    ),
}

_RULES = tuple(
    (re.compile(pattern), reader) for reader, patterns in _PATTERNS.items() for pattern in patterns
)

_ASCII_RULES = tuple((pattern, reader) for pattern, reader in _RULES if pattern.pattern.isascii())
"""The rules for English. All others require a Chinese character."""

_MAY_DATE = re.compile(
    "[0-9]|day|night|morning|afternoon|evening|week|month|quarter|year|tomorrow|spring|summer|autumn|fall|winter|"
    + "|".join(_MONTH_NAMES)
)
"""A part of every date in English."""
