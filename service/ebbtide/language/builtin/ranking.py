"""Rank the words of a text: every beginning of the order is a text of its own.

The order follows the units of the text (clauses that belong together), the best first. Of a unit come first the nouns
that it is about, then its predicate, its subject, its names and dates, and the rest. Predicates of later units come
before the modifiers of earlier ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.levels import (
    DETAIL,
    FILLER,
    MODIFIER,
    PREDICATE,
    SUBJECT,
    Word,
    has_predicate,
    levels_of,
)
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.pronouns import named_pronouns
from ebbtide.language.builtin.scripts import is_han, is_japanese
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_of
from ebbtide.language.builtin.units import HARD_CONDITION, LEANS, Unit, to_units
from ebbtide.language.builtin.word_lists import ordered_list, word_list

# How far a level is ranked behind the predicate of its unit; the predicate of the next unit is ranked 1 behind.
_BEHIND = {PREDICATE: 0.0, SUBJECT: 0.3, DETAIL: 0.8, MODIFIER: 1.7, FILLER: 3.5}
_KEYWORDS = 2
# A predicate of a larger share of the text is not kept first: it would soon leave only keywords.
_LONG = 0.4
_NEXT_PART = 0.01
# How much a long predicate counts against a unit that is kept in addition.
_ROOM = 1.5

DECIDING = re.compile("|".join(ordered_list("deciding")), re.IGNORECASE)
INTENDING = re.compile("|".join(ordered_list("intentions")), re.IGNORECASE)
_RESULT = re.compile("所以|因此")
CONCLUDING = re.compile(
    r"(?:最后|最终|终于)(?!一)|(?:and |but |so )?(?:in the end|finally|eventually)\b", re.IGNORECASE
)
FIRST_PERSON = re.compile(
    r"(?:and |but |so )?(?:I|we|my|our)\b|(?:所以|因此|但是?|不过|可是?|后来|现在)?我", re.IGNORECASE
)
BACKGROUND = re.compile("|".join(ordered_list("background")), re.IGNORECASE)


class Ranking(NamedTuple):
    """The words of a text in order, their indices by rank, and the lengths of the beginnings of that order."""

    units: tuple[Unit, ...]
    words: tuple[Word, ...]
    order: tuple[int, ...]
    lengths: tuple[int, ...]


@lru_cache(maxsize=64)
def units_of(text: str) -> tuple[Unit, ...]:
    """Return the units of a text from a cache."""
    return tuple(to_units(text, candidates(text)))


@lru_cache(maxsize=64)
def ranked(text: str) -> Ranking:
    """Rank the words of a text."""
    found, units = candidates(text), units_of(text)
    words = _words(text, units, found)
    places = _places(text, units, words)
    borrowed = _borrowed_subjects(units, words, places)
    ranks = [
        min(_rank(places[word.unit], word.level, word.part), borrowed.get(index, math.inf))
        for index, word in enumerate(words)
    ]
    for pronoun, named in named_pronouns(text, units, words, found):
        host, unit = words[named[0]].unit, words[pronoun].unit
        for index in named:
            ranks[index] = min(ranks[index], _rank(places[unit], SUBJECT, 0))
        # The name replaces the pronoun until the clause of the name is kept.
        ranks[pronoun] = max(ranks[pronoun], _rank(places[host], PREDICATE, 0))
    if units:
        best = min(range(len(units)), key=places.__getitem__)
        for number, named in enumerate(_about(words, best, found)):
            for index in named:
                ranks[index] = number - float(_KEYWORDS)
    informative = [index for index, word in enumerate(words) if not units[word.unit].idle]
    order = sorted(informative or range(len(words)), key=lambda index: (ranks[index], index))
    return Ranking(units, tuple(words), tuple(order), tuple(_lengths(words, order, ranks)))


def _rank(place: float, level: int, part: int) -> float:
    """Return the rank of a word. Only the best unit is ever kept without its subject."""
    return place + (0.0 if level == SUBJECT and place else _BEHIND[level]) + _NEXT_PART * part


def _words(text: str, units: Sequence[Unit], found: tuple[Candidate, ...]) -> list[Word]:
    """Return the words of the units in order, with their levels. Punctuation belongs to no unit."""
    tokens = tokens_of(text)
    words: list[Word] = []
    at = first = 0
    for number, unit in enumerate(units):
        while at < len(tokens) and tokens[at].start < unit.start:
            at += 1
        begin = at
        while at < len(tokens) and tokens[at].start < unit.end:
            at += 1
        own = tokens[begin:at]
        if unit.start >= READ_MAX or is_japanese(text[unit.start : unit.end]) or _is_bound(text, unit):
            words += [Word(token, number, PREDICATE, 0) for token in own if _is_word(token)]
            continue
        parts = _parts(own)
        main = next((part for part, inner in enumerate(parts) if _is_statement(inner)), 0)
        for part, inner in enumerate(parts):
            while first < len(found) and found[first].start < inner[0].start:
                first += 1
            last = first
            while last < len(found) and found[last].start < inner[-1].end:
                last += 1
            levels = levels_of(text, inner, found[first:last])
            if part != main:
                least = MODIFIER if part < main else DETAIL
                levels = [max(level, least) for level in levels]
            words += [
                Word(token, number, level, part)
                for token, level in zip(inner, levels, strict=True)
                if _is_word(token)
            ]
    return words


def _parts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split a unit at its inner commas, and at its spaces if it is Chinese with spaces instead of commas."""
    parts: list[Sequence[Token]] = []
    begin = 0
    spaced = any(map(_is_spaced, tokens, tokens[1:]))
    for index, token in enumerate(tokens):
        if index + 1 < len(tokens) and (
            token.text in _COMMAS or (spaced and token.end < tokens[index + 1].start)
        ):
            parts.append(tokens[begin : index + 1])
            begin = index + 1
    return [*parts, tokens[begin:]] if begin < len(tokens) else parts


