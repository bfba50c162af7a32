"""Topics of daily life: the words by which people ask for a matter, and those by which they state it.

"Where do I live?" asks for a home, and "we got the flat!" states one without a word of the question. A query about the
user that names a topic expects statements with words of that topic, in English or Chinese.

A line of `topics.txt` is a topic.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import known_term, words_of

FILE: Final = "topics.txt"


@cache
def _topics() -> tuple[tuple[frozenset[int], frozenset[int]], ...]:
    """Return the terms of questions and of statements, for each topic."""
    found = []
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        asked, _, stated = line.partition("|")
        terms = _terms(asked)
        found.append((terms, terms | _terms(stated)))
    return tuple(found)


def _terms(words: str) -> frozenset[int]:
    """Return the terms of words. A Chinese word is one term: its characters alone say little."""
    parts = ([word] if contains_han(word) else words_of(word) for word in words.split())
    return frozenset(known_term(word) for part in parts for word in part)


def topics_of(query: str) -> list[frozenset[int]]:
    """Return, for each topic that a query names, the terms of statements about it."""
    terms = frozenset(map(known_term, words_of(query)))
    return [stated for asked, stated in _topics() if not asked.isdisjoint(terms)]
