"""Measure the relevance floor: `make eval-relevance`, or `python -m benchmarks.relevance --embedder off`.

A response to a question that the memory cannot answer should be empty. This command asks the questions of
`unanswerable.jsonl` and those with evidence in one process, as `train_fusion.py` does, and prints for several floors
the share of unanswerable questions whose response is empty or short, and the evidence that the floor loses.

`--fit` first fits the weights of the estimate, on the conversations of this project alone: questions with evidence
against questions of other conversations and of public sets of paragraphs, in memories of several sizes. It prints them
for `retrieval/profiles.py`, and the table is that of the new weights.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.labels import read_unanswerable
from benchmarks.practical_data import FOLDER as PERSONAS
from benchmarks.practical_data import read_persona
from benchmarks.recall_data import (
    APART,
    Corpus,
    MissingSet,
    Question,
    Turn,
    default_folder,
    read_own,
    read_set,
    spread_out,
    together,
)
from benchmarks.stored_vectors import EMBEDDERS, StoredVectors
from benchmarks.train_fusion import OWN, PARTS, VECTORS, Stand
from ebbtide.fleet.recall.relevant import is_only_courtesy
from ebbtide.retrieval.profiles import profile_of
from ebbtide.retrieval.ranking import rank
from ebbtide.retrieval.relevance import CANDIDATES, EVIDENCE, evidence
from ebbtide.settings import FleetSettings

FLOORS = (0.05, 0.1, 0.15, 0.2, 0.3)
SHORT = 200
"""Characters of a response that is short."""

PUBLIC = ("locomo", "memdaily", "memorybank_cn")
PARAGRAPHS = {False: ("hotpot", "musique"), True: ("cmrc",)}
"""Sets whose questions no conversation answers, by whether they are Chinese."""

QUESTIONS = {"locomo": 100, "memdaily": 12}
"""Most questions with evidence of a corpus, by set; 60 for the others."""

SMALL = (8, 14, 20, 40)
"""Turns of the memories that are parts of one conversation."""

WEIGHT_UNANSWERABLE = 0.7
PENALTY = 0.3
ROUNDS = 8
SEED = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was ranked: the evidence for each candidate, and the gold group of each (0 for none)."""

    set_name: str
    language: str
    kind: str
    """`evidence`, `unanswerable`, or `elsewhere` for a question that other conversations answer."""
    evidence: NDArray[np.float64]
    has_vectors: bool
    is_courtesy: bool
    groups: NDArray[np.int64]
    group_count: int
    characters: int
    """Characters of the candidates."""

    def found(self, most: int) -> float:
        """Return the share of the evidence that is in the first results."""
        return len(set(self.groups[:most].tolist()) - {0}) / max(self.group_count, 1)

    def relevance(self, weights: NDArray[np.float64]) -> float:
        """Return the relevance of the best candidate."""
        if self.is_courtesy or not len(self.evidence):
            return 0.0
        return float(1 / (1 + np.exp(-(self.evidence @ weights).max())))


def asked(stand: Stand, set_name: str, language: str, kind: str, question: Question) -> Asked:
    """Rank a question as recall does."""
    request = stand.asked(question.text)
    passages = rank(stand.shelf, stand.words, request, CANDIDATES).passages
    owners = [stand.owners[passage] for passage in passages.tolist()]
    groups = [
        next((number for number, group in enumerate(question.gold, 1) if owner in group), 0)
        for owner in owners
    ]
    return Asked(
        set_name,
        language,
        kind,
        evidence(stand.shelf, request, passages),
        request.semantic is not None,
        is_only_courtesy(question.text, request.asks_for),
        np.array(groups, dtype=np.int64),
        len(question.gold),
        sum(len(stand.texts[passage]) for passage in passages.tolist()),
    )


def without_evidence(text: str) -> Question:
    """Return a question that the memory does not answer."""
    return Question("", text, "", ())


