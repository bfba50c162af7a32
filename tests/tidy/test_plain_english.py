"""The prose of the repository contains no phrase of the deny-list in `plain_english.py`."""

from __future__ import annotations

import pytest

from tests.tidy.pages import ROOT
from tests.tidy.plain_english import RULES, all_hits, hits, page_texts, prose_of


@pytest.mark.timeout(600)
def test_no_text_contains_a_denied_phrase() -> None:
    """Pages, docstrings, comments, messages and the interface contain no phrase of the deny-list."""
    found = [f"{hit.place}: {hit.phrase} → {hit.plain}" for hit in all_hits()]
    assert found == [], "print them with python -m tests.tidy.plain_english"


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
def test_the_rules_find_denied_phrases(sentence: str) -> None:
    """Each sentence contains a denied phrase."""
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
def test_the_rules_accept_plain_sentences(sentence: str) -> None:
    """The usual senses of the same words are no hits."""
    assert list(hits(prose_of(sentence))) == []


def test_code_on_a_page_is_no_prose() -> None:
    """Fenced blocks, code spans and headings of a page are skipped; table cells are checked."""
    page = ROOT / "docs" / "unwritten.md"
    texts = list(page_texts(page, "# What it holds\n\n```\nmade anew\n```\n\nRun `anew`.\n\n| told | x |\n"))
    assert [hit.phrase for text in texts for hit in hits(text)] == ["told x"]


def test_every_rule_offers_plainer_words() -> None:
    """Each rule suggests plainer words."""
    assert all(RULES.values())
