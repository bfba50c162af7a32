"""Shortening: a text in fewer characters, from its own words, in their own order.

The rule guarded here: the result is never longer than asked for, and never says the opposite: a
clause keeps its negation or goes as a whole, a condition stays with what it conditions, and what
follows a "but" outweighs what stood before it. Steps: 1. keep the label where there is room; 2.
keep the clauses that tell most; 3. fill what is left with the best run of words of another
clause; 4. where no clause fits, a phrase; 5. where no phrase fits, its key words.

Deliberately not here: rewriting, and the decision when to shorten.
"""

from __future__ import annotations

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.composing import compose
from ebbtide.language.builtin.edges import trim, without_end_mark
from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.scripts import cluster_cut, has_word, is_dense
from ebbtide.language.builtin.selection import keep_best
from ebbtide.language.builtin.tokens import Candidate, tokenize
from ebbtide.language.builtin.units import is_conditional, to_units

# A label is worth its place only with this much text behind it.
_AFTER_LABEL_DENSE = 5
_AFTER_LABEL = 14
# Below this nothing can be said in a clause.
_CLAUSE_ROOM_DENSE = 4
_CLAUSE_ROOM = 14


def shorten(text: str, prefix: str, target: int) -> str:
    """Return `text` in at most `target` characters, with its label while there is room for it."""
    if target <= 0:
        return ""
    if len(text) <= target:
        return text
    label = prefix if prefix and text.startswith(prefix) else ""
    body = text[len(label) :].strip()
    dense = is_dense(body[:2000])
    after = _AFTER_LABEL_DENSE if dense else _AFTER_LABEL
    if label and target - len(label) >= max(after, len(label)):
        said = _say(body, target - len(label), dense)
        if said:
            return label + said
    return _say(body, target, dense) or _hard(body or text, target)


def _say(body: str, target: int, dense: bool) -> str:
    if len(body) <= target:
        return body
    found = candidates(body)
    if target >= (_CLAUSE_ROOM_DENSE if dense else _CLAUSE_ROOM):
        units = to_units(body, found)
        kept = keep_best(body, units, found, target)
        result = compose(body, kept, target)
        if has_word(result) and len(result) <= target:
            listed = _listed(body, target, dense)
            bare = (
                len(kept) == 1
                and not kept[0].mark
                and not kept[0].whole
                and len(kept[0].words) < len(body) // 2
            )
            return listed if bare and len(listed) > len(result) + 1 else result
    return _in_words(body, found, target, dense)


def _in_words(body: str, found: tuple[Candidate, ...], target: int, dense: bool) -> str:
    """Say what the text is about where no clause fits: a phrase, else key words, else one word."""
    short = "" if is_conditional(body) else phrase(body)
    if short and len(short) <= target:
        return short
    listed = _listed(body, target, dense)
    if listed:
        return listed
    fitting = [c for c in found if len(c.text) <= target and has_word(c.text)]
    if fitting:
        return max(fitting, key=lambda c: (c.weight, -c.start)).text
    return ""


def _listed(body: str, target: int, dense: bool) -> str:
    """Set as many key words side by side as fit, the most telling first."""
    listed = ""
    for word in keywords(body):
        longer = f"{listed}{'、' if dense else ', '}{word}" if listed else word
        if len(longer) <= target:
            listed = longer
    return listed


def _hard(body: str, target: int) -> str:
    """Cut without a word to hold on to: a wall of characters, or a target smaller than any word."""
    for token in tokenize(body[:2000]):
        if token.end - token.start <= target and has_word(token.text):
            return token.text
    piece = body[: cluster_cut(body, 0, min(target, len(body)))]
    return without_end_mark(piece) or trim(piece) or piece
