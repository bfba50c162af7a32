"""The weights of the evidence for statements."""

from __future__ import annotations

import msgspec
import pytest

from ebbtide.fleet.recall.statement_evidence import (
    WITH_TOPICS,
    WITHOUT_TOPICS,
    Evidence,
    Weights,
    log_odds,
    probability,
    score,
    topic_of,
    with_related,
)
from ebbtide.records import Source
from ebbtide.statements import Assertion

TOPICS = {"task": 0.1, "likes": 0.2, "favourite": 0.3, "event": 0.1, "residence": 0.3}


def said(slot: str, kind: str = "fact") -> Assertion:
    """An assertion with this topic and kind."""
    source = Source(1, 0, 5)
    one = Assertion(1, 2, 3, slot, "value", source, 0, 0)
    return msgspec.structs.replace(one, kind=kind)


@pytest.mark.parametrize(
    ("slot", "kind", "topic"),
    [
        ("residence", "fact", "residence"),
        ("renew", "task", "task"),
        ("favourite:tea", "preference", "favourite"),
        ("broke", "event", "event"),
        ("visa", "fact", ""),
    ],
)
def test_a_statement_has_the_topic_of_its_slot_or_its_kind(slot: str, kind: str, topic: str) -> None:
    """A task is a task whatever its topic, and a slot that no question may ask for has the topic of its kind."""
    assert topic_of(said(slot, kind), TOPICS) == topic


def test_related_topics_raise_each_other() -> None:
    """A favourite may answer a question on likes, and raises no other topic."""
    raised = with_related(TOPICS)
    assert raised["likes"] == pytest.approx(0.2 + 0.4 * 0.3)
    assert raised["residence"] == pytest.approx(0.3)
    assert with_related({}) == {}


@pytest.mark.parametrize("weights", [WITH_TOPICS, WITHOUT_TOPICS])
def test_all_evidence_points_where_it_should(weights: Weights) -> None:
    """More of what speaks for a statement or an answer never lowers its score, and strangers lower it."""
    of_statement, of_answer, _ = weights
    assert all(weight >= 0 for weight in of_statement[:-1])
    assert of_statement.stranger < 0
    assert of_answer.relevance > 0
    assert of_answer.other <= 0
    assert of_answer.topic >= 0
    assert of_answer.named_topic > 0
    assert of_answer.unknown_relative < 0
    assert score(Evidence(words=1.0, about=1.0), of_statement) == of_statement.words + of_statement.about


def test_log_odds_are_bounded() -> None:
    """A certain relevance does not outweigh everything else."""
    assert probability(log_odds(0.3)) == pytest.approx(0.3)
    assert log_odds(1.0) == pytest.approx(-log_odds(0.0))
    assert log_odds(1.0) < 7
