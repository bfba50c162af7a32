"""Group clauses into units and weigh them.

A clause that needs the next one (如果…, if …,) forms one unit with it. The weight of a unit follows from what it names:
numbers and dates count most, a clause that only refers back ("it was …") least. A clause with its own subject outweighs
one that depends on it (才…, so that …). Small talk counts only if there is nothing else. A negation or a "but"
increases the weight.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.clauses import Clause, clauses
from ebbtide.language.builtin.levels import has_predicate
from ebbtide.language.builtin.negation import holds_negation
from ebbtide.language.builtin.scripts import width
from ebbtide.language.builtin.small_talk import is_small_talk
from ebbtide.language.builtin.subjects import has_subject
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_of
from ebbtide.language.builtin.word_lists import word_list, words


class Unit(NamedTuple):
    """One or two clauses [start, end) that are kept or dropped together.

    A `hollow` unit names nothing. An `idle` one is small talk, or a question that names nothing. `host` is the index of
    the unit with its subject or head, or -1. A `strict` unit would be untrue without its host, because it holds only
    under the host's condition.
    """

    start: int
    end: int
    value: float
    closes: bool
    contrast: bool
    hollow: bool
    idle: bool
    host: int
    strict: bool
    subject: bool


# Numbers and dates weigh more in shortening than as keywords.
_KIND_FACTORS = {"number": 1.8, "time": 1.6, "code": 1.2, "weak": 0.5}

_POINTS = re.compile(r"(?:it|they|he|she|its|their|it's|they're|he's|she's)\b|[它他她其]", re.IGNORECASE)

# Such a clause gives a reason, an example or a description of the preceding clause.
LEANS = re.compile(
    r"(?:because|while|whereas|so that|which|who|whose|including|such as|as well as|especially)\b"
    r"|因为|比如|例如|包括|特别是|尤其是|以便|使得|才|从而|以至|所以|因此",
    re.IGNORECASE,
)

HARD_CONDITION = re.compile(
    r"(?:if|unless|in case|even if|only if|under the condition|as long as|provided)\b"
    r"|[我你您他她]?们?(?:如果|要是|除非|假如|假设|倘若|万一|只要|只有|若)",
    re.IGNORECASE,
)

# The head of a relative clause is rarely longer; a longer clause is a statement.
_HEAD_MAX = 24
# Who said it: 她说，
_REPORT_MAX = 6

# A clause that only gives a time or place.
_CIRCUMSTANCE = re.compile(r"(?:的时候|的过程中|之后|以后|之前|以前|期间|^在.{1,20}[中时后前里上下间])[，,]$")

_CIRCUMSTANCE_START = re.compile(r"(?:at|in|on|during|after|before|by|around|last|since)\b", re.IGNORECASE)
_CIRCUMSTANCE_MAX = 60

# A condition after its consequence. The two are never separated.
LATE_CONDITION = re.compile(
    r"(?:unless|until|only if|provided|as long as|if)\b|除非|如果|前提|只要", re.IGNORECASE
)

# A piece that begins like this depends on the preceding one.
_NEEDS_HOST = re.compile(
    r"(?:it|they|he|she|such|this|that|these|those|them|its|and|or|to|of|for|with|like|which|as|in|on|at|by|[a-z]{1,40}ing)\b"
    r"|[这那]|比如|例如|像|包括|特别是|尤其|让[我人]|使|令|并|也|就|都|而|才|便|于是|从而|以至|结果|把|被|还|又|再|来",
    re.IGNORECASE,
)
# A clause that begins with one of these, or with a noun, has its own subject.
_SUBJECTS = word_list("first_persons")
_LEADING = (
    words_english.PREPOSITIONS
    | words_english.CONJUNCTIONS
    | words_english.ADVERBS
    | words_english.AUXILIARIES
    | words_english.VERBS
    | words_english.GERUNDS
)
# A person may precede the condition: 你要是去.
_PERSONS = "我你您他她们"
_CONDITIONS = tuple(word + " " for word in words_english.CONDITIONS)
_CONTRASTS = tuple(word + mark for word in words_english.CONTRASTS for mark in " ,")
_NOUN_STARTS = words("n nr ns nt nz nw nrt nrfg vn s title")


def to_units(text: str, found: tuple[Candidate, ...]) -> list[Unit]:
    """Group the clauses into units and weigh them."""
    units: list[Unit] = []
    start = -1
    at = 0
    for clause in clauses(text):
        begin = clause.start if start < 0 else start
        start = -1
        opening = text[clause.start : clause.start + 16]
        if not clause.closes and (is_condition(opening) or _goes_on(text, clause)):
            start = begin
            continue
        if units and not units[-1].closes and LATE_CONDITION.match(text, clause.start):
            last = units.pop()
            begin, at = last.start, bisect_left(found, last.start, key=_start_of)
        inside, hollow = 0.0, True
        while at < len(found) and found[at].start < clause.end:
            inside += _KIND_FACTORS.get(found[at].kind, 1.0) * found[at].weight
            hollow = hollow and (found[at].kind == "weak" or found[at].weight <= 0.6)
            at += 1
        units.append(_unit(text, begin, clause, inside, hollow, units))
    if start >= 0:
        units.append(_unit(text, start, Clause(start, len(text), True), 0.0, True, units))
    return units


def _unit(text: str, start: int, clause: Clause, inside: float, hollow: bool, before: list[Unit]) -> Unit:
    piece = text[start : clause.end]
    tokens = tokens_of(piece[:300])
    leads = not before or before[-1].closes
    contrast = _is_contrast(piece[:16])
    asks = piece[-1] in "?？"
    value = 0.1 + inside + 0.005 * min(width(piece), 200)
    value *= bearing(piece, tokens, leads)
    if hollow:
        value *= 0.5
    if contrast or holds_negation(tokens):
        value *= 1.3
    if asks:
        value *= 0.45
    idle = (asks and hollow) or is_small_talk(tokens)
    if idle:
        value *= 0.1
    host = -1 if leads or idle else _host(piece, tokens, before)
    subject = has_subject(tokens) and not _POINTS.match(piece)
    under = -1 if leads else _condition_above(text, before)
    if under >= 0:
        host = under
    return Unit(
        start, clause.end, value, clause.closes, contrast, hollow or idle, idle, host, under >= 0, subject
    )


def _goes_on(text: str, clause: Clause) -> bool:
    """Return whether the next clause completes this one: 她说，… , 是… , who …"""
    if clause.end - clause.start <= _REPORT_MAX and text[clause.end - 2 : clause.end - 1] in "说道":
        return True
    short = clause.end - clause.start < _HEAD_MAX
    if _CIRCUMSTANCE.search(text[clause.start : clause.end]):
        return True
    if _is_english_circumstance(text[clause.start : clause.end]):
        return True
    if text.startswith("是", clause.end):
        return short and text[clause.end - 2] not in "的了过着"
    return short and text[clause.end : clause.end + 7].casefold().startswith((" who ", " whose ", " which "))


def _is_english_circumstance(piece: str) -> bool:
    """Return whether a clause only says when or where: At 3:14 in the morning,"""
    if len(piece) > _CIRCUMSTANCE_MAX or not piece.endswith(",") or not _CIRCUMSTANCE_START.match(piece):
        return False
    return not has_predicate(tokens_of(piece))


def _start_of(candidate: Candidate) -> int:
    return candidate.start


def _condition_above(text: str, before: list[Unit]) -> int:
    """Return the unit of the same sentence that opens with a condition, or -1."""
    last = before[-1]
    if last.strict:
        return last.host
    return len(before) - 1 if HARD_CONDITION.match(text, last.start) else -1


def _host(piece: str, tokens: Sequence[Token], before: list[Unit]) -> int:
    """Return the unit that a clause within a sentence depends on, or -1 if it has its own subject.

    A reason depends on the preceding unit, other clauses on the nearest one with a subject.
    """
    last = len(before) - 1
    if LEANS.match(piece) or piece.startswith("when "):
        return last
    if has_subject(tokens) and not _POINTS.match(piece):
        return -1
    return next((index for index in range(last, -1, -1) if before[index].subject), last)


def bearing(piece: str, tokens: Sequence[Token], leads: bool) -> float:
    """Return a factor for how well a clause stands alone: high with its own subject, low if it depends on another."""
    if _POINTS.match(piece):
        return 0.45 if leads else 0.8
    if _NEEDS_HOST.match(piece):
        return 0.6
    first = tokens[0] if tokens else None
    if first is None or not leads:
        return 1.0
    named = first.tag in _NOUN_STARTS or (first.text[0].isupper() and first.text.casefold() not in _LEADING)
    return 1.3 if named or first.text.casefold() in _SUBJECTS else 1.0


def is_condition(opening: str) -> bool:
    """Return whether a clause that begins like this belongs to the following clause."""
    lower = opening.lstrip("，, ").lstrip(_PERSONS).casefold()
    if lower.startswith(words_chinese.CONDITIONS):
        return True
    return lower.startswith(_CONDITIONS)


def _is_contrast(opening: str) -> bool:
    lower = opening.lstrip("，, ").casefold()
    if lower.startswith(words_chinese.CONTRASTS):
        return True
    return lower.startswith(_CONTRASTS)
