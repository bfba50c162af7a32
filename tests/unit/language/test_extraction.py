"""Extraction by rules: forms of words that state a fact, and sentences that only seem to."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.extraction import (
    MAX_STATEMENTS,
    asks_for_reminder,
    contains_pronoun,
    extract,
    why_unsaid,
)
from ebbtide.memory.slot_names import SLOTS, slot_of

STATED = [
    ("I live in Porto, near the river.", "residence", "Porto"),
    ("We moved to York last autumn.", "residence", "York"),
    ("I work for Siemens as an electrician.", "employer", "Siemens"),
    ("I'm a nurse and I work nights.", "occupation", "nurse"),
    ("My birthday is on 7 May.", "birthday", "7 May"),
    ("I’m allergic to penicillin, so please note that.", "allergy", "penicillin"),
    ("My sister's name is Clara.", "sister", "Clara"),
    ("I love bowling too!", "likes", "bowling"),
    ("My favourite colour is green.", "favourite:colour", "green"),
    ("Please remind me to renew the passport.", "reminder", "renew the passport"),
    ("我住在苏州，离公司很近。", "residence", "苏州"),
    ("我五月搬到了青岛。", "residence", "青岛"),
    ("我在顺丰上班。", "employer", "顺丰"),
    ("我是一名护士。", "occupation", "护士"),
    ("我对青霉素过敏，记一下。", "allergy", "青霉素"),
    ("我妹妹叫小雨。", "younger_sister", "小雨"),
    ("我的手机号是13800001234。", "phone", "13800001234"),
    ("我喜欢游泳。", "likes", "游泳"),
    ("提醒我明天交房租。", "reminder", "明天交房租"),
]


@pytest.mark.parametrize(("text", "slot", "value"), STATED)
def test_a_stated_fact_is_extracted_with_its_sentence(text: str, slot: str, value: str) -> None:
    """The topic is a known one, the value is in the sentence, and the sentence is a range of the message."""
    [one] = [each for each in extract(f"Well! {text}" if text.isascii() else text) if each.slot == slot]
    assert one.object == value
    said = (f"Well! {text}" if text.isascii() else text)[one.offset : one.offset + one.length]
    assert value in said
    assert one.slot in SLOTS or slot_of(one.slot).cardinality == "one"


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Porto?",
        "I might move. If I lived in Porto I would swim.",
        "Maybe I live in Porto by then.",
        "She said I live in Porto.",
        'He wrote "I live in Porto".',
        "I used to live in Porto.",
        "I live in a small flat.",
        "I work at it every day.",
        "I'm a bit tired.",
        "I love how these poses challenge my body.",
        "I love getting lost in stories.",
        "The things I love makes writing even more fun.",
        "我住在哪里？",
        "如果我住在苏州就好了。",
        "他说我住在苏州。",
        "我以前住在苏州。",
        "我想搬到青岛。",
        "那是我喜欢的手机。",
        "我是这样想的。",
        "",
    ],
)
def test_a_sentence_that_states_nothing_gives_nothing(text: str) -> None:
    """Questions, guesses, wishes, reports, quotations, conditions, the past and hints give no statement."""
    assert extract(text) == []


def test_a_denial_is_negated() -> None:
    """A denial or a dislike is a negated statement on the same topic."""
    assert [(one.slot, one.object, one.negated) for one in extract("I'm not allergic to nuts.")] == [
        ("allergy", "nuts", True)
    ]
    assert [(one.slot, one.object, one.negated) for one in extract("我不喜欢香菜。")] == [
        ("likes", "香菜", True)
    ]


def test_a_message_gives_few_statements() -> None:
    """At most four statements come from one message, each once."""
    names = ("Porto", "York", "Leeds", "Ghent", "Bruges", "Lyon")
    found = extract(" ".join(f"I live in {name}." for name in (*names, *names)))
    assert len(found) == MAX_STATEMENTS
    assert len({one.object for one in found}) == MAX_STATEMENTS


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Do I live in Porto?", "question"),
        ("我住在哪里？", "question"),
        ("He wrote “I live in Porto”.", "quotation"),
        ("She said I live in Porto.", "unsaid"),
        ("If it rains I live in Porto.", "unsaid"),
        ("我也许住在苏州。", "unsaid"),
        ("I may live in Porto.", "unsaid"),
        ("I live in Porto since May.", ""),
        ("我住在苏州。", ""),
    ],
)
def test_the_reason_why_a_sentence_states_nothing(sentence: str, why: str) -> None:
    """The tests that the rules apply to a sentence are available to others by themselves."""
    assert why_unsaid(sentence) == why


def test_a_reminder_may_contain_words_of_plans() -> None:
    """A sentence that asks to be reminded states a task, though it contains a word of a wish."""
    for sentence in ("Please remind me to plan the trip.", "提醒我准备发言。"):
        assert asks_for_reminder(sentence)
        assert why_unsaid(sentence) == "unsaid"
        assert why_unsaid(sentence, is_reminder=True) == ""
    assert not asks_for_reminder("That reminds me of home.")


def test_pronouns_name_nothing() -> None:
    """A value with a pronoun can be recognised."""
    assert contains_pronoun("my old flat")
    assert contains_pronoun("那个东西")
    assert not contains_pronoun("Porto")
