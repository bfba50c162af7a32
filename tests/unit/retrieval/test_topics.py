"""Topics of daily life are named by questions in either language, and stated by further words."""

from __future__ import annotations

from importlib import resources

import pytest

from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.topics import FILE, topics_of

LINES = resources.files("ebbtide.retrieval").joinpath(FILE).read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize(
    ("query", "stated"),
    [
        ("Where do I live?", "flat"),
        ("Where do I live?", "租房"),
        ("我现在住在哪里？", "apartment"),
        ("What is my brother called?", "弟弟"),
        ("我的工资是多少？", "earn"),
    ],
)
def test_a_question_names_a_topic_by_its_words(query: str, stated: str) -> None:
    """The terms of statements include words that the question has not, in both languages."""
    [word] = [stated] if contains_han(stated) else words_of(stated)
    assert any(term_of(word) in topic for topic in topics_of(query))


def test_words_that_only_state_a_topic_do_not_name_it() -> None:
    """A question with such a word, or with no word of any topic, names none."""
    assert topics_of("Who is the landlord?") == []
    assert topics_of("What is my blood type?") == []


def test_each_topic_is_named_in_both_languages() -> None:
    """A topic that lacks a language would be lost in it, and a repeated word is an error of the list."""
    for line in LINES:
        asked, _, stated = line.partition("|")
        assert {contains_han(word) for word in asked.split()} == {False, True}, line
        words = [*asked.split(), *stated.split()]
        assert len(set(words)) == len(words), line
