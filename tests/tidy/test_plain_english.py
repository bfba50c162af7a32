"""The prose of the repository uses fewer and fewer phrases of the deny-list in `plain_english.py`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.tidy.pages import ROOT
from tests.tidy.plain_english import RULES, Hit, all_hits, hits, page_texts, prose_of

ALLOWED = {
    "interface": 0,
    "messages": 0,
    "pages": 0,
    "decision records": 0,
    "docstrings of the package": 0,
    "comments of the package": 0,
    "docstrings of tests": 369,
    "comments of tests": 72,
}
"""Hits that an area may have. Lower them with `python -m tests.tidy.plain_english --lower`; never raise one."""


@pytest.fixture(scope="module")
def found() -> list[Hit]:
    """The denied phrases of the repository."""
    return all_hits()


def test_every_area_has_an_allowance(found: list[Hit]) -> None:
    """No area escapes the table."""
    assert {hit.area for hit in found} <= ALLOWED.keys()


@pytest.mark.parametrize("area", ALLOWED)
def test_denied_phrases_only_become_fewer(found: list[Hit], area: str) -> None:
    """An area has exactly the allowed number of hits: more is a regression, fewer must lower the allowance."""
    there = Counter(hit.area for hit in found)[area]
    assert there <= ALLOWED[area], "print them with python -m tests.tidy.plain_english"
    assert there >= ALLOWED[area], "lower it with python -m tests.tidy.plain_english --lower"


DENIED = [
    "Whoever else than you reaches it should send one.",
    "Which of these it is, is not told.",
    "As many agents as may be are copied.",
    "Bring an agent into being.",
    "Nobody can be asked here.",
    "Existing connections go on as they began; what is open stays open.",
    "What is begun ends.",
    "It holds the texts of an agent.",
    "The node is gone.",
    "Other agents go on.",
    "Personal data is redacted at the door.",
]


@pytest.mark.parametrize("sentence", DENIED)
def test_the_rules_find_what_they_are_for(sentence: str) -> None:
    """A sentence that a native reader stumbles over is a hit."""
    assert list(hits(prose_of(sentence)))


PLAIN = [
    "What should I do if a recall returns nothing?",
    "What to do: retry later.",
    "The worker holds the write lock while it commits.",
    "CPU stands for central processing unit.",
    "The daemon goes through the queue. A request goes to the model.",
    "It goes on to the next step. Use your own key.",
    "Besides, every request has a timeout. The test tells apart two cases.",
    "The user is asked to confirm.",
    "If the agent does not exist, create it.",
    "The clause stands alone. The sentence holds only under a condition.",
]


@pytest.mark.parametrize("sentence", PLAIN)
def test_the_rules_let_plain_sentences_pass(sentence: str) -> None:
    """The usual senses of the same words are no hits."""
    assert list(hits(prose_of(sentence))) == []


def test_code_on_a_page_is_no_prose() -> None:
    """Fenced blocks, code spans and headings of a page are left out; its table cells are read."""
    page = ROOT / "docs" / "unwritten.md"
    texts = list(page_texts(page, "# What it holds\n\n```\nmade anew\n```\n\nRun `anew`.\n\n| told | x |\n"))
    assert [hit.phrase for text in texts for hit in hits(text)] == ["told x"]


def test_every_rule_offers_plainer_words() -> None:
    """A hit says what to write instead."""
    assert all(RULES.values())
