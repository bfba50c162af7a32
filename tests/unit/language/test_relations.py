"""Relation names are short, shared and specific, or empty."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.relations import relate


@pytest.mark.parametrize(
    ("node", "focus", "expected"),
    [
        ("豆包推荐我买一把大提琴。", "我女儿下个月开始学大提琴课。", "大提琴"),
        (
            "The payment service is down.",
            "I deployed the payment services at noon.",
            "payment service",
        ),
        ("I love hiking in Norway.", "Tom went hiking with us.", "hiking"),
        ("《三体》很好看。", "我读完了《三体》。", "三体"),
        ("Piet sold his tandem.", "My cousin Piet moved to Ghent.", "Piet"),
        ("外婆爱听戏。", "我去看外婆。", "外婆"),
        ("iPhone 的屏幕碎了", "想把 iPhone 卖了", "iPhone"),
    ],
)
def test_the_shared_noun_names_the_relation(node: str, focus: str, expected: str) -> None:
    """The most specific noun of both texts is the relation."""
    assert relate(node, [focus]) == [expected]


@pytest.mark.parametrize(
    ("node", "focus"),
    [
        ("我去了医院。", "他今天去北京。"),
        ("今天很累。", "今天下雨了。"),
        ("It is 3 pm.", "Call me at 3 pm."),
        ("I went there today.", "They went home today."),
        ("这个东西不错。", "那个东西很贵。"),
        ("", "Ghent"),
        ("404", "404"),
        ("Sounds awesome, Piet!", "Sounds good, Piet!"),
        ("Thanks, Piet! The tent leaks.", "See you soon, Piet!"),
        ("That is a great idea.", "I have an idea."),
        ("这道汤味道不错。", "鱼的味道很鲜。"),
        ("朋友推荐了这家店。", "我和朋友去游泳。"),
        ("抱歉，张志强。我忘了。", "你好，张志强。"),
    ],
)
def test_silence_rather_than_silliness(node: str, focus: str) -> None:
    """Pronouns, common verbs, times, numbers and vague nouns are no relation."""
    assert relate(node, [focus]) == [""]


def test_one_answer_for_each_focus() -> None:
    """The result has one name for each focus, in order."""
    answers = relate("The cello needs new strings.", ["My cello teacher moved.", "It rained.", ""])
    assert answers == ["cello", "", ""]
    assert relate("anything", []) == []
