"""Tests of whole sentences for the statements of a language model: what a sentence does not state.

The rules test clauses and leave out less. A model may list anything, so its sentences are tested more strictly.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from ebbtide.han import contains_han
from ebbtide.language.builtin import chinese_facts, english_facts

Unsaid = Literal["", "question", "quotation", "unsaid"]

_UNSAID_EN: Final = re.compile(
    r"\b(?:if|unless|maybe|perhaps|probably|possibly|might|could|would|should|think|guess|suppose|wish|hope|want"
    r"|wanted|planning|plan|going to|gonna|used to|said|says|told|tells|heard|according|dream|dreamt|pretend|imagine"
    r"|almost|nearly|never mind|joking|kidding|as if|like to|love to|supposed|someday|thinking|considering)\b"
)
_UNSAID_ZH: Final = re.compile(
    r"如果|要是|假如|可能|也许|大概|好像|似乎|想要|想去|希望|打算|计划|准备|据说|听说|他说|她说|曾经|以前|要不|吗|呢|是不是|难道"
    r"|梦|假装|差点|开玩笑|应该|觉得|以为|万一|谁|什么|哪|怎么|多少|几"
)
_MAY: Final = re.compile(r"\bmay\b")
"""The verb; the month begins with a capital."""
_QUOTES: Final = re.compile(r"[\"“”«»「」『』]")
_PRONOUN: Final = re.compile(
    r"\b(?:i|me|my|mine|you|your|he|him|his|she|her|it|its|we|us|our|they|them|their|this|that|these|those|there|here"
    r"|what|which|who|something|anything|everything|someone|one|ones|lot|bit)\b|[我你您他她它咱这那啥]|自己|大家|东西|事情"
)


def why_unsaid(sentence: str, *, is_reminder: bool = False) -> Unsaid:
    """Return why a sentence states nothing; empty if it states something.

    `unsaid` covers guesses, wishes, plans, reports, conditions and the past. A reminder may contain such words.
    """
    if sentence.rstrip()[-1:] in ("?", "？"):
        return "question"
    if _QUOTES.search(sentence):
        return "quotation"
    if is_reminder:
        return ""
    unsaid = _UNSAID_ZH if contains_han(sentence) else _UNSAID_EN
    return "unsaid" if unsaid.search(_folded(sentence)) or _MAY.search(sentence) else ""


def asks_for_reminder(sentence: str) -> bool:
    """Return whether a sentence asks to be reminded of something."""
    return english_facts.asks_for_reminder(_folded(sentence)) or chinese_facts.asks_for_reminder(sentence)


def contains_pronoun(text: str) -> bool:
    """Return whether a value contains a pronoun or another word that names nothing."""
    return _PRONOUN.search(_folded(text)) is not None


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")
