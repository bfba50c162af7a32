"""Which clauses of a sentence are kept when it is shortened."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.shortening import shorten


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "外婆年轻时住在团岛，每逢起大雾的清晨，她就提着马灯站到灯塔底下，把一只铜哨子吹三声，"
            "外公的小渔船听见了，才敢顺着哨声慢慢靠岸。",
            15,
            "外婆年轻时住在团岛",
        ),
        ("祖父在胶州湾修钟表，手抖得厉害以后，才肯把铺子交给我父亲。", 13, "祖父在胶州湾修钟表"),
        (
            "My grandfather repaired clocks behind the cathedral, which is why I wake when a clock stops.",
            58,
            "My grandfather repaired clocks behind the cathedral",
        ),
    ],
)
def test_the_clause_with_the_subject_stays(text: str, target: int, expected: str) -> None:
    """The clause with the subject outlives the one that depends on it."""
    assert shorten(text, target) == expected


def test_a_clause_does_not_take_another_subject() -> None:
    """A clause without a subject is not placed after another subject."""
    text = "我妈妈在厦门开花店，我哥哥上个月在杭州买了一套学区房，花了三百二十万。"
    for target in range(4, len(text)):
        result = shorten(text, target)
        assert "三百二十万" not in result or "哥哥" in result or "妈妈" not in result


def test_the_most_telling_clause_is_not_lost_to_a_shorter_one() -> None:
    """Two statements lose their modifiers before one of them is dropped."""
    text = "我妈妈在厦门开花店，我哥哥上个月在杭州买了一套学区房，花了三百二十万。"
    assert shorten(text, 19) == "妈妈在厦门开花店，哥哥在杭州买了学区房"


@pytest.mark.parametrize("target", range(3, 22))
def test_a_person_stays_before_what_is_said_of_her(target: int) -> None:
    """A clause without its own subject is kept only with the person that the clause before it names."""
    result = shorten("我表姐在一家律师事务所做合伙人，下个月结婚。", target)
    assert "结婚" not in result or "表姐" in result


def test_a_relative_clause_without_its_head_is_reworded() -> None:
    """A phrase never begins with a relative clause or ends within a word."""
    said = shorten("Nothing works lately, which has me questioning my move to Ghent.", 36)
    assert not said.casefold().startswith("which")
    text = "It never felt like it was enough for them, which has me questioning my degree choice."
    assert not phrase(text).startswith("which")
    assert f" {phrase(text)} " in f" {text.rstrip('.')} "


@pytest.mark.parametrize(
    ("text", "holds", "without"),
    [
        ("Revert the release unless Jonas finds the cookie bug today.", "Revert the release", "unless"),
        ("Bring the lemon trees inside if it freezes tonight.", "Bring the", "if it freezes"),
        ("We will go to the beach on Sunday, unless it rains.", "go to", "unless"),
        ("我周六去爬泰山，除非那天下雨或者刮大风。", "去爬", "除非"),
        ("如果房东下周二还不修热水器，我就自己找师傅修，费用从房租里扣。", "从房租里扣", "如果"),
        ("They hope to become champions next season, of course.", "become champions", "hope"),
    ],
)
def test_a_condition_is_kept_at_any_position(text: str, holds: str, without: str) -> None:
    """An order or a plan is never kept without its condition, and a hope never becomes a fact."""
    for target in range(4, len(text)):
        result = shorten(text, target)
        assert holds not in result or without in result
    assert holds not in phrase(text) or without in phrase(text)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("我妈妈在厦门开了一家花店。", 6, "妈妈开了花店"),
        ("我叔叔的名字叫张涛。", 6, "我叔叔叫张涛"),
        ("我哥哥上个月在杭州买了一套学区房，花了三百二十万。", 8, "我哥哥买了学区房"),
    ],
)
def test_a_tiny_target_keeps_subject_verb_and_object(text: str, target: int, expected: str) -> None:
    """A tiny target yields subject, verb and object, in their order."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize(
    "text",
    [
        "我妈妈不想在厦门开花店。",
        "我妈妈打算在厦门开花店。",
        "我妈妈被客户骗了一笔定金。",
        "我妈妈在厦门开花店了吗？",
    ],
)
def test_a_negated_statement_is_never_made_plain(text: str) -> None:
    """A negated, planned, passive or questioned statement is never reduced to a plain one."""
    for target in range(4, 9):
        assert shorten(text, target) not in {"妈妈开花店", "妈妈骗客户", "妈妈骗定金"}


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "Dana was diagnosed with celiac disease in March, so we stopped buying bread.",
            22,
            "Dana, celiac disease",
        ),
        ("红杉的李总要求我们下个季度月活达到50万。", 7, "红杉、李总"),
    ],
)
def test_key_words_stand_in_the_order_of_the_text(text: str, target: int, expected: str) -> None:
    """A list of keywords follows the order of the text, and adjacent words stay together."""
    assert shorten(text, target) == expected


def test_no_conjunction_dangles() -> None:
    """A piece does not end with a conjunction whose clause is missing."""
    text = "I love football, but, of course, the most important reason is to improve my stamina for rowing."
    for target in range(15, len(text)):
        assert not shorten(text, target).rstrip("….").endswith(("but", "of course", "and", "so"))
