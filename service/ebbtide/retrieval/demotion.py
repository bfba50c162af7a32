"""Rank earlier questions and echoes below statements.

A question that the user asked before resembles the query more than its answer does, and a reply of the assistant that
repeats the user adds nothing. Both count half in the final order. A question that carries evidence keeps its place
before statements of less than half its score.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import words_of
from ebbtide.retrieval.lexical import Scores
from ebbtide.retrieval.passages import ROLES, PassageIndex
from ebbtide.retrieval.sentences import sentences_of

CANDIDATES = 30
"""Passages at the top whose order may change."""

SHARE = 0.5
"""Share of its score with which a question or an echo is placed."""

ECHOED = 0.6
"""Share of the words of an echo that the message before it contains."""

_CLOSING = " \t\n\"'”’」』)）!！~…"
_ASSISTANT = ROLES.index("assistant")


def demoted(
    order: NDArray[np.int64], scores: Scores, index: PassageIndex, texts: Callable[[int], str]
) -> NDArray[np.int64]:
    """Return passages, given best first with their scores, with questions and echoes further down."""
    first = order[:CANDIDATES].tolist()
    shares = [SHARE if _adds_nothing(passage, index, texts) else 1.0 for passage in first]
    places = np.argsort(-scores[: len(first)] * np.array(shares), kind="stable")
    return np.concatenate([order[: len(first)][places], order[len(first) :]])


def _adds_nothing(passage: int, index: PassageIndex, texts: Callable[[int], str]) -> bool:
    text = texts(passage)
    return is_question(text) or _is_echo(passage, text, index, texts)


def is_question(text: str) -> bool:
    """Return whether every sentence of a text ends with a question mark."""
    sentences = [one for one in sentences_of(text) if any(character.isalnum() for character in one)]
    return bool(sentences) and all(one.rstrip(_CLOSING).endswith(("?", "？")) for one in sentences)


def _is_echo(passage: int, text: str, index: PassageIndex, texts: Callable[[int], str]) -> bool:
    before = int(index.column("previous")[passage])
    if (
        before < 0
        or index.column("role")[passage] != _ASSISTANT
        or index.column("role")[before] == _ASSISTANT
    ):
        return False
    return is_echo(text, texts(before))


def is_echo(text: str, before: str) -> bool:
    """Return whether a text mostly repeats the words of the one before it, and adds no number."""
    words, known = set(words_of(text)), set(words_of(before))
    new = words - known
    return len(new) <= (1 - ECHOED) * len(words) and not any(word.isdigit() for word in new)
