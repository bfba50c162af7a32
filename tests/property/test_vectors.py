"""Vectors in arrays, compared with the simplest implementation: a dictionary and the definition of the cosine."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.retrieval.vectors import CENTRED_FROM, Vectors
from tests.property import histories

DIMENSION = 6
PASSAGES = 60

Held = dict[int, np.ndarray]

numbers = st.lists(st.integers(0, PASSAGES - 1), max_size=50)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("put"), numbers, st.integers(0, 2**32 - 1)),
        st.tuples(st.just("drop"), numbers, st.just(0)),
    ),
    max_size=6,
)


def directions(count: int, seed: int) -> np.ndarray:
    """Return unit vectors with a common component, some of them equal."""
    dice = np.random.default_rng(seed)
    drawn = dice.integers(-3, 4, size=(count, DIMENSION)) + np.eye(DIMENSION)[0] * 2.5
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def after(history: list) -> tuple[Vectors, Held]:
    """Return both implementations after a history, each vector as precise as it is stored."""
    vectors, held = Vectors("model", DIMENSION), Held()
    for kind, passages, seed in history:
        if kind == "drop":
            vectors.drop(passages)
            for passage in passages:
                held.pop(passage, None)
        else:
            given_vectors = directions(len(passages), seed)
            vectors.put(np.array(passages, dtype=np.int64), given_vectors)
            halves = given_vectors.astype(np.float16).astype(np.float64)
            held.update(zip(passages, halves, strict=True))
    return vectors, held


def plainly(held: Held, query: np.ndarray, members: dict[int, list[int]], count: int) -> list[float] | None:
    """Return cosines of the sums of centred vectors, one by one; `members` lists the vectors of each passage."""
    mean = np.mean(list(held.values()), axis=0) if len(held) >= CENTRED_FROM else np.zeros(DIMENSION)
    cosines = {}
    for passage in held:
        if passage < count:
            window = sum(held[one] - mean for one in members[passage] if one in held)
            length = np.linalg.norm(window)
            cosines[passage] = (
                window @ (query - mean) / length / np.linalg.norm(query - mean) if length > 0.01 else None
            )
    if not cosines:
        return None
    known = [cosine for cosine in cosines.values() if cosine is not None]
    return [cosines.get(passage, min(known, default=None)) for passage in range(count)]


def alike(found: np.ndarray | None, expected: list[float] | None) -> None:
    """Assert equal scores, except for a vector without a clear direction, which may have any score in range."""
    if expected is None or found is None:
        assert expected is None and found is None
        return
    assert len(found) == len(expected) and np.all(np.abs(found) <= 1.001)
    if None not in expected:
        assert np.allclose(found, expected, atol=2e-3)


@histories.examples(150)
@given(history=changes, seed=st.integers(0, 2**32 - 1), count=st.integers(0, PASSAGES))
def test_scores_are_cosines_of_centred_vectors(history: list, seed: int, count: int) -> None:
    """After puts, replacements and drops, each passage scores as in plain numpy, and the rest the least."""
    vectors, held = after(history)
    assert len(vectors) == len(held)
    query = directions(1, seed)[0]
    alike(vectors.scores(query, count), plainly(held, query, {one: [one] for one in held}, count))


@histories.examples(150)
@given(first=changes, then=changes, seed=st.integers(0, 2**32 - 1), every=st.integers(1, 9))
def test_windows_are_sums_of_centred_vectors(first: list, then: list, seed: int, every: int) -> None:
    """Windows follow every change of vectors and of neighbours, whether or not they were queried before."""
    query = directions(1, seed)[0]
    numbers = np.arange(PASSAGES)
    previous = np.where(numbers % every == 0, -1, numbers - 1)
    following = np.where(numbers % every == every - 1, -1, np.minimum(numbers + 1, PASSAGES))
    following[-1] = -1
    vectors, _ = after(first)
    vectors.window_scores(query, PASSAGES, np.roll(numbers, 1), np.full(PASSAGES, -1))
    for kind, passages, dice in then:
        if kind == "drop":
            vectors.drop(passages)
        else:
            vectors.put(np.array(passages, dtype=np.int64), directions(len(passages), dice))
        vectors.window_scores(query, PASSAGES, previous, following)
    _, held = after(first + then)
    members = {one: [x for x in (one, previous[one], following[one]) if x >= 0] for one in held}
    found = vectors.window_scores(query, PASSAGES, previous, following)
    alike(found, plainly(held, query, members, PASSAGES))


@histories.examples(50)
@given(history=changes, seed=st.integers(0, 2**32 - 1))
def test_scores_do_not_depend_on_the_order_of_changes(history: list, seed: int) -> None:
    """Stored vectors score to seven digits as in an index that was filled in one step."""
    vectors, held = after(history)
    plain = Vectors("model", DIMENSION)
    passages = sorted(held)
    plain.put(
        np.array(passages, dtype=np.int64),
        np.array([held[one] for one in passages]).reshape(-1, DIMENSION).astype(np.float32),
    )
    query = directions(1, seed)[0]
    one, other = vectors.scores(query, PASSAGES), plain.scores(query, PASSAGES)
    assert (one is None) == (other is None)
    if one is not None:
        assert np.allclose(one, other, atol=1e-7)
