"""Times: find the days, and the times of day, that the words of a text mean, in English and Chinese.

One grammar (`time_rules.py`) has two uses. The dates of a question boost results and exclude none: they are whole days,
and "two weeks ago" is a calendar week. A statement states one time: "two weeks ago" is that day, and a plan lies ahead.

The rules find the parts of a time: a date, a weekday, a time of day. Of two overlapping matches the earlier one is
used, then the longer one. Then neighbours are joined ("Monday" and "at 3 pm"), words around them narrow them ("late",
月底) or open them at one end ("since", 以来), and two of them make a range ("from May to July"). A weak part, such as a
month without a preposition, counts only in company. Times are computed in minutes of the agent's local time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal

from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.retrieval.time_rules import (
    DAY,
    EXACT,
    FOLDED,
    HOUR,
    NOON,
    PART_NAMES,
    PARTS,
    PORTIONS,
    Now,
    Reading,
    Rule,
    Span,
    by_word,
    counted,
    is_certain,
    part_of,
    portion,
    read_clock,
    read_date,
    read_day_of_month,
    read_part,
    read_weekday,
    rules_for,
    year_of,
)

DAY_MS = 86_400_000
MINUTE_MS: Final = 60_000

MAX_CHARACTERS = 4_000
"""Characters of a text that are read."""

MAX_RANGES, MAX_MATCHES = 8, 64
"""Ranges per text, and matches per rule."""

Granularity = Literal["year", "season", "month", "week", "day", "hour", "minute"]
Offset = Callable[[int], int]
"""From a time in ms to what a local clock is ahead of UTC, in ms."""


def utc(_: int) -> int:
    """Return how far UTC is ahead of itself."""
    return 0


@dataclass(frozen=True, slots=True)
class DateRange:
    """A range of days in ms, end exclusive, with its words, and whether it depends on the reference time."""

    begin_ms: int
    end_ms: int
    text: str
    is_relative: bool


@dataclass(frozen=True, slots=True)
class StatedTime:
    """The time that a text states, half-open, with the place of its words. None is an open end."""

    offset: int
    length: int
    since_ms: int | None
    until_ms: int | None
    granularity: Granularity
    time_words: str
    is_period: bool = False
    """Whether it is a range of days whose year is stated and whose end is stated or past: "from 2015 to 2019"."""


def date_ranges(text: str, reference_ms: int, offset: Offset = utc) -> list[DateRange]:
    """Return the unique date ranges of a question in order. Incomplete dates are resolved with the reference time."""
    now = _now(reference_ms, offset, "question")
    ranges: dict[Span, DateRange] = {}
    for one in _times(text[:MAX_CHARACTERS], now):
        if one.days is None:
            continue
        begin, end = one.span if one.is_range or not one.has_hours else one.days
        if one.relation == "since":
            end = max(end, now.number * DAY + DAY)
        span = begin // DAY * DAY, -(-end // DAY) * DAY
        words = _without_stop(text[one.begin : one.end].strip())
        found = DateRange(_in_ms(span[0], offset), _in_ms(span[1], offset), words, "year" not in one.said)
        ranges.setdefault(span, found)
    return list(ranges.values())[:MAX_RANGES]


def stated_time(
    text: str, reference_ms: int, reading: Reading = "event", offset: Offset = utc
) -> StatedTime | None:
    """Return the first time that a text states, or None. The reference is the time at which it was said.

    A time that no store can hold is none.
    """
    found = _times(text[:MAX_CHARACTERS], _now(reference_ms, offset, reading))
    if not found:
        return None
    one = found[0]
    begin, end = (_in_ms(minutes, offset) for minutes in one.span)
    if not EARLIEST_MS <= begin < end <= LATEST_MS:
        return None
    since, until = {
        "": (begin, end),
        "since": (begin, None),
        "after": (end, None),
        "until": (None, end),
        "before": (None, end if one.is_end else begin),
    }[one.relation]
    words = _without_stop(text[one.core : one.end])
    return StatedTime(one.core, len(words), since, until, _granularity(one.span), words, one.is_period)


def _without_stop(words: str) -> str:
    """Return words of a time without a full stop at their end, but for that of "p.m."."""
    return words[:-1] if words.endswith(".") and "." not in words[-4:-1] else words


def not_ahead(found: StatedTime, said_ms: int, offset: Offset = utc) -> StatedTime:
    """Return a time of something that has happened. A part of the day on which it was said does not begin later."""
    if found.since_ms is None or found.since_ms <= said_ms:
        return found
    days = {(each + offset(each)) // (DAY * MINUTE_MS) for each in (found.since_ms, said_ms)}
    return replace(found, since_ms=said_ms) if len(days) == 1 else found


def _now(reference_ms: int, offset: Offset, reading: Reading) -> Now:
    return Now.on((reference_ms + offset(reference_ms)) // MINUTE_MS, reading)


def _in_ms(minutes: int, offset: Offset) -> int:
    """Return a local time as ms of UTC. A time that a change of the clock skips moves by the change."""
    local = minutes * MINUTE_MS
    return local - offset(local - offset(local))


def _granularity(span: Span) -> Granularity:
    """Return how exact a time is, by its length."""
    length = span[1] - span[0]
    return next((name for limit, name in _LENGTHS if length < limit), "year")


_LENGTHS: Final[tuple[tuple[int, Granularity], ...]] = (
    (HOUR, "minute"),
    (DAY, "hour"),
    (7 * DAY, "day"),
    (28 * DAY, "week"),
    (89 * DAY, "month"),
    (365 * DAY, "season"),
)


@dataclass(slots=True)
class _Time:
    """A time within a text: days, a time of day, or both."""

    begin: int
    core: int
    """Where the words of the time itself begin, after prepositions."""
    end: int
    rule: Rule
    said: dict[str, str]
    days: Span | None = None
    """In minutes."""
    clock: int | None = None
    """The minute of a time of day."""
    is_certain: bool = True
    """Whether the time of day has its half of the day."""
    part: str = ""
    """The part of the day, such as "morning"."""
    portion: str = ""
    """The portion of the days, such as "late"."""
    is_weak: bool = False
    is_range: bool = False
    is_period: bool = False
    """Whether it is a range of days whose year is stated and whose end is stated or past."""
    relation: str = ""
    """Which end is open: since, after, until or before."""
    span: Span = (0, 0)

    @property
    def has_hours(self) -> bool:
        """Whether it is less than a day."""
        return self.clock is not None or bool(self.part)

    @property
    def is_end(self) -> bool:
        """Whether it is the end of a period. "Before the end of June" is before July."""
        return PORTIONS.get(self.said.get("edge", ""), self.portion) == "late"

    @property
    def is_one_day(self) -> bool:
        return self.days is not None and self.days[1] - self.days[0] == DAY and not self.days[0] % DAY


# From a text to its times.


def _times(text: str, now: Now) -> list[_Time]:
    """Return the times of a text in order."""
    folded = text.translate(FOLDED)
    joined: list[_Time] = []
    for one in _parts(text, folded, now):
        if not (joined and _join(joined[-1], one, folded)):
            joined.append(one)
    found: list[_Time] = []
    for one in joined:
        _modify(one, folded)
        one.span = _span(one, now)
        if not (found and _extend(found[-1], one, folded, now)):
            found.append(one)
    for one in found:
        _relate(one, folded, now)
        one.is_weak = one.is_weak or (now.reading != "question" and _is_habit(one, folded))
    return [one for one in found if not one.is_weak]


def _is_habit(one: _Time, folded: str) -> bool:
    """Return whether a time comes back, such as "every day at six". Such a time dates no statement."""
    return _EVERY.search(folded, max(0, one.core - 20), one.core) is not None


def _parts(text: str, folded: str, now: Now) -> list[_Time]:
    """Return the parts of times in order, without overlaps."""
    found: list[_Time] = []
    for rule in rules_for(folded):
        for match in islice(rule.pattern.finditer(folded), MAX_MATCHES):
            one = _part(match, rule, now)
            if one is not None and not (rule.is_capitalised and text[one.core : one.core + 1].islower()):
                found.append(one)
    strong = _apart(one for one in found if not one.is_weak)
    begins = [one.begin for one in strong]

    def is_free(one: _Time) -> bool:
        place = bisect_left(begins, one.end)
        return place == 0 or strong[place - 1].end <= one.begin

    weak = _apart(one for one in found if one.is_weak and is_free(one))
    return sorted([*strong, *weak], key=lambda one: one.begin)


def _apart(found: Iterable[_Time]) -> list[_Time]:
    """Return those that do not overlap, in order: of two, the one that begins earlier or else is longer."""
    kept: list[_Time] = []
    for one in sorted(found, key=lambda one: (one.begin, -one.end)):
        if not kept or one.begin >= kept[-1].end:
            kept.append(one)
    return kept


def _part(match: re.Match[str], rule: Rule, now: Now) -> _Time | None:
    """Return what a match means, or None if it means no time."""
    said = {name: words for name, words in match.groupdict().items() if words is not None}
    span = rule.reader(said, now)
    if span is None:
        return None
    leading = None if "tense" in said else _LEADING.match(match.string, match.start(), match.end())
    core = match.start() if leading is None else leading.end()
    one = _Time(match.start(), core, match.end(), rule, said, is_weak=rule.is_weak, part=part_of(said))
    if rule.reader is read_clock:
        if _COMPANY.match(match.string, match.end()):
            return None
        one.clock, one.is_certain = span[0], is_certain(said)
    elif rule.reader is not read_part:
        size = 1 if rule.reader in EXACT else DAY
        one.days = span[0] * size, span[1] * size
    return one


def _join(before: _Time, after: _Time, folded: str) -> bool:
    """Join a day and a time of day that are neighbours, and return whether they were."""
    if after.begin - before.end > MAX_GAP or not _JOINT.fullmatch(folded, before.end, after.begin):
        return False
    if not all(one.is_one_day for one in (before, after) if one.days is not None):
        return False
    if before.days is not None and after.days is not None:
        if {before.rule.reader, after.rule.reader} != {read_date, read_weekday}:
            return False
    elif before.clock is not None and after.clock is not None:
        return False
    if before.days is None and after.days is None and before.part and after.part:
        return False
    if after.days is not None and (before.days is None or after.rule.reader is read_date):
        before.days, before.rule, before.said = after.days, after.rule, after.said
    if after.clock is not None:
        before.clock, before.is_certain = after.clock, after.is_certain
    before.part = after.part or before.part
    before.is_weak = before.is_weak and after.is_weak
    before.end = after.end
    return True


def _span(one: _Time, now: Now) -> Span:
    """Return the minutes of a time. Without a day, it is the nearest one."""
    if not one.has_hours:
        assert one.days is not None
        if not one.portion:
            return one.days
        begin, end = portion((one.days[0] // DAY, one.days[1] // DAY), one.portion)
        return begin * DAY, end * DAY
    first, last = _hours(one)
    if one.days is not None:
        midnight = one.days[0]
    else:
        midnight = now.number * DAY
        if now.is_plan:
            midnight += DAY if midnight + first < now.minutes else 0
        else:
            midnight -= DAY if midnight + first > now.minutes else 0
    return midnight + first, midnight + last


def _hours(one: _Time) -> Span:
    """Return the minutes of the day of a time of day or of a part of the day."""
    window = PARTS[PART_NAMES[one.part]] if one.part else None
    if one.clock is None:
        return window or (0, DAY)
    minute = one.clock if one.is_certain else _in_part(one.clock, window)
    return minute, minute + 1


def _in_part(minute: int, part: Span | None) -> int:
    """Return a time of twelve hours as one of the day; without a part of the day, as one from 7 to 18:59."""
    if part is None:
        return minute + NOON if HOUR <= minute < 7 * HOUR else minute
    if part == PARTS["small hours"]:
        return minute % NOON
    if part == PARTS["night"] and (minute < 5 * HOUR or minute >= NOON):
        return minute % NOON + DAY
    return minute + NOON if part[0] >= NOON and minute < min(NOON, part[1] - NOON) else minute


def _modify(one: _Time, folded: str) -> None:
    """Note the words around a time that narrow it to a portion or shift it."""
    if one.days is None:
        return
    start = max(0, one.core - 40)
    if one.is_one_day and (said := _SHIFT.search(folded, start, one.core)):
        count = 1 if said["count"] == "the" else counted(said["count"])[1]
        days = count * (7 if said["unit"] == "week" else 1) * (-1 if said["side"] == "before" else 1) * DAY
        one.days = one.days[0] + days, one.days[1] + days
        one.begin, one.core = min(one.begin, said.start()), said.start()
    elif not one.has_hours and (said := _PORTION_BEFORE.search(folded, start, one.core)):
        one.portion, one.is_weak = PORTIONS[" ".join(said["portion"].split())], False
        one.begin, one.core = min(one.begin, said.start()), said.start()
    elif not one.has_hours and (after := _PORTION_AFTER.match(folded, one.end)):
        one.portion, one.is_weak, one.end = PORTIONS[after["portion"]], False, after.end()


def _extend(before: _Time, after: _Time, folded: str, now: Now) -> bool:
    """Extend a time to the one that follows "to", 到 or a dash, and return whether it does."""
    gap = _TO.fullmatch(folded, before.end, max(before.end, min(after.core, before.end + MAX_GAP)))
    if gap is None or after.core - before.end > MAX_GAP or before.is_range:
        return False
    opening = _FROM.search(folded, max(0, before.core - 12), before.core)
    if gap["and"] and not (opening and opening["between"]):
        return False
    are_hours = before.clock is not None and after.clock is not None and not folded.isascii()
    if before.said == after.said:
        return False  # a name such as Jun-jun
    if before.is_weak and after.is_weak and not (opening or gap["dash"] or are_hours):
        return False
    _agree(before, after, now)
    begin, end = before.span[0], after.span[1] if after.clock is None else after.span[0]
    if end <= begin:
        return False
    before.span, before.is_range, before.is_weak, before.end = (begin, end), True, False, after.end
    before.days = before.days or after.days
    is_in_past = end <= now.minutes and bool((before.said | after.said).keys() & {"year", "of", "which"})
    before.is_period = not (before.has_hours or after.has_hours) and ("year" in after.said or is_in_past)
    if opening is not None:
        before.begin, before.core = min(before.begin, opening.start()), opening.start()
    if "year" in after.said:
        before.said = before.said | {"year": after.said["year"]}
    return True


def _agree(before: _Time, after: _Time, now: Now) -> None:
    """Complete both ends of a range by each other: the year, the day, and the half of the day."""
    reader = before.rule.reader
    if reader is read_date and not before.said.keys() & {"year", "of"} and (year := year_of(after.said, now)):
        for candidate in (year, year - 1):
            days = reader(before.said | {"year": str(candidate)}, now)
            if days is not None and days[0] * DAY < after.span[1]:
                before.days = days[0] * DAY, days[1] * DAY
                before.span = _span(before, now)
                break
    if reader is read_day_of_month and after.rule.reader is read_date:  # 二十九号到五月四号
        days = reader(before.said, Now.on(after.span[0], "event"))
        if days is not None:
            before.days = days[0] * DAY, days[1] * DAY
            before.span = _span(before, now)
    later = Now.on(before.span[0], "plan")
    if after.days is not None:
        is_open = not after.said.keys() & {"year", "of", "which"}
        if is_open and after.rule.reader in (read_date, read_weekday, read_day_of_month):
            days = after.rule.reader(after.said, later)
            if days is not None:
                after.days = days[0] * DAY, days[1] * DAY
                after.span = _span(after, later)
    elif before.clock is not None:
        if not before.is_certain and not before.part and after.is_certain and after.clock is not None:
            if before.clock < NOON <= after.clock and before.clock + NOON < after.clock:
                before.clock += NOON
            before.is_certain = True
            before.span = _span(before, now)
        after.part = after.part or before.part
        midnight = before.span[0] // DAY * DAY
        first, last = _hours(after)
        if midnight + first <= before.span[0] and not after.is_certain:
            first += NOON
        after.span = midnight + first, midnight + last


def _relate(one: _Time, folded: str, now: Now) -> None:
    """Open a time at one end by the words around it, such as "since" or 以来."""
    if one.is_range:
        return
    before = _RELATION_BEFORE.search(folded, max(0, one.core - 30), one.core)
    after = _RELATION_AFTER.match(folded, one.end)
    if before is not None and (one.days is not None or not one.is_weak):
        one.relation = _RELATIONS[before["relation"] or before["han"]]
        if before["origin"] and now.reading == "question":
            one.relation = ""  # "photos from May"
        one.begin, one.core, one.is_weak = min(one.begin, before.start()), before.start(), False
    if after is not None and not one.is_weak:
        one.relation, one.end = _RELATIONS[after["relation"]], after.end()
    elif one.relation == "since" and (onwards := _ONWARDS.match(folded, one.end)):
        one.end = onwards.end()


MAX_GAP: Final = 24
"""Characters between the parts of a time."""

_LEADING = re.compile(
    r"(?:(?:in|on|at|by|until|till|since|from|before|after|during|over|about|around|through|throughout|starting|of|year(?=\s)"
    r"|late|early|mid|end of|between|than|the)[\s-]{1,3}){1,3}|[在的]"
)
"""Words before a time that do not belong to it."""
_EVERY = re.compile(
    r"(?:(?<![a-z])(?:every|each)\s(?:(?:single\s)?(?:other\s)?(?:day|morning|evening|night|week|month|year|weekday)\s)?"
    r"(?:(?:at|on|in)\s)?|每(?:天|日|晚|周|逢|到|(?:个?(?:星期|礼拜|月))|年)?的?[都在]?)$"
)
_COMPANY = re.compile(r"\s(?:corp|inc|ltd|llc|gmbh|company|records|studios?|club)(?![a-z])")
"""A name after a time of day, which is then part of it."""
_JOINT = re.compile(r"t|[\s,]{0,3}(?:(?:at|on|in|the|around|about|from|by|of|的|@|-|\()[\s,]{0,2}){0,3}")
_TO = re.compile(
    r"\s{0,2}(?:to|through|thru|until|till|til|up to|(?P<dash>[-~—])|到|至|直到|(?P<and>and|和|与))\s{0,2}(?:the\s)?"
)
_FROM = re.compile(r"(?:(?<![a-z])(?:from|(?P<between>between))\s{1,2}(?:the\s)?|自|从|由|在)$")
_PORTION_BEFORE = re.compile(
    r"(?<![a-z])(?<!minutes )(?<!hours )(?<!days )(?:the\s)?(?:very\s)?(?P<portion>early|mid|late"
    r"|(?:beginning|start|end|middle|(?:first|second)\shalf)(?=\sof))(?:\sin|\sof)?(?:\s|-)(?:the\s)?$"
)
_PORTION_AFTER = re.compile(
    r"的?(?:年|月)?(?P<portion>初(?![一二三四五六七八九十])|底|末|中旬|中(?![国学午秋心期])|上旬|下旬|中期|初期|末期|上半月|下半月)"
)
_SHIFT = re.compile(
    r"(?<![a-z])(?<!once )(?<!twice )(?<!times )(?<!days )(?P<count>the|a|one|two|three|four|five|six|\d{1,2})"
    r"\s(?P<unit>day|week)s?\s(?P<side>before|after|from|on)\s(?:the\s)?$"
)
_RELATION_BEFORE = re.compile(
    r"(?:(?<![a-z])(?P<relation>ever since|since|as of|starting|beginning|(?P<origin>from)|after|before|prior to|until"
    r"|till|up to|by|through|no later than|not later than)\s(?:on\s|from\s|the\s|about\s|around\s)?"
    r"|(?P<han>自从|自|从|直到|到|截至|截止))$"
)
_RELATION_AFTER = re.compile(
    "份?(?P<relation>以来|至今|到现在|到今天|起(?![飞床来码草名点])|之后|以后|之前|以前|前(?![天年面后进往途台辈夕两几些])|后(?![天年面来])|为止)"
)
_ONWARDS = re.compile(r"\son(?:wards?)?(?![a-z])")
_RELATIONS: Final = by_word(
    {
        "since": ("ever since", "since", "as of", "starting", "beginning", "from"),
        "until": ("until", "till", "up to", "by", "through", "no later than", "not later than"),
        "before": ("before", "prior to"),
        "after": ("after",),
    }
) | by_word(
    {
        "since": ("自从", "自", "从", "以来", "至今", "到现在", "到今天", "起"),
        "until": ("直到", "到", "截至", "截止", "为止"),
        "before": ("之前", "以前", "前"),
        "after": ("之后", "以后", "后"),
    }
)
