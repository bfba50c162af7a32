"""Recognise words that change whether a statement holds: negations and conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from ebbtide.han import contains_han
from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list

_CONDITION_WORDS = word_list("condition_words")
# Words that begin like a negation but are not one.
_POSITIVE = word_list("chinese_not_negations")

_DENIES = re.compile(
    r"\b(?:not(?! only\b)|never|no|none|nobody|nothing|neither|nor|cannot|without|hardly|barely|rarely|seldom)\b"
    r"|n't\b|\b(?:do|does|did|ca|wo|is|was|are|were|have|has|had|could|would|should|ai)nt\b"
    r"|[不没未勿甭]|并非|绝非|毫无|无法|从无"
)
_CLAUSE_ENDS = re.compile(
    r"[,;:!?，；：。！？、\n]|\.(?=\s|$)|\b(?:but|because|so|since|and|although|though)\b|但是?|因为|所以|而且"
)
_OVER = re.compile(r"\bno longer\b|(?:\bnot|n't)\b.{0,60}?\bany ?more\b|不再|再也不|再也没")
_AFFIRMS = re.compile(
    r"\bcan(?:'t|not) (?:get enough|wait|live without|help|believe)\b|\b(?:don't|never) (?:let me )?forget\b"
    r"|\bno (?:doubt|kidding|problem)\b|\bnot only\b"
)
"""Words of a denial that deny nothing of a value."""
_NOT_ALLERGIC = re.compile(
    r"(?:\bnot\b|n['’]t\b|\bnever\b|\bno longer\b|[不没])[^,，;；.。]{0,24}(?:allerg|intoleran|[过過]敏)"
)
Denial = Literal["none", "over", "unclear"]
"""`over`: the words say that it is so no more; `unclear`: they deny something, perhaps not the value."""
_DENIES_NOTHING = re.compile(
    r"(?:^|[,，\s])不过(?!敏)|不[仅但断久论愧妨]|不管(?!用)|不禁(?!止)|不错(?!过)|差不多|不得不|不丹|不锈|没[错事]|未[来婚]"
)
"""Chinese words that contain such a word, but deny nothing."""


def denies(clause: str) -> bool:
    """Return whether a folded clause contains a word that denies it, without looking at its grammar."""
    return _DENIES.search(_DENIES_NOTHING.sub(" ", clause)) is not None


def denial_of(sentence: str, value: str) -> Denial:
    """Return whether the clause of a sentence that names a value denies something."""
    text, name = sentence.casefold().replace("’", "'"), value.strip().casefold().replace("’", "'")
    if not name or name not in text:
        return "none"
    at = text.index(name)
    begin = max((one.end() for one in _CLAUSE_ENDS.finditer(text, 0, at)), default=0)
    after = _CLAUSE_ENDS.search(text, at + len(name))
    before, behind = text[begin:at], text[at + len(name) : after.start() if after else len(text)]
    around = f"{before} · {behind}"
    if _OVER.search(around):
        return "over"
    # "an accountant not a lawyer" denies the lawyer.
    said = around if contains_han(around) else before
    return "unclear" if denies(_AFFIRMS.sub(" ", said)) else "none"


def is_denied(value: str) -> bool:
    """Return whether a value begins with words that deny the rest of it: "not vegan", 不再吃肉."""
    return value.strip().casefold().startswith(("not ", "no longer ", "不再", "不是"))


def denies_allergy(sentence: str) -> bool:
    """Return whether a sentence denies an allergy or says that it is over."""
    return _NOT_ALLERGIC.search(sentence.casefold()) is not None


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
