"""The arrays of the network, compared with lists, dictionaries and `in`."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ebbtide.memory.columns import places_in
from ebbtide.memory.link_table import LinkTable
from ebbtide.memory.strength import (
    DecayTable,
    rank_of,
    ranks_of,
    round_strength,
    target_length,
    target_lengths,
)
from ebbtide.memory.texts import FoldedTexts, folded, piece_of
from tests.property import histories

strengths = st.one_of(
    st.floats(0, 1, allow_subnormal=True),
    st.builds(lambda rate, age: rate**age, st.sampled_from([0.5, 0.9, 0.97, 0.99]), st.integers(0, 1500)),
    st.builds(
        lambda digits, power: digits / 10**12 * 10.0**power, st.integers(0, 10**12), st.integers(-30, 0)
    ),
    st.builds(
        lambda power, up: float(np.nextafter(10.0**power, up)), st.integers(-300, -1), st.integers(0, 1)
    ),
)


@histories.examples(300)
@given(st.lists(strengths, min_size=1, max_size=40))
@example([0.9999999999995, 0.99999999999949, 1.0, 0.0, 5e-324, 1e-5])
def test_ranks_order_as_twelve_digits_do(values: list[float]) -> None:
    """`ranks_of` equals `rank_of`, and ranks compare like strengths rounded to 12 digits."""
    ranks = ranks_of(np.array(values)).tolist()
    assert ranks == [rank_of(value) for value in values]
    rounded = [round_strength(value) for value in values]
    for i, mine in enumerate(rounded):
        for j, theirs in enumerate(rounded):
            assert (ranks[i] < ranks[j]) == (mine < theirs)
            assert (ranks[i] == ranks[j]) == (mine == theirs)
    assert all(1 <= rank < 2**53 for rank in ranks)


@given(rate=st.floats(0.01, 1), ages=st.lists(st.integers(0, 3000), max_size=20))
def test_decay_factors_are_those_of_the_scalar_power(rate: float, ages: list[int]) -> None:
    """Factors equal the scalar power to the last bit, so that strengths do not depend on batching."""
    assert DecayTable(rate).factors(np.array(ages, dtype=np.int64)).tolist() == [rate**age for age in ages]


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 3)), max_size=30))
def test_target_lengths_are_those_of_each(pairs: list[tuple[int, float]]) -> None:
    """`target_lengths` equals `target_length`."""
    lengths, importances = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    assert target_lengths(lengths, importances).tolist() == [target_length(n, i) for n, i in pairs]


@given(
    ids=st.lists(st.integers(1, 60), unique=True, max_size=30),
    wanted=st.lists(st.integers(0, 70), max_size=12),
)
def test_ids_are_found_where_they_stand(ids: list[int], wanted: list[int]) -> None:
    """Each id is found at its index or not at all, with and without gaps, in few and many lookups."""
    ids.sort()
    places, known = places_in(np.array(ids, dtype=np.int64), np.array(wanted, dtype=np.int64))
    found = [ids[p] if k else None for p, k in zip(places.tolist(), known.tolist(), strict=True)]
    assert found == [n if n in ids else None for n in wanted]


ends = st.tuples(st.integers(0, 9), st.integers(0, 9))


@histories.examples(200)
@given(
    before=st.lists(ends, max_size=30),
    after=st.lists(ends, max_size=30),
    dead=st.sets(st.integers(0, 9), max_size=3),
    asked=st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True),
    merge=st.booleans(),
)
def test_links_are_found_from_both_ends(
    before: list[tuple[int, int]],
    after: list[tuple[int, int]],
    dead: set[int],
    asked: list[int],
    merge: bool,
) -> None:
    """The rows of a node are its links, each once, sorted or not, for one node and for many."""
    table = LinkTable()
    count = len(before)
    zeros = np.zeros(count)
    table.load(
        10,
        source=np.array([s for s, _ in before], dtype=np.int32),
        target=np.array([t for _, t in before], dtype=np.int32),
        relation=zeros,
        written=zeros,
        anchor=zeros,
        now=zeros,
    )
    for source, target in after:
        table.rows.append(1, source=source, target=target)
    links = sorted([*before, *after])
    if merge:
        keep = [row for row in range(table.rows.count) if int(table.rows["source"][row]) not in dead]
        links = [link for link in links if link[0] not in dead]
        table.merge(np.array(keep, dtype=np.int64), None, 10)
    member = np.zeros(10, dtype=np.bool_)
    member[asked] = True

    def pairs(rows: np.ndarray | None) -> list[tuple[int, int]]:
        chosen = np.flatnonzero(member[table.rows["source"]]) if rows is None else rows
        columns = (table.rows["source"][chosen].tolist(), table.rows["target"][chosen].tolist())
        return sorted(zip(*columns, strict=True))

    assert pairs(table.of_sources(np.array(asked), member)) == [e for e in links if e[0] in asked]
    assert pairs(table.of_targets(np.array(asked), member)) == [e for e in links if e[1] in asked]
    for slot in range(10):
        assert pairs(table.of_source(slot)) == [e for e in links if e[0] == slot]
        assert pairs(table.of_target(slot)) == [e for e in links if e[1] == slot]


words = st.text("aAbß中文İ \n", max_size=6)


@histories.examples(200)
@given(
    said=st.lists(st.tuples(words, st.lists(words, max_size=2)), min_size=1, max_size=8),
    changes=st.lists(
        st.tuples(st.integers(0, 7), st.none() | st.tuples(words, st.lists(words, max_size=2))), max_size=12
    ),
    wanted=st.lists(words.filter(bool), min_size=1, max_size=2),
    kept=st.sets(st.integers(0, 7)),
)
def test_texts_match_as_strings_do(
    said: list[tuple[str, list[str]]],
    changes: list[tuple[int, tuple[str, list[str]] | None]],
    wanted: list[str],
    kept: set[int],
) -> None:
    """A node matches when a word occurs, casefolded, in one of its texts, also after rewriting, dropping and moving."""
    texts = FoldedTexts()
    plain: dict[int, tuple[str, list[str]] | None] = dict(enumerate(said))
    for slot, (content, keywords) in enumerate(said):
        texts.put(slot, piece_of(content, keywords))
    for slot, now in changes:
        if slot >= len(said):
            continue
        plain[slot] = now
        if now is None:
            texts.drop(slot)
        else:
            texts.put(slot, piece_of(*now))
    if kept:
        order = sorted(slot for slot in kept if slot < len(said))
        texts.renumber(np.array(order, dtype=np.int64))
        plain = {place: plain[slot] for place, slot in enumerate(order)}
    needles = [folded(word) for word in wanted]
    living = [slot for slot, text in plain.items() if text is not None]
    expected = {
        slot: any(word.casefold() in own.casefold() for word in wanted for own in (text[0], *text[1]))
        for slot, text in plain.items()
        if text is not None
    }
    through = texts.matches_all(needles, len(plain))
    each = texts.matches_each(np.array(living, dtype=np.int64), needles)
    assert {slot: bool(through[slot]) for slot in living} == expected
    assert dict(zip(living, each.tolist(), strict=True)) == expected
    assert not any(through[slot] for slot in plain if slot not in expected)


def test_forgotten_text_is_wiped_from_the_buffer() -> None:
    """A dropped or rewritten text is wiped at once, not at the next clean-up."""
    texts = FoldedTexts()
    texts.put(0, piece_of("the secret word", ["secret"]))
    texts.put(1, piece_of("something else", []))
    texts.put(1, piece_of("else", []))
    texts.drop(0)
    assert b"secret" not in bytes(texts._buffer)
    assert b"something" not in bytes(texts._buffer)
    assert not texts.matches_all([b"secret", b"something"], 2).any()
