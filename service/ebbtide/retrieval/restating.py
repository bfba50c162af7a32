"""Order messages that restate a matter: the newer one first.

A later message may restate a matter: "I live in Leeds", then "I moved to York". A question that may expect the newest
message gets the later one directly before the earlier one. A message restates another one of the same speaker if both
resemble each other and it is not much less relevant. Less is required if the question asks for the present ("now",
"still", 现在), or if the message announces a change ("moved", "no longer", 改, 换).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import known_term, whole_words_of
from ebbtide.retrieval.features import Fused
from ebbtide.retrieval.lexical import rarity
from ebbtide.retrieval.marks import ONLY_ASKS, have
from ebbtide.retrieval.passages import ROLES
from ebbtide.retrieval.relevance import UNSEEN
from ebbtide.retrieval.vectors import CENTRED_FROM

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

ASSISTANT = ROLES.index("assistant")


@dataclass(frozen=True, slots=True)
class Restating:
    """When a message restates an earlier one: how far it is searched for, how alike both are, and what it may lack.

    Worths are in units of the spread of the trees' sums.
    """

    depth: int
    likeness: float
    less_worth: float


RESTATING = {
    "implied": Restating(depth=6, likeness=0.35, less_worth=0.8),
    "explicit": Restating(depth=16, likeness=0.25, less_worth=5.0),
}
"""By the recency of the question. These rules need vectors."""

LEAST_AMONG_FEW = 0.3
"""Least likeness in a memory too small for a mean of its own: there, messages on other matters are more alike."""

CHANGE = Restating(depth=8, likeness=0.38, less_worth=3.2)
"""For a message that announces a change."""

SMALL = 50
"""Passages of a small memory. In a larger one, a question that is not about the user names many similar matters."""

CHANGE_AMONG_MANY = replace(CHANGE, less_worth=0.5)
"""For a message that announces a change, and a question in a larger memory that is not about the user."""

MOST_COMPARED = max(rule.depth for rule in (*RESTATING.values(), CHANGE))
"""Messages at the top that are compared."""

SHARED = 0.4
"""Without vectors, a later message resembles an earlier one if it contains this share of its words of the query."""

_CHANGE = re.compile(
    r"\b(?:no\s++longer|not\s++any\s?more|now|instead|new|changed?|switch(?:ed|ing)?|mov(?:ed|ing)|replac(?:ed|ing)"
    r"|cancell?ed|postponed|rescheduled|pushed|delayed|quit|left|sold|broke\s++up|ended|stopped|gave\s++up"
    r"|(?:is|are)\s++off|became|becoming|upgraded|migrated|renamed|raised|back\s++to|after\s++all|actually"
    r"|from\s++\w++\s++on|used\s++to)\b"
    r"|[换改搬挪迁辞涨新]|调[到整]|不再|[不没][^，。！？]{1,6}了|取消|推迟|提前|延[期后到]|离职|跳槽|卖了|分手|离婚"
    r"|停[了用]|[降升]到|变成|升为|现在|以后|从[^，。]{1,8}起",
    re.IGNORECASE,
)


def announces_change(text: str) -> bool:
    """Return whether a text says that something is different now."""
    return _CHANGE.search(text) is not None


def newer_first(fused: Fused, worths: Numbers, places: Places) -> Places:
    """Move each message that restates an earlier one directly before the first such one."""
    request = fused.request
    if not request.recency or request.texts is None or not len(places):
        return places
    rule = RESTATING.get(request.recency) if request.alike is not None else None
    if rule and len(fused.index) < CENTRED_FROM:
        rule = replace(rule, likeness=max(rule.likeness, LEAST_AMONG_FEW))
    change = (
        CHANGE if rule or request.recency != "possible" or len(fused.index) <= SMALL else CHANGE_AMONG_MANY
    )
    top = places[: max(some.depth for some in (rule, change) if some)]
    passages = fused.first[top]
    may_restate = _may_restate(fused, passages).tolist()
    if not any(map(any, may_restate)):
        return places
    worth = worths[top].tolist()
    texts = request.texts
    text_of = cache(lambda one: texts(int(passages[one])))
    announces = cache(lambda one: announces_change(text_of(one)))
    likeness = _likeness(fused, passages, text_of)

    def restates(one: int, other: int) -> bool:
        # Texts are read, and their words compared, only for messages that are relevant enough.
        return may_restate[one][other] and any(
            one < some.depth
            and worth[one] >= worth[other] - some.less_worth
            and (some is rule or announces(one))
            and likeness(one, other) >= some.likeness
            for some in (rule, change)
            if some
        )

    order = [0]
    for one in range(1, len(top)):
        restated = next((rank for rank, other in enumerate(order) if restates(one, other)), len(order))
        if restated < len(order):
            worth[one] = max(worth[one], worth[order[restated]])
        order.insert(restated, one)
    return np.concatenate([top[order], places[len(top) :]])


def _may_restate(fused: Fused, passages: Places) -> NDArray[np.bool_]:
    """Return which messages (rows) are later statements of the same speaker as others (columns).

    One that is known not to be true, such as a plan, restates nothing.
    """
    column = {name: fused.index.column(name)[passages] for name in ("time_ms", "speaker", "role")}
    is_statement = column["role"] != ASSISTANT
    is_statement &= ~have(fused.marks(passages), ONLY_ASKS)
    is_new = is_statement & ~np.isin(passages, fused.request.off_record)
    may_restate: NDArray[np.bool_] = np.greater.outer(column["time_ms"], column["time_ms"])
    return may_restate & np.equal.outer(column["speaker"], column["speaker"]) & np.outer(is_new, is_statement)


def _likeness(fused: Fused, passages: Places, text_of: Callable[[int], str]) -> Callable[[int, int], float]:
    """Return the function that compares two of these messages: by their vectors, or by their words without vectors."""
    if fused.request.alike is None:
        return _WordLikeness(fused, text_of)
    matrix: list[list[float]] = fused.request.alike(passages, passages).tolist()
    return lambda one, other: matrix[one][other]


class _WordLikeness:
    """How much messages resemble each other by their words: the shared weight relative to the lesser one.

    Messages with the same words of the query resemble each other as well.
    """

    def __init__(self, fused: Fused, text_of: Callable[[int], str]) -> None:
        self._index = fused.index
        self._queried = fused.request.whole_words.keys()
        self._text_of = text_of
        self._words: dict[int, set[int]] = {}
        self._rarities: dict[int, float] = {}

    def __call__(self, one: int, other: int) -> float:
        """Return the likeness of two messages."""
        some, more = self._words_of(one), self._words_of(other)
        likeness = self._weight(some & more) / (min(self._weight(some), self._weight(more)) or 1.0)
        queried = more & self._queried
        if queried and self._weight(some & queried) >= SHARED * self._weight(queried):
            return max(likeness, CHANGE.likeness)
        return likeness

    def _words_of(self, one: int) -> set[int]:
        if one not in self._words:
            words = self._words[one] = set(map(known_term, whole_words_of(self._text_of(one))))
            new = list(words - self._rarities.keys())
            counts, size = self._index.passage_counts(new), len(self._index) + UNSEEN
            self._rarities |= {term: rarity(count, size) for term, count in zip(new, counts, strict=True)}
        return self._words[one]

    def _weight(self, terms: set[int]) -> float:
        return sum(map(self._rarities.__getitem__, terms))
