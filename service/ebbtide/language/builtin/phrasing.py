"""Summarise a text as one phrase.

A phrase consists of words of the text in their order: at most 20 characters of Chinese or 8 words. It is a clause or
the best excerpt of one, without closing punctuation. Nothing is rephrased.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english
from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.clauses import Clause, clauses
from ebbtide.language.builtin.condensing import condense
from ebbtide.language.builtin.excerpts import excerpt, is_condition_word
from ebbtide.language.builtin.scripts import cluster_cut, is_dense
from ebbtide.language.builtin.small_talk import is_small_talk
from ebbtide.language.builtin.tokens import Candidate, Token, tokenize, tokens_of, tokens_within
from ebbtide.language.builtin.trimming import plain, without_dangling_words, without_end_mark, without_opener
from ebbtide.language.builtin.units import HARD_CONDITION, LATE_CONDITION, bearing, is_condition
from ebbtide.language.builtin.words_chinese import NO_END
from ebbtide.language.builtin.words_english import NO_END as NO_END_ENGLISH

# A shorter excerpt of a long clause is not a summary.
_MIN_DENSE_CHARS = 6
_MIN_CHARS = 12
_DENSE_MAX = 20
_WORDS_MAX = 8
# Eight English words rarely need more. The limit matters for one endless word.
_CHARS_MAX = 80
_VERBAL = words_english.VERBS | words_english.AUXILIARIES | words_english.AMBIGUOUS | words_english.SUBJECTS


def phrase(text: str) -> str:
    """Return a summary of at most 20 characters of Chinese or 8 words."""
    body = plain(text[:READ_MAX])
    dense = is_dense(body)
    pieces = _without_small_talk(body, clauses(body))
    whole = without_end_mark(body)
    if pieces and len(pieces) > 1:
        whole = without_end_mark(body[pieces[0][0].start : pieces[-1][0].end])
    elif pieces:
        whole = _stripped_clause(body, pieces[0][0])
    if _fits(whole, dense):
        return whole
    found = candidates(body)
    held = _conditioned(body, pieces)
    ranked = sorted(
        pieces,
        key=lambda piece: (piece[0].start in held, -_score(body, piece[0], piece[1], found), piece[0].start),
    )
    for clause, _ in ranked[:4]:
        result = _without_addressee(_phrase_of(body, clause, found, dense), found)
        if result:
            return result
    said = _first_words(_stripped_clause(body, ranked[0][0]) if ranked else whole, dense)
    return _unconditioned(said, ranked[0][1], found) if ranked else said


def _unconditioned(said: str, tokens: Sequence[Token], found: tuple[Candidate, ...]) -> str:
    """Return what a clause is about if the beginning of the clause would omit its condition."""
    conditions = [token.text for token in tokens[1:] if is_condition_word(token)]
    if all(word in said for word in conditions):
        return said
    named = [c for c in found if c.kind != "weak" and tokens[0].start <= c.start and c.end <= tokens[-1].end]
    return max(named, key=lambda c: (c.weight, -c.start)).text if named else said


def _without_addressee(said: str, found: tuple[Candidate, ...]) -> str:
    """Remove the name of the addressed person from the end of a phrase."""
    rest, comma, name = said.rpartition(", ")
    if comma and rest and any(c.text == name and c.kind == "weak" for c in found):
        return rest
    return said


def _stripped_clause(text: str, clause: Clause) -> str:
    """Return a clause without its opener and end mark. Keep the opener if nothing else would be left."""
    words = text[clause.start : clause.end]
    return without_end_mark(without_opener(words)) or without_end_mark(words)


def _without_small_talk(text: str, found: list[Clause]) -> list[tuple[Clause, Sequence[Token]]]:
    """Return the clauses, with their words, from the first to the last that is not small talk. Return all if every
    clause is small talk.
    """
    joined: list[Clause] = []
    for clause in found:
        if joined and not joined[-1].closes and LATE_CONDITION.match(text, clause.start):
            clause = clause._replace(start=joined.pop().start)
        joined.append(clause)
    if len(joined) < 2:
        return [(clause, tokens_of(text)) for clause in joined]
    pieces: list[tuple[Clause, list[Token]]] = [(clause, []) for clause in joined]
    at = 0
    for token in tokens_of(text):
        while at + 1 < len(pieces) and token.start >= pieces[at][0].end:
            at += 1
        pieces[at][1].append(token)
    informative = [index for index, (_, tokens) in enumerate(pieces) if not is_small_talk(tokens)]
    return list(pieces[informative[0] : informative[-1] + 1] if informative else pieces)


def _conditioned(text: str, pieces: list[tuple[Clause, Sequence[Token]]]) -> set[int]:
    """Return the starts of the clauses that depend on a preceding condition."""
    starts: set[int] = set()
    under = False
    for clause, _ in pieces:
        if under:
            starts.add(clause.start)
        under = not clause.closes and (under or HARD_CONDITION.match(text, clause.start) is not None)
    return starts


def _fits(text: str, dense: bool) -> bool:
    if dense:
        return len(text) <= _DENSE_MAX
    return len(text) <= _CHARS_MAX and len(text.split()) <= _WORDS_MAX


def _score(text: str, clause: Clause, tokens: Sequence[Token], found: tuple[Candidate, ...]) -> float:
    """Score a clause by the nouns it names. Questions, small talk and dependent clauses score less."""
    inside = sum(
        c.weight * (0.2 if c.kind == "time" else 1.0)
        for c in found
        if clause.start <= c.start and c.end <= clause.end
    )
    length = clause.end - clause.start
    score = (0.2 + inside) / (1.0 + length / 200)
    score *= bearing(text[clause.start : clause.end], tokens, True)
    if is_small_talk(tokens):
        score *= 0.1
    wordy = bool(tokens) and tokens[0].tag == "word"
    if wordy and not any(token.text.casefold() in _VERBAL for token in tokens):
        score *= 0.7
    if is_condition(text[clause.start : clause.start + 16]):
        score *= 0.4
    return score * (0.5 if text[clause.end - 1] in "?？" else 1.0)


def _phrase_of(text: str, clause: Clause, found: tuple[Candidate, ...], dense: bool) -> str:
    """Return one clause as a phrase: whole if it fits, otherwise its best excerpt."""
    whole = without_end_mark(without_opener(text[clause.start : clause.end]))
    whole = without_dangling_words(whole)
    if whole and _fits(whole, dense):
        return whole
    offset = clause.end - len(without_opener(text[clause.start : clause.end]))
    tokens = tokens_within(text, offset, clause.end)
    limit = _DENSE_MAX if dense else _CHARS_MAX
    words = _DENSE_MAX if dense else _WORDS_MAX
    if dense:
        condensed = condense(text, tokens, found, limit)
        if condensed:
            return without_end_mark(condensed)
    for strict in (True, False):
        span = excerpt(tokens, found, limit, words, strict=strict)
        result = without_end_mark(text[slice(*span)]) if span else ""
        if len(result) >= (_MIN_DENSE_CHARS if dense else _MIN_CHARS) and _fits(result, dense):
            return result
    return ""


def _first_words(text: str, dense: bool) -> str:
    """Return the beginning of a text if no better excerpt is found."""
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