def _is_statement(tokens: Sequence[Token]) -> bool:
    """Return whether a part of a sentence has a verb, and is more than an assent (是，)."""
    if _LEADING_IN.fullmatch("".join(token.text for token in tokens[:_LEADING_WORDS])):
        return False
    return has_predicate(tokens) and not (len(tokens) <= 2 and tokens[0].text in _ASSENTS)


def _is_spaced(token: Token, after: Token) -> bool:
    """Return whether a space separates two Chinese words: in chat, it replaces a comma."""
    return token.end < after.start and is_han(token.text) and (is_han(after.text) or token.text in "了吗吧呢")


def _is_word(token: Token) -> bool:
    return token.tag != "punct" or token.text in _MEANINGFUL


_LEADING_IN = re.compile("(?:还|另外)?有[个件一]{1,2}事(?:儿|情)?[，,：:]?")
_LEADING_WORDS = 8
_ASSENTS = word_list("chinese_assents")
_COMMAS = frozenset("，,；;：:—")
_MEANINGFUL = frozenset("$€£¥￥%％#@&+=*/°~-")


def _is_bound(text: str, unit: Unit) -> bool:
    """Return whether a unit says something else without a part of it: a condition or a question."""
    return HARD_CONDITION.search(text, unit.start, unit.end) is not None or text[unit.end - 1] in "?？"


def _places(text: str, units: Sequence[Unit], words: list[Word]) -> list[float]:
    """Return the place of each unit: 0 for the best one.

    A unit never precedes one that it depends on, and an intention never precedes the "but" after it.
    """
    first = _first_statement(text, units)
    worth = [_worth(text, units, index, first) for index in range(len(units))]
    sizes = [0] * len(units)
    for word in words:
        sizes[word.unit] += len(word.token.text) + 1 if word.level == PREDICATE else 0
    worth = [value - 0.6 * (size > _LONG * len(text)) for value, size in zip(worth, sizes, strict=True)]
    best = max(range(len(units)), key=lambda index: (worth[index], -index), default=0)
    density = [value - _ROOM * size / len(text) for value, size in zip(worth, sizes, strict=True)]
    order = sorted(range(len(units)), key=lambda index: (index != best, -density[index], index))
    places = [0.0] * len(units)
    for place, index in enumerate(order):
        places[index] = float(place)
    for index, unit in enumerate(units):
        if unit.strict or (unit.host >= 0 and LEANS.match(text, unit.start)):
            places[index] = max(places[index], places[unit.host] + 0.1)
    for index in range(len(units) - 2, -1, -1):
        unit = units[index]
        if units[index + 1].contrast and not unit.closes and INTENDING.search(text, unit.start, unit.end):
            places[index] = max(places[index], places[index + 1] + 0.1)
    return places


