"""The vector index: its results, incremental building, and removal."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ebbtide.retrieval.nearest import NEAREST, STEP
from ebbtide.retrieval.vectors import Vectors
from ebbtide.store.directory.index_file import load_index, save_index

pytest.importorskip("usearch", reason="an extra")

COUNT, DIMENSION, SMALL = 6000, 32, 400


@cache
def texts(count: int = COUNT, seed: int = 3) -> np.ndarray:
    """Return vectors in clusters with a common component, like those of texts."""
    dice = np.random.default_rng(seed)
    clumps = dice.normal(size=(60, DIMENSION))[dice.integers(0, 60, count)]
    drawn = 0.6 * clumps + dice.normal(size=(count, DIMENSION)) + np.eye(DIMENSION)[0] * 3
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def filled(count: int, exact_up_to: int = 100) -> Vectors:
    """Return vectors of so many passages."""
    vectors = Vectors("model", DIMENSION, exact_up_to=exact_up_to)
    vectors.put(np.arange(count), texts()[:count])
    return vectors


@cache
def image_of_all() -> bytes:
    """The image of an index over all vectors, built once."""
    vectors = filled(COUNT)
    assert not vectors.build_some(lambda: False)
    return vectors.index_image()


def indexed(count: int) -> Vectors:
    """The same vectors with a complete index."""
    vectors = filled(count)
    if count == COUNT:
        assert vectors.take_index(image_of_all())
    else:
        assert not vectors.build_some(lambda: False)
    assert vectors.is_indexed
    return vectors


def first(scores: np.ndarray, count: int) -> set[int]:
    """Return the passages with the highest scores."""
    return set(np.argsort(-scores)[:count].tolist())


def neighbours(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours in conversations of ten."""
    numbers = np.arange(count)
    return np.where(numbers % 10 == 0, -1, numbers - 1), np.where(numbers % 10 == 9, -1, numbers + 1)


def test_nearly_all_of_the_nearest_are_found() -> None:
    """At least 95 of the true first 100 are found, for passages and windows, with the same scores."""
    vectors, exact = indexed(COUNT), filled(COUNT)
    passages, windows = [], []
    for query in texts(20, seed=4):
        found, expected = vectors.scores(query, COUNT), exact.scores(query, COUNT)
        passages.append(len(first(found, 100) & first(expected, 100)))
        chosen = found > found.min()
        assert chosen.sum() == NEAREST - 1 and np.allclose(found[chosen], expected[chosen], atol=1e-6)
        found = vectors.window_scores(query, COUNT, *neighbours(COUNT))
        expected = exact.window_scores(query, COUNT, *neighbours(COUNT))
        windows.append(len(first(found, 100) & first(expected, 100)))
        chosen = found > found.min()
        assert chosen.sum() >= NEAREST - 1 and np.allclose(found[chosen], expected[chosen], atol=1e-6)
    assert np.mean(passages) >= 95 and np.mean(windows) >= 95


