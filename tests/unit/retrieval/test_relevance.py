"""Relevance grows with the evidence, and is not estimated where it is unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebbtide.fleet.recall.relevant import is_only_courtesy
from ebbtide.retrieval.analysis import term_of, whole_words_of, words_of
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of
from ebbtide.retrieval.profiles import PROFILES, profile_of
from ebbtide.retrieval.query import AsksFor
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.relevance import EVIDENCE, FEW, UNSTATED, are_enough, evidence, relevance
from ebbtide.retrieval.vectors import CENTRED_FROM

DAY_MS = 86_400_000
SAID = [
    ("Ann", "I moved to Lisbon with my cat"),
    ("Bob", "How nice"),
    ("Ann", "The harbour smells of tar"),
    ("Bob", "我妹妹在青岛当护士"),
]


@pytest.fixture
def index() -> PassageIndex:
    """An index with four turns of two speakers on four days."""
    made = PassageIndex()
    for number, (speaker, text) in enumerate(SAID):
        made.add(
            IndexedPassage(number, entry, number * DAY_MS, speaker, "s")
            for entry in entries_of(text, speaker)
        )
    return made


def request(query: str, **fields: Any) -> RankingRequest:
    words = {term_of(word): 1.0 for word in whole_words_of(query)}
    is_chinese = not query.isascii()
    return RankingRequest(
        words, whole_words=words, is_chinese=is_chinese, texts=lambda passage: SAID[passage][1], **fields
    )


def columns(index: PassageIndex, query: str, **fields: Any) -> dict[str, list[float]]:
    rows = evidence(index, request(query, **fields), np.arange(4))
    return dict(zip(EVIDENCE, rows.T.tolist(), strict=True))


def test_words_count_in_the_passage_and_its_neighbours(index: PassageIndex) -> None:
    """A passage has the share of the query's words that it contains, and that it and its neighbours contain."""
    found = columns(index, "moved Lisbon")
    assert found["own words"] == pytest.approx([1, 0, 0, 0])
    assert found["words"] == pytest.approx([1, 1, 0, 0])
    assert found["known words"] == pytest.approx([1] * 4)


def test_unknown_words_reduce_the_share(index: PassageIndex) -> None:
    """Words that the memory does not contain count as missing, and no words at all as no evidence."""
    found = columns(index, "capital Lisbon")
    assert 0.3 < found["own words"][0] < 0.6 and found["known words"] == found["own words"][:1] * 4
    assert columns(index, "")["words"] == [0, 0, 0, 0]


def test_chinese_words_are_not_cut_into_pairs() -> None:
    """Evidence needs words of Chinese: pairs across two words would count as unknown."""
    assert list(whole_words_of("法国的首都")) == ["法国", "首都"]


def test_speaker_and_time_are_evidence(index: PassageIndex) -> None:
    """Passages of the named speaker and of the named day are marked."""
    found = columns(
        index,
        "nurse",
        speakers=[index.speaker_numbers["Bob"]],
        dates=[(DAY_MS, 2 * DAY_MS)],
        semantic=np.array([0.1, 0.2, 0.3, 0.4]),
    )
    assert found["speaker"] == [0, 1, 0, 1]
    assert found["dates"] == [0, 1, 0, 0]
    assert found["other script"] == [0, 0, 0, FEW], "the memory has no mean of its own"
    assert found["semantic"] == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_the_other_script_is_evidence_in_a_larger_memory() -> None:
    """Passages in the other script are marked once the vectors are centred with their own mean."""
    texts = ["She is a nurse"] * (CENTRED_FROM - 1) + ["她是护士"]
    index = PassageIndex()
    for number, text in enumerate(texts):
        index.add(IndexedPassage(number, entry, number, "", "s") for entry in entries_of(text, ""))
    semantic = np.linspace(0, 1, len(texts))
    request = RankingRequest({}, semantic=semantic, texts=texts.__getitem__)
    found = evidence(index, request, np.arange(len(texts)))[:, EVIDENCE.index("other script")]
    assert found.tolist() == [0] * (CENTRED_FROM - 1) + [1]


@pytest.mark.parametrize("model", PROFILES)
def test_evidence_raises_relevance(index: PassageIndex, model: str) -> None:
    """With the weights of every profile, a passage with the query's words is relevant and an unrelated one is not."""
    weights = profile_of(model).relevance
    assert weights is not None and set(weights) <= set(EVIDENCE)
    vectors = {"semantic": np.array([0.5, 0.0, 0.0, 0.0]), "window": np.array([0.5, 0.2, 0.0, 0.0])}
    found = relevance(index, request("moved Lisbon", **(vectors if model else {})), np.arange(4), weights)
    assert found[0] > 0.9 and found[0] == found.max()
    unrelated = {"semantic": np.zeros(4), "window": np.zeros(4)} if model else {}
    assert relevance(index, request("capital Peru", **unrelated), np.arange(4), weights).max() < 0.25


def test_other_models_have_no_relevance() -> None:
    """Similarities of an unknown embedding model have an unknown scale, so no relevance is estimated."""
    assert profile_of("ollama:bge-m3").relevance is None


@pytest.mark.parametrize(
    ("text", "asks_for", "is_courtesy"),
    [
        ("Hello! Thank you!", "", True),
        ("谢谢，你也是！", "", True),
        ("Clara", "", False),
        ("小明", "", False),
        ("Who is Jill?", "who", False),
        ("What is the capital of Peru?", "what", False),
        ("Thanks, the flat costs 950 euros", "", False),
    ],
)
def test_courtesy_needs_a_word_of_courtesy(text: str, asks_for: AsksFor, is_courtesy: bool) -> None:
    """A greeting asks for nothing. A name alone, a question and a statement do."""
    assert is_only_courtesy(text, asks_for) is is_courtesy


@pytest.mark.parametrize(
    ("query", "topics", "floor"),
    [
        ("Where do I live?", None, 0.2),
        ("Where do I live?", [["moved", "flat"]], 0.2),
        ("What is my brother called?", [["brother"], ["moved"]], UNSTATED),
        ("What is my blood type?", [], UNSTATED),
        ("How is my cat?", [], 0.2),
    ],
)
def test_what_the_memory_does_not_state_needs_more_relevance(
    index: PassageIndex, query: str, topics: list[list[str]] | None, floor: float
) -> None:
    """A topic without any passage, or words that the memory does not know, raise the floor, but in one script only."""
    terms = topics and [
        frozenset(term_of(word) for words in one for word in words_of(words)) for one in topics
    ]
    asked, places = request(query, topics=terms), np.arange(4)
    for relevance_of_all, expected in ((floor, [True] * 4), (floor - 0.01, [False] * 3 + [floor > 0.2])):
        enough = are_enough(index, asked, places, np.full(4, relevance_of_all), 0.2)
        assert enough.tolist() == expected
