"""The benchmark of the memory model in its quick form: promises that every talk keeps, in a short one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.memory_association import CUES
from benchmarks.memory_observers import WHOLE
from benchmarks.memory_talk import ALLERGIES, COMES_BACK, COURSES, DISCUSSED, LANGUAGES, ONCE, facts, talk
from tests.support.quick_benchmark import run_quickly

TIMEOUT_S = 200


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT_S)
def test_the_short_form_keeps_the_promises(tmp_path: Path) -> None:
    """Living memories are found by their own first keyword, facts are whole after a few batches, pins are found."""
    path = tmp_path / "memory.json"
    done = run_quickly("benchmarks.memory_curves", {"--json": path}, TIMEOUT_S - 20)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert {(row["language"], row["lag"]) for row in document["reach"]} == {
        (language, lag) for language in LANGUAGES for lag in (5, 20)
    }
    for row in document["reach"]:
        assert row["found"] == row["asked"] > 0, row
    assert all(row["living"] == row["made"] > 0 for row in document["living"]), "young memories live"
    assert [row["course"] for row in document["survival"] if row["age"] == 25] == [*COURSES, *COURSES]
    assert all(row[WHOLE] == 1 for row in document["survival"])
    answers = {(row["language"], row["how"], row["age"]): row["answer"] for row in document["allergy"]}
    for language in LANGUAGES:
        for how in ("pinned", "said once"):
            assert ALLERGIES[language][0] in answers[language, how, 25]
    found = [row for row in document["association"] if row["group"] == "all"]
    assert [row["cue"] for row in found] == list(CUES)
    for row in found:
        assert 0.5 < row["R@10"] <= row["R@20"] <= row["R@100"] <= 1, (
            "words of a question recall its evidence"
        )
    assert "Reach" in done.stdout


def test_the_courses_of_facts_differ() -> None:
    """A fact of each course has its mentions, in both languages, and all have names of their own."""
    for language in LANGUAGES:
        found = facts(language)
        assert {course: sum(one.course == course for one in found) for course in COURSES} == dict.fromkeys(
            COURSES, 8
        )
        assert len({one.name for one in found}) == len(found)
        mentions = {one.course: list(one.mentions(60)) for one in found}
        assert mentions[ONCE] == [] and mentions[COMES_BACK] == [20, 40, 60]
        assert mentions[DISCUSSED][0] == 8 and mentions[DISCUSSED][-1] == 160
        assert all(
            one.name in one.mention(place) and one.name in one.fact for one in found for place in range(3)
        )


def test_talk_comes_in_small_batches(tmp_path: Path) -> None:
    """Without the public sets the project's own talk is used, with one to three messages a batch."""
    for language in LANGUAGES:
        name, batches = talk(language, tmp_path, is_own=False, seed=2)
        assert name.startswith("friends_")
        assert {len(batch) for batch in batches} == {1, 2, 3}
        assert [len(batch) for batch in talk(language, tmp_path, is_own=True, seed=3)[1]] != [
            len(batch) for batch in batches
        ]