def test_an_index_is_built_in_steps() -> None:
    """Each call adds at least one step and stops when the time is up; until then all vectors are compared."""
    vectors, exact = filled(SMALL), filled(SMALL, exact_up_to=SMALL)
    calls = 1
    while vectors.build_some(lambda: True):
        assert not vectors.is_indexed
        assert np.array_equal(vectors.scores(texts()[1], SMALL), exact.scores(texts()[1], SMALL))
        calls += 1
    assert calls == -(-SMALL // STEP) and vectors.is_indexed
    assert not vectors.build_some(lambda: True), "nothing is left to do"


def test_few_vectors_get_no_index() -> None:
    """Up to the bound there is no index, and an index is dropped when few vectors are left."""
    vectors = filled(100)
    assert not vectors.build_some(lambda: True) and not vectors.is_indexed and vectors.index_image() is None
    vectors = indexed(SMALL)
    vectors.drop(range(100, SMALL))
    assert not vectors.build_some(lambda: True) and vectors.index_image() is None


def test_dropped_vectors_are_not_found() -> None:
    """A dropped vector is absent from the next result."""
    vectors = indexed(COUNT)
    query = texts()[17]
    gone = first(vectors.scores(query, COUNT), 20)
    assert 17 in gone
    vectors.drop(gone)
    scores = vectors.scores(query, COUNT)
    assert vectors.is_indexed and not gone & first(scores, 200)


def test_new_and_replaced_vectors_are_found_at_once() -> None:
    """All vectors are compared until the index is complete again."""
    vectors = indexed(SMALL)
    vectors.put(np.array([5, SMALL]), texts()[[SMALL + 1, SMALL + 2]])
    for complete in (False, True):
        assert vectors.is_indexed == complete
        for passage, text in ((5, SMALL + 1), (SMALL, SMALL + 2)):
            assert first(vectors.scores(texts()[text], SMALL + 1), 1) == {passage}
        assert vectors.build_some(lambda: False) is False


def test_a_moved_mean_needs_a_new_index() -> None:
    """If the mean has moved, the index is not used and is rebuilt."""
    vectors = indexed(SMALL)
    others = -texts()[:SMALL]
    vectors.put(np.arange(SMALL, 2 * SMALL), others)
    assert vectors.build_some(lambda: True) and not vectors.is_indexed
    assert not vectors.build_some(lambda: False) and vectors.is_indexed
    assert first(vectors.scores(others[3], 2 * SMALL), 1) == {SMALL + 3}


def test_filtered_passages_are_always_compared() -> None:
    """If none of the nearest is among the requested passages, those are compared."""
    vectors = indexed(COUNT)
    query = texts()[COUNT - 1]
    assert np.allclose(vectors.scores(query, 3), filled(COUNT).scores(query, 3))


def test_without_the_library_all_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without usearch all vectors are compared, and building has nothing to do."""
    monkeypatch.setitem(sys.modules, "usearch", None)
    vectors = filled(SMALL)
    assert not vectors.build_some(lambda: False) and not vectors.is_indexed
    assert first(vectors.scores(texts()[9], SMALL), 1) == {9}
    assert not vectors.take_index(b"") and vectors.index_identity


def test_building_twice_gives_the_same_answers() -> None:
    """Building is deterministic."""
    one, other = indexed(SMALL), indexed(SMALL)
    assert one.index_image() == other.index_image()
    assert np.array_equal(one.scores(texts()[2], SMALL), other.scores(texts()[2], SMALL))


def test_an_index_of_other_passages_is_rejected() -> None:
    """An image with a passage without a vector is rejected."""
    vectors = indexed(SMALL)
    fewer = filled(SMALL - 1)
    assert not fewer.take_index(vectors.index_image()) and not fewer.is_indexed


def test_no_image_holds_a_vector_that_was_dropped(tmp_path: Path) -> None:
    """An index that dropped a vector has no image, because usearch keeps the numbers."""
    vectors, path = indexed(SMALL), tmp_path / "index"
    save_index(path, "now", vectors)
    assert path.exists()
    vectors.drop([7])
    assert vectors.is_indexed and vectors.index_image() is None
    save_index(path, "later", vectors)
    assert not path.exists()


def test_the_bytes_of_the_index_count() -> None:
    """The memory of the index is part of the reported memory."""
    assert indexed(SMALL).nbytes > filled(SMALL).nbytes + SMALL * 2 * DIMENSION


def test_an_index_comes_back_from_its_file(tmp_path: Path) -> None:
    """A restored index, complete or not, gives the same results, can be continued, and forgets dropped vectors."""
    query = texts()[2]
    for is_complete in (True, False):
        vectors = filled(SMALL)
        while vectors.build_some(lambda: True) and is_complete:
            pass
        save_index(tmp_path / "index", "stamp", vectors)
        again = filled(SMALL)
        assert load_index(tmp_path / "index", "stamp", again) and again.is_indexed == is_complete
        assert again.build_some(lambda: True) != is_complete
        again.build_some(lambda: False)
        vectors.build_some(lambda: False)
        assert np.array_equal(again.scores(query, SMALL), vectors.scores(query, SMALL))
        again.drop([2])
        assert again.scores(query, SMALL)[2] == again.scores(query, SMALL).min()
    other = Vectors("another model", DIMENSION, exact_up_to=100)
    other.put(np.arange(SMALL), texts()[:SMALL])
    assert not load_index(tmp_path / "index", "stamp", other)
