"""Questions are recognised with and without a question mark."""

from __future__ import annotations

import pytest

from ebbtide.retrieval.marks import ONLY_ASKS, marks_of
from ebbtide.retrieval.questions import split_questions


@pytest.mark.parametrize(
    "text",
    [
        "What is my rent?",
        "我住在哪里？你还记得吗？",
        'Did she say "yes?"',
        "what's my address again, the form wants it",
        "so how long does the dough rest",
        "how often do I water it",
        "which days are free",
        "is there a bakery nearby",
        "我的新号码多少，我自己都记不住",
        "那个小区在几路来着，叫车要填",
        "查一下去上海要多久",
    ],
)
def test_a_question_is_recognised(text: str) -> None:
    """Promise: a text of which each sentence asks is a question, with or without the mark."""
    assert marks_of(text) & ONLY_ASKS


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Hamburg. Did I tell you?",
        "I moved to Hamburg.",
        "…?",
        "What a day!",
        "What we can do is wait.",
        "How nice!",
        "Do your research",
        "can you send HR my number 07700 900142",
        "没什么",
        "我表弟在杭州工作呢。",
        "你知道吗，我上周搬到了城南的一间小公寓里。",
    ],
)
def test_a_statement_or_a_request_is_no_question(text: str) -> None:
    """Promise: statements, exclamations and requests with content are no questions."""
    assert not marks_of(text) & ONLY_ASKS


def test_questions_are_separated_from_the_rest() -> None:
    """Promise: each sentence is on one side, and punctuation alone on none."""
    asked, said = split_questions("Did I tell you? I moved to Hamburg. …")
    assert (asked, said) == (["Did I tell you? "], ["I moved to Hamburg. "])
