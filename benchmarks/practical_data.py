"""Read the personas of the practical set and check that their references are valid.

A file contains one JSON object a line: the persona, then its turns and requests to forget in the order in which they
happened, then its questions. The data card `practical/README.md` describes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("practical")
TINY = Path(__file__).with_name("practical_tiny.jsonl")

UNANSWERED = frozenset({"unanswerable", "forgotten"})
KINDS = UNANSWERED | {
    "stable",
    "present",
    "former",
    "time",
    "count",
    "preference",
    "person",
    "assistant",
    "cross-language",
    "hypothetical",
    "same-name",
}


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message of the user or the assistant."""

    turn_id: str
    role: str
    text: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PracticalQuestion:
    """A question, its evidence, and what the text of a right answer contains."""

    qid: str
    kind: str
    text: str
    gold: tuple[frozenset[str], ...]
    """Groups of turns. Any turn of a group is evidence of the same fact; every group is needed."""
    must_contain: tuple[tuple[str, ...], ...]
    """Groups of phrases. The text must contain one of each group."""
    must_not_first: frozenset[str]
    """Outdated turns, turns about a namesake and earlier questions: none may rank before the evidence."""
    must_not_contain: tuple[str, ...]
    """Phrases of what was forgotten."""


@dataclass(frozen=True, slots=True)
class Persona:
    """The messages of one person and the assistant, and the questions about them."""

    name: str
    turns: tuple[Utterance, ...]
    forgets: Mapping[str, list[dict[str, Any]]]
    """Bodies of forget requests by the id of the turn after which they are sent."""
    questions: tuple[PracticalQuestion, ...]

    @property
    def pairs(self) -> list[tuple[Utterance, ...]]:
        """Each message of the user with the assistant's reply."""
        return [self.turns[begin : begin + 2] for begin in range(0, len(self.turns), 2)]


def read_persona(path: Path) -> Persona:
    """Read a persona. Raise ValueError if a question or a request to forget names a turn that does not exist."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    turns = {record["turn_id"]: _utterance(record) for record in records if "turn_id" in record}
    forgets: dict[str, list[dict[str, Any]]] = {}
    questions = []
    for record in records:
        if "forget_after" in record:
            _check(path, turns, [record["forget_after"], *record.get("turns", ())])
            forgets.setdefault(record["forget_after"], []).extend(_forget_bodies(record, turns))
        elif "qid" in record:
            question = _question(record)
            _check(path, turns, question.must_not_first.union(*question.gold))
            questions.append(question)
    return Persona(records[0]["persona"], tuple(turns.values()), forgets, tuple(questions))


def _check(path: Path, turns: Mapping[str, Utterance], named: Iterable[str]) -> None:
    if unknown := sorted(set(named) - turns.keys()):
        raise ValueError(f"{path.name}: unknown turns {', '.join(unknown)}")


def _utterance(record: Mapping[str, Any]) -> Utterance:
    sent = datetime.fromisoformat(record["timestamp"]).replace(tzinfo=UTC)
    return Utterance(record["turn_id"], record["role"], record["text"], round(sent.timestamp() * 1000))


def _forget_bodies(record: Mapping[str, Any], turns: Mapping[str, Utterance]) -> list[dict[str, Any]]:
    """Return one request for a topic, or one for each turn, which its time identifies."""
    if "topic" in record:
        return [{"topic": record["topic"]}]
    times = [turns[turn_id].timestamp_ms for turn_id in record["turns"]]
    return [{"time_range": {"begin": time, "end": time + 1}} for time in times]


def _question(record: Mapping[str, Any]) -> PracticalQuestion:
    return PracticalQuestion(
        qid=record["qid"],
        kind=record["kind"],
        text=record["question"],
        gold=tuple(frozenset(group) for group in record["gold"]),
        must_contain=tuple(tuple(group) for group in record["must_contain"]),
        must_not_first=frozenset(record["must_not_first"]),
        must_not_contain=tuple(record.get("must_not_contain", ())),
    )
