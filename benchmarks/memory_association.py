"""Associative recall through a running daemon: the share of a question's evidence that its words bring to mind.

Each conversation of LoCoMo is an agent and each session a batch, as in the benchmark of queries. The agent recalls
twice for each question: with its words, as the word index reads them, and with the keywords that the built-in model
takes from it. The daemon's explanation names the memories of an answer, and the nodes' sources name the turns that
they were made from.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients import KeepAlive
from benchmarks.processes import connected, running
from benchmarks.recall_daemon import PLAIN, remember
from benchmarks.recall_data import WHOLE, Corpus, Question, groups_of
from benchmarks.recall_measures import share_found
from benchmarks.report import Progress
from ebbtide.language.builtin.keywords import cue_keywords
from ebbtide.retrieval.analysis import words_of

DEPTHS = (10, 20, 100)
"""Ranks of turns down to which evidence is searched."""

HOPS = 2
PAGE_SIZE = 1000
EVERY = "every question"
WORDS, KEYWORDS = "words", "keywords"
CUES = (WORDS, KEYWORDS)


@dataclass(frozen=True, slots=True)
class Associated:
    """A question and the share of its evidence among the first turns, by rank."""

    groups: tuple[str, ...]
    found: dict[tuple[str, int], float]
    """By cue and rank."""


def cues_of(questions: Sequence[Question]) -> list[dict[str, list[str]]]:
    """Return the cues of each question: its words, and the keywords that the built-in model takes from it."""
    return [
        {WORDS: list(dict.fromkeys(words_of(one.text))), KEYWORDS: list(cue_keywords(one.text))}
        for one in questions
    ]


def turns_of_nodes(client: KeepAlive, agent: str) -> dict[str, list[str]]:
    """Return the turns that each memory of an agent was made from."""
    turns: dict[str, list[str]] = {}
    token = ""
    while True:
        page = client.told("GET", f"/v1/agents/{agent}/nodes?page_size={PAGE_SIZE}&page_token={token}")
        for node in page["nodes"]:
            turns[node["id"]] = [source["message_id"] for source in node["sources"]]
        token = page["next_page_token"]
        if not token:
            return turns


def associated(client: KeepAlive, corpora: Sequence[Corpus], progress: Progress) -> Iterator[Associated]:
    """Remember corpora and recall by the cues of each question."""
    for number, corpus in enumerate(corpora):
        agent = f"association-{number}"
        progress(f"{corpus.set_name} {corpus.corpus_id}: remembering, {len(corpus.questions)} questions")
        remember(client, agent, corpus, PLAIN)
        turns = turns_of_nodes(client, agent)
        for question, cues in zip(corpus.questions, cues_of(corpus.questions), strict=True):
            found = {}
            for cue, keywords in cues.items():
                places = _recalled(client, agent, keywords, turns)
                found |= {(cue, depth): share_found(places[:depth], question.gold) for depth in DEPTHS}
            yield Associated((EVERY, *groups_of(corpus.set_name, question.category)), found)
        client.told("POST", f"/v1/agents/{agent}/close")


def _recalled(client: KeepAlive, agent: str, keywords: list[str], turns: dict[str, list[str]]) -> list[str]:
    body = {"keywords": keywords, "mode": "associative", "depth": HOPS, "explain": True}
    answer = client.told("POST", f"/v1/agents/{agent}/recall", body)
    memories = (memory["id"] for memory in answer["explanation"]["memories"])
    return list(dict.fromkeys(turn_id for memory in memories for turn_id in turns[memory]))


def measure(corpora: Sequence[Corpus], work: Path, progress: Progress) -> list[dict[str, object]]:
    """Return the average shares by group of questions, measured through a daemon without vectors."""
    with running(work / "association", {"EMBEDDING__MODEL": "off"}) as daemon, connected(daemon) as client:
        results = list(associated(client, corpora, progress))
    groups = dict.fromkeys(group for one in results for group in one.groups)
    rows: list[dict[str, object]] = []
    for group in sorted(groups, key=lambda group: (group != EVERY, group != WHOLE, group)):
        members = [one for one in results if group in one.groups]
        for cue in CUES:
            shares = {
                f"R@{depth}": statistics.fmean(one.found[cue, depth] for one in members) for depth in DEPTHS
            }
            rows.append({"group": group, "cue": cue, "questions": len(members), **shares})
    return rows
