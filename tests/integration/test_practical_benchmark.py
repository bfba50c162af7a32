"""The practical benchmark runs through a real daemon. No test judges the product's figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.practical import RIGHT, TOTAL
from benchmarks.practical_data import TINY, read_persona
from tests.support.quick_benchmark import run_quickly

TIMEOUT_S = 120


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("column", ["off, requests", "rules, tools"])
def test_the_short_form_runs(tmp_path: Path, column: str) -> None:
    """A run stores the messages, deletes what is to be forgotten, asks every question and cites the turns."""
    extraction, through = column.split(", ")
    path = tmp_path / "practical.json"
    options = {"--json": path, "--embedder": "off", "--extraction": extraction, "--through": through}
    done = run_quickly("benchmarks.practical", options, TIMEOUT_S - 20)
    document = json.loads(path.read_text(encoding="utf-8"))
    persona = read_persona(TINY)
    judged = {one["qid"]: one for one in document["questions"]}
    assert list(judged) == [one.qid for one in persona.questions]
    assert any(one["turn_ids"] for one in judged.values()), "sources name turns"
    for question in persona.questions:
        if question.kind == "forgotten":
            assert judged[question.qid]["verdict"] == RIGHT
    rows = {(row["kind"], row["persona"]): row for row in document["rows"]}
    assert rows[TOTAL, TOTAL]["questions"] == len(persona.questions)
    assert {row["column"] for row in document["rows"]} == {column}
    assert TOTAL in done.stdout
