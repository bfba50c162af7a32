"""Shorten a text with its own words, in their order.

The result never exceeds the target and never reverses a statement: a clause keeps its negation or is dropped, a
condition stays with its consequence, and a clause after "but" outweighs the one before it. Steps: 1. keep the label if
there is room; 2. keep the most informative clauses; 3. fill the rest with an excerpt of another clause; 4. if no clause
fits, use a phrase; 5. if no phrase fits, use subject, verb and object, or keywords.
"""

from __future__ import annotations

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.composing import Kept, compose
from ebbtide.language.builtin.excerpts import holds_negation
from ebbtide.language.builtin.keywords import informative_keywords
from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.scripts import cluster_cut, has_word, is_dense
from ebbtide.language.builtin.selection import keep_best
from ebbtide.language.builtin.subject_verb_object import subject_verb_object
from ebbtide.language.builtin.tokens import Candidate, tokenize
from ebbtide.language.builtin.trimming import trim, without_end_mark
from ebbtide.language.builtin.units import Unit, is_conditional, to_units

# The label is kept only if at least this many characters can follow it.
_AFTER_LABEL_DENSE = 5
_AFTER_LABEL = 14
# Fewer characters do not hold a clause.
_CLAUSE_ROOM_DENSE = 4
_CLAUSE_ROOM = 14
# How much more a list of keywords must weigh than words in a sentence.
_CLEARLY = 0.5
# An excerpt with fewer spaces is a noun, not a statement.
_WORDS_MIN = 3
# Subject, verb and object read better than a list, so they may weigh this much less.
_ENOUGH = 0.5


def shorten(text: str, prefix: str, target: int) -> str:
    """Return `text` in at most `target` characters, with its label if there is room for it."""
    if target <= 0:
        return ""
    if len(text) <= target:
        return text
    label = prefix if prefix and text.startswith(prefix) else ""
    body = text[len(label) :].strip()
    dense = is_dense(body[:2000])
    after = _AFTER_LABEL_DENSE if dense else _AFTER_LABEL
    if label and target - len(label) >= max(after, len(label)):
        said = _shorten_body(body, target - len(label), dense)
        if said:
            return label + said
    return _shorten_body(body, target, dense) or _cut_hard(body or text, target)


def _shorten_body(body: str, target: int, dense: bool) -> str:
    if len(body) <= target:
        return body
    found = candidates(body)
    if target >= (_CLAUSE_ROOM_DENSE if dense else _CLAUSE_ROOM):
        units = to_units(body, found)
        kept = keep_best(body, units, found, target)
        result = compose(body, kept, target)
        if has_word(result) and len(result) <= target:
            headless = len(kept) == 1 and not kept[0].whole and _is_headless(kept[0], units)
            briefer = _brief(body, target, dense) if headless else ""
            return (
                briefer
                if _content_weight(briefer, found) > _content_weight(result, found) + _CLEARLY
                else result
            )
    return _without_clauses(body, found, target, dense)


def _is_headless(piece: Kept, units: list[Unit]) -> bool:
    """Return whether a piece has lost the beginning of its clause or is only a noun. A negated piece stays as it is."""
    if holds_negation(tokenize(piece.words)):
        return False
    begins = any(piece.start == unit.start for unit in units)
    return not begins or (not piece.mark and piece.words.count(" ") < _WORDS_MIN)


def _content_weight(said: str, found: tuple[Candidate, ...]) -> float:
    """Return the total weight of the names and nouns in a result."""
    return sum(c.weight for c in found if c.kind != "weak" and c.text in said)


def _without_clauses(body: str, found: tuple[Candidate, ...], target: int, dense: bool) -> str:
    """Return what the text is about if no clause fits: a phrase, subject and object, or one word."""
    short = "" if is_conditional(body) else phrase(body)
    if short and len(short) <= target:
        return short
    brief = _brief(body, target, dense)
    if brief:
        return brief
    fitting = [c for c in found if len(c.text) <= target and has_word(c.text)]
    if fitting:
        return max(fitting, key=lambda c: (c.weight, -c.start)).text
    return ""


def _brief(body: str, target: int, dense: bool) -> str:
    """Return subject, verb and object if a clause allows it, otherwise a list of keywords."""
    listed = _keyword_list(body, target, dense)
    said = subject_verb_object(body, target) if dense else ""
    found = candidates(body)
    return (
        said if said and _content_weight(said, found) > _ENOUGH * _content_weight(listed, found) else listed
    )


def _keyword_list(body: str, target: int, dense: bool) -> str:
    """Return the most informative keywords that fit, in the order of the text."""
    chosen: list[str] = []
    mark = "、" if dense else ", "
    for word in informative_keywords(body):
        if len(mark.join([*chosen, word])) <= target:
            chosen.append(word)
    listed = ""
    for word in sorted(chosen, key=body.find):
        joined = f"{listed} {word}"
        listed = joined if joined in body or not listed else f"{listed}{mark}{word}"
    return listed.strip()


def _cut_hard(body: str, target: int) -> str:
    """Cut a text without clauses: a wall of characters, or a target shorter than any word."""
    for token in tokenize(body[:2000]):
        if token.end - token.start <= target and has_word(token.text):
            return token.text
    piece = body[: cluster_cut(body, 0, min(target, len(body)))]
    return without_end_mark(piece) or trim(piece) or piece
