"""Courtesies: clauses that keep a conversation going and tell nothing.

The rule guarded here: greetings, thanks, apologies, interjections, names called, praise, assent and bare
questions back are courtesy, and only as long as every word of the clause is one of theirs; a figure, a
negated statement or one word with content of its own makes it a statement.

Deliberately not here: what becomes of a courtesy (units.py, phrasing.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english, words_social
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import words

# What says nothing by itself and may stand in a courtesy.
_GLUE = (
    words_english.PRONOUNS
    | words_english.DETERMINERS
    | words_english.PREPOSITIONS
    | words_english.CONJUNCTIONS
    | words_english.AUXILIARIES
    | words_english.ADVERBS
    | words("n't 's who what")
)
_ENGLISH = words_social.ENGLISH | words_social.OFFERS | _GLUE
_CHINESE = words_social.CHINESE | words_chinese.PRONOUNS
_DENYING = words("never nobody nothing without won't wouldn't isn't wasn't aren't 不会 不能 不想 不要 没有")
# Longer than this nobody is merely polite.
_WORDS_MAX = 16
_CALL_BREAKS = frozenset(",，!！.。?？~～…-–—")


def is_courtesy(tokens: Sequence[Token]) -> bool:
    """Tell whether a clause consists of courtesies and called names alone."""
    if not tokens or len(tokens) > 2 * _WORDS_MAX:
        return False
    count = 0
    for index, token in enumerate(tokens):
        if token.tag == "punct":
            continue
        if not _is_social(token) and not _is_called(tokens, index):
            return False
        count += token.tag != "other"
    return 0 < count <= _WORDS_MAX


def _is_social(token: Token) -> bool:
    if token.tag == "word":
        lower = token.text.replace("’", "'").casefold()
        return lower not in _DENYING and (lower in _ENGLISH or lower.partition("'")[0] in _ENGLISH)
    return token.text in _CHINESE and token.text not in _DENYING


def _is_called(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a word is a name set off from the rest, or one behind a greeting."""
    token = tokens[index]
    if token.tag == "word":
        named = token.text[0].isupper() and token.text.casefold() not in words_english.VERBS
    else:
        named = token.tag.startswith("nr")
    if not named:
        return False
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    before = tokens[index - 1] if index else None
    ends = after is None or after.text in _CALL_BREAKS
    set_off = (
        before is None or before.text in _CALL_BREAKS or _is_social(before) or before.tag.startswith("nr")
    )
    return set_off and (ends or (after is not None and after.tag.startswith("nr")))
