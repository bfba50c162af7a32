"""Find the noun phrases of an English text that say something alone, as notes of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.english_clauses import NOUNS
from ebbtide.language.builtin.english_ranking import FRAMES, places_of, span
from ebbtide.language.builtin.english_statements import Analysis, analyse
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.tokens import CALLED_NAME, Candidate, Token, tokenize
from ebbtide.language.builtin.word_lists import words
from ebbtide.text_caches import text_cache

Span = tuple[int, int]
"""The tokens [begin, end) of a text."""

ADDRESSED, DENIED = 0.01, 0.005
"""Weights of a noun that is only addressed, and of one that the text denies."""
RUN = NOUNS | words("adj mod")
"""Classes of words that make up a noun phrase."""

_VAGUE = 0.25
# How much more the nouns of the best statement weigh, and the first of them.
_STATED, _SUBJECT = 0.5, 0.5
_PHRASE_MAX = 7
_NO_NOTES = lexicon.VAGUE_NOUNS | lexicon.FUNCTION_WORDS | lexicon.EMPTY_WORDS
_ORDINAL = re.compile(r"\d{1,3}(?:st|nd|rd|th)")
# A number that says something alone: an amount, a time, a date or a decimal.
_EXACT = re.compile(r"[$€£%]|\d[.,:/-]\d|\d{4}")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_LONG_NUMBER = re.compile(r"\d{3}|\d[.,]\d")
_COUNT = re.compile(
    r"\d[\d.,]*(?:st|nd|rd|th)?|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|one|two|three|four|five|six|seven|eight|nine|ten"
)
_NEGATING = words("no not without never nor")
_EXCEPTING = words("except but unless until till besides if")
_ORDERING = words("first second third last next")


class Note(NamedTuple):
    """The spans of tokens by which something can be named, the longest first, and how telling it is.

    `parts` are used where no whole name fits.
    """

    forms: tuple[Span, ...]
    parts: tuple[Span, ...]
    weight: float


def noun_phrases(text: str, analysis: Analysis, first: str = "") -> Iterator[Note]:
    """Yield the noun phrases of a text that say something alone."""
    tokens, kinds = analysis.tokens, analysis.kinds
    found = candidates(text)
    weights, called = _weights(first or text), _called(first or text)
    at = index = 0
    while index < len(tokens):
        begin = index
        if _is_named_clause(analysis, index):
            yield Note(((index, index + 1),), (), weights.get(normal(tokens[index].text)[:-2], _VAGUE))
        if kinds[index] not in RUN:
            index += 1
            continue
        end = index = _run_end(analysis, index)
        while end > begin and kinds[end - 1] not in NOUNS:
            end -= 1
        while at < len(found) and found[at].end <= tokens[begin].start:
            at += 1
        if end <= begin:
            continue
        strong = []
        while at < len(found) and found[at].start < tokens[end - 1].end:
            strong += [found[at]] if found[at].kind != "weak" else []
            at += 1
        said = tokens[begin : _of_end(analysis, end)]
        weight = max((weights.get(normal(token.text), _VAGUE) for token in said), default=_VAGUE)
        if begin + 1 < end and kinds[begin + 1] == "name" and normal(tokens[begin].text) in lexicon.PERSONS:
            begin += 1
        if begin and normal(tokens[begin - 1].text) in _ORDERING:
            begin -= 1
        begin = _described_from(analysis, begin)
        forms, parts = _forms(analysis, begin, end, strong)
        negated = _negated_from(analysis, begin)
        if negated < begin:
            ends = [_excepted_end(analysis, form[1]) for form in forms if form[0] == begin]
            forms, parts = tuple((negated, stop) for stop in ends if stop - negated <= _PHRASE_MAX), ()
            weight = DENIED
        if normal(tokens[begin].text) in called and (begin < 2 or kinds[begin - 2] != "name"):
            weight = ADDRESSED
        if forms:
            yield Note(forms, parts, weight)


def _run_end(analysis: Analysis, begin: int) -> int:
    """Return the end of the words that make up a noun phrase. A weekday ends it, and a number begins another one."""
    tokens, kinds = analysis.tokens, analysis.kinds
    at = begin
    while at < len(tokens) and (kinds[at] in RUN or _is_inner(tokens, at)):
        at += 1
        if normal(tokens[at - 1].text).removesuffix("s") in lexicon.WEEKDAYS:
            break
        counts = at < len(tokens) and kinds[at] == "num" and not _is_year(analysis, at)
        if counts and (tokens[at].text.isalpha() or _LONG_NUMBER.search(tokens[at].text)):
            break
    return at


@text_cache(64)
def _weights(text: str) -> dict[str, float]:
    """Return the weight of each word of the noun phrases of a text. Those of the best statement count more."""
    weights: dict[str, float] = {}
    analysis = analyse(text)
    places = places_of(text)
    best = min(range(len(places)), key=places.__getitem__, default=-1)
    begin, end = span(analysis, analysis.statements[best]) if best >= 0 else (0, 0)
    subject = _SUBJECT
    for candidate in candidates(text):
        if candidate.kind != "weak":
            weight = candidate.weight
            if normal(candidate.text) in FRAMES:
                weight = _VAGUE
            elif begin <= candidate.start < end:
                weight += _STATED + subject
                subject = 0.0
            for token in tokenize(candidate.text):
                word = normal(token.text)
                weights[word] = max(weights.get(word, 0.0), weight)
    return weights


def _called(text: str) -> frozenset[str]:
    """Return the first words of the names that a text only addresses."""
    return frozenset(
        normal(candidate.text.split(" ")[0])
        for candidate in candidates(text)
        if candidate.kind == "weak" and candidate.weight == CALLED_NAME
    )


def _is_year(analysis: Analysis, index: int) -> bool:
    """Return whether a year follows a name: Herb & Vi 1971."""
    return (
        index > 0
        and analysis.kinds[index - 1] == "name"
        and _YEAR.fullmatch(analysis.tokens[index].text) is not None
    )


def _is_named_clause(analysis: Analysis, index: int) -> bool:
    """Return whether a word is a noun with its verb (Tyler's off)."""
    word = normal(analysis.tokens[index].text)
    if analysis.kinds[index] != "clause" or not word.endswith("'s"):
        return False
    return word[:-2] not in lexicon.FUNCTION_WORDS and word not in lexicon.PRONOUNS | lexicon.SUBJECTS


def _described_from(analysis: Analysis, begin: int) -> int:
    """Return where `allergic to` begins in `I'm allergic to peanuts` and `not allergic to peanuts`, or `begin`."""
    kinds = analysis.kinds

    def word(index: int) -> str:
        return normal(analysis.tokens[index].text)

    at = begin - 1
    while at > 0 and (kinds[at] == "det" or word(at) in lexicon.POSSESSIVES):
        at -= 1
    adjective = at - 1
    if adjective < 1 or kinds[at] not in ("to", "prep") or word(adjective).endswith("ing"):
        return begin
    if kinds[adjective] not in ("adj", "noun", "mod", "verb"):
        return begin
    before, is_denied = adjective - 1, False
    while before >= 0 and (kinds[before] == "adv" or word(before) == "no"):
        is_denied = is_denied or word(before) in _NEGATING
        before -= 1
    if before < 0 or kinds[before] == "break":
        return adjective if is_denied and kinds[adjective] != "noun" else begin
    own = word(before) in ("i'm", "im") or (
        before and word(before) in ("am", "was") and word(before - 1) == "i"
    )
    return adjective if own else begin


def _negated_from(analysis: Analysis, begin: int) -> int:
    """Return where `no more` begins before a noun, or `begin`."""
    for index in range(begin - 1, max(-1, begin - 5), -1):
        word = normal(analysis.tokens[index].text)
        if word in _NEGATING:
            follows = analysis.kinds[index + 1] != "prep"
            return index if follows or not index or analysis.kinds[index - 1] == "break" else begin
        if analysis.kinds[index] not in ("det", "adv", "prep") and word not in lexicon.POSSESSIVES:
            break
    return begin


def _excepted_end(analysis: Analysis, end: int) -> int:
    """Return the end of an exception behind a denied noun (no fear except of the dark), or `end`."""
    tokens = analysis.tokens
    if end >= len(tokens) or normal(tokens[end].text) not in _EXCEPTING:
        return end
    stop = end + 1
    while stop < len(tokens) and tokens[stop].tag != "punct":
        stop += 1
    return stop


def _is_inner(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a mark is part of a name or a number (Mrs. Probert, $28, 7-11), or `to` of a range."""
    if normal(tokens[index].text) == "to" and 0 < index < len(tokens) - 1:
        return bool(_COUNT.fullmatch(tokens[index - 1].text) and _COUNT.match(tokens[index + 1].text))
    return (
        tokens[index].tag == "punct"
        and tokens[index].text in ".$€£%&/-"
        and 0 < index < len(tokens) - 1
        and (tokens[index - 1].text in lexicon.TITLES or tokens[index].text in "&/-")
        and tokens[index + 1].tag != "punct"
    )


def _forms(
    analysis: Analysis, begin: int, end: int, strong: Sequence[Candidate]
) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the spans by which a noun phrase can be named, the longest first, and parts of it."""
    tokens, kinds = analysis.tokens, analysis.kinds
    head = begin
    for index in range(begin, end):
        if kinds[index] in ("to", "prep", "det"):
            head = index + 1
    forms = [(begin, _of_end(analysis, end)), (begin, end), (head, end)]
    if _is_year(analysis, end - 1):
        forms.append((head, end - 1))
    while head < end - 1 and kinds[head] in ("adj", "mod"):
        head += 1
        forms.append((head, end))
    parts: list[Span] = []
    for candidate in sorted(strong, key=lambda c: -c.weight):
        inside = [
            i
            for i in range(begin, end)
            if tokens[i].start < candidate.end and candidate.start < tokens[i].end
        ]
        if inside and not any(char.isdigit() for i in range(begin, end) for char in tokens[i].text):
            parts.append((inside[0], inside[-1] + 1))
    if kinds[end - 1] in ("noun", "name") and kinds[begin] != "num":
        parts.append((end - 1, end))
    if kinds[head] == "name" and tokens[head].text[0].isupper():
        parts.append((head, head + 1))
    return (
        tuple(dict.fromkeys(form for form in forms if _says_something(analysis, *form))),
        tuple(dict.fromkeys(part for part in parts if _says_something(analysis, *part))),
    )


def _of_end(analysis: Analysis, end: int) -> int:
    """Return the end of `of …` behind a noun, or `end`."""
    tokens, kinds = analysis.tokens, analysis.kinds
    if end >= len(tokens) or normal(tokens[end].text) != "of":
        return end
    at = end + 1
    while at < len(tokens) and (kinds[at] == "det" or normal(tokens[at].text) in lexicon.POSSESSIVES):
        at += 1
    stop = at
    while stop < len(tokens) and kinds[stop] in RUN:
        stop += 1
    while stop > at and kinds[stop - 1] not in NOUNS:
        stop -= 1
    return stop if stop > at else end


def _says_something(analysis: Analysis, begin: int, end: int) -> bool:
    """Return whether a noun phrase names something, and is no title, number or vague noun alone."""
    if begin >= end or end - begin > _PHRASE_MAX:
        return False
    tokens, kinds = analysis.tokens, analysis.kinds
    for index in range(begin, end):
        token = tokens[index]
        word = normal(token.text).removesuffix("'s")
        if _ORDINAL.fullmatch(word) or kinds[index] == "num":
            counted = index + 1 < end and kinds[index + 1] in NOUNS
            if counted or (_EXACT.search(token.text) and not _has_unit(analysis, index, end)):
                return True
        elif kinds[index] in ("name", "time"):
            if token.text not in lexicon.TITLES and len(word) > 1:
                return True
        elif kinds[index] in NOUNS and word not in _NO_NOTES and len(word) > 1:
            return True
    return False


def _has_unit(analysis: Analysis, index: int, end: int) -> bool:
    """Return whether a noun that follows the phrase says what a number counts."""
    tokens = analysis.tokens
    return index + 1 == end < len(tokens) and tokens[end].tag == "word" and analysis.kinds[end] in RUN
