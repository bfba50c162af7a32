"""Times of questions and statements become ranges, resolved with the reference time where necessary."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from time import process_time
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.clock import offset_of
from ebbtide.retrieval import time_rules, times
from ebbtide.retrieval.time_rules import Reading
from ebbtide.retrieval.times import DAY_MS, MAX_RANGES, date_ranges, stated_time

EPOCH = date(1970, 1, 1)
REFERENCE_MS = int(datetime(2023, 6, 14, 15, 30, tzinfo=UTC).timestamp() * 1000)
"""A Wednesday in June."""


def said(text: str, reference_ms: int = REFERENCE_MS) -> list[str]:
    """Return the ranges of a text as first and last day, or one day if they are equal."""
    told = []
    for found in date_ranges(text, reference_ms):
        assert found.begin_ms % DAY_MS == 0 and found.end_ms % DAY_MS == 0
        first = EPOCH + timedelta(days=found.begin_ms // DAY_MS)
        last = EPOCH + timedelta(days=found.end_ms // DAY_MS - 1)
        told.append(str(first) if first == last else f"{first}..{last}")
    return told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what happened on 7 May 2023?", "2023-05-07"),
        ("May 7, 2023", "2023-05-07"),
        ("Sunday, 7th of May 2023", "2023-05-07"),
        ("December 25th 2022", "2022-12-25"),
        ("8-10 May 2023", "2023-05-08..2023-05-10"),
        ("in May 2023", "2023-05-01..2023-05-31"),
        ("2023-05-07", "2023-05-07"),
        ("at 2023-05-07T10:00:00Z", "2023-05-07"),
        ("2023/5/7", "2023-05-07"),
        ("25/12/2022", "2022-12-25"),
        ("the summer of 2023", "2023-06-01..2023-08-31"),
        ("winter 2022", "2022-12-01..2023-02-28"),
        ("in 2022", "2022-01-01..2022-12-31"),
        ("2023年5月7日", "2023-05-07"),
        ("２０２３年５月７號", "2023-05-07"),
        ("二〇二三年五月七日", "2023-05-07"),
        ("23年5月", "2023-05-01..2023-05-31"),
        ("2022年冬天", "2022-12-01..2023-02-28"),
    ],
)
def test_whole_dates_need_no_reference(text: str, expected: str) -> None:
    """A date with its year does not depend on the reference and is not marked as relative."""
    assert said(text) == [expected]
    assert said(text, REFERENCE_MS - 9_000 * DAY_MS) == [expected]
    assert not date_ranges(text, REFERENCE_MS)[0].is_relative


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in May", "2023-05-01..2023-05-31"),
        ("in July", "2022-07-01..2022-07-31"),
        ("last May", "2023-05-01..2023-05-31"),
        ("last June", "2022-06-01..2022-06-30"),
        ("next June", "2024-06-01..2024-06-30"),
        ("May last year", "2022-05-01..2022-05-31"),
        ("on 1 July", "2022-07-01"),
        ("Feb 29", "2020-02-29"),
        ("last week", "2023-06-05..2023-06-11"),
        ("last weekend", "2023-06-10..2023-06-11"),
        ("the week before last", "2023-05-29..2023-06-04"),
        ("last month", "2023-05-01..2023-05-31"),
        ("last year", "2022-01-01..2022-12-31"),
        ("last summer", "2022-06-01..2022-08-31"),
        ("in the spring", "2023-03-01..2023-05-31"),
        ("yesterday", "2023-06-13"),
        ("the day before yesterday", "2023-06-12"),
        ("last night", "2023-06-13"),
        ("two weeks ago", "2023-05-29..2023-06-04"),
        ("a couple of months ago", "2023-04-01..2023-04-30"),
        ("a few days ago", "2023-06-09..2023-06-12"),
        ("in the past three days", "2023-06-11..2023-06-14"),
        ("on Monday", "2023-06-12"),
        ("on Wednesday", "2023-06-14"),
        ("last Wednesday", "2023-06-07"),
        ("next Friday", "2023-06-23"),
        ("Monday of last week", "2023-06-05"),
        ("5月7日", "2023-05-07"),
        ("十二月二十五日", "2022-12-25"),
        ("去年五月", "2022-05-01..2022-05-31"),
        ("上周", "2023-06-05..2023-06-11"),
        ("上個月", "2023-05-01..2023-05-31"),
        ("上个月5号", "2023-05-05"),
        ("上周三", "2023-06-07"),
        ("昨天", "2023-06-13"),
        ("前天", "2023-06-12"),
        ("大前天", "2023-06-11"),
        ("三天前", "2023-06-11"),
        ("两个星期前", "2023-05-29..2023-06-04"),
        ("半年前", "2022-12-01..2022-12-31"),
        ("最近三个月", "2023-03-14..2023-06-14"),
        ("星期一", "2023-06-12"),
        ("今年春天", "2023-03-01..2023-05-31"),
        ("去年夏天", "2022-06-01..2022-08-31"),
        ("since March", "2023-03-01..2023-06-14"),
        ("since last week", "2023-06-05..2023-06-14"),
        ("since Monday", "2023-06-12..2023-06-14"),
        ("三月以来", "2023-03-01..2023-06-14"),
        ("上周至今", "2023-06-05..2023-06-14"),
        ("since then, in April", "2023-04-01..2023-04-30"),
    ],
)
def test_incomplete_dates_use_the_reference(text: str, expected: str) -> None:
    """A date without year, month or week is resolved with the reference and marked as relative."""
    assert said(text) == [expected]
    assert date_ranges(text, REFERENCE_MS)[0].is_relative


@pytest.mark.parametrize(
    "text",
    [
        "What may April say about the march?",
        "2023-13-45",
        "5/7/2023",
        "version 1999.5 on port 2049",
        "order 20230507",
        "3个月后",
        "a few weeks later",
        "三个月",
        "每周一开会",
        "一周一次",
        "路上周围",
        "第3月台",
        "",
    ],
)
def test_invalid_dates_yield_nothing(text: str) -> None:
    """Words and numbers that look like dates, and days that do not exist, yield nothing."""
    assert said(text) == []


def test_the_current_month_and_season_are_of_this_year() -> None:
    """The current month is that of this year, also on its first day."""
    first_of_may = int(datetime(2023, 5, 1, tzinfo=UTC).timestamp() * 1000)
    assert said("in May", first_of_may) == ["2023-05-01..2023-05-31"]
    assert said("in May", first_of_may - 1) == ["2022-05-01..2022-05-31"]


def test_several_dates_come_in_order_each_once() -> None:
    """Two dates yield two ranges in order; repetitions count once."""
    found = date_ranges("On 7 May 2023 and yesterday, 2023-05-07", REFERENCE_MS)
    assert [one.text for one in found] == ["7 May 2023", "yesterday"]


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        "may ",
        "in the ",
        "一",
        "上周",
        "monday ",
        " ",
        "the day before ",
        "2023-",
        "两个",
        "1 ",
        "last ",
    ],
)
def test_hostile_texts_are_read_fast(piece: str) -> None:
    """Reading takes linear time, and the number of ranges is limited."""
    started = process_time()
    found = date_ranges(piece * 10_000, REFERENCE_MS)
    assert process_time() - started < 5
    assert len(found) <= MAX_RANGES


WORDS = (
    "may monday last next this of in the week year month day ago before two 2023 7 31 0 999 - / , . 's summer few "
    "年 月 日 号 周 上 下 前 大 去 五 十 〇 个 末 半 天 春"
)
PIECES = st.sampled_from(WORDS.split())


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=14), st.sampled_from(["", " "]), st.integers(-(10**13), 10**14))
def test_ranges_are_valid_for_any_text(pieces: list[str], joint: str, reference_ms: int) -> None:
    """For any text and reference, ranges are whole days, not empty, with words of the text."""
    text = joint.join(pieces)
    for found in date_ranges(text, reference_ms):
        assert found.begin_ms < found.end_ms
        assert found.begin_ms % DAY_MS == found.end_ms % DAY_MS == 0
        assert found.text and found.text in text


@settings(max_examples=60, deadline=None)
@given(st.dates(date(1900, 1, 1), date(2100, 12, 31)))
def test_every_day_is_read_as_itself(day: date) -> None:
    """The calendar equals that of the standard library, in both languages."""
    assert said(day.isoformat()) == [str(day)]
    assert said(f"{day.year}年{day.month}月{day.day}日") == [str(day)]


MORE_ENGLISH = (
    "yesterday tonight weekend quarter noon half past six o'clock from at to until the christmas eve nineties an hour "
    "later morning fri first end early since sunday q3 new year's halloween boxing"
)
MORE_CHINESE = "7 12 : - 点 半 晚上 到 底 周 三 前 后 圣诞"
ENGLISH = [word for word in WORDS.split() if word.isascii()] + MORE_ENGLISH.split()
CHINESE = [word for word in WORDS.split() if not word.isascii()] + MORE_CHINESE.split()


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(ENGLISH), max_size=6).map(" ".join)
    | st.lists(st.sampled_from(CHINESE), max_size=8).map("".join)
)
def test_rules_that_cannot_apply_are_skipped(text: str) -> None:
    """Promise: the rules that are applied to a text find the times that all rules find."""
    with mock.patch.object(times, "rules_for", return_value=time_rules.RULES):
        expected = date_ranges(text, REFERENCE_MS), stated_time(text, REFERENCE_MS, "plan")
    assert (date_ranges(text, REFERENCE_MS), stated_time(text, REFERENCE_MS, "plan")) == expected


# --- statements --------------------------------------------------------------------------------------------


def stated(text: str, reading: Reading = "event", reference_ms: int = REFERENCE_MS) -> str | None:
    """Return the interval that a statement states, as `since..until`; a missing end is open."""
    found = stated_time(text, reference_ms, reading)
    if found is None:
        return None
    assert text[found.offset : found.offset + found.length] == found.time_words
    return "..".join("" if end is None else local(end) for end in (found.since_ms, found.until_ms))


def local(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d}" if time_ms % DAY_MS == 0 else f"{moment:%Y-%m-%dT%H:%M}"


def day(text: str) -> str:
    """Return the interval of a day."""
    return f"{text}..{date.fromisoformat(text) + timedelta(days=1)}"


@pytest.mark.parametrize(
    ("text", "event", "plan"),
    [
        ("on Monday", day("2023-06-12"), day("2023-06-19")),
        ("on Wed", day("2023-06-14"), day("2023-06-21")),
        ("周五", day("2023-06-09"), day("2023-06-16")),
        ("星期天", day("2023-06-11"), day("2023-06-18")),
        ("in July", "2022-07-01..2022-08-01", "2023-07-01..2023-08-01"),
        ("in May", "2023-05-01..2023-06-01", "2024-05-01..2024-06-01"),
        ("in June", "2023-06-01..2023-07-01", "2023-06-01..2023-07-01"),
        ("on June 14", day("2023-06-14"), day("2023-06-14")),
        ("Dec 31", day("2022-12-31"), day("2023-12-31")),
        ("三月", "2023-03-01..2023-04-01", "2024-03-01..2024-04-01"),
        ("十二月二十五", day("2022-12-25"), day("2023-12-25")),
        ("on the 20th", day("2023-05-20"), day("2023-06-20")),
        ("15号", day("2023-05-15"), day("2023-06-15")),
        ("in the winter", "2022-12-01..2023-03-01", "2023-12-01..2024-03-01"),
        ("at Christmas", day("2022-12-25"), day("2023-12-25")),
        ("元旦", day("2023-01-01"), day("2024-01-01")),
        ("on Thanksgiving", day("2022-11-24"), day("2023-11-23")),
        ("下半年", "2022-07-01..2023-01-01", "2023-07-01..2024-01-01"),
        ("in Q3", "2022-07-01..2022-10-01", "2023-07-01..2023-10-01"),
        ("at the weekend", "2023-06-10..2023-06-12", "2023-06-17..2023-06-19"),
        ("月底", "2023-05-21..2023-06-01", "2023-06-21..2023-07-01"),
        ("at 3 pm", "2023-06-14T15:00..2023-06-14T15:01", "2023-06-15T15:00..2023-06-15T15:01"),
        ("下午四点半", "2023-06-13T16:30..2023-06-13T16:31", "2023-06-14T16:30..2023-06-14T16:31"),
        ("in three days", None, day("2023-06-17")),
        ("周五前", "..2023-06-09", "..2023-06-16"),
        ("no later than the 20th", "..2023-05-21", "..2023-06-21"),
        ("上午9:30-11:00", "2023-06-14T09:30..2023-06-14T11:00", "2023-06-15T09:30..2023-06-15T11:00"),
        ("They close at 5.", None, None),
        ("within two weeks", None, "2023-06-14..2023-06-29"),
        ("三天内", None, "2023-06-14..2023-06-18"),
        ("九八年", "1998-01-01..1999-01-01", "1998-01-01..1999-01-01"),
    ],
)
def test_an_event_lies_behind_and_a_plan_ahead(text: str, event: str | None, plan: str | None) -> None:
    """A time that words leave open is the nearest one before or after the statement."""
    assert (stated(text, "event"), stated(text, "plan")) == (event, plan)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a week ago", day("2023-06-07")),
        ("a fortnight ago", day("2023-05-31")),
        ("on Sun", day("2023-06-11")),
        ("on fri", day("2023-06-09")),
        ("next sat", day("2023-06-24")),
        ("两周前", day("2023-05-31")),
        ("three days later", day("2023-06-17")),
        ("三天后", day("2023-06-17")),
        ("过两天", day("2023-06-16")),
        ("two months from now", "2023-08-01..2023-09-01"),
        ("半年后", "2023-12-01..2024-01-01"),
        ("half a year ago", "2022-12-01..2023-01-01"),
        ("半个月前", day("2023-05-30")),
        ("two hours ago", "2023-06-14T13:30..2023-06-14T13:31"),
        ("一个半小时后", "2023-06-14T17:00..2023-06-14T17:01"),
        ("half an hour ago", "2023-06-14T15:00..2023-06-14T15:01"),
        ("a week from Friday", day("2023-06-16")),
        ("the day after Christmas", day("2022-12-26")),
        ("next Friday", day("2023-06-23")),
        ("Friday next week", day("2023-06-23")),
        ("next week on Friday", day("2023-06-23")),
        ("this coming Friday", day("2023-06-16")),
        ("the Monday before last", day("2023-06-05")),
        ("下周五", day("2023-06-23")),
        ("上个礼拜天", day("2023-06-11")),
        ("the weekend before last", "2023-06-03..2023-06-05"),
        ("the week after next", "2023-06-26..2023-07-03"),
        ("in the next two weeks", "2023-06-14..2023-06-29"),
        ("early May", "2023-05-01..2023-05-11"),
        ("mid-May 2022", "2022-05-11..2022-05-21"),
        ("the end of next month", "2023-07-21..2023-08-01"),
        ("五月下旬", "2023-05-21..2023-06-01"),
        ("去年年底", "2022-10-01..2023-01-01"),
        ("今年上半年", "2023-01-01..2023-07-01"),
        ("the first half of 2022", "2022-01-01..2022-07-01"),
        ("the middle of last year", "2022-05-01..2022-08-01"),
        ("early this week", "2023-06-12..2023-06-14"),
        ("the second quarter of 2022", "2022-04-01..2022-07-01"),
        ("2022年第三季度", "2022-07-01..2022-10-01"),
        ("in the 1990s", "1990-01-01..2000-01-01"),
        ("in the eighties", "1980-01-01..1990-01-01"),
        ("上世纪九十年代", "1990-01-01..2000-01-01"),
        ("the first week of May", "2023-05-01..2023-05-08"),
        ("the last Friday of May", day("2023-05-26")),
        ("五月第二个周日", day("2023-05-14")),
        ("the 5th of next month", day("2023-07-05")),
        ("yesterday at 3 pm", "2023-06-13T15:00..2023-06-13T15:01"),
        ("at half past seven on Monday evening", "2023-06-12T19:30..2023-06-12T19:31"),
        ("at a quarter to six this morning", "2023-06-14T05:45..2023-06-14T05:46"),
        ("noon tomorrow", "2023-06-15T12:00..2023-06-15T12:01"),
        ("last night", "2023-06-13T18:00..2023-06-14"),
        ("昨晚三点", "2023-06-14T03:00..2023-06-14T03:01"),
        ("明早七点一刻", "2023-06-15T07:15..2023-06-15T07:16"),
        ("下周五晚七点四十", "2023-06-23T19:40..2023-06-23T19:41"),
        ("周四三点钟", "2023-06-08T15:00..2023-06-08T15:01"),
        ("2023-05-07T10:20", "2023-05-07T10:20..2023-05-07T10:21"),
        ("2023年5月7日，周日，上午10点", "2023-05-07T10:00..2023-05-07T10:01"),
        ("on Tuesday, June 13, at 6:30 pm", "2023-06-13T18:30..2023-06-13T18:31"),
        ("Monday the 10th", day("2023-07-10")),
        ("on the first of May", day("2023-05-01")),
        ("July Fourth", day("2022-07-04")),
        ("on 3/15", day("2023-03-15")),
        ("03/2022", "2022-03-01..2022-04-01"),
        ("in '98", "1998-01-01..1999-01-01"),
        ("九八年五月", "1998-05-01..1998-06-01"),
        ("20年5月", "2020-05-01..2020-06-01"),
        ("next month on the 3rd", day("2023-07-03")),
        ("H2 2024", "2024-07-01..2025-01-01"),
        ("a year and a half ago", "2021-12-01..2022-01-01"),
        ("三个半月前", day("2023-02-27")),
        ("an hour and a half ago", "2023-06-14T14:00..2023-06-14T14:01"),
        ("by year-end", "..2023-01-01"),
        ("before the end of May", "..2023-06-01"),
        ("五月底之前", "..2023-06-01"),
        ("三点到五点", "2023-06-14T15:00..2023-06-14T17:00"),
        ("since 8 this morning", "2023-06-14T08:00.."),
        ("十二月廿四", day("2022-12-24")),
        ("from May to July", "2023-05-01..2023-08-01"),
        ("from November to February", "2022-11-01..2023-03-01"),
        ("from May to July 2021", "2021-05-01..2021-08-01"),
        ("from November to February 2021", "2020-11-01..2021-03-01"),
        ("2019-2021", "2019-01-01..2022-01-01"),
        ("from 2015 to 2019", "2015-01-01..2020-01-01"),
        ("between 2015 and 2019", "2015-01-01..2020-01-01"),
        ("from March 2015 until 2019", "2015-03-01..2020-01-01"),
        ("2015年到2019年", "2015-01-01..2020-01-01"),
        ("between 7 May and 3 June", "2023-05-07..2023-06-04"),
        ("from the 17th to the 22nd of April", "2023-04-17..2023-04-23"),
        ("5月3日到5日", "2023-05-03..2023-05-06"),
        ("二十九号到五月四号", "2023-04-29..2023-05-05"),
        ("上周一到周三", "2023-06-05..2023-06-08"),
        ("yesterday from 3 to 5 pm", "2023-06-13T15:00..2023-06-13T17:00"),
        ("明天下午两点到四点", "2023-06-15T14:00..2023-06-15T16:00"),
        ("since 2019", "2019-01-01.."),
        ("from March on", "2023-03-01.."),
        ("自2019年起", "2019-01-01.."),
        ("从三月以来", "2023-03-01.."),
        ("until 5 May", "..2023-05-06"),
        ("before 5 May", "..2023-05-05"),
        ("after 5 May", "2023-05-06.."),
        ("5月5日之前", "..2023-05-05"),
        ("到五月底", "..2023-06-01"),
    ],
)
def test_a_statement_states_one_time(text: str, expected: str) -> None:
    """Counts, portions, times of day, ranges and open ends are read exactly, within a sentence too."""
    assert stated(text) == expected
    before, after = ("他说，", "。") if not text.isascii() else ("It was ", ", she said.")
    assert stated(f"{before}{text}{after}") == expected


@pytest.mark.parametrize(
    "text",
    [
        "May I come?",
        "We march on.",
        "April and June are friends.",
        "About Jun-jun.",
        "A day later than agreed.",
        "3 PM Corp called.",
        "I use Python 3.12.",
        "She is 30 years old.",
        "We ran it in three days.",
        "In a minute!",
        "We went from sun to shade.",
        "They sat by the sun, wed and happy.",
        "on the 3rd floor",
        "every day at 6 am",
        "a Christmas tree",
        "Black Friday",
        "One day I will.",
        "before 3 people came",
        "一会儿再说",
        "早一点睡",
        "三点建议",
        "二月兰开了",
        "五月天的演唱会",
        "农历五月",
        "坐3号线",
        "滨江路14号",
        "每天早上六点跑步",
        "每周五下午",
        "三十岁",
        "后天培养的习惯",
        "年初八",
        "2046房间",
    ],
)
def test_words_that_resemble_times_state_none(text: str) -> None:
    """Names, ages, quantities, versions and times that come back are none."""
    assert stated(text) is None


@pytest.mark.parametrize(
    ("text", "is_period"),
    [
        ("I lived in Rome from 2015 to 2019.", True),
        ("I lived in Rome between 2015 and 2019.", True),
        ("Rome, 2015-2019.", True),
        ("from last March to May", True),
        ("去年五月到七月", True),
        ("从2015年到2019年我住在罗马。", True),
        ("from 2022 to 2030", True),
        ("in 2019", False),
        ("until 2019", False),
        ("from 2015 until today", False),
        ("from 9 am to 5 pm on 3 May 2021", False),
        ("from Monday to Friday", False),
        ("from May to July", False),
        ("version 2015.1 to 2019.2", False),
    ],
)
def test_a_period_is_a_range_of_days_with_a_certain_end(text: str, is_period: bool) -> None:
    """Hours, what may come back, and a range that ends today are no period."""
    found = stated_time(text, REFERENCE_MS)
    assert (found is not None and found.is_period) == is_period


@pytest.mark.parametrize(
    ("text", "granularity"),
    [
        ("in 2019", "year"),
        ("last spring", "season"),
        ("in May", "month"),
        ("last week", "week"),
        ("yesterday", "day"),
        ("this morning", "hour"),
        ("at 3 pm", "minute"),
    ],
)
def test_a_time_has_a_granularity(text: str, granularity: str) -> None:
    """The granularity follows from the length of the time."""
    found = stated_time(text, REFERENCE_MS)
    assert found is not None and found.granularity == granularity


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("We met on 3 May.", "3 May"),
        ("I start on Mon.", "Mon"),
        ("I moved here in May.", "May"),
        ("I left at 5 p.m.", "5 p.m."),
        ("On Oct. 3 I left.", "Oct. 3"),
    ],
)
def test_the_words_of_a_time_have_no_full_stop(text: str, words: str) -> None:
    """The stop of the sentence is no part of the words; that of "p.m." is."""
    found = stated_time(text, REFERENCE_MS)
    assert found is not None
    assert found.time_words == words


def test_days_are_those_of_the_time_zone() -> None:
    """Yesterday is a local day. A day on which clocks change has 23 or 25 hours."""
    late = int(datetime(2023, 3, 26, 23, 30, tzinfo=UTC).timestamp() * 1000)
    found = stated_time("yesterday", late, offset=offset_of("Europe/Berlin"))
    assert found is not None and found.since_ms is not None and found.until_ms is not None
    assert (local(found.since_ms), local(found.until_ms)) == ("2023-03-25T23:00", "2023-03-26T22:00")
    (day_of_question,) = date_ranges("yesterday", late, offset_of("Europe/Berlin"))
    assert (day_of_question.begin_ms, day_of_question.end_ms) == (found.since_ms, found.until_ms)
    shanghai = stated_time("今天下午三点", late, "plan", offset_of("Asia/Shanghai"))
    assert shanghai is not None and shanghai.since_ms is not None
    assert local(shanghai.since_ms) == "2023-03-27T07:00"


READINGS: tuple[Reading, ...] = ("question", "event", "plan")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([*WORDS.split(), "to", "since", "at", "pm", "early", "到", "点", "晚", "底"]),
        max_size=10,
    ),
    st.sampled_from(["", " "]),
    st.integers(-(10**13), 10**14),
    st.sampled_from(READINGS),
)
def test_a_stated_time_is_an_interval_with_its_words(
    pieces: list[str], joint: str, reference_ms: int, reading: Reading
) -> None:
    """For any text, reference and reading, an interval is not empty and its words are a part of the text."""
    text = joint.join(pieces)
    found = stated_time(text, reference_ms, reading)
    if found is not None:
        assert found.since_ms is None or found.until_ms is None or found.since_ms < found.until_ms
        assert found.since_ms is not None or found.until_ms is not None
        assert found.time_words and text[found.offset :].startswith(found.time_words)
