"""Marks of a text: what ranking needs of a candidate without reading its text."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.retrieval.marks import (
    ASKS,
    ENDS_WITH_QUESTION,
    HAS_HAN,
    HAS_NUMBER,
    ONLY_ASKS,
    exclamations_in,
    have,
    is_question,
    marks_of,
    names_in,
)
from ebbtide.retrieval.passages import Entry, IndexedPassage, PassageIndex, entries_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is my rent?", True),
        ("我住在哪里？你还记得吗？", True),
        ('Did she say "yes?"', True),
        ("I moved to Hamburg. Did I tell you?", False),
        ("I moved to Hamburg.", False),
        ("…?", False),
    ],
)
def test_a_question_has_no_statement(text: str, expected: bool) -> None:
    """Promise: a text is a question only if each of its sentences is one."""
    assert is_question(text) is expected


@pytest.mark.parametrize(
    ("text", "marks", "names", "exclamations"),
    [
        ("", 0, 0, 0),
        ("I moved to Hamburg", 0, 1, 0),
        ("Did I tell you? I moved!!", ASKS, 0, 2),
        ("I moved. Where to?", ASKS | ENDS_WITH_QUESTION, 0, 0),
        ("Where do I live?", ASKS | ENDS_WITH_QUESTION | ONLY_ASKS, 0, 0),
        ("我有两只猫！", HAS_NUMBER | HAS_HAN, 0, 1),
        ("读过《红楼梦》吗？", ASKS | ENDS_WITH_QUESTION | ONLY_ASKS | HAS_HAN, 1, 0),
        ("a " + "b Bo" * 70_000, 0, 65_535, 0),
    ],
)
def test_marks_say_what_a_text_looks_like(text: str, marks: int, names: int, exclamations: int) -> None:
    """Promise: each sign of a text has its mark, and counts end at their maximum."""
    found = np.array([marks_of(text)])
    every = ASKS | ENDS_WITH_QUESTION | ONLY_ASKS | HAS_NUMBER | HAS_HAN
    assert found[0] & every == marks
    assert (names_in(found)[0], exclamations_in(found)[0]) == (names, exclamations)
    assert have(found, ASKS).tolist() == [bool(marks & ASKS)]


def index_of(texts: list[str], *, has_marks: bool) -> PassageIndex:
    """Return an index of messages, stored with or without marks."""
    index = PassageIndex()
    for number, text in enumerate(texts):
        (entry,) = entries_of(text, "")
        if not has_marks:
            entry = Entry(entry.begin, entry.length, entry.terms, entry.counts, entry.word_count)
        index.add([IndexedPassage(number, entry, number, "", "c")])
    return index


def test_stored_marks_need_no_text() -> None:
    """Promise: a query reads no text for the marks of passages that were stored with them."""
    texts = ["Where do I live?", "In Leeds, since 2019"]
    index = index_of(texts, has_marks=True)
    passages = np.array([1, -1, 0])

    def text_of(_: int) -> str:
        raise AssertionError("a text was read")

    assert index.marks(passages, text_of).tolist() == [marks_of(texts[1]), 0, marks_of(texts[0])]
    assert index.marks(passages, None).tolist() == [0, 0, 0]


def test_missing_marks_are_computed_once() -> None:
    """Promise: passages of an older store have the same marks, computed by the first query that needs them."""
    texts, read = ["Where do I live?", "In Leeds, since 2019"], list[int]()
    index = index_of(texts, has_marks=False)

    def text_of(passage: int) -> str:
        read.append(passage)
        return texts[passage]

    for _ in range(2):
        assert index.marks(np.array([1, -1]), text_of).tolist() == [marks_of(texts[1]), 0]
    assert read == [1]
    # Another message invalidates the arrays, but not the marks.
    index.add([IndexedPassage(2, entries_of("New", "")[0], 2, "", "c")])
    assert index.marks(np.array([1]), text_of).tolist() == [marks_of(texts[1])]
    assert read == [1]


def test_a_replaced_text_has_its_own_marks() -> None:
    """Promise: the marks of a passage are those of its present text."""
    index = index_of(["Where do I live?"], has_marks=True)
    index.replace_entries({0: entries_of("In Leeds", "")}, is_withdrawn=False)
    assert index.marks(np.array([0]), str).tolist() == [marks_of("In Leeds")]
