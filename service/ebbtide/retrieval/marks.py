"""Marks of a text: simple signs that ranking needs from every candidate, as one number.

They are stored with the passages, so that a query does not read the texts of its candidates. The lower bits say whether
the text asks, and whether it contains a number, an amount, a time or Han characters. Above them are the counts of
names, of exclamation marks and of words in the first person. The highest bits are the version of the rules, so that a
query recomputes marks that other rules made. Marks contain no words.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ebbtide.han import contains_han
from ebbtide.retrieval.questions import ends_with_question, split_questions

ASKS, ENDS_WITH_QUESTION, HAS_QUESTION, ONLY_ASKS = (1 << bit for bit in range(4))
"""A question mark anywhere and at the end; a sentence that asks, and no other sentence, with or without the mark."""

HAS_NUMBER, HAS_AMOUNT, HAS_TIME, HAS_HAN = (1 << bit for bit in range(4, 8))
"""A number in digits or Chinese, a number in digits or words, a time, Han characters."""

UNKNOWN = -1
"""The marks of a passage that was stored without them."""

RULES = 0
"""Version of the rules for marks. Increment it with every change of the marks that a text gets; at most 255."""

_NAMES_AT, _EXCLAMATIONS_AT, _FIRST_PERSONS_AT, _RULES_AT = 8, 20, 32, 44

_MAX_COUNT = 0xFFF
"""The largest count. A passage is shorter than this."""

HAS_NAME = _MAX_COUNT << _NAMES_AT
"""A name."""


def _as_written(words: str) -> frozenset[str]:
    """Return words as they occur in English text between blanks: capitalised or not, with a mark after them."""
    forms = [form for word in words.split() for form in (word, word.capitalize())]
    return frozenset(form + mark for form in forms for mark in ("", ".", ",", "!", "?", ";", ":"))


_AMOUNTS = _as_written(
    "one two three four five six seven eight nine ten eleven twelve dozen twenty thirty forty fifty hundred thousand "
    "once twice couple several few second third half"
)
_TIMES = _as_written(
    "yesterday today tonight tomorrow last next ago since recently just noon midnight week weeks weekend month months "
    "year years monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november december"
)
_FIRST_PERSON = _as_written("I I'm I’m I've I’ve I'd I’d I'll I’ll my me mine we our us")
_CHINESE_TIME = re.compile(
    "[昨今明前后]天|[去今明]年|[上下][个周月次]|[0-9一二三四五六七八九十][月号日点年]|周[一二三四五六日末]|星期|刚"
)
_NUMBER = re.compile(r"[\d一二三四五六七八九十百千万两]")
_NAME = re.compile(r" (?<=[a-z,;] )[A-Z][a-z]")
"""A capitalised word within a sentence. The pattern begins with the blank because that makes the search fast."""


def marks_of(text: str) -> int:
    """Return the marks of a text."""
    words, is_ascii = text.split(), text.isascii()
    has_number = _NUMBER.search(text) is not None
    has_time = not _TIMES.isdisjoint(words) or not (is_ascii or _CHINESE_TIME.search(text) is None)
    marks = (
        HAS_NUMBER * has_number
        | HAS_AMOUNT * (has_number or not _AMOUNTS.isdisjoint(words))
        | HAS_TIME * has_time
        | HAS_HAN * contains_han(text)
        | _marks_of_questions(text)
        | RULES << _RULES_AT
    )
    counts = {
        _NAMES_AT: len(_NAME.findall(text)) + text.count("《"),
        _EXCLAMATIONS_AT: text.count("!") + text.count("！"),
        _FIRST_PERSONS_AT: sum(word in _FIRST_PERSON for word in words) + text.count("我"),
    }
    for at, count in counts.items():
        marks |= min(count, _MAX_COUNT) << at
    return marks


def current(marks: int) -> int:
    """Return stored marks, or UNKNOWN if other rules made them."""
    return marks if marks >> _RULES_AT == RULES else UNKNOWN


def _marks_of_questions(text: str) -> int:
    questions, others = split_questions(text)
    return (
        ASKS * ("?" in text or "？" in text)
        | ENDS_WITH_QUESTION * ends_with_question(text)
        | HAS_QUESTION * bool(questions)
        | ONLY_ASKS * (bool(questions) and not others)
    )


def have(marks: NDArray[np.int64], mark: int) -> NDArray[np.bool_]:
    """Return which texts have a mark, or one of several."""
    found: NDArray[np.bool_] = (marks & mark) != 0
    return found


def names_in(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of names in each text."""
    return (marks >> _NAMES_AT) & _MAX_COUNT


def exclamations_in(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of exclamation marks in each text."""
    return (marks >> _EXCLAMATIONS_AT) & _MAX_COUNT


def first_persons_in(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of words in the first person in each text."""
    return (marks >> _FIRST_PERSONS_AT) & _MAX_COUNT
