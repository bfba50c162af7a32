"""Evaluating all rows and trees at once equals walking down each tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebbtide.retrieval.trees import Trees

TWO_TREES: dict[str, Any] = {
    "roots": [0, 2],
    "feature": [0, 1, 1],
    "threshold": [0.5, 2.0, -1.0],
    "left": [-1, -2, -4],
    "right": [1, -3, -5],
    "missing_left": [1, 0, 1],
    "leaves": [10.0, 20.0, 30.0, 0.25, 0.5],
}
"""The first: up to 0.5 in number 0 is 10; else up to 2 in number 1 is 20, above 30. The second: 0.25 or 0.5."""


def test_rows_go_down_every_tree() -> None:
    """A value up to the threshold goes left, a larger one right, and the leaves are summed."""
    rows = np.array([[0.5, 0.0], [0.6, 2.0], [0.6, 2.1], [0.0, -1.0]])
    assert Trees.of(TWO_TREES).sums(rows).tolist() == [10.5, 20.5, 30.5, 10.25]


def test_a_missing_value_follows_the_node() -> None:
    """A missing value goes where the node says."""
    rows = np.array([[np.nan, 0.0], [1.0, np.nan]])
    assert Trees.of(TWO_TREES).sums(rows).tolist() == [10.5, 30.25]


def test_no_rows_have_no_sums() -> None:
    """No rows yield no sums."""
    assert Trees.of(TWO_TREES).sums(np.zeros((0, 2))).tolist() == []


def walked(kept: dict[str, Any], row: list[float]) -> float:
    """Compute the same sum one step at a time."""
    total = 0.0
    for root in kept["roots"]:
        at = root
        while at >= 0:
            value = row[kept["feature"][at]]
            is_left = kept["missing_left"][at] if value != value else value <= kept["threshold"][at]
            at = kept["left"][at] if is_left else kept["right"][at]
        total += kept["leaves"][-1 - at]
    return total


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_random_forests_say_what_walking_says(depth: int) -> None:
    """For random trees of few and of many leaves the sums equal those of a walk, also at and next to a threshold."""
    dice = np.random.default_rng(depth)
    for _ in range(20):
        kept: dict[str, Any] = {key: [] for key in TWO_TREES}
        for _ in range(7):
            kept["roots"].append(grow(kept, dice, depth))
        rows = dice.normal(size=(30, 3))
        at_threshold = dice.random(rows.shape) < 0.3
        rows[at_threshold] = dice.choice(kept["threshold"], int(at_threshold.sum()))
        rows[dice.random(rows.shape) < 0.1] = np.nan
        expected = [walked(kept, row) for row in rows.tolist()]
        assert Trees.of(kept).sums(rows) == pytest.approx(expected)


def grow(kept: dict[str, Any], dice: np.random.Generator, depth: int) -> int:
    """Create a random tree and return the index of its root."""
    at = len(kept["feature"])
    kept["feature"].append(int(dice.integers(3)))
    kept["threshold"].append(float(dice.normal()))
    kept["missing_left"].append(int(dice.integers(2)))
    kept["left"].append(0)
    kept["right"].append(0)
    for side in ("left", "right"):
        if depth and dice.random() < 0.7:
            kept[side][at] = grow(kept, dice, depth - 1)
        else:
            kept["leaves"].append(float(dice.normal()))
            kept[side][at] = -len(kept["leaves"])
    return at


def chain(leaf_count: int) -> dict[str, Any]:
    """Return one tree in which only the last node has two leaves."""
    nodes = range(leaf_count - 1)
    return {
        "roots": [0],
        "feature": [0 for _ in nodes],
        "threshold": [float(node) for node in nodes],
        "left": [-1 - node for node in nodes],
        "right": [*(node + 1 for node in nodes[:-1]), -leaf_count],
        "missing_left": [0 for _ in nodes],
        "leaves": [float(leaf) for leaf in range(leaf_count)],
    }


@pytest.mark.parametrize("leaf_count", [2, 8, 9, 16, 17, 32, 33, 64])
def test_every_leaf_of_a_tree_is_reached(leaf_count: int) -> None:
    """A tree reaches each of its leaves, up to 64 of them."""
    rows = np.arange(leaf_count, dtype=np.float64)[:, None]
    assert Trees.of(chain(leaf_count)).sums(rows).tolist() == list(range(leaf_count))


def test_a_tree_of_too_many_leaves_is_refused() -> None:
    """A tree of more than 64 leaves is rejected: its leaves would not fit into a word."""
    with pytest.raises(ValueError, match="more than 64 leaves"):
        Trees.of(chain(65))


@pytest.mark.parametrize(
    "wrong", [{"left": [0, -2, -4]}, {"right": [1, -9, -5]}, {"right": [7, -3, -5]}, {"left": [-1]}]
)
def test_trees_that_lead_astray_are_refused(wrong: dict[str, Any]) -> None:
    """A file with a cycle or a missing node is rejected."""
    with pytest.raises(ValueError, match="tree"):
        Trees.of({**TWO_TREES, **wrong})
