"""Corpora for the recall benchmark, with questions whose evidence is known turn by turn.

One JSON object per line is one corpus: turns in chronological order, and questions with gold groups of turn ids; the
members of a group state the same fact. The rule guarded here: a question is only put to its own corpus, and a
question without evidence is skipped.

The public sets are read in place and are not part of this project; `recall_tiny.jsonl` in this folder was written for
it. Other modules remember the corpora (`recall_daemon.py`) and score answers (`recall_measures.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.process import ROOT

TINY = Path(__file__).with_name("recall_tiny.jsonl")
OWN_FOLDER = Path(__file__).with_name("conversations")

SETS: dict[str, str] = {
    "locomo": "locomo.jsonl",
    "locomo_together": "locomo.jsonl",
    "longmemeval": "longmemeval_pq.jsonl",
    "memdaily": "memdaily.jsonl",
    "memorybank_cn": "memorybank_cn.jsonl",
    "cmrc": "cmrc.jsonl",
    "2wiki": "2wiki.jsonl",
    "hotpot": "hotpot_train.jsonl",
    "musique": "musique_train.jsonl",
    "tiny": TINY.name,
}
"""Names of sets, and their files."""

TOGETHER = frozenset({"locomo_together"})
"""Sets whose corpora share one agent: recall must find the facts of one conversation among all the others."""

PUBLIC = [name for name in SETS if name != "tiny"]

APART = {name: frozenset({"5-adversarial"}) for name in ("locomo", "locomo_together")}
"""Categories excluded from a set's average: their questions ask for things that were never said."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation. In sets of paragraphs, the speaker is a title."""

    turn_id: str
    session_id: str
    speaker: str
    text: str
    timestamp_ms: int | None
    role: str = "user"

    @property
    def spoken(self) -> str:
        """Return the turn as it is indexed and counted. The speaker is searchable like the text."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its evidence: one turn of each group is enough."""

    qid: str
    text: str
    category: str
    gold: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The turns that one agent remembers, and the questions about them."""

    set_name: str
    corpus_id: str
    is_chinese: bool
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def sessions(self) -> dict[str, list[Turn]]:
        """Turns by session, sessions in the order they began."""
        found: dict[str, list[Turn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session_id, []).append(turn)
        return found


@dataclass(frozen=True, slots=True)
class MissingSet:
    """A set that is not available, with the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} is skipped: {self.reason}"


def default_folder() -> Path:
    """Return the folder of the public sets: EBBTIDE_BENCH_DATA, else `shared/bench` next to the checkout."""
    return Path(os.environ.get("EBBTIDE_BENCH_DATA") or ROOT.parent / "shared" / "bench")


def read_set(name: str, folder: Path, limit: int | None = None) -> list[Corpus] | MissingSet:
    """Read the corpora of a set, or return why it is missing. `limit` is the maximum of questions per corpus."""
    path = TINY if name == "tiny" else folder / SETS[name]
    if not path.is_file():
        return MissingSet(name, f"there is no file {SETS[name]} in {folder} (--data names another folder)")
    with path.open(encoding="utf-8") as lines:
        corpora = [corpus_of(name, json.loads(line)) for line in lines if line.strip()]
    if name in TOGETHER:
        corpora = [together(corpora)]
    return [replace(corpus, questions=spread_out(corpus.questions, limit)) for corpus in corpora]


def read_own(name: str) -> list[Corpus]:
    """Read a set of the judged conversations of this project."""
    with (OWN_FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [corpus_of(name, json.loads(line)) for line in lines if line.strip()]


def corpus_of(set_name: str, told: Mapping[str, Any]) -> Corpus:
    """Decode a corpus from its file, without questions that lack evidence and turns that lack text."""
    turns = tuple(_turn(turn) for turn in told["turns"] if turn["text"].strip())
    known = {turn.turn_id for turn in turns}
    if len(known) < len(turns):
        raise ValueError(f"{set_name} {told['corpus_id']}: a turn id stands for two turns")
    questions = (_question(question) for question in told["questions"])
    return Corpus(
        set_name=set_name,
        corpus_id=told["corpus_id"],
        is_chinese=told["lang"] == "zh",
        turns=turns,
        questions=tuple(question for question in questions if question.gold),
    )


def together(corpora: Sequence[Corpus]) -> Corpus:
    """Merge all corpora into one. The corpus id prefixes the ids of turns and sessions."""
    turns = [
        replace(
            turn,
            turn_id=f"{corpus.corpus_id}/{turn.turn_id}",
            session_id=f"{corpus.corpus_id}/{turn.session_id}",
        )
        for corpus in corpora
        for turn in corpus.turns
    ]
    questions = [
        replace(
            question,
            gold=tuple(frozenset(f"{corpus.corpus_id}/{one}" for one in group) for group in question.gold),
        )
        for corpus in corpora
        for question in corpus.questions
    ]
    return replace(corpora[0], corpus_id="together", turns=tuple(turns), questions=tuple(questions))


def _turn(told: Mapping[str, Any]) -> Turn:
    return Turn(
        told["turn_id"],
        told["session_id"],
        told["speaker"],
        told["text"],
        _milliseconds(told["timestamp"]),
    )


def _question(told: Mapping[str, Any]) -> Question:
    gold = tuple(frozenset(group) for group in told["gold"] if group)
    return Question(told["qid"], told["question"], told["category"], gold)


def _milliseconds(timestamp: str) -> int | None:
    """ISO 8601 as ms since the epoch; times without a zone are taken as UTC."""
    if not timestamp:
        return None
    told = datetime.fromisoformat(timestamp)
    return round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1000)


def spread_out(questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """Return at most `limit` questions, evenly spaced, because some files group them by category."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


def groups_of(set_name: str, category: str) -> tuple[str, ...]:
    """Return the averages that a question counts in: its category, and the set unless the category is excluded."""
    is_apart = category in APART.get(set_name, ())
    return (f"{category} (apart)",) if is_apart else (WHOLE, category)


WHOLE = "all"
"""The average over a set, without excluded categories."""
