"""Training of trees: the product reads the trained sums, and no set is used for training by mistake."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import stored_vectors, train_fusion
from benchmarks.long_conversations import JOINED
from benchmarks.recall_data import SETS, TINY, Corpus, Turn, read_set
from benchmarks.stored_vectors import StoredVectors
from benchmarks.train_fusion import EACH, JUDGED_ONLY, LEARNT, LONG, OWN, WEIGHTS, Judged, Stand
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
    assert set(JUDGED_ONLY) >= {"locomo", "memorybank_cn"}
    assert set(LEARNT) | set(JUDGED_ONLY) <= set(SETS) and not set(OWN) & set(SETS)
    assert set(LONG) <= set(LEARNT)
    assert set(WEIGHTS) | set(EACH) <= {*LEARNT, *OWN, JOINED}


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
        stand = Stand(corpus, None)
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


class Embedder:
    """Vectors of letters, in place of those on disk. Counts what was embedded."""

    model = "test:letters"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def of(self, texts: Sequence[str], *, is_query: bool = False) -> list[NDArray[np.float16] | None]:
        return [self.embed(text, is_query) for text in texts]

    def embed(self, text: str, is_query: bool) -> NDArray[np.float16] | None:
        self.embedded.append(text)
        if not text.isascii():
            return None
        counts = np.array([1.0 + text.count(letter) for letter in "abdefgimnoprstuw"])
        return (counts / np.linalg.norm(counts)).astype(np.float16)


def test_windows_are_those_of_the_product() -> None:
    """Trees see windows of dialogues only, as the product does: titles of documents are not each other's window."""
    embedder = cast(StoredVectors, Embedder())
    turns = [Turn(f"t{n}", "s", f"Title {n}", f"A {'word ' * n}about topic {n}.", None) for n in range(6)]
    documents = Stand(Corpus("tiny", "c", False, tuple(turns), ()), embedder)
    asked = documents.asked("What is topic 3?")
    assert asked.semantic is not None and np.allclose(asked.semantic, asked.window)
    assert asked.embedding_model == Embedder.model
    dialogue = [replace(turn, speaker="Ann" if number % 2 else "Bob") for number, turn in enumerate(turns)]
    asked = Stand(Corpus("tiny", "c", False, tuple(dialogue), ()), embedder).asked("What is topic 3?")
    assert asked.semantic is not None and not np.allclose(asked.semantic, asked.window)


def test_a_query_without_a_vector_uses_the_default_weights() -> None:
    """Trees see a question that the embedder does not support as recall ranks it: without vectors and their profile."""
    turns = (Turn("t", "s", "Ann", "A boat at last.", None), Turn("u", "s", "Bob", "A cat.", None))
    stand = Stand(Corpus("tiny", "c", False, turns, ()), cast(StoredVectors, Embedder()))
    assert stand.asked("船").semantic is None and stand.asked("船").embedding_model == ""


def test_a_vector_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors on disk equal the computed ones, and no text is embedded twice, not even one without a vector."""
    embedder = Embedder()
    monkeypatch.setitem(stored_vectors.EMBEDDERS, "builtin", lambda: (embedder.model, embedder.embed))
    stored = StoredVectors(tmp_path, "builtin")
    texts = [*(f"boat {number}" for number in range(stored_vectors.TEXTS_PER_COMMIT + 3)), "船"]
    first = stored.of(texts)
    assert embedder.embedded == texts and first[-1] is None
    second = stored.of(texts)
    assert embedder.embedded == texts and second[-1] is None
    expected = Embedder().embed(texts[0], False)
    assert expected is not None and second[0] is not None and second[0].tobytes() == expected.tobytes()
    stored.of(texts[:1], is_query=True)
    assert embedder.embedded == [*texts, texts[0]]


def test_training_is_deterministic() -> None:
    """The same questions give the same trees, and a better rank never lowers the sum."""
    if importlib.util.find_spec("lightgbm") is None:
        pytest.skip("needs the extra train")
    # LightGBM fails in a process that has imported usearch first.
    with get_context("spawn").Pool(1) as pool:
        first, second = pool.apply(trained_twice)
    assert first == second
    trees = Trees.of(json.loads(first))
    words = np.linspace(0, 1, 50)
    assert np.all(np.diff(trees.sums(np.column_stack([words, np.full(50, 3.0)]))) >= 0)
    assert np.all(np.diff(trees.sums(np.column_stack([np.full(50, 0.5), np.arange(50)]))) <= 0)
    assert np.ptp(trees.sums(np.column_stack([words, np.full(50, 3.0)]))) > 0


def trained_twice() -> tuple[str, str]:
    """Return the files of the trees of two trainings on the same questions."""
    questions = [one for part in range(5) for one in made_questions(part)]
    first, second = (train_fusion.written(questions, ("words", "words place")) for _ in range(2))
    return first, second


def made_questions(part: int) -> Iterator[Judged]:
    """Yield questions whose evidence mostly contains the words of the query."""
    dice = np.random.default_rng(part)
    for _ in range(40):
        words = np.sort(dice.random(20))[::-1]
        groups = (np.arange(20) == int(dice.integers(0, 4))).astype(np.int64)
        rows = np.column_stack([words, np.arange(20.0)])
        yield Judged("friends_en", part, "", False, rows, words, np.arange(20), groups, 1)


def test_measures_count_groups_once() -> None:
    """Two turns that state the same fact count once; evidence that no candidate contains counts as not found."""
    judged = Judged(
        "tiny", 0, "", False, np.zeros((4, 1)), np.array([4.0, 3.0, 2.0, 1.0]), np.arange(4), np.array([0, 1, 1, 2]), 4
    )  # fmt: skip
    assert train_fusion.measures(judged, None) == {"R@5": 0.5, "R@10": 0.5, "R@20": 0.5, "MRR": 0.5}
