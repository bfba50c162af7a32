"""Recognise words that change whether a statement holds: negations and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import words

_CONDITION_WORDS = words("if unless until 如果 要是 除非 假如 倘若 万一 只要 只有")
# Words that begin like a negation but are not one.
_POSITIVE = words(
    "不错 不过 不仅 不但 不断 不久 不管 不论 不如 不妨 不禁 不愧 不同 没错 没事 "
    "别人 别的 别墅 别处 别名 别致 别样 别称 未来 无论 无数 无比 无线 差不多"
)


def is_negation(token: Token) -> bool:
    """Return whether a word negates its clause."""
    text = token.text.replace("’", "'").casefold()
    if text in words_chinese.NEGATIONS or text in words_english.NEGATIONS:
        return True
    return text[0] in "不没未别" and text not in _POSITIVE and token.tag not in ("punct", "word")


def holds_negation(tokens: Sequence[Token]) -> bool:
    """Return whether any of the words is a negation."""
    return any(is_negation(token) for token in tokens)


def is_condition_word(token: Token) -> bool:
    """Return whether a word introduces a condition."""
    return token.text.casefold() in _CONDITION_WORDS
