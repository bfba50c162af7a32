"""Questions and echoes move below statements, and nothing else moves."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.retrieval.demotion import CANDIDATES, demoted, is_echo, is_question
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of

SAID = [
    ("user", "What is my rent?"),
    ("assistant", "I do not know yet."),
    ("user", "The landlord wants 950 euros for the flat."),
    ("assistant", "So the landlord wants 950 euros for the flat."),
    ("user", "The flat has a balcony."),
]


@pytest.fixture
def index() -> PassageIndex:
    """A conversation of a user with an assistant."""
    made = PassageIndex()
    for number, (role, text) in enumerate(SAID):
        made.add(IndexedPassage(number, entry, number, "", "s", role=role) for entry in entries_of(text, ""))
    return made


def order(index: PassageIndex, places: list[int], scores: list[float]) -> list[int]:
    found = demoted(np.array(places), np.array(scores), index, lambda passage: SAID[passage][1])
    assert sorted(found.tolist()) == sorted(places)
    return found.tolist()


def test_statements_come_first(index: PassageIndex) -> None:
    """The question and the echo come after statements of similar score, and keep their order."""
    assert order(index, [0, 3, 2, 4], [1.0, 0.9, 0.8, 0.7]) == [2, 4, 0, 3]


def test_a_much_better_question_stays(index: PassageIndex) -> None:
    """A question stays before statements of less than half its score: it may be the evidence."""
    assert order(index, [0, 2, 4], [1.0, 0.4, 0.3]) == [0, 2, 4]


def test_later_candidates_keep_their_places(index: PassageIndex) -> None:
    """Only the first candidates are examined."""
    places = [4] * CANDIDATES + [0, 2]
    assert order(index, places, np.linspace(1, 0.9, len(places)).tolist())[-2:] == [0, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is my rent?", True),
        ("我住在哪里？你还记得吗？", True),
        ('Did she say "yes?"', True),
        ("I moved to Hamburg. Did I tell you?", False),
        ("I moved to Hamburg.", False),
        ("…", False),
    ],
)
def test_a_question_has_no_statement(text: str, expected: bool) -> None:
    """A text is a question only if each of its sentences is one."""
    assert is_question(text) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("So the landlord wants 950 euros for the flat.", True),
        ("The landlord wants 950 euros, that is 11400 a year for the flat.", False),
        ("You can negotiate: ask him for a longer contract.", False),
    ],
)
def test_an_echo_adds_nothing(reply: str, expected: bool) -> None:
    """A reply with another number, or mostly new words, is no echo."""
    assert is_echo(reply, "The landlord wants 950 euros for the flat.") is expected
