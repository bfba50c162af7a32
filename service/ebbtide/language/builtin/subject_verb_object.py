"""Reduce a Chinese clause to subject, verb and object.

The three stay in their order. They are joined only if no negation, modal, passive, condition or question in the clause
could change the statement. English clauses remain readable when they are cut short, so they need no such rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.clauses import clauses
from ebbtide.language.builtin.excerpts import holds_negation
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_within
from ebbtide.language.builtin.units import HARD_CONDITION
from ebbtide.language.builtin.word_lists import word_list

# A clause with one of these words is not reduced.
_TURNING = word_list("chinese_meaning_changers")
_SUBJECT_KINDS = ("name", "kin", "noun", "title", "code")
_OBJECT_KINDS = ("name", "noun", "title", "code", "number", "kin")
# Clauses and characters that are read.
_CLAUSES_MAX = 12
_READ_MAX = 120


def subject_verb_object(text: str, target: int) -> str:
    """Return subject, verb and object of the most informative Chinese clause that allows it, or ""."""
    found = candidates(text)
    best: tuple[float, str] = (0.0, "")
    for clause in clauses(text)[:_CLAUSES_MAX]:
        if HARD_CONDITION.match(text, clause.start) or text[clause.end - 1] in "?？":
            return ""
        inside = [c for c in found if clause.start <= c.start and c.end <= clause.end]
        said = _reduce(tokens_within(text, clause.start, min(clause.end, clause.start + _READ_MAX)), inside)
        if said and len(said[1]) <= target and said[0] > best[0]:
            best = said
    return best[1]


def _reduce(tokens: Sequence[Token], found: Sequence[Candidate]) -> tuple[float, str] | None:
    if holds_negation(tokens) or any(_turns(token, index) for index, token in enumerate(tokens)):
        return None
    verbs = [
        index for index, token in enumerate(tokens) if token.tag in ("v", "vi") and not _inside(token, found)
    ]
    if not verbs or not _is_simple(tokens, verbs):
        return None
    verb = tokens[verbs[0]]
    subject = _subject(tokens, verb, found)
    objects = [c for c in found if c.start >= verb.end and c.kind in _OBJECT_KINDS]
    if not subject or not objects:
        return None
    object_ = max(objects, key=lambda c: (c.weight, c.start))
    if object_.end != max(c.end for c in objects):
        return None
    weight = object_.weight + max(c.weight for c in subject)
    return weight, "".join(c.text for c in subject) + verb.text + object_.text


def _turns(token: Token, index: int) -> bool:
    if token.text in ("叫", "为") and token.tag == "v":
        return False
    return token.text in _TURNING and not (token.text == "叫" and index)


def _inside(token: Token, found: Sequence[Candidate]) -> bool:
    return any(c.start <= token.start and token.end <= c.end for c in found if c.kind != "weak")


def _is_simple(tokens: Sequence[Token], verbs: list[int]) -> bool:
    """Return whether the clause has only one verb. With two, the object could belong to the other one."""
    if len(verbs) > 1:
        return False
    before = tokens[: verbs[0]]
    return not any(
        token.text == "的" and index and tokens[index - 1].tag in ("v", "a")
        for index, token in enumerate(before)
    )


def _subject(tokens: Sequence[Token], verb: Token, found: Sequence[Candidate]) -> list[Candidate]:
    """Return the nouns before the verb that no preposition governs."""
    governed_from = next((t.start for t in tokens if t.tag == "p" and t.start < verb.start), verb.start)
    nouns = [c for c in found if c.end <= governed_from and c.kind in _SUBJECT_KINDS]
    if len(nouns) > 2:
        return []
    if tokens[0].tag in ("v", "p", "d") or any(t.tag == "punct" for t in tokens if t.start < verb.start):
        return []
    return nouns
