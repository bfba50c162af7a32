"""Key sentences are those that match the query, in order, with marks for gaps, and always fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.sentences import key_sentences, sentences_of

TEXT = (
    "We met at noon. The boat came late, as it does. Nobody was cross. "
    "Version 2.5 of the map is better! Then Clara painted the boat red."
)
CHINESE = "我们中午见面。外婆喝了茶。天气很好！她住在青岛，每天去海边。后来下雨了。"


def weights(*words: str) -> dict[int, float]:
    """Return the terms of words; later ones weigh more."""
    return {term_of(term): float(place) for place, word in enumerate(words, 1) for term in words_of(word)}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (TEXT, 5),
        (CHINESE, 5),
        ("No end", 1),
        ("One\ntwo\n\nthree", 3),
        ("", 0),
        ("他说：“好。”然后走了。", 2),
    ],
)
def test_sentences_end_where_they_end(text: str, count: int) -> None:
    """Sentences end correctly in English and Chinese, and together are the text."""
    found = sentences_of(text)
    assert len(found) == count
    assert "".join(found) == text


@pytest.mark.parametrize(
    ("text", "words", "most", "expected"),
    [
        (TEXT, ("boat", "Clara"), 60, "Ann: … Then Clara painted the boat red."),
        (
            TEXT,
            ("late", "Clara"),
            90,
            "Ann: … The boat came late, as it does. … Then Clara painted the boat red.",
        ),
        (TEXT, ("noon", "late"), 70, "Ann: We met at noon. The boat came late, as it does. …"),
        (TEXT, ("noon",), 25, "Ann: We met at noon. …"),
        (TEXT, ("noon",), 24, "Ann: We met at noon. …"),
        (TEXT, ("noon",), 10, ""),
        (TEXT, ("zebra",), 90, ""),
        (CHINESE, ("外婆", "青岛"), 40, "Ann: …外婆喝了茶。…她住在青岛，每天去海边。…"),
        (CHINESE, ("青岛",), 21, "Ann: …她住在青岛，每天去海边。…"),
    ],
)
def test_the_heaviest_sentences_are_kept(text: str, words: tuple[str, ...], most: int, expected: str) -> None:
    """The sentences with the highest weight are kept as far as they fit."""
    assert key_sentences(text, weights(*words), lambda told: len(told) <= most, "Ann: ") == expected


def test_repeated_terms_add_nothing() -> None:
    """A term counts once: a second sentence with it is omitted even if it fits."""
    text = "The boat is red. The boat is red, red, red. Tea is ready."
    assert key_sentences(text, weights("boat", "red"), lambda _: True) == "The boat is red. …"


@given(
    st.lists(st.sampled_from(["The boat is late. ", "Tea? ", "青岛很美。", "x\n", "no end"]), max_size=12),
    st.sets(st.sampled_from(["boat", "tea", "青岛", "end"])),
    st.integers(0, 60),
)
def test_it_fits_and_invents_nothing(parts: list[str], words: set[str], most: int) -> None:
    """For any text the result fits, and every piece is from the text, in order."""
    text = "".join(parts)
    told = key_sentences(text, weights(*words), lambda shorter: len(shorter) <= most)
    assert len(told) <= most
    place = 0
    for piece in told.split("…"):
        place = text.index(piece.strip(), place) + len(piece.strip())