def _first_statement(text: str, units: Sequence[Unit]) -> int:
    """Return the first unit that is a statement. A concluding clause (in the end, …) precedes its sentence."""
    first = next((index for index, unit in enumerate(units) if not _leads_up(text, unit)), 0)
    for index in range(first, len(units)):
        if index > first and CONCLUDING.match(text, units[index].start):
            return index
        if units[index].closes:
            break
    return first


def _leads_up(text: str, unit: Unit) -> bool:
    """Return whether a unit is not yet a statement: small talk, a question, background, or nothing named."""
    if unit.idle or text[unit.end - 1] in "?？" or BACKGROUND.search(text[unit.start : unit.end]):
        return True
    return unit.hollow and not FIRST_PERSON.match(text, unit.start)


def _worth(text: str, units: Sequence[Unit], index: int, first: int) -> float:
    """Return how much the text depends on a unit: decisions and first statements most, small talk least."""
    unit = units[index]
    worth = 0.12 * min(unit.value, 8.0)
    worth += 1.0 if index == first else 0.0
    decides = DECIDING.search(text, unit.start, unit.end) is not None
    worth += 1.5 * decides
    if BACKGROUND.search(text[unit.start : unit.end]):
        worth -= 1.5
    if unit.contrast:
        worth += 0.3
    if index + 1 < len(units) and units[index + 1].contrast:
        worth -= 0.3
    if unit.host >= 0 and not decides and not _RESULT.match(text, unit.start):
        worth -= 0.4
    if text[unit.end - 1] in "?？":
        worth -= 1.0
    if FIRST_PERSON.match(text, unit.start):
        worth += 0.4
    elif unit.hollow:
        worth -= 0.6
    return worth - 2.0 * unit.idle


def _borrowed_subjects(units: Sequence[Unit], words: list[Word], places: list[float]) -> dict[int, float]:
    """Return the ranks of the words that are the subject of a unit as well as of later units without their own."""
    own = {word.unit for word in words if word.level == SUBJECT}
    best: dict[int, float] = {}
    for number, unit in enumerate(units):
        if unit.host >= 0 and not unit.strict and number not in own:
            best[unit.host] = min(best.get(unit.host, math.inf), places[number])
    return {
        index: _rank(best[word.unit], SUBJECT, 0)
        for index, word in enumerate(words)
        if word.level == SUBJECT and word.unit in best
    }


def _about(words: list[Word], best: int, found: tuple[Candidate, ...]) -> list[list[int]]:
    """Return the words that name what the best unit is about, the most important noun phrase first."""
    own = [index for index, word in enumerate(words) if word.unit == best and word.level <= SUBJECT]
    if not own:
        return []
    low, high = words[own[0]].token.start, words[own[-1]].token.end
    denied = {words[after].token.start for index, after in pairwise(own) if is_negation(words[index].token)}
    inside = [
        c for c in found if low <= c.start and c.end <= high and c.kind != "weak" and c.start not in denied
    ]
    chosen = sorted(inside, key=lambda c: (-c.weight, c.start))[:_KEYWORDS]
    return [
        [i for i in own if c.start <= words[i].token.start and words[i].token.end <= c.end] for c in chosen
    ]


def _lengths(words: list[Word], order: list[int], ranks: list[float]) -> list[int]:
    """Return how many words a beginning may have: it never ends within a predicate or a phrase."""
    return [
        count
        for count in range(1, len(order) + 1)
        if count == len(order)
        or ranks[order[count]] != ranks[order[count - 1]]
        or not _is_next(words[order[count - 1]], words[order[count]])
    ]


def _is_next(word: Word, after: Word) -> bool:
    """Return whether two words of one rank are kept or dropped together."""
    if word.unit != after.unit or word.part != after.part:
        return False
    return word.level <= SUBJECT or after.token.start - word.token.end <= 1
