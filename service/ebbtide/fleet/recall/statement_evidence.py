"""How well a statement answers a question, and whether any does: two logistic regressions over evidence.

The evidence of a statement is its share of the best score in hybrid recall, its similarity in meaning, its topic by the
words and by the vector of the question, and whether it is about someone whom the question means. The evidence of a
question is that of its best statements, the relevance of the best message, and whether it names a relative whom the
memory does not know. With vectors that know no topics of questions, words decide alone. The weights were fitted by
`benchmarks/knowledge/statement_weights.py`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ebbtide.memory.slot_names import FAVOURITE
from ebbtide.statements import Assertion

SPREAD: Final = 2.0
"""Difference of the fitted score at which a statement is as similar as 1/e of the best one."""

RELATED_SHARE: Final = 0.4
"""Share of a topic that counts for a related one."""

OTHER: Final = "other"
"""The topic of questions that statements usually do not answer."""

_RELATED: Final = (
    ("likes", "dislikes", "favourite", "hobby"),
    ("employer", "workplace", "occupation"),
    ("residence", "hometown"),
    ("diet", "allergy", "drinking"),
    ("vehicle", "owns", "event"),
    ("health", "medication"),
    ("language", "native_language"),
    ("travel", "event"),
    ("boss", "colleague"),
    ("partner", "friend", "marital_status"),
    ("task", "goal"),
)
"""Topics whose statements may answer questions on the others of their group."""


class Evidence(NamedTuple):
    """The evidence that a statement answers a question."""

    words: float = 0.0
    """Its share of the best score of hybrid recall."""
    meaning: float = 0.0
    """Its similarity in meaning."""
    named_topic: float = 0.0
    """The weight of its topic by the words of the question."""
    topic: float = 0.0
    """The share of its topic by the vector of the question."""
    about: float = 0.0
    """1 if it is about a person or thing that the question names."""
    stranger: float = 0.0
    """1 if it is about someone whom the question does not mean."""


class AnswerEvidence(NamedTuple):
    """The evidence that the memory answers a question."""

    relevance: float
    """The log odds of the relevance of the best message."""
    other: float
    """The share of the topic `other`."""
    meaning: float
    named_topic: float
    topic: float
    """The most of each among the statements."""
    unknown_relative: float
    """1 if the question names relatives, and the memory knows none of them."""
    constant: float = 1.0


class Weights(NamedTuple):
    """The weights of both regressions."""

    of_statement: Evidence
    of_answer: AnswerEvidence
    least_share: float
    """Least similarity of a statement that is found, as a share of the best one. The others are on other matters."""


WITH_TOPICS: Final = Weights(
    Evidence(2.9, 3.3, 1.1, 3.5, 0.9, -0.1), AnswerEvidence(0.5, -0.7, 0.0, 0.7, 5.3, -1.4, -1.7), 0.1
)
WITHOUT_TOPICS: Final = Weights(
    Evidence(1.5, 0.0, 2.6, 0.0, 0.5, -1.0), AnswerEvidence(0.3, 0.0, 0.0, 2.7, 0.0, -2.9, -0.55), 0.2
)


def topic_of(one: Assertion, topics: Mapping[str, float]) -> str:
    """Return the topic of a statement, among those that a question may ask for; empty for none."""
    if one.kind == "task":
        return "task"
    if one.slot in topics:
        return one.slot
    if one.slot.startswith(FAVOURITE):
        return "favourite"
    return one.kind if one.kind in topics else ""


def related(topics: Collection[str]) -> frozenset[str]:
    """Return the slots whose statements may answer questions on some topics, without events."""
    groups = (group for group in _RELATED if not set(topics).isdisjoint(group))
    return frozenset(one for group in groups for one in group if one not in ("event", "task"))


def with_related(topics: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each topic of a question, raised by the shares of the topics related to it."""
    raised = dict(topics)
    for group in _RELATED:
        whole = sum(topics.get(one, 0.0) for one in group)
        for one in group:
            if one in raised:
                raised[one] += RELATED_SHARE * (whole - topics[one])
    return raised


def score(evidence: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """Return the log odds of a regression."""
    return sum(each * weight for each, weight in zip(evidence, weights, strict=True))


def log_odds(probability: float) -> float:
    """Return the log odds of a probability, within ±7."""
    bounded = min(max(probability, 1e-3), 1 - 1e-3)
    return math.log(bounded / (1 - bounded))


def probability(log_odds: float) -> float:
    """Return the probability of log odds."""
    return 1 / (1 + math.exp(-log_odds))
