"""Conversations to digest: public ones where they are available, else synthetic ones.

Public: JSON lines with `turns` of `speaker` and `text`, in the folder that EBBTIDE_BENCH_DATA names, by default
`shared/bench` next to the checkout. They are not part of this project.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.texts import Writer
from tests.support.process import ROOT

TURNS_PER_BATCH = 10

FILES = {"English": "locomo.jsonl", "Chinese": "memdaily.jsonl"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, in batches."""

    name: str
    batches: list[list[Turn]]


def talk(language: str, turn_count: int, seed: int) -> Talk:
    """Return this many turns of a conversation in English or Chinese."""
    path = _folder() / FILES[language]
    if path.is_file():
        name, turns = path.stem, _public(path, turn_count)
    else:
        said = Writer(seed).turns(turn_count, chinese=language == "Chinese")
        name = "synthetic"
        turns = [Turn("Ann" if place % 2 else "Ben", text) for place, text in enumerate(said)]
    batches = [turns[begin : begin + TURNS_PER_BATCH] for begin in range(0, len(turns), TURNS_PER_BATCH)]
    return Talk(f"{language} ({name})", batches)


def _folder() -> Path:
    return Path(os.environ.get("EBBTIDE_BENCH_DATA") or ROOT.parent / "shared" / "bench")


def _public(path: Path, turn_count: int) -> list[Turn]:
    turns: list[Turn] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)["turns"]
            turns += [Turn(turn["speaker"], turn["text"]) for turn in found if turn["text"].strip()]
            if len(turns) >= turn_count:
                break
    return turns[:turn_count]
