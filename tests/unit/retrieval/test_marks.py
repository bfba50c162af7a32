"""Marks of a text: what ranking needs of a candidate without reading its text."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from benchmarks.recall_data import TINY
from ebbtide.bounds import Marks
from ebbtide.retrieval import marks
from ebbtide.retrieval.marks import (
    ASKS,
    ENDS_WITH_QUESTION,
    HAS_AMOUNT,
    HAS_HAN,
    HAS_NAME,
    HAS_NUMBER,
    HAS_QUESTION,
    HAS_TIME,
    ONLY_ASKS,
    UNKNOWN,
    current,
    exclamations_in,
    first_persons_in,
    have,
    marks_of,
    names_in,
)
from ebbtide.retrieval.passages import MAX_PASSAGE_CHARS, Entry, IndexedPassage, PassageIndex, entries_of

EVERY = {
    "asks": ASKS,
    "ends": ENDS_WITH_QUESTION,
    "question": HAS_QUESTION,
    "only": ONLY_ASKS,
    "number": HAS_NUMBER,
    "amount": HAS_AMOUNT,
    "time": HAS_TIME,
    "han": HAS_HAN,
}


@pytest.mark.parametrize(
    ("text", "marks", "names", "exclamations", "first_persons"),
    [
        ("", "", 0, 0, 0),
        ("I moved to Hamburg", "", 1, 0, 1),
        ("Did I tell you? I moved!!", "asks question", 0, 2, 2),
        ("We moved. Where to?", "asks ends question", 0, 0, 1),
        ("Where do I live?", "asks ends question only", 0, 0, 1),
        ("what's my address again", "question only", 0, 0, 1),
        ("…?", "asks ends", 0, 0, 0),
        ("He paid twice, in March.", "amount time", 1, 0, 0),
        ("Room 12", "number amount", 0, 0, 0),
        ("我有两只猫！", "number amount han", 0, 1, 1),
        ("昨天我们读过《红楼梦》吗？", "asks ends question only time han", 1, 0, 1),
        ("a " + "b Bo" * 70_000 + "!" * 5000 + "我" * 5000, "han", 4095, 4095, 4095),
    ],
)
def test_marks_say_what_a_text_looks_like(
    text: str, marks: str, names: int, exclamations: int, first_persons: int
) -> None:
    """Promise: each sign of a text has its mark, and counts end at their maximum."""
    found = np.array([marks_of(text)])
    assert " ".join(name for name, mark in EVERY.items() if have(found, mark)[0]) == marks
    counts = names_in(found)[0], exclamations_in(found)[0], first_persons_in(found)[0]
    assert counts == (names, exclamations, first_persons)
    assert have(found, HAS_NAME)[0] == (names > 0)
    msgspec.convert(int(found[0]), Marks)


def test_the_counts_of_a_passage_are_exact() -> None:
    """Promise: the longest passage has no more of any sign than a count can represent."""
    for sign, count in (("我", first_persons_in), ("!", exclamations_in), ("《", names_in)):
        text = sign * MAX_PASSAGE_CHARS
        (entry,) = entries_of(text, "")
        assert count(np.array([entry.marks]))[0] == MAX_PASSAGE_CHARS


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


def test_marks_of_other_rules_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise: after a change of the rules, stored marks are recomputed from the text."""
    before = marks_of("Where do I live?")
    assert current(before) == before
    monkeypatch.setattr(marks, "RULES", 255)
    assert current(before) == UNKNOWN
    changed = marks_of("Where do I live?")
    assert changed != before and current(changed) == changed
    msgspec.convert(changed, Marks)
    assert names_in(np.array([changed]))[0] == 0 and have(np.array([changed]), ONLY_ASKS)[0]


def test_a_change_of_the_rules_changes_their_version() -> None:
    """Promise: each version of the rules gives these texts the same marks. If this fails, increment RULES."""
    corpora = [json.loads(line) for line in TINY.read_text(encoding="utf-8").splitlines()]
    texts = [turn["text"] for corpus in corpora for turn in corpus["turns"]]
    texts += [f"{one} {other}" for one, other in pairwise(texts)] + [text.rstrip("?？.。") for text in texts]
    digest = hashlib.sha256(repr([marks_of(text) for text in texts]).encode()).hexdigest()
    assert (marks.RULES, digest[:16]) == (0, "07a884c99252757b")
