"""A shortened text keeps the main statements of the text."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.shortening import shorten


def test_a_text_that_fits_comes_back_unchanged() -> None:
    """A text that fits is returned unchanged."""
    assert shorten("  a b ", 6) == "  a b "
    assert shorten("我喜欢你。", 5) == "我喜欢你。"


def test_no_room_gives_nothing() -> None:
    """A target of 0 yields an empty text."""
    assert shorten("我喜欢你。", 0) == ""
    assert shorten("我喜欢你。", -3) == ""


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("我不喜欢吃香菜，也不能吃海鲜，因为对虾过敏。", 17, "我不能吃海鲜，因为对虾过敏。"),
        ("我爷爷今年81岁了。", 6, "爷爷81岁了"),
        ("我妹妹的婚礼是在9月12号。", 10, "妹妹婚礼9月12号。"),
        ("我想去看电影，但是工作太忙了没时间。", 12, "工作太忙没时间。"),
        (
            "My daughter Ella is allergic to peanuts, so please never suggest recipes with peanut butter.",
            46,
            "My daughter Ella is allergic to peanuts",
        ),
        (
            "The payment service throws ERR_CONN_TIMEOUT when Redis restarts; we fixed it by "
            "raising the limit.",
            70,
            "The payment service throws ERR_CONN_TIMEOUT, we fixed it",
        ),
    ],
)
def test_the_telling_clause_stays(text: str, target: int, expected: str) -> None:
    """Names and numbers are kept, in the words of the text, with a clean end."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", range(1, 45))
def test_a_condition_is_not_lost(target: int) -> None:
    """A conditional order keeps its condition."""
    result = shorten("If the build is red, do not merge the branch.", target)
    assert "merge" not in result or result.startswith("If")


@pytest.mark.parametrize("target", range(1, 60))
def test_a_negation_is_not_lost(target: int) -> None:
    """A negated statement keeps its negation."""
    english = shorten("My neighbour does not eat shellfish at any of the harbour restaurants.", target)
    assert "eat" not in english.split() or "not" in english.split()
    chinese = shorten("医生说外公千万不能吃海鲜和任何辛辣油炸的东西。", target)
    assert "吃" not in chinese or "不能" in chinese


@pytest.mark.parametrize("target", range(5, 40))
def test_ends_are_clean(target: int) -> None:
    """No comma, unpaired quote or conjunction remains at the end."""
    for text in (
        "她说：“明早八点在南门集合，”然后挂了电话，我们只好改签车票，而且多付了两百块。",
        'He said "meet me at the south gate at eight", hung up, and we paid $200 to change the tickets.',
    ):
        result = shorten(text, target)
        assert result
        assert result[-1] not in "，,、；;：:“（("
        assert result.count("“") == result.count("”")
        assert result.count('"') % 2 == 0


def test_key_words_where_no_clause_fits() -> None:
    """A tiny target yields a noun, not a truncated clause."""
    assert shorten("我们周末在莫干山的民宿里住了两个晚上。", 4) in {"莫干山", "民宿"}
    assert shorten("The regression in the billing dashboard took hours.", 18) in {
        "billing dashboard",
        "regression",
    }


def test_a_generous_target_is_used() -> None:
    """A target of three quarters is mostly used if the clauses allow it."""
    text = (
        "We took the night train to Vienna, changed at Linz, left one suitcase behind, "
        "found it a day later at the lost property office, and paid eight euros for it."
    )
    assert len(shorten(text, 120)) > 70


def test_process_takes_words_from_what_is_left() -> None:
    """Keywords and phrase come from the shortened content ."""
    text = "我在青岛买了一把二手大提琴，卖家是位退休的音乐老师，下周六去取。"
    for target in (None, 30, 20, 10):
        memory = process(text, target)
        assert len(memory.content) <= (target or len(text))
        assert all(word in memory.content for word in memory.keywords)
        assert memory.phrase
