"""Recognise words that change whether a statement holds: negations and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list

_CONDITION_WORDS = word_list("condition_words")
# Words that begin like a negation but are not one.
_POSITIVE = word_list("chinese_not_negations")


def is_negation(token: Token) -> bool:
    """Return whether a word negates its clause."""
    text = normal(token.text)
    if text in words_chinese.NEGATIONS or text in words_english.NEGATIONS:
        return True
    return text[0] in "不没未别" and text not in _POSITIVE and token.tag not in ("punct", "word")


def holds_negation(tokens: Sequence[Token]) -> bool:
    """Return whether any of the words is a negation."""
    return any(is_negation(token) for token in tokens)


def is_condition_word(token: Token) -> bool:
    """Return whether a word introduces a condition."""
    return token.text.casefold() in _CONDITION_WORDS
