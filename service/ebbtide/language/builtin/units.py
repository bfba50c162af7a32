"""Units: clauses that stand or fall together, and how much each of them tells.

The rule guarded here: a clause that only holds together with the next (如果…, if …,) is one unit
with it, and what a clause is worth follows from what it names: figures and dates most, a clause
that merely points back ("it was …") least. Clauses with a negation or a "but" outweigh their
length.

Deliberately not here: which units are kept (selection.py).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.clauses import clauses
from ebbtide.language.builtin.excerpts import holds_negation
from ebbtide.language.builtin.scripts import width
from ebbtide.language.builtin.tokens import Candidate, tokenize


class Unit(NamedTuple):
    """One or two clauses [start, end) that stand or fall together, with what they tell."""

    start: int
    end: int
    value: float
    closes: bool
    contrast: bool
    hollow: bool


# What must not be lost when a text gets shorter: figures and dates weigh more here than as
# keywords.
_TELLING = {"number": 1.8, "time": 1.6, "code": 1.2, "weak": 0.5}

_POINTS = re.compile(r"(?:it|they|he|she|its|their|it's|they're|he's|she's)\b|[它他她其]", re.IGNORECASE)

LEANS = re.compile(
    r"(?:because|so that|which|who|whose|including|such as|as well as|especially)\b"
    r"|因为|比如|例如|包括|特别是|尤其是|以便|使得",
    re.IGNORECASE,
)

HARD_CONDITION = re.compile(
    r"(?:if|unless|in case|even if|only if)\b|如果|要是|除非|假如|假设|倘若|万一|只要|只有|若",
    re.IGNORECASE,
)

# A piece that begins so leans on what stands before it.
_NEEDS_HOST = re.compile(
    r"(?:it|they|he|she|this|that|these|those|them|its|and|or|to|of|for|with|like|which|as|in|on|at|by|[a-z]+ing)\b"
    r"|[这那]|比如|例如|像|包括|特别是|尤其|让我|使|并|也|就|都|而",
    re.IGNORECASE,
)


def to_units(text: str, found: tuple[Candidate, ...]) -> list[Unit]:
    """Bind the clauses into units and weigh them."""
    units: list[Unit] = []
    start = -1
    at = 0
    for clause in clauses(text):
        begin = clause.start if start < 0 else start
        start = -1
        if not clause.closes and _is_condition(text[clause.start : clause.start + 16]):
            start = begin
            continue
        inside, hollow = 0.0, True
        while at < len(found) and found[at].start < clause.end:
            inside += _TELLING.get(found[at].kind, 1.0) * found[at].weight
            hollow = hollow and (found[at].kind == "weak" or found[at].weight <= 0.6)
            at += 1
        units.append(_unit(text, begin, clause.end, clause.closes, inside, hollow))
    if start >= 0:
        units.append(_unit(text, start, len(text), True, 0.0, True))
    return units


def _unit(text: str, start: int, end: int, closes: bool, inside: float, hollow: bool) -> Unit:
    piece = text[start:end]
    contrast = _is_contrast(piece[:16])
    value = 0.1 + inside + 0.005 * min(width(piece), 200)
    if _POINTS.match(piece):
        value *= 0.45
    elif _NEEDS_HOST.match(piece):
        value *= 0.6
    if hollow:
        value *= 0.5
    if contrast or holds_negation(tokenize(piece[:300])):
        value *= 1.3
    if piece[-1] in "?？":
        value *= 0.6
    return Unit(start, end, value, closes, contrast, hollow)


def _is_condition(opening: str) -> bool:
    lower = opening.lstrip("，, ").casefold()
    if lower.startswith(words_chinese.CONDITIONS):
        return True
    return any(lower.startswith(word + " ") for word in words_english.CONDITIONS)


def _is_contrast(opening: str) -> bool:
    lower = opening.lstrip("，, ").casefold()
    if lower.startswith(words_chinese.CONTRASTS):
        return True
    return any(lower.startswith((word + " ", word + ",")) for word in words_english.CONTRASTS)


def is_conditional(text: str) -> bool:
    """Tell whether any clause of a text holds only under a condition."""
    return any(HARD_CONDITION.match(text, clause.start) for clause in clauses(text[:2000]))
