"""The learned signal: its features, and that it changes only the order."""

from __future__ import annotations

import json
from math import log, log1p
from typing import Any

import numpy as np
import pytest

from ebbtide.retrieval import learned
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.features import FEATURES, MAX_REORDERED, features
from ebbtide.retrieval.lexical import K1, B, WordScores
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of
from ebbtide.retrieval.profiles import DEFAULT_PROFILE, PROFILES
from ebbtide.retrieval.ranking import Ranking, fuse, rank
from ebbtide.retrieval.ranking_request import RankingRequest

SAID = [
    ("Ann", "Hello there"),
    ("Bob", "Did the blue boat reach the harbour?"),
    ("Ann", "It did, with 3 lanterns, and Clara sailed it!"),
    ("Bob", "A boat at last"),
    ("Ann", "Harbour fees rise again"),
    ("Bob", "My cat sleeps"),
]
DAY_MS = 86_400_000
QUERY = "blue boat harbour lantern"


@pytest.fixture
def index() -> PassageIndex:
    """An index with six turns of two speakers, on six days, in two conversations."""
    made = PassageIndex()
    for number, (speaker, text) in enumerate(SAID):
        entries = entries_of(text, speaker)
        made.add(
            IndexedPassage(number, entry, number * DAY_MS, speaker, f"s{number // 4}") for entry in entries
        )
    return made


def asked(**fields: Any) -> RankingRequest:
    given = {"terms": {term_of(word): 1.0 for word in words_of(QUERY)}, "texts": lambda one: SAID[one][1]}
    return RankingRequest(**{**given, **fields})


def features_of(index: PassageIndex, **fields: Any) -> dict[int, dict[str, float]]:
    """Return the features of each candidate, by passage and name."""
    fused, _ = fuse(index, WordScores(index), asked(**fields))
    rows = features(fused).tolist()
    return {
        passage: dict(zip(FEATURES, row, strict=True))
        for passage, row in zip(fused.first.tolist(), rows, strict=True)
    }


