"""The practical set is valid, and its verdicts follow from the first memories of a response alone."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.practical import (
    DEV,
    MAX_TOKENS,
    MAX_UNANSWERABLE_TOKENS,
    NO_ANSWER,
    NO_EVIDENCE,
    NOT_FORGOTTEN,
    PART,
    RIGHT,
    STALE_FIRST,
    TOO_LONG,
    TOTAL,
    Judged,
    count_tokens,
    first_memories,
    judge,
    rows_of,
)
from benchmarks.practical_data import (
    FOLDER,
    KINDS,
    TINY,
    UNANSWERED,
    PracticalQuestion,
    read_persona,
)
from benchmarks.practical_ways import MAX_MEMORIES, Memory

FILES = sorted(FOLDER.glob("*.jsonl"))
WEEK_MS = 7 * 86_400_000


def question(
    gold: tuple[frozenset[str], ...] = (frozenset({"t3"}),),
    must_contain: tuple[tuple[str, ...], ...] = (("Hull", "赫尔"),),
    must_not_first: frozenset[str] = frozenset({"t1"}),
    must_not_contain: tuple[str, ...] = (),
) -> PracticalQuestion:
    """Return a question about the present home: t3 is current, t1 is outdated."""
    return PracticalQuestion(
        "q", "present", "Where do I live?", gold, must_contain, must_not_first, must_not_contain
    )


NEW = Memory("[Memory] user: We moved to hull.", ("t3",))
OLD = Memory("[Memory] user: I live in York.", ("t1",))
TALK = Memory("[Memory] user: good night", ("t5",))


@pytest.mark.parametrize(
    ("memories", "verdict"),
    [
        ([NEW, OLD], RIGHT),
        ([TALK, NEW], RIGHT),
        ([OLD, NEW], STALE_FIRST),
        ([OLD, TALK], NO_EVIDENCE),
        ([], NO_EVIDENCE),
        ([Memory("[Memory] user: We moved.", ("t3",))], NO_ANSWER),
        ([Memory("[Memory] user: York, then Hull", ("t1", "t3"))], RIGHT),
    ],
)
def test_an_answer_needs_evidence_text_and_order(memories: list[Memory], verdict: str) -> None:
    """A right answer cites the evidence, contains the phrase in any case, and ranks nothing outdated before it."""
    assert judge(question(), memories) == verdict


def test_every_group_of_evidence_is_needed() -> None:
    """A sum is right only with all its parts; part of them has a verdict of its own."""
    sum_up = question(gold=(frozenset({"t3", "t9"}), frozenset({"t5"})))
    assert judge(sum_up, [NEW, TALK]) == RIGHT
    assert judge(sum_up, [NEW]) == PART


def test_an_unanswerable_question_wants_silence() -> None:
    """Without evidence in the conversation, only a short response is right, in either language."""
    nothing = question(gold=(), must_contain=())
    assert judge(nothing, []) == RIGHT
    assert judge(nothing, [Memory("x" * 4 * (MAX_UNANSWERABLE_TOKENS - 1), ())]) == RIGHT
    assert judge(nothing, [Memory("x" * 4 * MAX_UNANSWERABLE_TOKENS, ())]) == TOO_LONG
    assert judge(nothing, [Memory("月" * MAX_UNANSWERABLE_TOKENS, ())]) == TOO_LONG


def test_forgotten_text_must_not_return() -> None:
    """A long response is allowed after a deletion, a phrase of the deleted text is not."""
    gone = question(gold=(), must_contain=(), must_not_contain=("york",))
    assert judge(gone, [NEW, Memory("x" * 500, ())]) == RIGHT
    assert judge(gone, [NEW, OLD]) == NOT_FORGOTTEN


def test_only_the_first_memories_count() -> None:
    """Five memories count, fewer if they exceed the token budget; the first one always counts."""
    assert len(first_memories([TALK] * (MAX_MEMORIES + 1))) == MAX_MEMORIES
    long = Memory("十" * MAX_TOKENS, ("t1",))
    assert first_memories([long, NEW]) == [long]
    assert first_memories([NEW, long]) == [NEW]
    assert count_tokens("十二 abc") == 3


def test_totals_add_up() -> None:
    """Each question counts in its column, kind and persona and in all totals of its column."""
    judged = [
        Judged("off", "ann", "1", "time", "?", RIGHT, "", []),
        Judged("off", "ann", "2", "count", "?", PART, "", []),
        Judged("off", "bob", "3", "time", "?", NO_EVIDENCE, "", []),
        Judged("rules", "bob", "3", "time", "?", RIGHT, "", []),
    ]
    rows = {(row["kind"], row["persona"]): row for row in rows_of(judged) if row["column"] == "off"}
    assert (rows["time", TOTAL]["right"], rows["time", TOTAL]["questions"]) == (1, 2)
    assert rows[TOTAL, "ann"]["verdicts"] == {RIGHT: 1, PART: 1}
    assert rows["count", "bob"]["questions"] == 0
    assert rows[TOTAL, TOTAL]["questions"] == 3


# --- the data ------------------------------------------------------------------------------------------------


def test_half_of_the_personas_are_held_out() -> None:
    """Misses may be read for every second persona, by name."""
    assert tuple(path.stem for path in FILES)[::2] == DEV


def test_the_set_is_complete() -> None:
    """At least four personas and 170 questions, with unique ids and every kind for every persona."""
    personas = [read_persona(path) for path in FILES]
    assert len(personas) >= 4
    assert all({one.kind for one in persona.questions} == KINDS for persona in personas)
    ids = [one.qid for persona in personas for one in persona.questions]
    assert len(set(ids)) == len(ids) >= 170


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_persona_is_ten_weeks_of_pairs(path: Path) -> None:
    """A persona has 150 turns over about ten weeks: the user and the assistant alternate, and times ascend."""
    persona = read_persona(path)
    assert persona.name == path.stem
    assert [turn.role for turn in persona.turns] == ["user", "assistant"] * 75
    times = [turn.timestamp_ms for turn in persona.turns]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert 9 * WEEK_MS < times[-1] - times[0] < 11 * WEEK_MS


@pytest.mark.parametrize("path", [*FILES, TINY], ids=lambda path: path.stem)
def test_every_question_can_be_answered(path: Path) -> None:
    """The phrases of an answer are in its evidence, unless a date is computed; forgotten phrases are deleted."""
    persona = read_persona(path)
    texts = {turn.turn_id: turn.text.casefold() for turn in persona.turns}
    for one in persona.questions:
        assert bool(one.gold) != (one.kind in UNANSWERED), one.qid
        assert bool(one.must_contain) == bool(one.gold), one.qid
        assert bool(one.must_not_contain) == (one.kind == "forgotten"), one.qid
        assert one.must_not_first.isdisjoint(frozenset().union(*one.gold)), one.qid
        evidence = " ".join(texts[turn_id] for group in one.gold for turn_id in group)
        if one.kind != "time":
            groups = [group for group in one.must_contain if not any(p.casefold() in evidence for p in group)]
            assert not groups, one.qid
    for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        for turn_id in record.get("turns", ()):
            del texts[turn_id]
    topics = [body["topic"] for bodies in persona.forgets.values() for body in bodies if "topic" in body]
    kept = " ".join(text for text in texts.values() if not any(topic.casefold() in text for topic in topics))
    for one in persona.questions:
        assert not any(phrase.casefold() in kept for phrase in one.must_not_contain), one.qid


def test_an_unknown_turn_is_an_error(tmp_path: Path) -> None:
    """A question about a turn that does not exist would always count as wrong, so reading the file fails."""
    path = tmp_path / "bad.jsonl"
    path.write_text(
        TINY.read_text(encoding="utf-8").replace('"gold": [["t', '"gold": [["x'), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="unknown turns"):
        read_persona(path)
