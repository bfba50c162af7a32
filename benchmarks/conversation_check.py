"""Check the judged conversations in `conversations/`: form, evidence, and overlap with public benchmarks.

Run with `python -m benchmarks.conversation_check`. It prints every problem, then the numbers of conversations, turns
and questions of each file. The overlap check reads the public sets, which are not part of this project, and is
skipped where they are missing.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.recall_data import default_folder

FOLDER = Path(__file__).with_name("conversations")

CATEGORIES = frozenset({"single-hop", "multi-hop", "temporal", "open-domain", "unanswerable"})
MIN_TURNS, MAX_TURNS = 60, 120
MIN_SESSIONS, MAX_SESSIONS = 4, 9
MIN_QUESTIONS = 30
LONGEST_STEP = timedelta(minutes=30)
NGRAM = 8
COMMON_PHRASES = frozenset[str]()
"""Shared n-grams that are everyday speech, each checked by a reader."""

Document = Mapping[str, Any]


def read_documents(path: Path) -> list[Document]:
    """Return the conversations of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def conversation_files(folder: Path = FOLDER) -> list[Path]:
    """Return the files with conversations, in order of their names."""
    return sorted(folder.glob("*.jsonl"))


def problems(document: Document) -> list[str]:
    """Return what is wrong with the form or the evidence of a conversation."""
    name, found = document["corpus_id"], []
    turns, questions = document["turns"], document["questions"]
    sessions = {turn["session_id"] for turn in turns}
    if document["dataset"] != "ebbtide" or document["lang"] not in {"en", "zh"}:
        found.append("unknown dataset or language")
    if not MIN_TURNS <= len(turns) <= MAX_TURNS:
        found.append(f"{len(turns)} turns")
    if not MIN_SESSIONS <= len(sessions) <= MAX_SESSIONS:
        found.append(f"{len(sessions)} sessions")
    if len({turn["speaker"] for turn in turns}) < 2:
        found.append("one speaker only")
    if len(questions) < MIN_QUESTIONS:
        found.append(f"{len(questions)} questions")
    found += _problems_of_turns(turns)
    for question in questions:
        found += _problems_of_question(question, {turn["turn_id"] for turn in turns}, turns[-1]["timestamp"])
    texts = [turn["text"] for turn in turns if len(_tokens(turn["text"])) > NGRAM]
    for text in _repeated(texts) + _repeated([question["question"] for question in questions]):
        found.append(f"repeated text: {text}")
    return [f"{name}: {problem}" for problem in found]


def _problems_of_turns(turns: Sequence[Mapping[str, str]]) -> list[str]:
    found = [f"turn id twice: {turn_id}" for turn_id in _repeated([turn["turn_id"] for turn in turns])]
    for turn in turns:
        if not turn["turn_id"].startswith(turn["session_id"] + ":") or not turn["text"].strip():
            found.append(f"{turn['turn_id']}: id does not belong to its session, or no text")
    for before, after in pairwise(turns):
        step = datetime.fromisoformat(after["timestamp"]) - datetime.fromisoformat(before["timestamp"])
        in_one_session = before["session_id"] == after["session_id"]
        if step < timedelta(0) or (in_one_session and step > LONGEST_STEP):
            found.append(f"{after['turn_id']}: {step} after the turn before it")
    return found


def _problems_of_question(question: Mapping[str, Any], known: set[str], last: str) -> list[str]:
    qid, category, gold = question["qid"], question["category"], question["gold"]
    found = []
    if category not in CATEGORIES:
        found.append(f"{qid}: unknown category {category}")
    if (category == "unanswerable") != (not gold) or not all(gold):
        found.append(f"{qid}: {category} with gold {gold}")
    if category == "multi-hop" and len({tuple(group) for group in gold}) < 2:
        found.append(f"{qid}: multi-hop with one group of evidence")
    if unknown := {turn_id for group in gold for turn_id in group} - known:
        found.append(f"{qid}: unknown turns {sorted(unknown)}")
    if question["timestamp"] <= last:
        found.append(f"{qid}: asked before the end of the conversation")
    if not question["question"].strip() or not question["answer"].strip():
        found.append(f"{qid}: no question or no answer")
    return found


def repeated_across(documents: Sequence[Document]) -> list[str]:
    """Return ids, and texts longer than an n-gram, that two conversations share."""
    names = [document["corpus_id"] for document in documents]
    names += [question["qid"] for document in documents for question in document["questions"]]
    texts = [text for document in documents for text in {*_texts(document)} if len(_tokens(text)) > NGRAM]
    return _repeated(names) + _repeated(texts)


def overlap(documents: Sequence[Document], public: Path) -> dict[str, str]:
    """Return the n-grams that conversations share with public sets, and the public text of each."""
    ours = {gram for document in documents for text in _texts(document) for gram in _ngrams(text)}
    shared: dict[str, str] = {}
    for path in sorted(public.glob("*.jsonl")):
        for other in read_documents(path):
            for text in _texts(other):
                shared |= dict.fromkeys(
                    ours & set(_ngrams(text)) - COMMON_PHRASES, f"{path.name}: {text[:100]}"
                )
    return shared


def _texts(document: Document) -> Iterator[str]:
    yield from (turn["text"] for turn in document["turns"])
    for question in document["questions"]:
        yield from (str(question["question"]), str(question["answer"]))


def _tokens(text: str) -> list[str]:
    """Return words and single Chinese characters, without punctuation."""
    return re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+", text.lower())


def _ngrams(text: str) -> Iterator[str]:
    tokens = _tokens(text)
    return (" ".join(tokens[start : start + NGRAM]) for start in range(len(tokens) - NGRAM + 1))


def _repeated(values: Sequence[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def main() -> int:
    """Print problems and counts; return 1 if there is a problem."""
    documents_of = {path.name: read_documents(path) for path in conversation_files()}
    every = [document for documents in documents_of.values() for document in documents]
    found = [problem for document in every for problem in problems(document)]
    found += [f"repeated: {value}" for value in repeated_across(every)]
    found += [f"shared with {where}: {gram}" for gram, where in overlap(every, default_folder()).items()]
    print(*found, sep="\n")
    for name, documents in documents_of.items():
        turns = sum(len(document["turns"]) for document in documents)
        by_language = Counter(document["lang"] for document in documents)
        by_category = Counter(
            question["category"] for document in documents for question in document["questions"]
        )
        total = f"{len(documents)} conversations, {turns} turns, {by_category.total()} questions"
        print(f"{name}: {total}; {dict(by_language)}; {dict(by_category)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
