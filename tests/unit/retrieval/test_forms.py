"""A word with irregular forms is found by any of its forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.fleet.recall.recollection import weighted_terms
from ebbtide.retrieval import forms
from ebbtide.retrieval.analysis import STOP_WORDS, stem, term_of, words_of
from ebbtide.retrieval.forms import first_form, terms_of_forms
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of
from ebbtide.retrieval.query import parse_query
from ebbtide.retrieval.sentences import key_sentences

SAID = [
    "Ann went to Rome",
    "Bob goes by boat",
    "They are going home",
    "It is gone",
    "A cat sleeps",
    "go, go!",
]


def index_of(said: Sequence[str]) -> PassageIndex:
    index = PassageIndex()
    for number, text in enumerate(said):
        index.add(IndexedPassage(number, entry, 0, "", "s1") for entry in entries_of(text, ""))
    return index


def asked(query: str) -> dict[int, float]:
    return weighted_terms(parse_query(query, speakers=(), reference_ms=0), query)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("go", "went"), ("going", "gone"), ("bought", "buying"), ("taught", "teaches"), ("children", "child"),
        ("chose", "choosing"), ("wrote", "written"), ("flies", "flew"), ("thieves", "thief"), ("feet", "foot"),
    ],
)  # fmt: skip
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    """Every form of a word yields the same search term."""
    assert one != other and asked(f"the {one}") == asked(f"the {other}")


def test_ambiguous_forms_are_not_merged() -> None:
    """Forms that usually are another word, such as rose, ground and bore, are not merged."""
    for one, other in (
        ("rose", "rise"),
        ("ground", "grind"),
        ("bear", "born"),
        ("bit", "bite"),
        ("left-handed", "leave"),
    ):
        assert asked(one) != asked(other)


def test_every_group_is_of_stems_and_none_shares_one() -> None:
    """The table contains stems as the stemmer returns them, each once."""
    stems = [one for group in forms._GROUPS for one in group]
    assert len(stems) == len(set(stems)) and not STOP_WORDS.intersection(stems)
    endings = ("", "e", "y", "en", "es", "s", "ing")
    assert all(any(stem(one + ending) == one for ending in endings) for one in stems)


def test_a_question_finds_every_form_as_one_word() -> None:
    """Postings are merged over all forms; the index on disk is unchanged."""
    index = index_of(SAID)
    passages, counts = index.postings(term_of("go"))
    assert dict(zip(passages.tolist(), counts.tolist(), strict=True)) == {0: 1, 1: 1, 2: 1, 3: 1, 5: 2}
    assert term_of("went") in entries_of("went", "")[0].terms
    scores = WordScores(index).scores(asked("Where did they go?"), 0.0)
    assert set(np.flatnonzero(scores).tolist()) == {0, 1, 2, 3, 5}


@settings(max_examples=60, deadline=None)
@given(
    said=st.lists(
        st.lists(st.sampled_from(["take", "took", "taken", "tea"]), max_size=6), min_size=1, max_size=12
    ),
    cut=st.integers(0, 12),
)
def test_forms_are_counted_as_if_one_had_been_said(said: list[list[str]], cut: int) -> None:
    """Texts with any forms score like the same texts with the first form only."""
    texts = [" ".join(words) for words in said]
    alike = [" ".join(first_form(word) for word in words) for words in said]
    terms = {term_of("take"): 1.0, term_of("tea"): 1.0}
    one, other = index_of(texts[:cut]), index_of(alike)
    one._merge()
    for number, text in enumerate(texts[cut:], min(cut, len(texts))):
        one.add(IndexedPassage(number, entry, 0, "", "s1") for entry in entries_of(text, ""))
    expected = WordScores(other).scores(terms, 0.5).tolist()
    assert WordScores(one).scores(terms, 0.5).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_sentence_with_another_form_is_a_key_sentence() -> None:
    """A sentence with another form of a query word is a key sentence."""
    text = "It rained. She bought a red bicycle. Then it snowed."
    told = key_sentences(text, asked("What did she buy?"), lambda short: len(short) < 40)
    assert "bought a red bicycle" in told and "rained" not in told


def test_other_words_are_left_alone() -> None:
    """A word without irregular forms represents itself, in any language."""
    for word in ("tea", "北京", "e1234", ""):
        assert first_form(word) == word
        assert terms_of_forms(term_of(word)) == ()
    assert list(words_of("went")) == ["went"]
