"""Vectors of passages: storage, validation, similarity."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ebbtide.retrieval import half_precision
from ebbtide.retrieval.half_precision import products, to_single
from ebbtide.retrieval.language_axis import axis_and_mean_of
from ebbtide.retrieval.vectors import Vectors


def drawn(count: int, dimension: int = 16, seed: int = 7) -> np.ndarray:
    """Return random unit vectors."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_every_half_is_widened_to_the_last_bit() -> None:
    """The conversion of every finite half equals that of numpy."""
    half_array = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    half_array = half_array[np.isfinite(half_array)]
    expected = half_array.astype(np.float32)
    assert np.array_equal(to_single(half_array).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("library", [half_precision._numkong, lambda: None], ids=["numkong", "numpy"])
@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 9000])
def test_products_are_those_of_doubles(count: int, library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products equal those in double precision, for any number of rows, with the library and without."""
    monkeypatch.setattr(half_precision, "_numkong", library)
    rows, exact = drawn(count).astype(np.float16), drawn(1)[0]
    for factors in (exact, exact.astype(np.float16).astype(np.float32)):
        found = products(rows, factors)
        expected = rows.astype(np.float64) @ factors.astype(np.float64)
        assert found.dtype == np.float32 and np.allclose(found, expected, rtol=0, atol=3e-7)


def test_products_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numkong, or on a processor for which it has no fast code, products are computed by numpy."""
    half_precision._numkong.cache_clear()
    try:
        monkeypatch.setitem(sys.modules, "numkong", None)
        assert half_precision._numkong() is None
        half_precision._numkong.cache_clear()
        slow = SimpleNamespace(get_capabilities=lambda: {"serial": True, "haswell": False})
        monkeypatch.setitem(sys.modules, "numkong", slow)
        assert half_precision._numkong() is None
    finally:
        half_precision._numkong.cache_clear()


def test_scores_of_many_vectors_are_as_precise_as_the_vectors() -> None:
    """Beyond the number from which queries are rounded, scores are centred cosines within the rounding of halves."""
    count, said = 5000, drawn(5000) + np.float32(0.5)
    said /= np.linalg.norm(said, axis=1, keepdims=True)
    vectors = Vectors("model", 16)
    vectors.put(np.arange(count), said)
    query = drawn(1, seed=8)[0]
    before = np.arange(count) - 1
    after = np.append(np.arange(1, count), -1)
    centred, direction = said - said.mean(axis=0), query - said.mean(axis=0)
    padded = np.concatenate([centred, np.zeros((1, 16))])
    for found, compared in (
        (vectors.scores(query, count), centred),
        (vectors.window_scores(query, count, before, after), centred + padded[before] + padded[after]),
    ):
        lengths = np.linalg.norm(compared, axis=1) * np.linalg.norm(direction)
        assert found is not None and np.allclose(found, compared @ direction / lengths, rtol=0, atol=2e-3)


def test_a_vector_is_given_back_as_it_is_held() -> None:
    """A vector is returned in half precision; unknown passages have none."""
    vectors = Vectors("model", 16)
    vectors.put(np.array([3, 400_000]), drawn(2))
    assert np.array_equal(vectors.of(400_000), drawn(2)[1].astype(np.float16).astype(np.float32))
    assert vectors.of(0) is None and vectors.of(-1) is None and vectors.of(10**9) is None


def test_a_passage_given_twice_has_the_later_vector() -> None:
    """A later vector of a passage replaces the earlier one."""
    vectors = Vectors("model", 16)
    vectors.put(np.array([5, 5, 6]), drawn(3))
    assert len(vectors) == 2 and np.allclose(vectors.of(5), drawn(3)[1], atol=1e-3)
    vectors.put(np.array([5]), drawn(3)[2:])
    assert len(vectors) == 2 and np.allclose(vectors.of(5), drawn(3)[2], atol=1e-3)


@pytest.mark.parametrize("wrong", [0.0, 2.0, np.nan, np.inf, 1e6])
def test_a_vector_of_another_length_is_refused_whole(wrong: float) -> None:
    """An invalid vector rejects the whole call and changes nothing."""
    vectors = Vectors("model", 16)
    vectors.put(np.array([0]), drawn(1))
    bad = drawn(2)
    bad[1] = 0
    bad[1, 0] = wrong
    with pytest.raises(ValueError, match="length 1"):
        vectors.put(np.array([0, 1]), bad)
    assert len(vectors) == 1 and np.allclose(vectors.of(0), drawn(1)[0], atol=1e-3)


def test_dropped_passages_score_like_unknown_ones() -> None:
    """A dropped passage scores like an unknown one; dropping an unknown one changes nothing."""
    vectors = Vectors("model", 16)
    vectors.put(np.arange(10), drawn(10))
    query = drawn(10)[4]
    assert int(vectors.scores(query, 10).argmax()) == 4
    vectors.drop([4, 4, 99, -1])
    scores = vectors.scores(query, 10)
    assert len(vectors) == 9 and vectors.of(4) is None and scores[4] == scores.min()
    vectors.drop(range(10))
    assert len(vectors) == 0 and vectors.scores(query, 10) is None


def test_nothing_to_compare_is_none_not_zeros() -> None:
    """The result is None without vectors, without requested passages, or for a query without direction."""
    vectors = Vectors("model", 16)
    assert vectors.scores(drawn(1)[0], 5) is None
    vectors.put(np.array([9]), drawn(1))
    nobody = np.full(10, -1)
    assert vectors.scores(drawn(1)[0], 9) is None and vectors.scores(drawn(1)[0], 0) is None
    assert vectors.scores(np.zeros(16, dtype=np.float32), 10) is None
    assert vectors.window_scores(np.zeros(16, dtype=np.float32), 10, nobody, nobody) is None
    assert vectors.window_scores(drawn(1)[0], 9, nobody, nobody) is None
    assert vectors.scores(drawn(1)[0], 10) is not None


def test_the_common_component_does_not_count() -> None:
    """A query near the mean is nearest to the text that differs most, not to the most ordinary one."""
    common = np.zeros(16, dtype=np.float32)
    common[0] = 4.0
    texts = drawn(200) + common
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    vectors = Vectors("model", 16)
    vectors.put(np.arange(200), texts)
    scores = vectors.scores(texts[17], 200)
    assert int(scores.argmax()) == 17 and scores[17] == pytest.approx(1.0, abs=1e-2)
    assert abs(float(scores.mean())) < 0.1, "without centring all of them are above 0.8"


def test_likeness_compares_passages_with_each_other() -> None:
    """Passages resemble themselves fully and equal ones too; without a vector they resemble nothing."""
    vectors = Vectors("model", 16)
    vectors.put(np.arange(40), np.concatenate([drawn(39), drawn(39)[:1]]))
    passages = np.array([0, 1, 39, 77])
    likeness = vectors.likeness(passages, passages)
    assert likeness[:3, :3].diagonal().tolist() == pytest.approx([1, 1, 1])
    assert likeness[0, 2] == pytest.approx(1) and abs(likeness[0, 1]) < 0.9
    assert not likeness[3].any() and not likeness[:, 3].any()
    assert vectors.likeness(passages, passages[:2]) == pytest.approx(likeness[:, :2], abs=1e-6)
    assert not Vectors("model", 16).likeness(np.arange(2), np.arange(2)).any()


def test_equal_vectors_are_equally_near() -> None:
    """Equal vectors have equal scores."""
    vectors = Vectors("model", 16)
    vectors.put(np.arange(40), np.repeat(drawn(1), 40, axis=0))
    scores = vectors.scores(drawn(2)[1], 40)
    assert float(scores.max() - scores.min()) < 1e-9


def test_bytes_grow_with_what_is_held() -> None:
    """The memory of a thousand vectors of 256 is about half a megabyte."""
    vectors = Vectors("model", 256)
    vectors.put(np.arange(1000), drawn(1000, 256))
    assert 1000 * 512 <= vectors.nbytes <= 2 * 1000 * (512 + 64)


def test_few_vectors_are_centred_with_the_usual_mean() -> None:
    """Two vectors close to the usual mean are compared by what they do not share with it, in any language."""
    model = "multilingual:e5-small-q4"
    axis, mean = axis_and_mean_of(model, 384)
    assert axis is not None and mean is not None
    apart, languages = np.eye(384)[:2], np.array([[-0.1], [0.3]])
    texts = mean + languages * axis + 0.2 * apart
    texts /= np.linalg.norm(texts, axis=1)[:, None]
    for name, is_known in ((model, True), ("unknown", False)):
        vectors = Vectors(name, 384)
        vectors.put(np.arange(2), texts.astype(np.float32))
        scores = vectors.scores(texts[0].astype(np.float32), 2)
        assert scores is not None and scores[0] == pytest.approx(1.0, abs=0.01)
        assert bool(scores[0] - scores[1] > 0.5) is is_known
