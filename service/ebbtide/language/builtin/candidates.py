"""Find the nouns and noun phrases of a text, weighted by how informative they are.

A candidate is an exact slice of the text, and the result is deterministic. Keywords, phrases, shortening and relation
names all use these candidates, so that they agree on what a text is about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ebbtide.language.builtin.chinese_nouns import chinese_candidates
from ebbtide.language.builtin.english_nouns import english_candidates
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_of
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.text_caches import text_cache

# Characters that are read. More would not add useful keywords.
READ_MAX = 4000
_END_MARKS = ("。", "！", "？", ".", "!", "?")


@text_cache(512)
def _cached(text: str) -> tuple[Candidate, ...]:
    found = _without_mark(text) if text.endswith(_END_MARKS) else None
    return tuple(_find(text)) if found is None else found


def _without_mark(text: str) -> tuple[Candidate, ...] | None:
    """Return the candidates of a text without its end mark if those of the text are the same, else None.

    A summary needs the former and keywords the latter. Only an English name at the end is read with the mark.
    """
    body = text[:-1]
    if not body or body.endswith(_END_MARKS) or (body[-1].isascii() and not text[-1].isascii()):
        return None
    tokens = tokens_of(text)
    if tokens[:-1] != tokens_of(body) or tokens[-1].text != text[-1]:
        return None
    found = _cached(body)
    is_read = body[-1].isascii() and any(candidate.end == len(body) for candidate in found)
    return None if is_read else found


def candidates(text: str) -> tuple[Candidate, ...]:
    """Return the candidates of a text in order."""
    return _cached(text[:READ_MAX])


def _find(text: str) -> list[Candidate]:
    tokens = tokens_of(text)
    found = [_fixed(token) for token in tokens if token.tag in _FIXED]
    found += _measures(text, tokens)
    found += chinese_candidates(text, tokens)
    found += english_candidates(text, tokens)
    if _QUOTE.search(text):
        found += [_quoted(match) for match in _QUOTED.finditer(text)]
    found.sort(key=lambda candidate: (candidate.start, -candidate.end, -candidate.weight))
    return _without_contained(found)


def _measures(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the numbers with an English unit: 640 euros, six weeks."""
    return [
        Candidate(text[number.start : unit.end], number.start, unit.end, "number", 1.45)
        for number, unit in pairwise(tokens)
        if unit.tag == "word"
        and unit.text.casefold() in _UNITS
        and (number.tag == "num" or number.text.casefold() in _NUMBER_WORDS)
    ]


def _quoted(match: re.Match[str]) -> Candidate:
    return Candidate(match.group()[1:-1], match.start() + 1, match.end() - 1, "title", 2.6)


def _without_contained(found: list[Candidate]) -> list[Candidate]:
    """Drop candidates inside a longer one, so that no cut is offered within a name."""
    kept: list[Candidate] = []
    last: Candidate | None = None
    for candidate in found:
        if last is not None and candidate.end <= last.end:
            continue
        kept.append(candidate)
        if candidate.kind != "weak":
            last = candidate
    return kept


# A title in quotation marks: English with capitalised words, or a few Han characters.
_QUOTED = re.compile(
    r"[\"“](?!(?:That|This|The|A|An|I|It|You|Yes|No|Hi|Oh|What|How)[\"”])[A-Z][\w'’-]{1,20}"
    r"(?:\s(?:[A-Z0-9][\w'’-]{0,20}|of|the|and|in|to|a|for|on|at|with|from)){0,6}[!?]?[\"”]"
    r"|[\"“「『][\u4e00-\u9fff]{2,12}[\"”」』]"
)
_UNITS = word_list("english_units")
_NUMBER_WORDS = word_list("english_number_words")
_QUOTE = re.compile('["“「『]')
_FIXED = {
    "title": ("title", 2.8),
    "url": ("code", 1.2),
    "path": ("code", 2.0),
    "date": ("time", 1.45),
}


def _fixed(token: Token) -> Candidate:
    kind, weight = _FIXED[token.tag]
    return Candidate(token.text, token.start, token.end, kind, weight)
