"""Training of trees: the product reads the trained sums, and no set is used for training by mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import train_fusion
from benchmarks.recall_data import SETS, TINY, Corpus, Turn, read_set
from benchmarks.train_fusion import EACH, JUDGED_ONLY, LEARNT, WEIGHTS, Judged, Stand
from ebbtide.retrieval import learned
from ebbtide.retrieval.features import FEATURES
from ebbtide.retrieval.ranking import rank
from ebbtide.retrieval.trees import Trees


class Grown:
    """Two trees in the format of the library that trains them."""

    def dump_model(self) -> dict[str, Any]:
        leaf = [{"leaf_index": place, "leaf_value": value} for place, value in enumerate((1.0, 2.0, 4.0))]
        inner = node(1, 0.25, leaf[1], leaf[2], "NaN", default_left=False)
        first = node(0, -0.5, leaf[0], inner, "None", default_left=True)
        second = node(1, 3.0, leaf[2], leaf[0], "None", default_left=False)
        return {"tree_info": [{"tree_structure": first}, {"tree_structure": second}]}


def node(
    feature: int, threshold: float, left: object, right: object, missing: str, *, default_left: bool
) -> dict[str, Any]:
    return {
        "split_feature": feature,
        "threshold": threshold,
        "left_child": left,
        "right_child": right,
        "missing_type": missing,
        "default_left": default_left,
    }


def test_saved_trees_equal_the_trained_ones() -> None:
    """Each row gets the sum of its leaves; a missing feature counts as 0 unless it was missing in training."""
    kept = train_fusion.kept_form(Grown(), ("one", "two"), 1.0)
    rows = np.array([[-1.0, 0.0], [0.0, 0.25], [0.0, 3.5], [np.nan, np.nan]])
    assert Trees.of(kept).sums(rows).tolist() == [5.0, 6.0, 5.0, 8.0]


def test_evaluation_only_sets_are_never_trained_on() -> None:
    """A set whose licence allows evaluation only is not used for training."""
    assert not set(LEARNT) & set(JUDGED_ONLY)
    assert "locomo" in JUDGED_ONLY
    assert set(LEARNT) | set(JUDGED_ONLY) <= set(SETS)
    assert set(WEIGHTS) | set(EACH) <= set(LEARNT)


def test_monotone_features_are_features() -> None:
    """Monotone features are named as in the code, and none is both rising and falling."""
    assert set(train_fusion.RISES) | set(train_fusion.FALLS) <= set(FEATURES)
    assert not set(train_fusion.RISES) & set(train_fusion.FALLS)


def tiny() -> list[Corpus]:
    corpora = read_set("tiny", TINY.parent)
    assert isinstance(corpora, list)
    return corpora


def test_questions_are_judged_in_the_order_the_product_has() -> None:
    """Candidates, scores and the order by trees equal those of the product's own ranking."""
    judged_count = 0
    for corpus in tiny():
        stand = Stand(corpus, has_vectors=False)
        for question in corpus.questions:
            judged = stand.judged(corpus, question, 0)
            if judged is None:
                continue
            judged_count += 1
            found = rank(stand.shelf, stand.words, stand.asked(question.text), len(judged.passages))
            by_passage = dict(zip(judged.passages.tolist(), judged.groups.tolist(), strict=True))
            expected = [by_passage[passage] for passage in found.passages.tolist()]
            assert train_fusion.ordered(judged, learned.model()).tolist() == expected
            assert judged.rows.shape == (len(judged.passages), len(FEATURES))
    assert judged_count > 5


def test_windows_are_those_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees see windows of dialogues only, as the product does: titles of documents are not each other's window."""

    class _Embedder:
        def embed(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = (
                np.random.default_rng(len(texts)).normal(size=(len(texts), 8)).tolist()
            )
            return vectors

    monkeypatch.setattr(train_fusion.baselines, "embedder", _Embedder)
    turns = [Turn(f"t{n}", "s", f"Title {n}", f"A sentence about topic {n}.", None) for n in range(6)]
    documents = Stand(Corpus("tiny", "c", False, tuple(turns), ()), has_vectors=True)
    asked = documents.asked("What is topic 3?")
    assert asked.semantic is not None and np.allclose(asked.semantic, asked.window)
    dialogue = [replace(turn, speaker="Ann" if number % 2 else "Bob") for number, turn in enumerate(turns)]
    asked = Stand(Corpus("tiny", "c", False, tuple(dialogue), ()), has_vectors=True).asked("What is topic 3?")
    assert asked.semantic is not None and not np.allclose(asked.semantic, asked.window)


def test_measures_count_groups_once() -> None:
    """Two turns that state the same fact count once; evidence that no candidate contains counts as not found."""
    judged = Judged(
        "tiny", 0, "", False, np.zeros((4, 1)), np.array([4.0, 3.0, 2.0, 1.0]), np.arange(4), np.array([0, 1, 1, 2]), 4
    )  # fmt: skip
    assert train_fusion.measures(judged, None) == {"R@5": 0.5, "R@10": 0.5, "R@20": 0.5, "MRR": 0.5}
