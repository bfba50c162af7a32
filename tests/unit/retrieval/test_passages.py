"""Long messages are split, and the index does not depend on how it was filled."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.retrieval import passages
from ebbtide.retrieval.analysis import term_of
from ebbtide.retrieval.passages import (
    MAX_PASSAGE_CHARS,
    SPLIT_CHARS,
    IndexedPassage,
    PassageIndex,
    cut,
    entries_of,
)

WORDS = ["tea", "boat", "harbour", "茶叶", "north", "went", "going"]


def passages_to_add(
    message: int, text: str, speaker: str = "Ann", conversation: str = "s1"
) -> list[IndexedPassage]:
    return [
        IndexedPassage(message, entry, 5 * message, speaker, conversation)
        for entry in entries_of(text, speaker)
    ]


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab .。\n"), max_size=3 * MAX_PASSAGE_CHARS))
def test_passages_cover_a_message_end_to_end(text: str) -> None:
    """Passages cover the message without overlap, and none is too long or empty."""
    spans = cut(text)
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert all(begin < end <= begin + MAX_PASSAGE_CHARS for begin, end in spans) or not text
    assert len(spans) == 1 or all(end - begin <= SPLIT_CHARS for begin, end in spans[:-1])


def test_a_long_message_is_cut_where_a_sentence_ends() -> None:
    """A long message is split at sentence ends where there are any."""
    text = "The boats come home late. " * 100
    assert all(text[:end].endswith(". ") for _, end in cut(text))
    assert len(cut("word " * 2000)) > 1


@settings(max_examples=80, deadline=None)
@given(
    said=st.lists(
        st.tuples(
            st.lists(st.sampled_from(WORDS), max_size=6),
            st.sampled_from(["Ann", "Bob", ""]),
            st.sampled_from(["s1", "s2"]),
        ),
        max_size=30,
    ),
    stops=st.lists(st.integers(0, 30), max_size=4),
)
def test_an_index_does_not_depend_on_how_it_was_filled(said: list, stops: list) -> None:
    """Postings, their numbers, neighbours and columns do not depend on the order of additions and merges."""
    shipped, passages.MIN_MERGED = passages.MIN_MERGED, 3
    try:
        whole, bit_by_bit = PassageIndex(), PassageIndex()
        everything = [
            one
            for number, (words, speaker, conversation) in enumerate(said)
            for one in passages_to_add(number, " ".join(words), speaker, conversation)
        ]
        whole.add(everything)
        bounds = sorted({0, *(stop for stop in stops if stop < len(everything)), len(everything)})
        for begin, end in pairwise(bounds):
            bit_by_bit.add(everything[begin:end])
            bit_by_bit.postings(term_of("tea"))
        assert len(whole) == len(bit_by_bit) == len(everything)
        for name in passages._COLUMNS:
            assert whole.column(name).tolist() == bit_by_bit.column(name).tolist()
        for word in ["tea", "boat", "harbour", "茶叶", "ann", "never"]:
            expected = [
                (place, ([*words, speaker.lower()]).count(word))
                for place, (words, speaker, _) in enumerate(said)
                if words and word in [*words, speaker.lower()]  # a blank one is found by nothing
            ]
            for index in (whole, bit_by_bit):
                found, counts = index.postings(term_of(word))
                assert list(zip(found.tolist(), counts.tolist(), strict=True)) == expected
        terms = [term_of(word) for word in ["tea", "boat", "ann", "go", "never"]]
        for index in (whole, bit_by_bit):
            assert index.passage_counts(terms) == [len(index.postings(term)[0]) for term in terms]
    finally:
        passages.MIN_MERGED = shipped


def test_neighbours_are_those_of_the_same_conversation() -> None:
    """Two interleaved conversations have separate neighbours."""
    index = PassageIndex()
    for number, conversation in enumerate(["s1", "s2", "s1", "s2"]):
        index.add(passages_to_add(number, "tea", "Ann" if number < 2 else "Bob", conversation))
    assert index.column("previous").tolist() == [-1, -1, 0, 1]
    assert index.column("next").tolist() == [2, 3, -1, -1]


def test_only_a_dialogue_has_neighbouring_messages() -> None:
    """Messages have neighbours only in a dialogue; passages of one message always do."""
    turns, notes = PassageIndex(), PassageIndex()
    for number in range(4):
        turns.add(passages_to_add(number, "tea", ("Ann", "Bob")[number % 2]))
        notes.add(passages_to_add(number, "tea", "Ann"))
    assert turns.neighbours("next").tolist() == [1, 2, 3, -1]
    assert notes.neighbours("next").tolist() == [-1, -1, -1, -1]
    documents = PassageIndex()
    for number in range(4):
        documents.add(passages_to_add(number, "tea", f"Title {number}"))
    assert documents.neighbours("next").tolist() == [-1, -1, -1, -1]
    replies, system = PassageIndex(), PassageIndex()
    for number, role in enumerate(["user", "assistant", "user", "user"]):
        entry = entries_of("tea", "")[0]
        replies.add([IndexedPassage(number, entry, 0, "", f"b{number // 2}", role=role)])
        system.add([IndexedPassage(number, entry, 0, "", "b0", role="system" if number else "user")])
    assert replies.neighbours("next").tolist() == [1, -1, -1, -1], "an assistant's reply needs no speakers"
    assert system.neighbours("next").tolist() == [-1, -1, -1, -1]
    long = PassageIndex()
    long.add(passages_to_add(0, "The boats come home late. " * 100))
    assert long.neighbours("next").tolist() == [*range(1, len(long)), -1]


@pytest.mark.parametrize(
    ("before", "after_ms", "is_alone", "is_joined"),
    [
        ("user", 20_000, True, True),
        ("user", passages.MAX_REPLY_MS + 1, True, False),
        ("user", -1, True, False),
        ("assistant", 20_000, True, False),
        ("user", 20_000, False, False),
    ],
)
def test_a_reply_stored_alone_belongs_to_the_message_before_it(
    before: str, after_ms: int, is_alone: bool, is_joined: bool
) -> None:
    """Without a conversation, an assistant's batch soon after a user's message is its reply, in all its passages."""
    index, later = PassageIndex(), 1_000_000
    reply = entries_of("The boats come home late. " * 100, "")
    index.add([IndexedPassage(0, entries_of("tea", "")[0], later, "", "b1", role=before, is_alone=True)])
    index.add(
        IndexedPassage(1, entry, later + after_ms, "", "b2", role="assistant", is_alone=is_alone)
        for entry in reply
    )
    index.add([IndexedPassage(2, reply[0], later + after_ms, "", "b3", is_alone=True)])
    assert index.column("conversation").tolist() == [0, *[int(not is_joined)] * len(reply), 2 - is_joined]
    assert index.column("previous")[1] == (0 if is_joined else -1)
    assert index.conversation_numbers(["b2"]) == [int(not is_joined)]


def test_titles_are_known_without_a_search() -> None:
    """Promise: an index has titles as long as some speaker has only a few passages; otherwise none is found."""
    index = PassageIndex()
    assert not index.has_titles
    terms = frozenset([term_of("ann")])
    for number in range(passages.MAX_TITLED + 1):
        index.add(passages_to_add(number, "tea"))
        found = list(index.passages_named_by(terms, -1))
        assert index.has_titles == bool(found) == (number < passages.MAX_TITLED)
    index.add(passages_to_add(9, "tea", "Bob"))
    assert index.has_titles
