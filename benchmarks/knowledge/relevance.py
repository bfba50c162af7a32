"""Questions to agents with statements: the share of right statements among the first five.

The labels are `data/relevance.jsonl`, over the statements in `data/relevance_statements.jsonl`, and the further sets.
Each agent gets its statements through the operation that stores them, with the built-in model and embedder.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.knowledge.sets import (
    CUTOFF,
    SEARCH_TIME,
    BankStatement,
    RelevanceQuestion,
    read_bank,
    read_questions,
)
from benchmarks.knowledge.table import Row
from ebbtide.daemon import opened
from ebbtide.errors import EbbtideError
from ebbtide.settings import load_settings
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.links import CreateLinkRequest, create_link
from ebbtide.verbs.service import Service
from ebbtide.verbs.statement_search import SearchStatementsRequest, search_statements
from ebbtide.verbs.statements import CreateStatementRequest, create_statement

BAR = 0.80
BAR_OF_NOTHING = 0.70
"""Least share of the questions without an answer to which nothing is found."""

SEEN, SECOND, HELD_OUT = "relevance", "relevance_second", "relevance_held_out"
"""The two sets with which the search was developed, and the one that gives only a score."""
UNANSWERABLE = "relevance_unanswerable"
"""Further questions to the agents of the first set that no statement answers."""

TITLES = {SEEN: "", SECOND: ", second set", HELD_OUT: ", held out"}
"""The sets, with what their rows are called."""

Scores = dict[str, list[float]]


async def _store(service: Service, bank: Sequence[BankStatement]) -> dict[str, str]:
    """Store the statements. Return the id of each by its label."""
    ids: dict[str, str] = {}
    for one in bank:
        request = CreateStatementRequest(
            agent_id=one.agent,
            subject=one.subject,
            topic=one.slot,
            object=one.object or "",
            kind=one.memory_type,
            content=one.quote,
            negated=one.negated,
            timestamp=one.told_at,
            since=one.since,
        )
        ids[one.id] = (await create_statement(service, request)).id
    for one in bank:
        if one.link is not None and ids[one.id] != ids[one.link.target]:
            await create_link(
                service,
                CreateLinkRequest(
                    agent_id=one.agent,
                    source=ids[one.id],
                    target=ids[one.link.target],
                    relation=one.link.relation_type,
                ),
            )
    return ids


async def answers(
    questions: Sequence[RelevanceQuestion],
    bank: Sequence[BankStatement],
    *,
    embedding: str = "auto",
    labels: dict[tuple[str, int], str] | None = None,
) -> dict[str, list[str]]:
    """Return the labels of the statements that are found for each question.

    `embedding` is the embedder. `labels` receives the label of each statement, by agent and node.
    """
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        # On a busy machine a query must not give up waiting for its vector.
        patient = {"model": embedding, "query_timeout_ms": 60_000}
        settings = load_settings({"store": {"data_dir": Path(folder)}, "embedding": patient})
        async with opened(settings) as service:
            ids = await _store(service, bank)
            for agent in sorted({one.agent for one in bank}):
                await flush(service, FlushRequest(agent_id=agent, vectors=embedding != "off"))
            labels_of: dict[tuple[str, str], list[str]] = defaultdict(list)
            agents = {one.id: one.agent for one in bank}
            for label, number in ids.items():
                labels_of[agents[label], number].append(label)
            if labels is not None:
                labels |= {(agents[label], int(number[1:])): label for label, number in ids.items()}
            for question in questions:
                request = SearchStatementsRequest(
                    agent_id=question.agent,
                    query=question.query,
                    max_results=CUTOFF,
                    as_of=int(SEARCH_TIME.timestamp() * 1000),
                    include_past=question.kind == "past",
                )
                with contextlib.suppress(EbbtideError):
                    answer = await search_statements(service, request)
                    found[question.id] = [
                        label for one in answer.statements for label in labels_of[question.agent, one.id]
                    ]
    return found


def _shares(scores: Scores) -> tuple[float, str]:
    """Return the mean precision, and a text with that of each kind."""
    every = [score for some in scores.values() for score in some]
    kinds = ", ".join(f"{kind} {sum(some) / len(some):.0%}" for kind, some in sorted(scores.items()))
    return sum(every) / len(every), kinds


def _row_of_nothing(
    questions: Sequence[RelevanceQuestion],
    unanswerable: Sequence[RelevanceQuestion],
    found: Mapping[str, Sequence[str]],
) -> Row:
    """Return the row of the floor: how often nothing is found without an answer, and with one."""
    nothing = sum(not found.get(one.id) for one in unanswerable) / len(unanswerable)
    answerable = [one for one in questions if one.answers]
    lost = sum(not found.get(one.id) for one in answerable)
    measured = f"{nothing:.0%} (and for {lost} of {len(answerable)} with an answer)"
    return Row(
        "nothing found for a question without an answer",
        f"≥ {BAR_OF_NOTHING:.0%}",
        measured,
        nothing >= BAR_OF_NOTHING,
    )


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of questions."""
    result = []
    for name, further in TITLES.items():
        bank, questions = read_bank(name), read_questions(name)
        if is_quick:
            agents = sorted({one.agent for one in bank})[:2]
            bank = [one for one in bank if one.agent in agents]
            questions = [one for one in questions if one.agent in agents]
        agents = sorted({one.agent for one in bank})
        unanswerable = [one for one in read_questions(UNANSWERABLE) if one.agent in agents]
        found = asyncio.run(answers([*questions, *unanswerable], bank))
        by_kind: Scores = defaultdict(list)
        for one in questions:
            by_kind[one.kind].append(one.precision(found.get(one.id, [])))
        share, kinds = _shares(by_kind)
        result.append(Row(f"relevance, P@5{further}", f"≥ {BAR:.0%}", f"{share:.1%} ({kinds})", share >= BAR))
        if unanswerable:
            result.append(_row_of_nothing(questions, unanswerable, found))
    return result
