"""Preferences: order the top candidates by what a question expects besides relevance.

A question to an assistant is about the user, unless it addresses the assistant ("you told me …"). So statements of the
user precede the assistant's replies.

A user's later message may restate a matter: "I live in Leeds", then "I moved to York". A question that expects the
newest message gets the later one directly before the earlier one. A message restates another one if both resemble each
other and it is not much less relevant. If the question asks for the present ("now", "still", 现在), less is required.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.features import Fused, ends_with_question
from ebbtide.retrieval.passages import ROLES

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

ASSISTANT = ROLES.index("assistant")

REPLY = 1.0
"""How much less an assistant's message is worth, unless the question addresses the assistant.

Worths are in units of the spread of the trees' sums.
"""


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
    worths = worths + _of_roles(fused)
    places = np.lexsort((-first, -worths))
    if fused.request.recency and fused.request.alike is not None:
        places = _newer_first(fused, worths, places)
    order: Places = first[places]
    return order


def _of_roles(fused: Fused) -> Numbers:
    """Return what the role of each candidate adds to its worth."""
    if fused.request.addresses_assistant:
        return np.zeros(len(fused.first))
    return np.where(fused.index.column("role")[fused.first] == ASSISTANT, -REPLY, 0.0)


def _newer_first(fused: Fused, worths: Numbers, places: Places) -> Places:
    """Move each message that restates an earlier one directly before the first such one."""
    request, rule = fused.request, RESTATING[fused.request.recency]
    top = places[: rule.depth]
    passages = fused.first[top]
    likeness = request.alike(passages) if request.alike is not None else np.zeros((len(top), len(top)))
    times, worth = fused.index.column("time_ms")[passages], worths[top].copy()
    is_statement = fused.index.column("role")[passages] != ASSISTANT
    if request.texts is not None:
        is_statement &= [not ends_with_question(request.texts(passage)) for passage in passages.tolist()]
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
