"""Preferences: order the top candidates by what a question expects besides relevance.

First, messages that are no statements of the user count less. An earlier question resembles the query more than its
answer does. A query is about the user, unless it addresses the assistant ("what did you suggest?"), so the assistant's
replies count less. Replies that repeat the user count less in either case.

Then, a user's later message may restate a matter: "I live in Leeds", then "I moved to York". A question that expects
the newest message gets the later one directly before the earlier one. A message restates another one if both resemble
each other and it is not much less relevant. If the question asks for the present ("now", "still", 现在), less is
required.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.features import Fused
from ebbtide.retrieval.marks import ENDS_WITH_QUESTION, ONLY_ASKS, have
from ebbtide.retrieval.passages import ROLES

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

ASSISTANT = ROLES.index("assistant")

REPLY = 1.0
"""How much less an assistant's message is worth, unless the question addresses the assistant.

Worths are in units of the spread of the trees' sums.
"""

QUESTION = 1.5
"""How much less a message is worth that only asks."""

REPEATED = 10.0
"""The same for a message that only asks the query again: it follows everything else."""

ECHOED = 0.6
"""Share of the words of an echo that the message before it contains."""


@dataclass(frozen=True, slots=True)
class Restating:
    """When a message restates an earlier one: how far it is searched for, how alike both are, and what it may lack."""

    depth: int
    likeness: float
    less_worth: float


RESTATING = {
    "implied": Restating(depth=6, likeness=0.35, less_worth=0.8),
    "explicit": Restating(depth=16, likeness=0.25, less_worth=4.0),
}
"""By the recency of the question."""


def in_preferred_order(fused: Fused, worths: Numbers) -> Places:
    """Return the candidates in order of their worth and the preferences; of equal ones the newer first."""
    first = fused.first
    worths = worths - REPLY * _are_replies(fused) - _less_for_questions(fused)
    places = np.lexsort((-first, -worths))
    if fused.request.recency and fused.request.alike is not None:
        places = _newer_first(fused, fused.request.alike, worths, places)
    order: Places = first[places]
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
    """Return how much less the candidates that only ask are worth; 0 if texts are not available."""
    texts, less = fused.request.texts, np.zeros(len(fused.first))
    for place in np.flatnonzero(have(fused.marks(fused.first), ONLY_ASKS)).tolist():
        text = "" if texts is None else texts(int(fused.first[place]))
        asks_again = all(term_of(word) in fused.request.terms for word in words_of(text))
        less[place] = REPEATED if asks_again else QUESTION
    return less


def _newer_first(fused: Fused, alike: Callable[[Places], Numbers], worths: Numbers, places: Places) -> Places:
    """Move each message that restates an earlier one directly before the first such one."""
    rule = RESTATING[fused.request.recency]
    top = places[: rule.depth]
    passages = fused.first[top]
    likeness = alike(passages)
    times, worth = fused.index.column("time_ms")[passages], worths[top].copy()
    is_statement = fused.index.column("role")[passages] != ASSISTANT
    is_statement &= ~have(fused.marks(passages), ENDS_WITH_QUESTION)
    order = [0]
    for one in range(1, len(top)):
        restated = [
            rank
            for rank, other in enumerate(order)
            if is_statement[one]
            and is_statement[other]
            and times[other] < times[one]
            and likeness[one, other] >= rule.likeness
            and worth[one] >= worth[other] - rule.less_worth
        ]
        if restated:
            worth[one] = max(worth[one], worth[order[restated[0]]])
        order.insert(restated[0] if restated else len(order), one)
    return np.concatenate([top[order], places[rule.depth :]])
