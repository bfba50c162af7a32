"""Marks of a text: simple signs that ranking needs from every candidate, as one number.

They are stored with the passages, so that a query does not read the texts of its candidates. The lower bits say whether
the text asks, contains a number or contains Han characters. Above them are the counts of names and of exclamation
marks. Marks contain no words.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ebbtide.han import contains_han
from ebbtide.retrieval.sentences import sentences_of

ASKS, ENDS_WITH_QUESTION, ONLY_ASKS, HAS_NUMBER, HAS_HAN = (1 << bit for bit in range(5))
"""A question mark anywhere, at the end, and after every sentence; a number; Han characters."""

UNKNOWN = -1
"""The marks of a passage that was stored without them."""

_NAMES_AT, _EXCLAMATIONS_AT, _MAX_COUNT = 8, 24, 0xFFFF

_CLOSING = " \t\n\"'”’」』)）!！~…"
"""Characters that may follow a question mark at the end of a text."""

_NUMBER = re.compile(r"[\d一二三四五六七八九十百千万两]")
_NAME = re.compile(r" (?<=[a-z,;] )[A-Z][a-z]")
"""A capitalised word within a sentence. The pattern begins with the blank because that makes the search fast."""


def marks_of(text: str) -> int:
    """Return the marks of a text."""
    marks = 0
    if "?" in text or "？" in text:
        marks |= ASKS | ENDS_WITH_QUESTION * ends_with_question(text) | ONLY_ASKS * is_question(text)
    if _NUMBER.search(text) is not None:
        marks |= HAS_NUMBER
    if contains_han(text):
        marks |= HAS_HAN
    names, exclamations = len(_NAME.findall(text)) + text.count("《"), text.count("!") + text.count("！")
    return marks | min(names, _MAX_COUNT) << _NAMES_AT | min(exclamations, _MAX_COUNT) << _EXCLAMATIONS_AT


def have(marks: NDArray[np.int64], mark: int) -> NDArray[np.bool_]:
    """Return which texts have a mark."""
    found: NDArray[np.bool_] = (marks & mark) != 0
    return found


def names_in(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of names in each text."""
    return (marks >> _NAMES_AT) & _MAX_COUNT


def exclamations_in(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of exclamation marks in each text."""
    return (marks >> _EXCLAMATIONS_AT) & _MAX_COUNT


def ends_with_question(text: str) -> bool:
    """Return whether the last sentence of a text is a question."""
    return text.rstrip(_CLOSING).endswith(("?", "？"))


def is_question(text: str) -> bool:
    """Return whether every sentence of a text ends with a question mark."""
    if not ends_with_question(text):
        return False
    sentences = [one for one in sentences_of(text) if any(character.isalnum() for character in one)]
    return bool(sentences) and all(map(ends_with_question, sentences))
