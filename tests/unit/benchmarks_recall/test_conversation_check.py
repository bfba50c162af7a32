"""The judged conversations are well formed, share no text with public benchmarks, and the check finds defects."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conversation_check import (
    conversation_files,
    overlap,
    problems,
    read_documents,
    repeated_across,
)
from benchmarks.recall_data import default_folder

FILES = conversation_files()
DOCUMENTS = [document for path in FILES for document in read_documents(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_conversations_are_well_formed(path: Path) -> None:
    """Ids exist, times ascend, and every conversation has enough turns, sessions and questions."""
    documents = read_documents(path)
    assert documents
    assert [problem for document in documents for problem in problems(document)] == []


def test_no_conversation_repeats_another() -> None:
    """Ids are unique across files, and no longer text occurs in two conversations."""
    assert DOCUMENTS
    assert repeated_across(DOCUMENTS) == []


@pytest.mark.skipif(not list(default_folder().glob("*.jsonl")), reason="the public sets are not here")
def test_no_text_of_a_public_benchmark_occurs() -> None:
    """No turn, question or answer shares eight words in a row with a public set."""
    assert overlap(DOCUMENTS, default_folder()) == {}


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("unknown turns ['S99:1']", {"gold": [["S99:1"]]}),
    ("unknown category riddle", {"category": "riddle"}),
    ("with gold []", {"gold": [], "category": "single-hop"}),
    ("with gold [[]]", {"gold": [[]], "category": "single-hop"}),
    ("multi-hop with one group", {"gold": [["S1:1"]], "category": "multi-hop"}),
    ("asked before the end", {"timestamp": "2001-01-01T00:00:00"}),
    ("no question or no answer", {"answer": " "}),
]


@pytest.mark.parametrize(("message", "change"), BROKEN, ids=[message for message, _ in BROKEN])
def test_a_broken_question_is_found(message: str, change: dict[str, Any]) -> None:
    """Each defect of a question is reported under its own name."""
    document = deepcopy(DOCUMENTS[0])
    document["questions"][0].update(change)
    found = problems(document)
    assert len(found) == 1
    assert message in found[0]


def test_turns_out_of_order_and_missing_turns_are_found() -> None:
    """A step back in time, an id used twice, and a conversation that is too short are reported."""
    document = deepcopy(DOCUMENTS[0])
    document["turns"][5]["timestamp"] = "2001-01-01T00:00:00"
    assert any("after the turn before it" in problem for problem in problems(document))
    document = deepcopy(DOCUMENTS[0])
    document["turns"][1]["turn_id"] = document["turns"][0]["turn_id"]
    assert any("turn id twice" in problem for problem in problems(document))
    document = deepcopy(DOCUMENTS[0])
    del document["turns"][20:]
    assert any(problem.endswith(": 20 turns") for problem in problems(document))


@pytest.mark.parametrize("index", [0, -1], ids=["first", "last"])
def test_a_copied_text_is_found(tmp_path: Path, index: int) -> None:
    """Eight words or Chinese characters in a row that a public set contains are reported, punctuation aside."""
    copied = deepcopy(DOCUMENTS[index])
    longest = max((turn["text"] for turn in copied["turns"]), key=len)
    public = {"turns": [{"text": f"Well -- {longest.upper()}!"}], "questions": []}
    (tmp_path / "public.jsonl").write_text(json.dumps(public), encoding="utf-8")
    found = overlap([copied], tmp_path)
    assert found
    assert all(where.startswith("public.jsonl: ") for where in found.values())
    assert repeated_across([copied, copied])
