"""Rank the statements of an English text, and their parts, by how much the text depends on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.english_clauses import NOUNS
from ebbtide.language.builtin.english_parts import Part
from ebbtide.language.builtin.english_statements import Analysis, Statement, analyse
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.negation import holds_negation
from ebbtide.language.builtin.small_talk import is_small_talk
from ebbtide.language.builtin.telling import BACKGROUND, DECIDING, names_something
from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.word_lists import ordered_list, words
from ebbtide.text_caches import text_cache

FRAMES = words("news update question questions favour favor idea surprise thing things word story request")
"""Nouns that only introduce the next statement: there's news."""

_INTENDING = re.compile("|".join(ordered_list("intentions")), re.IGNORECASE)
_CONCLUDING = re.compile(r"(?:and |but |so )?(?:in the end|finally|eventually)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"(?:and |but |so )?(?:I|we|my|our)\b", re.IGNORECASE)
_CONTRASTS = words("but however though although yet")
_REFERRING = words("it it's its they they're he he's she she's that that's this his her")
_REPORTING = words("called rang phoned texted emailed wrote messaged replied answered says said")
_FRAME_WORDS_MAX = 4
# Numbers and dates weigh more in statements than as keywords.
_KIND_FACTORS = {"number": 1.8, "time": 1.6, "code": 1.2, "weak": 0.5}
# A core of a larger share of the text is not kept first.
_LONG = 0.4
# How much worth a statement of the size of the whole text loses.
_ROOM = 1.5
# A statement of less worth, or a shorter one that names nothing, is not kept alone.
_WORTH_MIN, _SIZE_MIN = -1.7, 12


class Worth(NamedTuple):
    """How much a text depends on a statement, the size of its core, and whether it names nothing."""

    value: float
    size: int
    is_hollow: bool


@text_cache(64)
def order_of(text: str) -> tuple[int, ...]:
    """Return the parts in the order in which they are kept, each behind the one that it depends on."""
    parts, places = analyse(text).parts, places_of(text)
    ranks = [places[part.statement] + part.behind for part in parts]
    return tuple(sorted(range(len(parts)), key=lambda index: (ranks[index], index)))


def places_of(text: str) -> list[float]:
    """Return the place of each statement: 0 for the best one."""
    worths = worths_of(text)
    numbers = range(len(worths))
    best = max(numbers, key=lambda number: (worths[number].value, -number), default=0)
    density = [worth.value - _ROOM * worth.size / max(1, len(text)) for worth in worths]
    order = sorted(numbers, key=lambda number: (number != best, -density[number], number))
    places = [0.0] * len(worths)
    for place, number in enumerate(order):
        places[number] = float(place)
    for number, statement in enumerate(analyse(text).statements):
        if statement.needs >= 0:
            places[number] = max(places[number], places[statement.needs] + 0.1)
    return places


@text_cache(64)
def worths_of(text: str) -> tuple[Worth, ...]:
    """Return the worth of each statement. Decisions and the first statement count most, small talk least."""
    analysis = analyse(text)
    found = candidates(text)
    cores = _cores(analysis)
    frames = frozenset(number for number, core in cores.items() if _is_frame(analysis, number, core))
    first = _first(text, analysis, frames)
    worths: list[Worth] = []
    at = 0
    for number, statement in enumerate(analysis.statements):
        end = span(analysis, statement)[1]
        begin = at
        while at < len(found) and found[at].start < end:
            at += 1
        own = found[begin:at]
        size = sum(len(analysis.tokens[index].text) + 1 for index in cores[number].tokens)
        is_frame = number in frames
        value = _worth(text, analysis, number, own)
        value += (number == first) - is_frame - 0.6 * (size > _LONG * len(text))
        worths.append(Worth(value, size, is_frame or not names_something(own)))
    return tuple(worths)


def _cores(analysis: Analysis) -> dict[int, Part]:
    """Return the core of each statement."""
    return {part.statement: part for part in analysis.parts if part.parent < 0}


def span(analysis: Analysis, statement: Statement) -> tuple[int, int]:
    """Return where a statement begins and ends in the text, with the words that link it."""
    begin = statement.link[0] if statement.link else statement.begin
    return analysis.tokens[begin].start, analysis.tokens[max(begin, statement.end - 1)].end


def _first(text: str, analysis: Analysis, frames: frozenset[int]) -> int:
    """Return the first statement that is no small talk, question or background, or the end of its sentence."""
    first = -1
    for number, statement in enumerate(analysis.statements):
        start, end = span(analysis, statement)
        if first < 0:
            leads = (
                statement.asks
                or statement.fragment
                or number in frames
                or BACKGROUND.search(text[start:end]) is not None
                or is_small_talk(analysis.tokens[statement.begin : statement.end])
            )
            first = first if leads else number
        elif statement.sentence != analysis.statements[first].sentence:
            break
        elif any(_CONCLUDING.match(text, at) for at in (start, analysis.tokens[statement.begin].start)):
            return number
    if first >= 0:
        return first
    return next((number for number, statement in enumerate(analysis.statements) if not statement.asks), 0)


def _is_frame(analysis: Analysis, number: int, core: Part) -> bool:
    """Return whether a statement only introduces the next one: there's news, Linda called."""
    inside = [index for index in core.tokens if analysis.tokens[index].tag != "punct"]
    if not inside or analysis.statements[number].fragment or number + 1 == len(analysis.statements):
        return False
    if normal(analysis.tokens[inside[-1]].text) in _REPORTING:
        return len(inside) <= _FRAME_WORDS_MAX
    nouns = {normal(analysis.tokens[index].text) for index in inside if analysis.kinds[index] in NOUNS}
    denies = holds_negation([analysis.tokens[index] for index in inside])
    return bool(nouns) and nouns <= FRAMES and not denies


def _worth(text: str, analysis: Analysis, number: int, found: Sequence[Candidate]) -> float:
    """Return what a statement is worth by its own words and by the contrast that follows it."""
    statement = analysis.statements[number]
    start, end = span(analysis, statement)
    tokens = analysis.tokens[statement.begin : statement.end]
    opening = normal(tokens[0].text) if tokens else ""
    contrasts = opening in _CONTRASTS or _is_contrast(analysis, statement)
    names = names_something(found)
    value = 0.1 + 0.005 * min(end - start, 200)
    value += sum(_KIND_FACTORS.get(candidate.kind, 1.0) * candidate.weight for candidate in found)
    value *= 1.0 if names else 0.5
    value *= 0.6 if opening in _REFERRING else 1.0
    value *= 1.3 if contrasts or holds_negation(tokens) else 1.0
    worth = 0.12 * min(value, 8.0)
    worth += 1.5 * (DECIDING.search(text, start, end) is not None)
    worth -= 1.5 * (BACKGROUND.search(text[analysis.tokens[statement.begin].start : end]) is not None)
    worth += 0.3 * contrasts
    if _is_contrasted(analysis, number):
        worth -= 0.3 + (_INTENDING.search(text, start, end) is not None)
    if _FIRST_PERSON.match(text, start):
        worth += 0.4
    elif not names:
        worth -= 0.6
    worth -= 1.0 * statement.asks + 0.5 * statement.fragment
    worth -= 2.0 * (is_small_talk(tokens) or (statement.asks and not names))
    return worth


def _is_contrast(analysis: Analysis, statement: Statement) -> bool:
    """Return whether a contrast links a statement to the one before: but, though."""
    return any(normal(analysis.tokens[index].text) in _CONTRASTS for index in statement.link)


def _is_contrasted(analysis: Analysis, number: int) -> bool:
    """Return whether a contrast follows a statement in its sentence."""
    following = analysis.statements[number + 1 : number + 2]
    return any(
        after.sentence == analysis.statements[number].sentence and _is_contrast(analysis, after)
        for after in following
    )


def is_dropped_intention(analysis: Analysis, number: int) -> bool:
    """Return whether a statement is an intention that came to nothing: I was going to sell it, but …"""
    if not _is_contrasted(analysis, number):
        return False
    statement = analysis.statements[number]
    said = " ".join(token.text for token in analysis.tokens[statement.begin : statement.end])
    return _INTENDING.search(said) is not None


def is_worth_keeping(text: str, number: int) -> bool:
    """Return whether a statement says something alone: it names something and is no small talk."""
    statement, worth = analyse(text).statements[number], worths_of(text)[number]
    return (
        statement.needs < 0
        and not statement.fragment
        and not statement.asks
        and worth.value > _WORTH_MIN
        and not (worth.is_hollow and worth.size < _SIZE_MIN)
    )
