"""Packing: the budget is kept with any tokenizer, the order stays, copies are dropped, and each drop has its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.packing import Candidate, Packed, first_fresh, pack


def word(texts: Sequence[str]) -> str:
    """Format an answer as the product does."""
    return "\n---\n".join(f"[Memory] {text}" for text in texts)


def candidate(key: int, text: str, value: float, terms: Sequence[int] = ()) -> Candidate:
    """Return a candidate; without terms of its own it resembles no other."""
    return Candidate(key, text, value, frozenset(terms or (1000 * key, 1000 * key + 1)))


def packed(
    candidates: Sequence[Candidate],
    most: int = 100,
    budget: int | None = None,
    count: Callable[[str], int] = len,
) -> Packed:
    """Pack these candidates, with characters as tokens."""
    return pack(candidates, max_results=most, token_budget=budget, count=count, word=word)


def keys(answer: Packed) -> list[object]:
    """Return the keys of the kept candidates, in order."""
    return [kept.key for kept in answer.kept]


def test_without_a_budget_the_best_are_kept() -> None:
    """The first max_results candidates that are no near copies are kept, and the others are listed with the reason."""
    found = [
        candidate(1, "tea", 0.9),
        candidate(2, "tea", 0.8),
        candidate(3, "coffee", 0.7),
        candidate(4, "water", 0.6),
    ]
    answer = packed(found, most=2)
    assert keys(answer) == [1, 3]
    assert answer.dropped == ((2, "near copy"), (4, "max_results"))


def test_no_more_candidates_are_taken_than_needed() -> None:
    """The first candidates that are no near copies equal those of `pack`, and later ones are not read."""
    found = [candidate(1, "tea", 0.9), candidate(2, "tea", 0.8), candidate(3, "coffee", 0.7)]
    taken = iter([*found, candidate(4, "water", 0.6)])
    assert first_fresh(taken, 2) == list(packed(found, most=2).kept)
    assert [one.key for one in taken] == [4]
    assert first_fresh(found, 0) == []


def halved(candidate: Candidate, fits: Callable[[str], bool]) -> str:
    """Yield prefixes of a text: half of it, half of that, down to four characters."""
    text = candidate.text
    while len(text) >= 4 and not fits(text):
        text = text[: len(text) // 2]
    return text if len(text) >= 4 and fits(text) else ""


@given(
    st.lists(st.tuples(st.integers(1, 200), st.floats(0, 1)), min_size=1, max_size=12),
    st.integers(1, 400),
    st.integers(1, 8),
)
def test_shortened_candidates_keep_the_budget(sizes: list[tuple[int, float]], budget: int, most: int) -> None:
    """Shortened forms fill the rest of the budget, in the given order, and each dropped candidate is listed."""
    found = [candidate(k, f"{k:03}" + "x" * size, value) for k, (size, value) in enumerate(sizes)]
    answer = pack(found, max_results=most, token_budget=budget, count=len, word=word, shorten=halved)
    assert len(word([kept.text for kept in answer.kept])) <= budget
    assert len(answer.kept) <= most
    by_key = {one.key: one for one in found}
    for kept in answer.kept:
        assert (kept.text != by_key[kept.key].text) == (kept.key in answer.shortened)
    assert sorted([*map(str, keys(answer)), *(str(key) for key, _ in answer.dropped)]) == sorted(
        map(str, by_key)
    )
    plain = pack(found, max_results=most, token_budget=budget, count=len, word=word)
    assert len(answer.kept) >= min(1, len(plain.kept))


def test_the_best_is_shortened_before_it_is_dropped() -> None:
    """A candidate that is too long for any answer is shortened to fit next to others."""
    found = [candidate(1, "a" * 500, 0.9), candidate(2, "b" * 20, 0.5)]
    answer = pack(found, max_results=9, token_budget=120, count=len, word=word, shorten=halved)
    assert keys(answer) == [1, 2]
    assert answer.shortened == {1}
    assert answer.dropped == ()


def test_near_copies_share_nine_tenths_of_their_terms() -> None:
    """Nine of ten common terms make a near copy, eight of ten do not; the better one stays."""
    best = candidate(1, "a", 0.9, range(10))
    near = candidate(2, "b", 0.8, range(9))
    far = candidate(3, "c", 0.7, range(8))
    answer = packed([best, near, far])
    assert keys(answer) == [1, 3] and answer.dropped == ((2, "near copy"),)


def test_texts_without_terms_are_copies_only_when_equal() -> None:
    """Two texts without terms are not copies because they have no differing terms."""
    nothing: frozenset[int] = frozenset()
    found = [
        Candidate(1, "oh", 0.9, nothing),
        Candidate(2, "ah", 0.8, nothing),
        Candidate(3, "oh", 0.7, nothing),
    ]
    assert keys(packed(found)) == [1, 2]


def test_a_budget_that_holds_everything_changes_nothing() -> None:
    """With a large budget the answer is that without a budget."""
    found = [candidate(key, f"text {key}", 1 - key / 10) for key in range(8)]
    assert packed(found, most=5, budget=10_000) == packed(found, most=5)


def test_exactly_the_budget_fits() -> None:
    """An answer of exactly the budget is kept whole; with a budget of one token less a candidate is dropped."""
    found = [candidate(1, "a" * 10, 0.9), candidate(2, "b" * 10, 0.8)]
    whole = len(word([one.text for one in found]))
    assert keys(packed(found, budget=whole)) == [1, 2]
    short = packed(found, budget=whole - 1)
    assert keys(short) == [1] and short.dropped == ((2, "budget"),)


def test_the_best_is_kept_and_small_ones_fill_the_rest() -> None:
    """A long best memory is kept before cheap ones; a candidate that does not fit is skipped for one that does."""
    found = [candidate(1, "a" * 60, 0.9), candidate(2, "b" * 60, 0.8), candidate(3, "c" * 10, 0.2)]
    answer = packed(found, budget=110)
    assert keys(answer) == [1, 3] and answer.dropped == ((2, "budget"),)


def test_value_for_tokens_decides_among_the_best() -> None:
    """Of memories of similar value, two short ones are preferred to a long one."""
    found = [
        candidate(1, "a" * 10, 1.0),
        candidate(2, "b" * 60, 0.80),
        candidate(3, "c" * 20, 0.79),
        candidate(4, "d" * 20, 0.78),
    ]
    assert keys(packed(found, budget=100)) == [1, 3, 4]


def test_repetition_is_worth_less() -> None:
    """Of two with the same cost, one with new content is preferred to a slightly better one that repeats."""
    found = [
        candidate(1, "a" * 20, 1.0, range(10)),
        candidate(2, "b" * 20, 0.72, [*range(8), 20]),
        candidate(3, "c" * 20, 0.70, range(30, 40)),
    ]
    answer = packed(found, budget=70)
    assert keys(answer) == [1, 3] and answer.dropped == ((2, "budget"),)


@pytest.mark.parametrize("budget", [-1, 0, 5])
def test_a_budget_too_small_gives_nothing(budget: int) -> None:
    """A budget that is too small for any memory returns none."""
    answer = packed([candidate(1, "a", 0.9), candidate(2, "b", 0.8)], budget=budget)
    assert answer == Packed((), ((1, "budget"), (2, "budget")))


@pytest.mark.parametrize("budget", [None, 50])
def test_no_candidates_give_an_empty_answer(budget: int | None) -> None:
    """No candidates or no budget return an empty answer."""
    assert packed([], budget=budget) == Packed((), ())
    assert packed([candidate(1, "a", 0.9)], most=0, budget=budget).dropped == ((1, "max_results"),)


TEXTS = st.text("ab 字🙂", max_size=40)
FOUND = st.lists(
    st.tuples(TEXTS, st.floats(-1, 1), st.frozensets(st.integers(0, 12), max_size=12)), max_size=16
)
COUNTS: list[Callable[[str], int]] = [
    len,
    lambda text: len(text.encode()),
    lambda text: len(text.split()),
    # A tokenizer that counts the whole higher than the sum of its parts, which none should do.
    lambda text: len(text) ** 2 // 20,
]


def candidates_of(found: Sequence[tuple[str, float, frozenset[int]]]) -> list[Candidate]:
    """Return generated texts as candidates, best first."""
    ordered = sorted(found, key=lambda one: -one[1])
    return [Candidate(key, text, value, terms) for key, (text, value, terms) in enumerate(ordered)]


@settings(max_examples=60, deadline=None)
@given(FOUND, st.integers(0, 20), st.integers(-5, 400), st.sampled_from(COUNTS))
def test_the_budget_is_never_exceeded(
    found: list[tuple[str, float, frozenset[int]]], most: int, budget: int, count: Callable[[str], int]
) -> None:
    """With any tokenizer, the formatted answer is within the budget and within max_results."""
    answer = packed(candidates_of(found), most, budget, count)
    assert not answer.kept or count(word([kept.text for kept in answer.kept])) <= budget
    assert len(answer.kept) <= most


@settings(max_examples=60, deadline=None)
@given(FOUND, st.integers(0, 20), st.none() | st.integers(0, 400))
def test_order_stays_and_every_candidate_is_listed(
    found: list[tuple[str, float, frozenset[int]]], most: int, budget: int | None
) -> None:
    """Kept and dropped candidates are in the given order, each once, and the result is deterministic."""
    candidates = candidates_of(found)
    answer = packed(candidates, most, budget)
    dropped = [key for key, _ in answer.dropped]
    assert keys(answer) == sorted(key for key in range(len(candidates)) if key not in dropped)
    assert dropped == [key for key in range(len(candidates)) if key not in keys(answer)]
    assert answer == packed(candidates, most, budget)


@settings(max_examples=60, deadline=None)
@given(FOUND)
def test_copies_are_found_as_by_comparing_all(found: list[tuple[str, float, frozenset[int]]]) -> None:
    """Comparing few pairs finds the near copies that comparing every pair finds."""
    kept: list[Candidate] = []
    for one in candidates_of(found):
        near = (10 * len(one.terms & other.terms) >= 9 * len(one.terms | other.terms) > 0 for other in kept)
        if not any(near) and one.text not in [other.text for other in kept]:
            kept.append(one)
    assert list(packed(candidates_of(found)).kept) == kept


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Ann: I do like the old house by the sea with its red door and its garden.",
            "Ann: I do not like the old house by the sea with its red door and its garden.",
        ),
        (
            "Ann: The rent of the old house by the sea with the red door is 900 euros now.",
            "Ann: The rent of the old house by the sea with the red door is 950 euros now.",
        ),
        (
            "Ann: I like the old house by the sea with its red door and its garden full of roses.",
            "Bob: I like the old house by the sea with its red door and its garden full of roses.",
        ),
        (
            "林月：我喜欢海边那栋红门的老房子，还有它的花园和花园里的玫瑰。",
            "林月：我不喜欢海边那栋红门的老房子，还有它的花园和花园里的玫瑰。",
        ),
    ],
)
def test_a_number_a_negation_or_another_speaker_makes_it_another_memory(one: str, other: str) -> None:
    """An updated, negated or differently attributed statement is kept next to the memory that it resembles."""
    candidates = [
        Candidate(place, text, 1.0 - place / 10, frozenset(map(term_of, words_of(text))))
        for place, text in enumerate((one, other, one + " "))
    ]
    packed = pack(candidates, max_results=5, token_budget=None, count=len, word="".join)
    assert [candidate.key for candidate in packed.kept] == [0, 1]
    assert packed.dropped == ((2, "near copy"),)
