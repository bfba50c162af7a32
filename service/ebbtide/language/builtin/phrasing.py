"""Phrasing: one telling clause as the summary of a text.

The rule guarded here: a phrase is words of the text in their order, 10-20 characters of Chinese
or at most 8 words of English, without closing punctuation and never cut inside a word. It reads
as language: a clause or the best run of words of one, not a list of keywords.

Deliberately not here: rewriting. A phrase never says what the text does not.
"""

from __future__ import annotations

from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.clauses import Clause, clauses
from ebbtide.language.builtin.condensing import condense
from ebbtide.language.builtin.edges import plain, without_end_mark, without_opener
from ebbtide.language.builtin.excerpts import excerpt
from ebbtide.language.builtin.scripts import cluster_cut, is_dense
from ebbtide.language.builtin.tokens import Candidate, tokenize
from ebbtide.language.builtin.words_chinese import NO_END
from ebbtide.language.builtin.words_english import NO_END as NO_END_ENGLISH

# A shorter run of words of a long clause is no summary.
_DENSE_LEAST = 6
_LEAST = 12
_DENSE_MAX = 20
_WORDS_MAX = 8
# Eight words of English rarely need more; one endless word must not become a phrase.
_CHARS_MAX = 80


def phrase(text: str) -> str:
    """Return a summary of at most 20 characters of Chinese or 8 words."""
    body = plain(text[:READ_MAX])
    dense = is_dense(body)
    whole = without_end_mark(body)
    if _fits(whole, dense):
        return whole
    found = candidates(body)
    ranked = sorted(
        clauses(body),
        key=lambda clause: (-_score(body, clause, found), clause.start),
    )
    for clause in ranked[:4]:
        result = _say(body, clause, found, dense)
        if result:
            return result
    top = ranked[0] if ranked else None
    return _first_words(without_opener(body[top.start : top.end]) if top else whole, dense)


def _fits(text: str, dense: bool) -> bool:
    if dense:
        return len(text) <= _DENSE_MAX
    return len(text) <= _CHARS_MAX and len(text.split()) <= _WORDS_MAX


def _score(text: str, clause: Clause, found: tuple[Candidate, ...]) -> float:
    """Weigh a clause by what it names; a question tells less than a statement."""
    inside = sum(c.weight for c in found if clause.start <= c.start and c.end <= clause.end)
    length = clause.end - clause.start
    score = inside / (1.0 + length / 200)
    return score * (0.6 if text[clause.end - 1] in "?？" else 1.0)


def _say(text: str, clause: Clause, found: tuple[Candidate, ...], dense: bool) -> str:
    """Put one clause as a phrase: whole where it fits, else its best run of words."""
    whole = without_end_mark(without_opener(text[clause.start : clause.end]))
    if whole and _fits(whole, dense):
        return whole
    offset = clause.end - len(without_opener(text[clause.start : clause.end]))
    tokens = [
        token._replace(start=token.start + offset, end=token.end + offset)
        for token in tokenize(text[offset : clause.end])
    ]
    limit = _DENSE_MAX if dense else _CHARS_MAX
    words = _DENSE_MAX if dense else _WORDS_MAX
    if dense:
        condensed = condense(text, tokens, found, limit)
        if condensed:
            return without_end_mark(condensed)
    for strict in (True, False):
        span = excerpt(tokens, found, limit, words, strict=strict)
        result = without_end_mark(text[slice(*span)]) if span else ""
        if len(result) >= (_DENSE_LEAST if dense else _LEAST) and _fits(result, dense):
            return result
    return ""


def _first_words(text: str, dense: bool) -> str:
    """Take the beginning, for a text in which nothing better can be told apart."""
    kept = ""
    for token in tokenize(text[:200]):
        longer = text[: token.end]
        if not _fits(longer, dense):
            break
        if token.text not in NO_END and token.text.casefold() not in NO_END_ENGLISH:
            kept = longer
    if not kept:
        limit = _DENSE_MAX if dense else _CHARS_MAX
        kept = text[: cluster_cut(text, 0, min(limit, len(text)))]
    return without_end_mark(kept) or kept