def practical() -> list[Corpus]:
    """Return the personas of the practical set as corpora."""
    found = []
    for persona in map(read_persona, sorted(PERSONAS.glob("*.jsonl"))):
        turns = tuple(
            # A message and its reply are one conversation, as `benchmarks/practical.py` stores them.
            Turn(one.turn_id, str(place // 2), "", one.text, one.timestamp_ms, one.role)
            for place, one in enumerate(persona.turns)
        )
        questions = tuple(Question(one.qid, one.text, one.kind, one.gold) for one in persona.questions)
        with_evidence = tuple(one for one in questions if one.gold)
        found.append(Corpus("practical", persona.name, persona.name == "chenyu", turns, with_evidence))
    return found


def evaluated(folder: Path, stored: StoredVectors | None) -> Iterator[Asked]:
    """Ask the questions with evidence of all sets, and the unanswerable ones where the language fits."""
    corpora = [corpus for name in OWN for corpus in read_own(name)]
    for name in PUBLIC:
        read = read_set(name, folder)
        if isinstance(read, MissingSet):
            print(read)
        else:
            corpora += read[:8]
    for place, corpus in enumerate([*corpora, *practical()]):
        stand, language = Stand(corpus, stored), "Chinese" if corpus.is_chinese else "English"
        apart = APART.get(corpus.set_name, ())
        questions = [one for one in corpus.questions if one.category not in apart]
        for question in spread_out(questions, QUESTIONS.get(corpus.set_name, 60)):
            yield asked(stand, corpus.set_name, language, "evidence", question)
        if corpus.set_name in OWN and place % 6:
            continue
        for one in read_unanswerable():
            if (one.lang == "zh") == corpus.is_chinese:
                question = without_evidence(one.question)
                yield asked(stand, corpus.set_name, language, "unanswerable", question)


def learnt(folder: Path, stored: StoredVectors | None) -> Iterator[Asked]:
    """Ask the questions that weights are fitted on, in whole, merged and partial conversations."""
    chosen = random.Random(SEED)
    own = [corpus for name in OWN for corpus in read_own(name)]
    elsewhere = {is_chinese: _of_paragraphs(names, folder) for is_chinese, names in PARAGRAPHS.items()}
    memories = [(corpus, {corpus.corpus_id}) for corpus in own]
    for name in OWN:
        parts = [read_own(name)[part::PARTS] for part in range(PARTS)]
        memories += [(together(part), {one.corpus_id for one in part}) for part in parts]
    for place, corpus in enumerate(own):
        sizes = (SMALL[place % (len(SMALL) - 1)], SMALL[-1])
        memories += [(_part(corpus, size, place), {corpus.corpus_id}) for size in sizes]
    for corpus, ids in memories:
        stand, language = Stand(corpus, stored), "Chinese" if corpus.is_chinese else "English"
        questions = spread_out(corpus.questions, 18)
        for question in questions:
            yield asked(stand, corpus.set_name, language, "evidence", question)
        same, other = (
            [
                question.text
                for one in own
                if one.corpus_id not in ids and one.is_chinese == is_chinese
                for question in one.questions
            ]
            for is_chinese in (corpus.is_chinese, not corpus.is_chinese)
        )
        # Questions in another language share no words, so the vectors alone must tell them apart.
        for texts, share in ((same, 2), (elsewhere[corpus.is_chinese], 3), (other, 10)):
            for text in chosen.sample(texts, min(max(len(questions) // share, 1), len(texts))):
                yield asked(stand, corpus.set_name, language, "elsewhere", without_evidence(text))


def _of_paragraphs(names: Sequence[str], folder: Path) -> list[str]:
    read = [read_set(name, folder, 400) for name in names]
    return [
        question.text
        for corpora in read
        if not isinstance(corpora, MissingSet)
        for corpus in corpora
        for question in corpus.questions
    ]


def _part(corpus: Corpus, size: int, place: int) -> Corpus:
    """Return adjacent turns of a conversation, with the questions whose evidence is among them."""
    begin = place * 37 % max(len(corpus.turns) - size, 1)
    turns = corpus.turns[begin : begin + size]
    ids = {turn.turn_id for turn in turns}
    questions = tuple(one for one in corpus.questions if all(group & ids for group in one.gold))
    return replace(corpus, turns=turns, questions=questions)


def fitted(questions: Sequence[Asked], has_vectors: bool) -> NDArray[np.float64]:
    """Fit the weights by logistic regression on the best candidate of each question.

    Which candidate is the best depends on the weights, so both are computed in turn.
    """
    meaning = ("semantic", "window", "other script")
    used = np.array([name != "dates" and (has_vectors or name not in meaning) for name in EVIDENCE])
    kept = [one for one in questions if len(one.evidence) and one.has_vectors == has_vectors]
    answers = np.array([one.kind == "evidence" for one in kept], dtype=np.float64)
    counts = np.array(
        [one.found(10) if one.kind == "evidence" else WEIGHT_UNANSWERABLE for one in kept], dtype=np.float64
    )
    weights = np.array([float(name in ("words", "semantic")) for name in EVIDENCE]) * used
    penalties = np.where([name == "constant" for name in EVIDENCE], 1e-3, PENALTY)
    for _ in range(ROUNDS):
        rows = np.array([one.evidence[(one.evidence @ weights).argmax()] for one in kept])[:, used]
        weights = np.zeros(len(EVIDENCE))
        weights[used] = _regression(rows, answers, counts, penalties[used])
    return weights


def _regression(
    rows: NDArray[np.float64],
    answers: NDArray[np.float64],
    counts: NDArray[np.float64],
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        expected = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (counts * (expected - answers)) + penalties * weights
        curve = (rows * (counts * expected * (1 - expected))[:, None]).T @ rows + np.diag(penalties)
        weights -= np.linalg.solve(curve, slope)
    return weights


def show(questions: Sequence[Asked], weights: Mapping[bool, NDArray[np.float64]], console: Console) -> None:
    """Print for each floor the unanswerable questions without a long response, and the evidence that is lost."""
    relevant = [one.relevance(weights[one.has_vectors]) for one in questions]
    names = list(dict.fromkeys(one.set_name for one in questions))
    table = Table(title="Relevance floor: unanswerable questions answered with nothing, and R@10 (R@5) lost")
    table.add_column("floor", justify="right")
    for language in ("English", "Chinese"):
        table.add_column(f"{language}, nothing / < {SHORT} characters, %", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for floor in (0.0, *FLOORS):
        cells = []
        for language in ("English", "Chinese"):
            some = [
                (value < floor or not len(one.evidence), one.characters < SHORT)
                for one, value in zip(questions, relevant, strict=True)
                if one.kind == "unanswerable" and one.language == language
            ]
            shares = [np.mean([is_empty for is_empty, _ in some]), np.mean([any(two) for two in some])]
            cells.append(" / ".join(f"{100 * share:.0f}" for share in shares))
        for name in names:
            lost = [
                (one.found(10) * (value < floor), one.found(5) * (value < floor))
                for one, value in zip(questions, relevant, strict=True)
                if one.kind == "evidence" and one.set_name == name
            ]
            cells.append("{:.1f} ({:.1f})".format(*(100 * np.mean(lost, axis=0))))
        mark = " (default)" if floor == FleetSettings().min_relevance else ""
        table.add_row(f"{floor:.2f}{mark}", *cells)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit if requested, measure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="the folder of the public sets")
    parser.add_argument("--embedder", choices=[*EMBEDDERS, "off"], default="multilingual")
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="the folder that keeps vectors")
    parser.add_argument("--fit", action="store_true", help="fit the weights first, and print them")
    given = parser.parse_args(arguments)
    stored = None if given.embedder == "off" else StoredVectors(given.vectors, given.embedder)
    model = "" if stored is None else stored.model
    weights = {
        has_vectors: np.array(
            [(profile_of(name).relevance or {}).get(column, 0.0) for column in EVIDENCE], dtype=np.float64
        )
        for has_vectors, name in ((False, ""), (True, model))
    }
    if given.fit:
        new = fitted(list(learnt(given.data, stored)), stored is not None)
        weights[stored is not None] = new
        print(json.dumps({name: round(value, 2) for name, value in zip(EVIDENCE, new.tolist(), strict=True)}))
    show(list(evaluated(given.data, stored)), weights, Console(width=200))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
