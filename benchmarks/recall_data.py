"""Corpora with questions whose evidence is known, turn by turn: what the recall benchmark asks about.

One JSON object a line is one corpus: turns in the order they were said, and questions with gold groups of turn
ids; the members of a group state the same fact. The rule guarded here: a question is only ever asked of its own
corpus, and one without evidence is not asked at all.

The public sets are read where they lie and are no part of this project; `recall_tiny.jsonl` beside this file is
written for it. Deliberately not here: remembering (`recall_daemon.py`), what counts as found
(`recall_measures.py`).
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
"""Sets by the name they are asked for with, and their files."""

TOGETHER = frozenset({"locomo_together"})
"""Sets whose corpora are put into one agent: what one conversation tells must be found among all the others."""

PUBLIC = [name for name in SETS if name != "tiny"]

APART = {name: frozenset({"5-adversarial"}) for name in ("locomo", "locomo_together")}
"""Categories that are no part of a set's average: their questions ask for what nobody said."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody said something; in paragraph sets the speaker is a title."""

    turn_id: str
    session_id: str
    speaker: str
    text: str
    timestamp_ms: int | None

    @property
    def spoken(self) -> str:
        """The turn as it is indexed and counted: who said it is found like what was said."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its evidence: of each group any turn will do."""

    qid: str
    text: str
    category: str
    gold: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one agent remembers, and what it is asked."""

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
    """A set that cannot be asked, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} is skipped: {self.reason}"


def default_folder() -> Path:
    """Where the public sets are looked for: EBBTIDE_BENCH_DATA, else `shared/bench` beside the checkout."""
    return Path(os.environ.get("EBBTIDE_BENCH_DATA") or ROOT.parent / "shared" / "bench")


def read_set(name: str, folder: Path, limit: int | None = None) -> list[Corpus] | MissingSet:
    """Read the corpora of a set, or tell why there are none; `limit` is the most questions of a corpus."""
    path = TINY if name == "tiny" else folder / SETS[name]
    if not path.is_file():
        return MissingSet(name, f"there is no file {SETS[name]} in {folder} (--data names another folder)")
    with path.open(encoding="utf-8") as lines:
        corpora = [corpus_of(name, json.loads(line)) for line in lines if line.strip()]
    if name in TOGETHER:
        corpora = [together(corpora)]
    return [replace(corpus, questions=spread_out(corpus.questions, limit)) for corpus in corpora]


def corpus_of(set_name: str, told: Mapping[str, Any]) -> Corpus:
    """A corpus as its file tells it; questions without evidence and turns without text are left out."""
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
    """All corpora as one; ids of turns and sessions are told apart by their corpus."""
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
    """At most `limit` questions, taken evenly from first to last: categories stand together in some files."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


def groups_of(set_name: str, category: str) -> tuple[str, ...]:
    """The averages a question counts in: that of its category, and that of the set unless it stands apart."""
    is_apart = category in APART.get(set_name, ())
    return (f"{category} (apart)",) if is_apart else (WHOLE, category)


WHOLE = "all"
"""The average over a set, but for what stands apart."""
