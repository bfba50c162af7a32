"""The measures of the recall benchmark, on answers small enough to check by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.recall_measures import (
    NAMES,
    Result,
    discounted_gain,
    measure,
    paired_interval,
    ranked_turns,
    reciprocal_rank,
    share_found,
    within,
)


def answer_of(*turn_ids: str, token_count: int = 10) -> list[Result]:
    """Return an answer with one turn per result."""
    return [Result((turn_id,), token_count) for turn_id in turn_ids]


def test_a_repeated_turn_takes_one_rank() -> None:
    """A turn counts at its first appearance, and the turns after a repetition move up."""
    answer = [Result(("a", "b"), 1), Result(("a",), 1), Result((), 1), Result(("c",), 1)]
    assert ranked_turns(answer) == ["a", "b", "c"]
    gold = [{"f"}]
    padded = [*answer_of("a", "b", "c", "d"), *answer_of(*"abcd"), *answer_of("e", "f")]
    assert measure(padded, gold)["R@5"] == 0.0
    assert measure([*answer_of(*"abcd", *"abcd", "f")], gold)["R@5"] == 1.0


def test_any_member_finds_its_group() -> None:
    """Any turn of a group finds it, and the group counts once."""
    gold = [{"a", "b"}, {"c"}]
    assert share_found(["b"], gold) == 0.5
    assert share_found(["a", "b"], gold) == 0.5
    assert share_found(["b", "c"], gold) == 1.0
    assert share_found([], gold) == 0.0


def test_depths_are_exact() -> None:
    """Evidence at rank 5 is among the first 5, at rank 6 it is not; the same for 10 and 20."""
    for depth in (5, 10, 20):
        before = [f"x{place}" for place in range(depth - 1)]
        assert measure(answer_of(*before, "gold"), [{"gold"}])[f"R@{depth}"] == 1.0
        assert measure(answer_of(*before, "y", "gold"), [{"gold"}])[f"R@{depth}"] == 0.0


def test_all_evidence_means_every_group() -> None:
    """`all@10` is 1 only if no group is missing among the first ten."""
    gold = [{"a"}, {"b"}]
    assert measure(answer_of("a", "b"), gold)["all@10"] == 1.0
    assert measure(answer_of("a", *(f"x{n}" for n in range(9)), "b"), gold)["all@10"] == 0.0
    assert measure(answer_of("a"), gold)["all@10"] == 0.0


def test_the_reciprocal_rank_is_that_of_the_first_gold_turn() -> None:
    """The rank of the first gold turn of any group decides; without one the measure is 0."""
    assert reciprocal_rank(["x", "b", "a"], [{"a"}, {"b"}]) == 0.5
    assert reciprocal_rank(["x"], [{"a"}]) == 0.0


def test_gain_is_a_share_of_the_best_order() -> None:
    """nDCG is 1 if gold turns come first, falls with each rank, and ignores results beyond its depth."""
    gold = [{"a"}, {"b"}]
    assert discounted_gain(["a", "b", "x"], gold, 10) == 1.0
    expected = (1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert discounted_gain(["x", "a", "b"], gold, 10) == pytest.approx(expected)
    assert discounted_gain(["x", "y", "a"], gold, 2) == 0.0
    many = [{f"g{place}" for place in range(30)}]
    assert discounted_gain([f"g{place}" for place in range(10)], many, 10) == pytest.approx(1.0)


def test_a_budget_is_never_exceeded() -> None:
    """The first results that fit together count; one that is too long ends the answer, even if a later one fits."""
    answer = [Result(("a",), 300), Result(("b",), 200), Result(("c",), 1)]
    assert ranked_turns(within(answer, 500)) == ["a", "b"]
    assert ranked_turns(within(answer, 499)) == ["a"]
    assert within(answer, 299) == []
    assert within(answer, 501) == answer
    told = measure(answer, [{"c"}])
    assert (told["in 500"], told["in 1000"]) == (0.0, 1.0)


def test_repetitions_cost_tokens() -> None:
    """A repeated result takes no rank, but its tokens count again."""
    answer = [Result(("a",), 300), Result(("a",), 300), Result(("b",), 300)]
    assert measure(answer, [{"b"}])["in 500"] == 0.0
    assert measure(answer, [{"b"}])["R@5"] == 1.0


def test_every_measure_is_there_and_a_share() -> None:
    """An answer has every named measure, all 0 if it is empty and all 1 if it is perfect."""
    empty, perfect = measure([], [{"a"}]), measure(answer_of("a"), [{"a"}])
    assert tuple(empty) == tuple(perfect) == NAMES
    assert set(empty.values()) == {0.0}
    assert set(perfect.values()) == {1.0}


def test_the_interval_is_of_the_pairs() -> None:
    """A difference that is equal in all questions has no spread, even if the questions differ widely."""
    theirs = [float(place % 2) for place in range(100)]
    steady = paired_interval([value + 0.25 for value in theirs], theirs)
    assert steady.mean == steady.low == steady.high == pytest.approx(0.25)


def test_the_interval_covers_chance() -> None:
    """Differences that cancel out have an interval around 0, with the theoretical width, the same each time."""
    ours = [float(place % 2) for place in range(400)]
    theirs = [1.0 - value for value in ours]
    told = paired_interval(ours, theirs)
    assert told.mean == 0.0
    assert told.low < 0.0 < told.high
    assert told.high - told.low == pytest.approx(2 * 1.96 / math.sqrt(400), rel=0.15)
    assert paired_interval(ours, theirs) == told


def test_only_pairs_can_be_compared() -> None:
    """Lists that are empty or differ in length are refused."""
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_interval([1.0, 0.0], [1.0])
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_interval([], [])
