"""Joined conversations: two people, sessions in order of time, and the evidence of every question."""

from __future__ import annotations

from benchmarks.long_conversations import NAMES, can_be_joined, joined
from benchmarks.recall_data import Corpus, Question, Turn, read_own

LATE = Corpus(
    "friends_en",
    "late",
    False,
    (
        Turn("1", "s", "Dr Halloran", "Mere, the fridge failed.", 300),
        Turn("2", "s", "Mere", "Tell Halloran's neighbour, Merely.", 301),
        Turn("3", "s", "Pania", "I did.", 302),
        Turn("4", "s", "Dr Halloran", "Thanks.", 303),
        Turn("5", "s", "Mere", "Fine.", 304),
    ),
    (Question("q", "What did Dr Halloran tell Mere?", "single-hop", (frozenset({"1"}),)),),
)
EARLY = Corpus(
    "friends_en",
    "early",
    False,
    (
        Turn("1", "s", "Ann", "Hi Bob.", 100),
        Turn("2", "s", "Bob", "Hi.", 101),
        Turn("3", "t", "Ann", "Still here?", 900),
    ),
    (),
)


def test_joined_conversations_are_of_two_people_in_order_of_time() -> None:
    """Main speakers are renamed in speakers, talk and questions, by whole words; sessions follow each other in time."""
    whole = joined([LATE, EARLY])
    first, second = NAMES
    assert [turn.timestamp_ms for turn in whole.turns] == [100, 101, 300, 301, 302, 303, 304, 900]
    assert [turn.speaker for turn in whole.turns] == [
        first,
        second,
        first,
        second,
        "Pania",
        first,
        second,
        first,
    ]
    assert [turn.text for turn in whole.turns[:4]] == [
        f"Hi {second}.",
        "Hi.",
        f"{second}, the fridge failed.",
        f"Tell {first}'s neighbour, Merely.",
    ]
    (question,) = whole.questions
    assert question.text == f"What did {first} tell {second}?"
    (evidence,) = (turn for turn in whole.turns if turn.turn_id in question.gold[0])
    assert evidence.text == f"{second}, the fridge failed."


def test_only_english_conversations_between_people_are_joined() -> None:
    """A talk with an assistant has roles, and Chinese names also occur in part."""
    by_id = {corpus.corpus_id: can_be_joined(corpus) for corpus in read_own("work_and_assistant")}
    assert by_id["work_and_assistant-01"]
    assert not by_id["work_and_assistant-06"] and not by_id["work_and_assistant-09"]
    assert not any(map(can_be_joined, read_own("friends_zh")))
