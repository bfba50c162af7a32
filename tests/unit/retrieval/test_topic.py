"""A topic is found where a text names all of it, and takes the sentences that do."""

from __future__ import annotations

import pytest

from ebbtide.retrieval.topic import Topic

NAMED = [
    ("art", "Modern ART, she said.", True),
    ("art", "The party starts at noon.", False),
    ("project heron", "All about Project \n Heron today.", True),
    ("project heron", "Project Blue Heron.", False),
    ("C++", "She writes C++, mostly.", True),
    ("straße", "Die STRASSE ist lang.", True),
    ("青岛", "我外婆住在青岛海边。", True),
    ("龙", "一條龍在天上。", True),
    ("小雯", "小文来了。", False),
    ("cafe", "Ｃａｆｅ Central", True),
    ("a.c", "abc", False),
]


@pytest.mark.parametrize(("words", "text", "is_named"), NAMED)
def test_a_text_names_a_topic_or_not(words: str, text: str, is_named: bool) -> None:
    """Any case, any white space, either script of Chinese, whole words where there are words."""
    assert Topic(words).is_named_in(text) == is_named
    assert bool(Topic(words).stretches(text)) == is_named


def test_stretches_are_whole_sentences_in_bytes() -> None:
    """Each sentence that names it, neighbours as one, at its place in the UTF-8 of the text."""
    text = "Ann sails. 小雯说她喜欢茶。Clara builds boats! 小雯也来了。小雯走了。The end."
    raw = text.encode()
    found = [raw[begin:end].decode() for begin, end in Topic("小雯").stretches(text)]
    assert found == ["小雯说她喜欢茶。", "小雯也来了。小雯走了。"]
    assert Topic("nobody").stretches(text) == []


def test_a_topic_has_words() -> None:
    """White space alone names nothing."""
    with pytest.raises(ValueError, match="words"):
        Topic(" \t")
