"""Causes: which quotes a message joins by because, so, 因为 and 所以, and in which direction."""

from __future__ import annotations

import pytest

from ebbtide.memory.causes import cause_between

OPPOSITE = {"causes": "caused_by", "caused_by": "causes", None: None}


def place(text: str, quote: str) -> tuple[int, int]:
    """Return (offset, length) of a quote in bytes."""
    return len(text[: text.index(quote)].encode()), len(quote.encode())


@pytest.mark.parametrize(
    ("text", "first", "second", "expected"),
    [
        ("I have asthma, so I moved to Porto.", "I have asthma", "I moved to Porto", "causes"),
        ("I moved to Porto because I have asthma.", "I moved to Porto", "I have asthma", "caused_by"),
        ("I moved to Porto because I have asthma.", "I moved to Porto", "because I have asthma", "caused_by"),
        ("Because I have asthma, I moved to Porto.", "I have asthma", "I moved to Porto", "causes"),
        ("Because I have asthma, I moved to Porto.", "Because I have asthma", "I moved to Porto", "causes"),
        ("I lost my job. Therefore I sold the car.", "I lost my job", "I sold the car", "causes"),
        ("I lost my job, and as a result I sold it.", "I lost my job", "I sold it", "causes"),
        ("I lost my job. That's why I sold the car.", "I lost my job", "I sold the car", "causes"),
        ("I lost my job. Because of that I sold it.", "I lost my job", "I sold it", "causes"),
        ("I sold the car due to the new baby.", "I sold the car", "the new baby", "caused_by"),
        ("The storm led to a power cut.", "The storm", "a power cut", "causes"),
        ("I did not move because I have asthma.", "I did not move", "I have asthma", "caused_by"),
        ("我有哮喘，所以我搬到了昆明。", "我有哮喘", "我搬到了昆明", "causes"),
        ("我有哮喘，所以我搬到了昆明。", "我有哮喘", "所以我搬到了昆明", "causes"),
        ("我搬到了昆明，因为我有哮喘。", "我搬到了昆明", "我有哮喘", "caused_by"),
        ("因为我有哮喘，所以我搬到了昆明。", "我有哮喘", "我搬到了昆明", "causes"),
        ("由于公司裁员，我失业了。", "公司裁员", "我失业了", "causes"),
        ("公司裁员导致我失业。", "公司裁员", "我失业", "causes"),
        ("我不吃虾，是因為我對海鮮過敏。", "我不吃虾", "我對海鮮過敏", "caused_by"),
    ],
)
def test_words_join_two_statements(text: str, first: str, second: str, expected: str) -> None:
    """所以, 导致, so and therefore make the first one the cause; 因为 and because the second one."""
    quotes = place(text, first), place(text, second)
    assert cause_between(text, *quotes) == expected
    assert cause_between(text, *quotes[::-1]) == OPPOSITE[expected]


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("I live in Porto and I like tea.", "I live in Porto", "I like tea"),
        ("I live in Porto, I like tea.", "I live in Porto", "I like tea"),
        ("I live in Porto, so far I like it.", "I live in Porto", "I like it"),
        ("I take the bus so that I can read.", "I take the bus", "I can read"),
        ("I moved, not because I have asthma.", "I moved", "I have asthma"),
        ("I have asthma, I like tea, so I moved.", "I have asthma", "I moved"),
        ("I moved since I was tired.", "I moved", "I was tired"),
        ("I have asthma. Ask me why. So what? I moved.", "I have asthma", "I moved"),
        ("我搬家了，不是因为我有哮喘。", "我搬家了", "我有哮喘"),
        ("我有哮喘，我也喜欢茶。", "我有哮喘", "我也喜欢茶"),
        ("I have asthma, so I moved.", "I have asthma", "asthma"),
    ],
)
def test_other_words_join_nothing(text: str, first: str, second: str) -> None:
    """A list, a purpose, a denial, a third clause in between, or one quote within the other is no cause."""
    assert cause_between(text, place(text, first), place(text, second)) is None


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("I moved to Porto. Because it rained, I took the bus.", "I moved to Porto", "I took the bus"),
        ("I moved to Porto. Because it rained I took the bus.", "I moved to Porto", "I took the bus"),
        (
            "I moved to Porto. Because it rained, I took the bus.",
            "I moved to Porto",
            "Because it rained, I took the bus",
        ),
        ("I moved to Porto. Because I have asthma, I swim.", "I moved to Porto", "I have asthma"),
        ("I quit because I have asthma. I moved to Porto.", "I have asthma", "I moved to Porto"),
        ("I quit because I have asthma, I moved to Porto.", "I have asthma", "I moved to Porto"),
        ("I moved because it rained and I took the bus.", "I moved", "I took the bus"),
        ("I like tea. So if it rains, I take the bus.", "I like tea", "I take the bus"),
        ("I like tea. As a result of the storm I moved.", "I like tea", "I moved"),
        ("I like tea. Because of that noise I moved.", "I like tea", "I moved"),
        ("I like tea. Due to the storm, I moved to Porto.", "I like tea", "I moved to Porto"),
        ("I live in Porto. So anyway, I work at Acme.", "I live in Porto", "I work at Acme"),
        ("我搬到了昆明。因为下雨，我坐了公交。", "我搬到了昆明", "我坐了公交"),
        ("我搬到了昆明。因为下雨我坐了公交。", "我搬到了昆明", "我坐了公交"),
        ("我搬到了昆明。因为下雨，所以我坐了公交。", "我搬到了昆明", "我坐了公交"),
        ("我搬到了昆明。因为下雨所以我坐了公交。", "我搬到了昆明", "我坐了公交"),
        ("我搬到了昆明。因为我有哮喘，所以我吃药。", "我搬到了昆明", "我有哮喘"),
        ("我辞职是因为我有哮喘。我搬到了昆明。", "我有哮喘", "我搬到了昆明"),
        ("我喜欢喝茶。由于公司裁员，我失业了。", "我喜欢喝茶", "我失业了"),
        ("我喜欢喝茶。由于公司裁员，我失业了。", "我喜欢喝茶", "由于公司裁员，我失业了"),
        ("我喜欢喝茶。所以如果下雨，我就坐公交。", "我喜欢喝茶", "我就坐公交"),
        ("我搬家因为下雨而且我喜欢喝茶。", "我搬家", "我喜欢喝茶"),
        ("我参加了考试，结果还没出，我很着急。", "我参加了考试", "我很着急"),
    ],
)
def test_words_of_another_sentence_join_nothing(text: str, first: str, second: str) -> None:
    """A connective that opens a sentence, or has a clause of its own, belongs to that, not to the quotes around it."""
    quotes = place(text, first), place(text, second)
    assert cause_between(text, *quotes) is None
    assert cause_between(text, *quotes[::-1]) is None


@pytest.mark.parametrize(
    ("text", "first", "second", "expected"),
    [
        ("I moved to Porto. Because I have asthma.", "I moved to Porto", "I have asthma", "caused_by"),
        ("Nice. Because I have asthma, I moved.", "I have asthma", "I moved", "causes"),
        ("I lost my job. As a result, I sold it.", "I lost my job", "I sold it", "causes"),
        ("我搬到了昆明。因为我有哮喘。", "我搬到了昆明", "我有哮喘", "caused_by"),
        ("我有哮喘。所以我搬到了昆明。", "我有哮喘", "我搬到了昆明", "causes"),
        ("你好。因为我有哮喘，我搬到了昆明。", "我有哮喘", "我搬到了昆明", "causes"),
    ],
)
def test_words_join_two_sentences(text: str, first: str, second: str, expected: str) -> None:
    """A sentence that is only a cause or an effect belongs to the sentence before it."""
    assert cause_between(text, place(text, first), place(text, second)) == expected
