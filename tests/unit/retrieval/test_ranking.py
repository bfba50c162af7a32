"""Signals are fused by weight, each may be missing, and filters always apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ebbtide.language.embedding import embedder_name
from ebbtide.retrieval import learned
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of
from ebbtide.retrieval.profiles import DEFAULT_PROFILE, PROFILES, profile_of
from ebbtide.retrieval.ranking import BLOCK, Ranking, _ordered, rank
from ebbtide.retrieval.ranking_request import SIGNALS, RankingRequest
from ebbtide.settings import EmbeddingSettings

SAID = [
    ("Ann", "I drink tea in the harbour"),
    ("Bob", "The boats are late today"),
    ("Ann", "Tea again, and a cat"),
    ("Bob", "My cat sleeps"),
]
DAY_MS = 86_400_000


@pytest.fixture
def index() -> PassageIndex:
    """An index with four turns of two speakers on four days."""
    made = PassageIndex()
    for number, (speaker, text) in enumerate(SAID):
        entries = entries_of(text, speaker)
        made.add(
            IndexedPassage(number, entry, number * DAY_MS, speaker, f"s{number // 2}") for entry in entries
        )
    return made


def ranked(index: PassageIndex, *words: str, most: int = 10, **fields: Any) -> Ranking:
    asked = RankingRequest(terms={term_of(word): 1.0 for word in words}, **fields)
    return rank(index, WordScores(index), asked, most)


def test_words_alone_rank_what_says_them(index: PassageIndex) -> None:
    """The words signal alone ranks, and the ranking reports which signals were off."""
    found = ranked(index, "tea", without=["conversation", "neighbours"])
    assert set(found.passages.tolist()) == {0, 2}
    assert {"semantic", "window", "graph", "conversation", "neighbours"} <= set(found.off)
    assert (np.diff(found.scores) <= 0).all()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("most", [1, 10, 100, None])
def test_the_first_of_many_are_those_of_a_full_sort(most: int | None, share: float) -> None:
    """The first results are exact for any part of a large memory that is found, also with equal scores."""
    dice = np.random.default_rng([most or 0, int(share * 1000)])
    for count in (2 * 100 * BLOCK + 7, 3 * BLOCK, 5):
        for total in (dice.random(count), dice.integers(0, 9, count) / 9):
            found = dice.random(count) < share
            places = np.flatnonzero(found)
            expected = sorted(places.tolist(), key=lambda place: (-total[place], -place))[:most]
            assert _ordered(total, found, most).tolist() == expected


def test_an_empty_query_finds_nothing(index: PassageIndex) -> None:
    """Without a known word and without a vector nothing is found."""
    assert ranked(index).passages.tolist() == []
    assert ranked(index, "never").passages.tolist() == []


def test_a_named_speaker_is_boosted_and_finds_nothing_else(index: PassageIndex) -> None:
    """A named speaker is boosted, and nothing else is found."""
    plain = {"without": ["conversation", "neighbours"]}
    assert ranked(index, "cat", speakers=[index.speaker_numbers["Bob"]], **plain).passages.tolist() == [3, 2]
    assert ranked(index, "cat", speakers=[index.speaker_numbers["Ann"]], **plain).passages.tolist() == [2, 3]


def test_a_named_time_finds_messages_of_that_time(index: PassageIndex) -> None:
    """A named time finds passages without a common word."""
    assert ranked(index, dates=[(DAY_MS, 2 * DAY_MS)], without=["conversation"]).passages.tolist() == [1]


def test_a_query_for_the_newest_finds_all_of_few_passages(index: PassageIndex) -> None:
    """A newer statement may use other words and mean something less similar: none of a few passages is left out."""
    meant = {"semantic": np.array([0.1, 0.9, 0.2, 0.1]), "without": ["conversation"]}
    assert set(ranked(index, "harbour", **meant).passages.tolist()) == {0, 1}
    assert set(ranked(index, "harbour", recency="explicit", **meant).passages.tolist()) == {0, 1, 2, 3}


def test_a_vector_finds_the_only_passage() -> None:
    """The only passage of an agent is found by its meaning, although no other one is less similar."""
    only = PassageIndex()
    for entry in entries_of("I moved to Lisbon", "Ann"):
        only.add([IndexedPassage(0, entry, DAY_MS, "Ann", "s0")])
    assert ranked(only, "live", semantic=np.array([0.4])).passages.tolist() == [0]


def test_a_vector_finds_what_no_word_does(index: PassageIndex) -> None:
    """Semantic scores are scaled and weighted; the nearest passage comes first."""
    found = ranked(index, semantic=np.array([0.1, 0.9, 0.2, 0.1]), without=["conversation"])
    assert found.passages[0] == 1
    assert "semantic" not in found.off


def test_filters_apply_to_every_signal(index: PassageIndex) -> None:
    """A filtered passage is never in the result."""
    allowed = np.array([False, True, True, True])
    found = ranked(index, "tea", semantic=np.array([1.0, 0, 0, 0]), allowed=allowed)
    assert 0 not in found.passages


def test_every_signal_can_be_switched_off(index: PassageIndex) -> None:
    """With all signals off nothing is found, and each is reported."""
    found = ranked(index, "tea", semantic=np.ones(4), dates=[(0, DAY_MS)], speakers=[0], without=SIGNALS)
    assert found.passages.tolist() == []
    assert set(found.off) == set(SIGNALS)


def test_results_are_limited_and_ties_newest_first(index: PassageIndex) -> None:
    """The best are kept; of equal scores the newer passage comes first."""
    found = ranked(index, dates=[(0, 4 * DAY_MS)], most=3, without=["conversation"])
    assert found.passages.tolist() == [3, 2, 1]


PAGES = [
    ("Lisbon Tram (song)", "Lisbon Tram was recorded by Clara Reis in the harbour"),
    ("Clara Reis", "She was born in Porto and builds boats"),
    ("Clara Reis Senior", "Somebody else altogether"),
    ("Porto", "A city in the north"),
]


def pages() -> PassageIndex:
    made = PassageIndex()
    for number, (title, text) in enumerate(PAGES):
        made.add(IndexedPassage(number, entry, 0, title, "") for entry in entries_of(text, title))
    return made


def test_named_titles_are_followed() -> None:
    """A passage whose title a top passage names is found without a word of the query."""
    index = pages()
    terms = [frozenset(map(term_of, words_of(f"{title}: {text}"))) for title, text in PAGES]

    def names(passage: int) -> Iterable[tuple[int, int]]:
        return index.passages_named_by(terms[passage], int(index.column("speaker")[passage]))

    assert [passage for passage, _ in names(0)] == [1]
    assert [passage for passage, _ in names(1)] == [3]
    plain = ranked(index, "lisbon", "tram", "song", without=["naming"], names=names)
    assert plain.passages.tolist() == [0]
    assert plain.off["naming"] == "switched off"
    followed = ranked(index, "lisbon", "tram", "song", names=names)
    assert followed.passages.tolist() == [0, 1]
    assert followed.signals["naming"].tolist() == [0.0, followed.scores[1]]


def test_partners_of_a_dialogue_are_no_titles(index: PassageIndex) -> None:
    """Names of dialogue partners are not followed."""
    for number in range(4, 12):
        index.add(IndexedPassage(number, entry, 0, "Ann", "s9") for entry in entries_of("Bob, look!", "Ann"))
        index.add(IndexedPassage(number, entry, 0, "Bob", "s9") for entry in entries_of("Yes, Ann.", "Bob"))
    assert list(index.passages_named_by(frozenset({term_of("bob"), term_of("ann")}), 0)) == []


def test_the_graph_signal_boosts_and_finds_nothing(index: PassageIndex) -> None:
    """The graph signal reorders matches and finds nothing itself."""
    plain = {"without": ["conversation", "neighbours"]}
    near = np.array([0.0, 1.0, 0.0, 1.0])
    assert ranked(index, "never", graph=near, **plain).passages.tolist() == []
    apart = (
        ranked(index, "cat", graph=near, **plain).scores
        - ranked(index, "cat", graph=1 - near, **plain).scores
    )
    assert ranked(index, "cat", graph=near, **plain).passages[0] == 3
    assert apart[0] > 0


def test_links_from_top_results_boost_and_find_nothing(index: PassageIndex) -> None:
    """Links from top results boost found passages only, and the scores show it."""
    plain = {"without": ["conversation", "neighbours"]}
    begun: list[tuple[list[int], list[float]]] = []

    def linked(first: np.ndarray, scores: np.ndarray) -> np.ndarray:
        begun.append((first.tolist(), scores.tolist()))
        return np.array([0.0, 1.0, 0.5, 0.0])

    without = ranked(index, "cat", **plain)
    found = ranked(index, "cat", linked=linked, **plain)
    assert begun == [(without.passages.tolist(), without.scores.tolist())]
    assert sorted(found.passages.tolist()) == sorted(without.passages.tolist()) == [2, 3]
    gained = dict(zip(found.passages.tolist(), found.signals["pagerank"].tolist(), strict=True))
    assert gained[2] > 0 == gained[3]
    assert without.off["pagerank"] == "not available"
    off = ranked(index, "cat", linked=linked, without=["pagerank", "conversation", "neighbours"])
    assert off.off["pagerank"] == "switched off" and len(begun) == 1
    assert off.scores.tolist() == without.scores.tolist()


def test_a_full_answer_to_one_part_ranks_first() -> None:
    """A passage that answers one part fully ranks above one with a little of both."""
    made = PassageIndex()
    said = ["red boat yellow", "blue kite hill", "red stone kite wall pond", "a lamp", "grass"]
    for number, text in enumerate(said):
        made.add(IndexedPassage(number, entry, 0, "", f"s{number}") for entry in entries_of(text, ""))
    words = ("red", "boat", "yellow", "blue", "kite", "hill")
    parts = [{term_of(word): 1.0 for word in some} for some in (words[:3], words[3:])]
    plain = {"without": ["conversation", "neighbours", "learned"]}
    whole, parted = ranked(made, *words, **plain), ranked(made, *words, parts=parts, **plain)
    assert parted.passages.tolist() == whole.passages.tolist() == [1, 0, 2]
    apart = [float(one.scores[1] - one.scores[2]) for one in (whole, parted)]
    assert apart[1] > apart[0] > 0
    assert ranked(made, *words, parts=[{}, {1: 1.0}], **plain).passages.tolist() == [1, 0, 2]


# --- profiles of embedding models --------------------------------------------------------------------


def test_vectors_weigh_as_much_as_their_model_deserves(index: PassageIndex) -> None:
    """Semantic and window scores are weighted by the model of the vectors; the trees of its profile are read."""
    near = np.array([0.0, 1.0, 0.0, 0.0])
    for model, profile in {**PROFILES, "another": DEFAULT_PROFILE, "": DEFAULT_PROFILE}.items():
        found = ranked(index, "tea", semantic=near, window=near, embedding_model=model)
        place = found.passages.tolist().index(1)
        assert found.signals["semantic"][place] == profile.weights.semantic
        assert found.signals["window"][place] == profile.weights.window
        assert len(learned.model(profile.trees).trees.leaves)


def test_the_multilingual_embedder_has_a_profile() -> None:
    """The profile is found by the name with which the embedder stamps its vectors."""
    name = embedder_name(EmbeddingSettings(model="multilingual"))
    assert name is not None
    weights = profile_of(name).weights
    assert (weights.semantic, weights.window) == (0.8, 0.3)