def test_shares_of_the_query_are_weighted_by_rarity(index: PassageIndex) -> None:
    """The shares of the query in a passage and its neighbours equal those of plain loops."""
    terms = list(dict.fromkeys(words_of(QUERY)))
    said = [list(words_of(f"{speaker}: {text}")) for speaker, text in SAID]
    holding = [sum(term in words for words in said) for term in terms]
    rarity = [log1p((len(SAID) - count + 0.5) / (count + 0.5)) for count in holding]
    average = sum(map(len, said)) / len(said)
    found = features_of(index)
    assert set(found) >= {1, 2, 3, 4}

    def gain(passage: int) -> float:
        length = K1 * (1 - B + B * len(said[passage]) / average)
        occurrences = [said[passage].count(term) for term in terms]
        return sum(r * n * (K1 + 1) / (n + length) for r, n in zip(rarity, occurrences, strict=True))

    best = max(gain(passage) for passage in found)
    for passage, row in found.items():
        neighbours = [one for one in (passage - 1, passage + 1) if one // 4 == passage // 4 and 0 <= one < 6]
        own = [term in said[passage] for term in terms]
        near = [any(term in said[one] for one in neighbours) for term in terms]
        own_share = sum(r for r, says in zip(rarity, own, strict=True) if says) / sum(rarity)
        near_share = sum(r for r, says in zip(rarity, near, strict=True) if says) / sum(rarity)
        assert row["says"] == pytest.approx(own_share)
        assert row["beside says"] == pytest.approx(near_share)
        assert row["count"] == pytest.approx(sum(own) / len(terms))
        assert row["length"] == pytest.approx(len(said[passage]) / average)
        assert row["own"] == pytest.approx(gain(passage) / best)
        rarest = max((r for r, says in zip(rarity, own, strict=True) if says), default=0.0)
        assert row["rarest"] == pytest.approx(rarest / max(rarity))
        assert row["asked"] == 4


def test_texts_leave_their_marks(index: PassageIndex) -> None:
    """Question, number, name, exclamation mark and a preceding question are features; without texts they are 0."""
    found = features_of(index)
    marks = ("asks", "asks last", "numbers", "names", "exclaims", "previous asks")
    assert [found[1][name] for name in marks] == [1, 1, 0, 0, 0, 0]
    assert [found[2][name] for name in marks] == [0, 0, 1, 1, 1, 1]
    without = features_of(index, texts=None)
    assert not any(row[name] for row in without.values() for name in marks)


def test_texts_are_marked_with_the_kind_of_thing_they_contain() -> None:
    """Amounts, times and the first person are found in both languages, and fit the queries that ask for them."""
    texts = [
        "We met twice.",
        "I saw it yesterday!",
        "It rained",
        "我昨天到家",
        "他走了",
        "Last week my sister and I left",
    ]
    made = PassageIndex()
    for number, text in enumerate(texts):
        made.add(
            IndexedPassage(number, entry, number, "", f"s{number}")
            for entry in entries_of(f"{text} harbour", "")
        )
    fields: dict[str, Any] = {"terms": {term_of("harbour"): 1.0}, "texts": lambda one: texts[one]}

    def marks(asks_for: str, name: str) -> list[float]:
        found = features_of(made, asks_for=asks_for, **fields)
        return [found[passage][name] for passage in range(len(texts))]

    assert marks("", "amounts") == [1, 0, 0, 0, 0, 0]
    assert marks("", "times") == [0, 1, 0, 1, 0, 1]
    assert marks("", "first person") == [1, 1, 0, 1, 0, 2]
    assert marks("when", "fits") == [1, 1, 0, 1, 0, 1]
    assert marks("how many", "fits") == [1, 0, 0, 0, 0, 0]
    assert not any(marks("what", "fits"))


def test_the_meaning_of_neighbours_and_likeness_to_the_best_are_features(index: PassageIndex) -> None:
    """Each candidate has its neighbours' similarity, its conversation's best one, and its likeness to the best."""
    scores = np.array([0.0, 0.8, 0.5, 0.1, 0.9, 0.2])
    alike = 1 / (1 + np.abs(np.subtract.outer(np.arange(6), np.arange(6))))
    fields = {"semantic": scores, "window": scores, "alike": lambda some, others: alike[np.ix_(some, others)]}
    found, spread = features_of(index, **fields), scores.std()
    best = list(found)[:3]
    for passage, row in found.items():
        conversation = range(4) if passage < 4 else range(4, 6)
        for side in ("previous", "next"):
            neighbour = int(index.neighbours(side)[passage])
            expected = scores[neighbour] / spread if neighbour >= 0 else np.nan
            assert row[f"{side} semantic"] == pytest.approx(expected, nan_ok=True)
        of_conversation = max(scores[one] for one in conversation if one in found)
        assert row["conversation semantic"] == pytest.approx((of_conversation - 0.9) / spread)
        assert row["semantic below best"] == pytest.approx((scores[passage] - 0.9) / spread)
        assert row["like the best"] == pytest.approx(
            max(alike[passage, one] for one in best if one != passage)
        )
        others = [alike[passage, one] for one in found if one != passage]
        assert row["like the first"] == pytest.approx(sum(others) / len(others))


def test_speaker_and_date_are_features(index: PassageIndex) -> None:
    """The features say whether a speaker is named, and how far a passage is from the requested days."""
    found = features_of(index, speakers=[index.speaker_numbers["Ann"]], dates=[(2 * DAY_MS, 3 * DAY_MS)])
    assert (found[2]["speaker"], found[1]["speaker"]) == (1, -1)
    assert (found[2]["date"], found[4]["date"]) == (1, 0)
    assert found[4]["days away"] == pytest.approx(log(1 + 1 + 1 / DAY_MS), abs=1e-6)
    plain = features_of(index)
    assert plain[2]["speaker"] == 0 and plain[2]["date"] == -1


def test_the_kind_of_query_is_a_feature(index: PassageIndex) -> None:
    """The kind of query is a feature of every candidate, one kind at a time."""
    rows = features_of(index, asks_for="when").values()
    assert {row["asks for when"] for row in rows} == {1.0}
    assert {row["asks for who"] for row in rows} == {0.0}


def test_no_vector_is_missing_not_an_error(index: PassageIndex) -> None:
    """Without vectors the semantic features are NaN, and ranking still works."""
    near = np.linspace(0, 1, 6)
    assert all(
        np.isnan(row["semantic"]) and np.isnan(row["window place"]) for row in features_of(index).values()
    )
    off = features_of(index, semantic=near, without=["semantic"])
    assert all(np.isnan(row["semantic place"]) for row in off.values())
    with_vectors = features_of(index, semantic=near, window=near)
    known = [name for name in FEATURES if name.startswith(("semantic", "window"))]
    assert not any(np.isnan(row[name]) for row in with_vectors.values() for name in known)
    assert len(ranked(index).passages) and len(ranked(index, semantic=near, window=near).passages) == 6


def ranked(index: PassageIndex, most: int = 10, **fields: Any) -> Ranking:
    return rank(index, WordScores(index), asked(**fields), most)


def test_switched_off_the_other_signals_decide(index: PassageIndex) -> None:
    """Without the learned signal the order is the fused one, and the ranking reports it as off."""
    fused, _ = fuse(index, WordScores(index), asked())
    found = ranked(index, without=["learned"])
    assert found.passages.tolist() == fused.order.tolist()
    assert found.scores.tolist() == fused.total[fused.order].tolist()
    assert found.off["learned"] == "switched off" and "learned" not in found.signals


def test_places_keep_their_scores(index: PassageIndex) -> None:
    """Reordering moves passages, adds and drops none, and each position keeps its score."""
    without, found = ranked(index, without=["learned"]), ranked(index)
    assert sorted(found.passages.tolist()) == sorted(without.passages.tolist())
    assert found.scores == pytest.approx(without.scores)
    assert sum(found.signals.values()) == pytest.approx(found.scores)
    assert "learned" in found.signals and "learned" not in found.off


def test_trees_decide_the_order(monkeypatch: pytest.MonkeyPatch, index: PassageIndex) -> None:
    """Trees that use only one mark of the text put the only passage with it first, or last."""
    at = FEATURES.index("exclaims")
    kept = {**form(), "feature": [at], "threshold": [0.5], "leaves": [0.0, 100.0]}
    monkeypatch.setattr(learned, "model", lambda _: learned.model_of(json.dumps(kept)))
    assert ranked(index).passages[0] == 2
    monkeypatch.setattr(
        learned, "model", lambda _: learned.model_of(json.dumps({**kept, "leaves": [100.0, 0.0]}))
    )
    assert ranked(index).passages[-1] == 2


def test_only_the_first_candidates_move() -> None:
    """Candidates beyond the limit keep their order."""
    index = PassageIndex()
    said = [f"boat {'and so on ' * (number % 7)}{number}" for number in range(MAX_REORDERED + 40)]
    for number, text in enumerate(said):
        index.add(IndexedPassage(number, entry, number, "Ann", "s") for entry in entries_of(text, "Ann"))
    without = ranked(index, most=200, without=["learned"], texts=None).passages.tolist()
    found = ranked(index, most=200, texts=None).passages.tolist()
    assert found[MAX_REORDERED:] == without[MAX_REORDERED:]
    assert sorted(found[:MAX_REORDERED]) == sorted(without[:MAX_REORDERED])


def test_without_words_nothing_is_learnt(index: PassageIndex) -> None:
    """A query of dates only is not reordered, because the trees were trained on words."""
    found = ranked(index, terms={}, dates=[(0, 3 * DAY_MS)])
    assert found.off["learned"] == "not available"
    assert (
        found.passages.tolist()
        == ranked(index, terms={}, dates=[(0, 3 * DAY_MS)], without=["learned"]).passages.tolist()
    )


def form() -> dict[str, Any]:
    """Return a file of one tree with one node."""
    return {
        "version": learned.VERSION,
        "features": list(FEATURES),
        "spread": 1.0,
        "roots": [0],
        "feature": [0],
        "threshold": [0.5],
        "left": [-1],
        "right": [-2],
        "missing_left": [1],
        "leaves": [0.0, 1.0],
    }


@pytest.mark.parametrize("file", sorted({one.trees for one in (DEFAULT_PROFILE, *PROFILES.values())}))
def test_the_files_that_ship_fit_the_code(file: str) -> None:
    """The features of each packaged file are those of the code, and the file is small."""
    trees = learned.model(file).trees
    assert int(trees.features.max()) < len(FEATURES)
    assert 50 <= len(trees.leaves) <= 300


@pytest.mark.parametrize("file", sorted({one.trees for one in (DEFAULT_PROFILE, *PROFILES.values())}))
@pytest.mark.parametrize(("name", "sign"), [("words", 1), ("semantic", 1), ("words place", -1)])
def test_better_evidence_never_lowers_a_candidate(file: str, name: str, sign: int) -> None:
    """A candidate that only improves in one of these features keeps its position or rises."""
    rows = np.random.default_rng(1).normal(size=(200, len(FEATURES)))
    raised = rows.copy()
    raised[:, FEATURES.index(name)] += sign
    trees = learned.model(file).trees
    assert np.all(trees.sums(raised) >= trees.sums(rows) - 1e-9)


WRONG_FORMS: list[dict[str, Any]] = [
    {"version": learned.VERSION + 1},
    {"features": list(FEATURES[1:])},
    {"features": list(reversed(FEATURES))},
]


@pytest.mark.parametrize("wrong", WRONG_FORMS)
def test_a_file_for_other_features_is_refused(wrong: dict[str, Any]) -> None:
    """A file for other features or of another format is rejected."""
    with pytest.raises(ValueError, match=learned.FILE):
        learned.model_of(json.dumps({**form(), **wrong}))
