"""Preferences: order the top candidates by what a question expects besides relevance.

First, messages that are no statements of the user count less. An earlier question resembles the query more than its
answer does. A query is about the user, unless it addresses the assistant ("what did you suggest?"), so the assistant's
replies count less. Replies that repeat the user count less in either case.

Then, of messages that restate a matter, the newer one comes first (`restating.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.features import Fused
from ebbtide.retrieval.marks import HAS_QUESTION, have
from ebbtide.retrieval.questions import split_questions
from ebbtide.retrieval.restating import ASSISTANT, newer_first

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

REPLY = 2.0
"""How much less an assistant's message is worth, unless the question addresses the assistant.

Worths are in units of the spread of the trees' sums.
"""

QUESTION = 1.5
"""How much less a message is worth that only asks."""

REPEATED = 10.0
"""The same for a message that only asks the query again: it follows everything else."""

ECHOED = 0.6
"""Share of the words of an echo that the message before it contains."""


def in_preferred_order(fused: Fused, worths: Numbers) -> Places:
    """Return the candidates in order of their worth and the preferences; of equal ones the newer first."""
    first = fused.first
    worths = worths - REPLY * _are_replies(fused) - _less_for_questions(fused)
    places = np.lexsort((-first, -worths))
    order: Places = first[newer_first(fused, worths, places)]
    return order


def _are_replies(fused: Fused) -> NDArray[np.bool_]:
    """Return which candidates are messages of the assistant; if the query addresses it, only its echoes."""
    request, first = fused.request, fused.first
    is_reply = fused.index.column("role") == ASSISTANT
    are_replies: NDArray[np.bool_] = is_reply[first]
    if not request.addresses_assistant:
        return are_replies
    before = fused.index.column("previous")[first]
    are_replies &= (before >= 0) & ~is_reply[before]
    for place in np.flatnonzero(are_replies).tolist():
        texts = request.texts
        are_replies[place] = texts is not None and is_echo(
            texts(int(first[place])), texts(int(before[place]))
        )
    return are_replies


def is_echo(text: str, before: str) -> bool:
    """Return whether a text mostly repeats the words of the one before it, and adds no number."""
    words, known = set(words_of(text)), set(words_of(before))
    new = words - known
    return len(new) <= (1 - ECHOED) * len(words) and not any(word.isdigit() for word in new)


def _less_for_questions(fused: Fused) -> Numbers:
    """Return how much less the candidates that ask are worth; 0 if texts are not available.

    A message that also states something is worth less if only its questions contain words of the query.
    """
    texts, less = fused.request.texts, np.zeros(len(fused.first))
    for place in np.flatnonzero(have(fused.marks(fused.first), HAS_QUESTION)).tolist():
        questions, others = split_questions("" if texts is None else texts(int(fused.first[place])))
        in_questions, in_others = (
            [term_of(word) in fused.request.terms for sentence in some for word in words_of(sentence)]
            for some in (questions, others)
        )
        if not others and all(in_questions):
            less[place] = REPEATED
        elif not others or (any(in_questions) and not any(in_others)):
            less[place] = QUESTION
    return less
