"""Gist: who does what to what, in the fewest words a text can be read in.

The rule guarded here: subject, verb and object of one Chinese clause stand in their own order and are joined
only where nothing between them could turn the statement round: a negation, a modal, a passive, a condition or a
question leaves the clause alone.

Deliberately not here: English, whose clauses already read from their subject on when cut short.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.clauses import clauses
from ebbtide.language.builtin.excerpts import holds_negation
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_within
from ebbtide.language.builtin.units import HARD_CONDITION
from ebbtide.language.builtin.word_lists import word_list

# Any of these between or around subject and object makes a bare statement untrue.
_TURNING = word_list("chinese_meaning_changers")
_SUBJECT_KINDS = ("name", "kin", "noun", "title", "code")
_OBJECT_KINDS = ("name", "noun", "title", "code", "number", "kin")
# Reading further than this finds no shorter gist.
_CLAUSES_MAX = 12
_READ_MAX = 120


def subject_verb_object(text: str, target: int) -> str:
    """Return subject, verb and object of the most telling Chinese clause that allows it, or ""."""
    found = candidates(text)
    best: tuple[float, str] = (0.0, "")
    for clause in clauses(text)[:_CLAUSES_MAX]:
        if HARD_CONDITION.match(text, clause.start) or text[clause.end - 1] in "?？":
            return ""
        inside = [c for c in found if clause.start <= c.start and c.end <= clause.end]
        said = _phrase_of(
            tokens_within(text, clause.start, min(clause.end, clause.start + _READ_MAX)), inside
        )
        if said and len(said[1]) <= target and said[0] > best[0]:
            best = said
    return best[1]


def _phrase_of(tokens: Sequence[Token], found: Sequence[Candidate]) -> tuple[float, str] | None:
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
    """Tell whether the clause has one verb only: of two, the wrong one may govern the object."""
    if len(verbs) > 1:
        return False
    before = tokens[: verbs[0]]
    return not any(
        token.text == "的" and index and tokens[index - 1].tag in ("v", "a")
        for index, token in enumerate(before)
    )


def _subject(tokens: Sequence[Token], verb: Token, found: Sequence[Candidate]) -> list[Candidate]:
    """Return the nouns before the verb, without what stands behind a preposition or tells a time."""
    governed_from = next((t.start for t in tokens if t.tag == "p" and t.start < verb.start), verb.start)
    nouns = [c for c in found if c.end <= governed_from and c.kind in _SUBJECT_KINDS]
    if len(nouns) > 2:
        return []
    if tokens[0].tag in ("v", "p", "d") or any(t.tag == "punct" for t in tokens if t.start < verb.start):
        return []
    return nouns
