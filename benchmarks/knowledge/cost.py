"""The time of a search over statements, relative to a recall with a query on the same agent in the same process.

The agent has messages from the texts of the sets and statements on them. Both answer in turns, without vectors, which
would add the same time to both. The first round of questions fills caches, and is not counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.knowledge.sets import read_bank, read_questions
from benchmarks.knowledge.table import Row
from ebbtide.daemon import opened
from ebbtide.settings import load_settings
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.recall import RecallRequest, recall
from ebbtide.verbs.remember import RememberRequest, remember
from ebbtide.verbs.service import Service
from ebbtide.verbs.statement_search import SearchStatementsRequest, search_statements
from ebbtide.verbs.statements import CreateStatementRequest, create_statement

BAR = 1.3
MESSAGES, STATEMENTS = 100_000, 10_000
"""Size L."""
QUICK_MESSAGES, QUICK_STATEMENTS = 2_000, 200
BATCH = 1_000
ROUNDS = 3
"""Rounds of all questions that count."""
AGENT = "ann"


async def _fill(service: Service, message_count: int, statement_count: int) -> None:
    quotes = [one.quote for one in read_bank()]
    for begin in range(0, message_count, BATCH):
        lines = [
            f"{quotes[n % len(quotes)]}, note {n}" for n in range(begin, min(begin + BATCH, message_count))
        ]
        messages = [{"role": "user", "content": line} for line in lines]
        await remember(service, RememberRequest.model_validate({"agent_id": AGENT, "messages": messages}))
    for number, one in enumerate(islice(cycle(read_bank()), statement_count)):
        await create_statement(
            service,
            CreateStatementRequest(
                agent_id=AGENT,
                subject=one.subject if number % 3 else f"Person{number}",
                topic=one.slot,
                object=f"{one.object} {number}",
                kind=one.memory_type,
            ),
        )
    # Longer than one flush may wait.
    while not (await flush(service, FlushRequest(agent_id=AGENT, timeout_ms=600_000))).digested:
        pass


async def _seconds(ask: Callable[[], Awaitable[Any]]) -> float:
    begun_s = time.perf_counter()
    await ask()
    return time.perf_counter() - begun_s


async def _measured(message_count: int, statement_count: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each search and of each recall."""
    searches: list[float] = []
    recalls: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"store": {"data_dir": Path(folder)}, "embedding": {"model": "off"}})
        async with opened(settings) as service:
            await _fill(service, message_count, statement_count)
            questions = [one.query for one in read_questions()]
            for question in questions * (1 + ROUNDS):
                search = SearchStatementsRequest(agent_id=AGENT, query=question)
                plain = RecallRequest.model_validate({"agent_id": AGENT, "query": question})
                searches.append(await _seconds(partial(search_statements, service, search)))
                recalls.append(await _seconds(partial(recall, service, plain)))
    return searches[len(questions) :], recalls[len(questions) :]


def rows(is_quick: bool) -> list[Row]:
    """Return the row of the ratio."""
    sizes = (QUICK_MESSAGES, QUICK_STATEMENTS) if is_quick else (MESSAGES, STATEMENTS)
    searches, recalls = asyncio.run(_measured(*sizes))
    search_ms, recall_ms = (1000 * float(np.percentile(some, 95)) for some in (searches, recalls))
    ratio = search_ms / recall_ms
    return [
        Row(
            f"search over statements, {sizes[0]} messages, {sizes[1]} statements, p95",
            f"≤ {BAR} × a recall with a query",
            f"{ratio:.2f} × ({search_ms:.1f} ms, {recall_ms:.1f} ms)",
            ratio <= BAR,
        )
    ]
