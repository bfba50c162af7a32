"""Dates of queries become ranges of days, resolved with the reference time where necessary."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from time import process_time
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.retrieval import time_rules, times
from ebbtide.retrieval.times import DAY_MS, MAX_RANGES, date_ranges

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


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*WORDS.split(), "yesterday", "tonight", "weekend", "quarter"]), max_size=5))
def test_rules_that_cannot_apply_are_skipped(pieces: list[str]) -> None:
    """Promise: the rules that are applied to a text find the dates that all rules find."""
    text = " ".join(pieces)
    with mock.patch.object(times, "rules_for", return_value=time_rules.RULES):
        expected = date_ranges(text, REFERENCE_MS)
    assert date_ranges(text, REFERENCE_MS) == expected
