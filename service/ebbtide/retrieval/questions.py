"""Recognise questions among messages, with or without a question mark.

People who write to an assistant often omit the mark: "what's my address again, the form wants it". A sentence is a
question if it ends with the mark, or begins as only questions do.
"""

from __future__ import annotations

import re

from ebbtide.retrieval.sentences import sentences_of

_AUXILIARY = r"(?:is|are|am|was|were|does|did|has|have|had|can|could|will|would|shall|should|might)\b"
_OPENS_ENGLISH = re.compile(
    r"(?:(?:wait|hey|ok|okay|so|and|but|also|sorry|please|oh|well|hmm?|um)\b[\s,.…:-]*+){0,3}+"
    rf"(?:(?:what|where|when|who|how|why)(?:['’](?:s|re)\b|\s++(?:do\b|{_AUXILIARY}))"
    rf"|how\s++(?:much|many|often|long|far|old)\s++(?:\w++\s++)?(?:do\b|{_AUXILIARY})"
    rf"|(?:which|what)\s++(?!(?:i|you|we|they|he|she|it)\b)\w++\s++(?:do\b|{_AUXILIARY})"
    rf"|(?!(?:can|could|will|would)\s++you\b){_AUXILIARY}(?:n['’]t)?\s++"
    r"(?:i|you|we|they|he|she|it|there|this|that|my|your|our|the)\b"
    r"|do\s++(?:i|you|we|they)\b)",
    re.IGNORECASE,
)

_ENDS_CHINESE = re.compile(
    r"(?:[吗谁]|[^什怎那这多]么|哪[里儿]?|(?<!没)(?<!没有)什么|怎么样|多[久远大高少]|几[个次点岁号路])(?:来着)?\Z"
)
"""The end of a Chinese clause that asks."""

_CLOSING = " \t\n\"'”’」』)）!！~…"
"""Characters that may follow a question mark at the end of a text."""

MAX_REMARK = 10
"""Characters behind a Chinese clause that asks: "what's my number, the form wants it"."""


def ends_with_question(text: str) -> bool:
    """Return whether the last sentence of a text ends with a question mark."""
    return text.rstrip(_CLOSING).endswith(("?", "？"))


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    if ends_with_question(sentence) or _OPENS_ENGLISH.match(sentence.lstrip()):
        return True
    if sentence.isascii():
        return False
    clause, _, remark = sentence.strip(" \t\n。！!").replace(",", "，").partition("，")
    return len(remark) <= MAX_REMARK and _ENDS_CHINESE.search(clause[-8:]) is not None


def split_questions(text: str) -> tuple[list[str], list[str]]:
    """Return the questions and the other sentences of a text, without those that have no letter or digit."""
    questions: list[str] = []
    others: list[str] = []
    for sentence in sentences_of(text):
        if any(character.isalnum() for character in sentence):
            (questions if asks(sentence) else others).append(sentence)
    return questions, others
