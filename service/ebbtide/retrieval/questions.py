"""Recognise questions among messages, with or without a question mark.

People who write to an assistant often omit the mark: "what's my address again, the form wants it". A sentence is a
question if it ends with the mark, or begins as only questions do.
"""

from __future__ import annotations

import re

from ebbtide.retrieval.features import ends_with_question
from ebbtide.retrieval.sentences import sentences_of

_AUXILIARY = r"(?:is|are|am|was|were|does|did|has|have|had|can|could|will|would|shall|should|might)\b"
_OPENS_ENGLISH = re.compile(
    r"\s*+(?:(?:wait|hey|ok|okay|so|and|but|also|sorry|please|oh|well|hmm?|um)\b[\s,.…:-]*+){0,3}+"
    rf"(?:(?:what|where|when|who|how|why)(?:['’](?:s|re)\b|\s++(?:do\b|{_AUXILIARY}))"
    rf"|how\s++(?:much|many|often|long|far|old)(?:\s++\w++){{0,2}}?\s++(?:do\b|{_AUXILIARY})"
    rf"|(?:which|what)\s++(?!(?:i|you|we|they|he|she|it)\b)\w++\s++(?:do\b|{_AUXILIARY})"
    rf"|(?!(?:can|could|will|would)\s++you\b){_AUXILIARY}(?:n['’]t)?\s++(?:i|you|we|they|he|she|it|there|this|that|my|your|our|the)\b"
    r"|do\s++(?:i|you|we|they)\b)",
    re.IGNORECASE,
)

_ASKS_CHINESE = re.compile(
    r"[^，。！；,!;]*+(?:(?<=[吗谁])|(?<=[^什怎那这多]么)|(?<=哪[里儿])|(?<=什么)(?<!没什么)(?<!没有什么)|(?<=怎么样)|(?<=多[久远大高少])"
    r"|(?<=几[个次点岁号路])|(?<=几[个次点岁号路]来着)|(?<=多少来着)|(?<=什么来着)|(?<=[谁哪]来着))"
    r"(?:[，,][^，。！；,!;]{0,10}+)?[。！!\s]*+\Z"
)
"""A clause that asks, with at most a short remark after it."""


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    opening = (_OPENS_ENGLISH.match(sentence), _ASKS_CHINESE.match(sentence))
    return ends_with_question(sentence) or any(opening)


def split_questions(text: str) -> tuple[list[str], list[str]]:
    """Return the questions and the other sentences of a text, without those that have no letter or digit."""
    questions: list[str] = []
    others: list[str] = []
    for sentence in sentences_of(text):
        if any(character.isalnum() for character in sentence):
            (questions if asks(sentence) else others).append(sentence)
    return questions, others


def is_question(text: str) -> bool:
    """Return whether every sentence of a text is a question."""
    questions, others = split_questions(text)
    return bool(questions) and not others
