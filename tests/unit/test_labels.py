"""The labelled data in `benchmarks/` is complete, consistent with itself and shares no text with the public sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks.labels import (
    LANGUAGES,
    QUESTION_KINDS,
    RELATION_NAMES,
    LabelledSegment,
    Misleading,
    Shortening,
    contains_in_order,
    is_within,
    read_segmentations,
    read_segments,
    read_shortenings,
    read_unanswerable,
    words_of,
)
from benchmarks.recall_data import PUBLIC, SETS, TOGETHER, MissingSet, default_folder, read_set

SEGMENTS = read_segments()
SHORTENINGS = read_shortenings()
SEPARATORS = {"en": " ", "zh": "，"}
GRAM = 8


def statement_of(segment: LabelledSegment) -> str:
    """Return the shortest shortening that keeps the statement."""
    return SEPARATORS[segment.lang].join(segment.statement)


def test_each_language_has_its_share() -> None:
    """Both languages have the same number of entries of each file, and ids and texts are unique."""
    assert Counter(segment.lang for segment in SEGMENTS) == {"en": 150, "zh": 150}
    written = Counter(case.lang for case in SHORTENINGS if case.source == "written")
    assert written == {"en": 30, "zh": 30}
    assert sum(case.source == "specification" for case in SHORTENINGS) == 15
    assert Counter(case.lang for case in read_segmentations()) == {"en": 30, "zh": 30}
    questions = read_unanswerable()
    for lang in LANGUAGES:
        kinds = Counter(question.kind for question in questions if question.lang == lang)
        assert set(kinds) == set(QUESTION_KINDS)
        assert kinds.total() == 100
    assert len({segment.id for segment in SEGMENTS}) == len({segment.text for segment in SEGMENTS}) == 300
    assert len({case.id for case in SHORTENINGS}) == len({case.text for case in SHORTENINGS}) == 75
    assert (
        len({question.question for question in questions})
        == len({question.qid for question in questions})
        == 200
    )


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: segment.id)
def test_labels_agree_with_their_segment(segment: LabelledSegment) -> None:
    """Keywords, rejected strings and the statement occur in the text, and the statement fits in half of it."""
    folded = segment.text.casefold()
    assert 15 <= len(segment.text) <= 250
    accepted = {spelling.casefold() for spellings in segment.keywords for spelling in spellings}
    for spellings in segment.keywords:
        assert any(spelling.casefold() in folded for spelling in spellings), spellings
    assert 1 <= len(segment.never) <= 4
    for rejected in segment.never:
        assert rejected.casefold() in folded, rejected
        assert rejected.casefold() not in accepted, rejected
    if segment.is_filler:
        assert not segment.statement
        assert not segment.misleading
        return
    assert 3 <= len(segment.keywords) <= 5
    assert segment.statement
    assert segment.keeps_statement(segment.text)
    assert segment.keeps_statement(statement_of(segment))
    assert len(statement_of(segment)) <= len(segment.text) // 2


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: segment.id)
def test_the_text_and_its_statement_do_not_mislead(segment: LabelledSegment) -> None:
    """Neither the whole text nor its statement counts as misleading; each case uses words of the text only."""
    assert not segment.misleads(segment.text)
    assert not segment.misleads(statement_of(segment))
    words = set(words_of(segment.text))
    for case in segment.misleading:
        assert case.has
        for part in (*case.has, *case.lacks):
            assert set(words_of(part)) <= words, part


def test_relations_have_a_name_of_the_closed_list() -> None:
    """About 80 segments or more have a relation, every name occurs, and every entity is a keyword of its segment."""
    assert sum(bool(segment.relations) for segment in SEGMENTS) >= 80
    for lang in LANGUAGES:
        names = Counter(
            relation.name for segment in SEGMENTS if segment.lang == lang for relation in segment.relations
        )
        assert set(names) == set(RELATION_NAMES[lang])
        assert min(names.values()) >= 5
    for segment in SEGMENTS:
        for relation in segment.relations:
            assert segment.keyword_index(relation.entity) is not None, (segment.id, relation)
            assert relation.entity in segment.text


def test_fillers_are_a_tenth() -> None:
    """Some 30 segments are courtesies, assent or pure questions, as many in each language."""
    fillers = Counter(segment.lang for segment in SEGMENTS if segment.is_filler)
    assert fillers == {"en": 15, "zh": 15}


@pytest.mark.parametrize("case", SHORTENINGS, ids=lambda case: case.id)
def test_shortenings_only_drop_words(case: Shortening) -> None:
    """Each version fits its length, keeps the order of the words and takes all of them from the version before."""
    assert case.half
    assert len(case.half) <= len(case.text) // 2
    assert len(case.quarter) <= len(case.text) // 4
    assert is_within(words_of(case.half), words_of(case.text))
    assert is_within(words_of(case.quarter), words_of(case.half))
    assert case.quarter or case.source == "specification"


def test_segments_cover_their_message() -> None:
    """The segments of a message are its text, cut between sentences, without a gap."""
    for case in read_segmentations():
        separator = " " if case.lang == "en" else ""
        assert separator.join(case.segments) == case.text
    cuts = Counter(len(case.segments) > 1 for case in read_segmentations())
    assert min(cuts.values()) >= 12


def test_a_label_accepts_what_it_should() -> None:
    """Matching ignores case and respects word boundaries; a lost negation misleads and a kept one does not."""
    assert contains_in_order("We chose Postgres", ["we", "postgres"])
    assert not contains_in_order("Postgres chose us", ["chose", "Postgres"])
    assert not contains_in_order("I saw an artist", ["art"])
    assert contains_in_order("采用JWT方案", ["JWT", "方案"])
    lost = Misleading(has=("decided", "migrate"), lacks=("not",))
    assert lost.matches("we decided to migrate")
    assert not lost.matches("we decided not to migrate")
    assert words_of("她说3.4，Don't!") == ["她", "说", "3.4", "don't"]


def test_no_text_of_a_public_set() -> None:
    """No eight words in a row of the written data occur in a public set that may not be committed."""
    ours = {gram: name for name, text in _written_texts() for gram in _grams(text)}
    compared = 0
    for name in sorted(set(PUBLIC) - TOGETHER):
        corpora = read_set(name, default_folder())
        if isinstance(corpora, MissingSet):
            continue
        compared += 1
        for corpus in corpora:
            for text in [turn.text for turn in corpus.turns] + [
                question.text for question in corpus.questions
            ]:
                common = [(ours[gram], " ".join(gram)) for gram in _grams(text) if gram in ours]
                assert not common, (name, common)
    if not compared:
        pytest.skip(f"none of {', '.join(sorted(set(SETS.values())))} is in {default_folder()}")


def _written_texts() -> Iterator[tuple[str, str]]:
    yield from ((segment.id, segment.text) for segment in SEGMENTS)
    yield from ((case.id, case.text) for case in SHORTENINGS if case.source == "written")
    yield from ((case.id, case.text) for case in read_segmentations())
    yield from ((question.qid, question.question) for question in read_unanswerable())


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    words = words_of(text)
    return zip(*(words[start:] for start in range(GRAM)), strict=False)
