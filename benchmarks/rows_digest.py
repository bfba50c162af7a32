"""P5: how many segments a second the digest turns into memories with the built-in model.

A service accepts the whole conversation while its model is paused. The measured time runs from the moment the model
resumes until the inbox is empty. It covers segmenting, keywords and summaries, relations with the focus, and commits
with fsync. The floor is the least that such a digest needs: cutting the same texts into words with rjieba, and
writing the same bytes to LMDB in as many commits. Both run pinned to one core. Passes are as small as possible
(slots, one node drawn), since P6 measures them. No vectors are computed: that happens in the background, later.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import rjieba

from benchmarks.conversations import Talk, talk
from benchmarks.measuring import Spread, in_turns
from benchmarks.plan import AGENT, Plan
from benchmarks.report import Figure, at_least
from benchmarks.stores import MAP_BYTES, open_store
from ebbtide.daemon import opened
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import Segment, Utterance
from ebbtide.settings import load_settings
from ebbtide.store import layout
from ebbtide.verbs.agents import OpenAgentRequest, open_agent
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.remember import Message, RememberRequest, remember

SMALL_PASSES = {
    "strategy": "slots",
    "max_nodes": 1_000_000,
    "compression_batch_size": 1,
    "max_owed_passes": 1,
    "max_queue_size": 100_000,
}
LEAST_PER_SECOND = 500.0
LEAST_SHARE = 0.2
"""Of the floor."""


def digest(plan: Plan) -> list[Figure]:
    """P5: the digest, in two languages."""
    return [_digest(plan, language) for language in ("English", "Chinese")]


def _digest(plan: Plan, language: str) -> Figure:
    said = talk(language, plan.times(1000, 60), plan.seed)
    plan.tell(f"P5: {said.name}")
    counts: list[int] = []
    latest: list[Path] = []

    def ours() -> float:
        data_dir = plan.fresh("digest")
        took_s = digested_s(data_dir, said)
        count = _node_count(data_dir)
        counts.append(count)
        latest[:] = [data_dir]
        return count / took_s

    ours()  # warms up, and leaves what the floor has to write
    tasks = {"ours": ours, "floor": lambda: counts[-1] / _floor_s(plan, said, latest[0])}
    rates = {name: Spread.of(found) for name, found in in_turns(plan.times(5, 1), tasks).items()}
    share = rates["ours"].p50 / rates["floor"].p50
    figure = Figure("P5", f"digest, built-in model, {said.name}", "segments/s", rates["ours"], is_rate=True)
    figure.baselines = {"rjieba + bare puts": rates["floor"]}
    figure.ratio = f"{share:.0%} of the floor"
    figure.claims = [
        at_least(rates["ours"].p50, LEAST_PER_SECOND, "segments/s"),
        at_least(share * 100, LEAST_SHARE * 100, "% of the floor"),
    ]
    figure.beside = {"segments": counts[-1], "batches": len(said.batches)}
    return figure


@contextmanager
def one_core() -> Iterator[None]:
    """Pin this thread, and the threads it starts, to one core; restore the interpreter's switch interval afterwards."""
    interval = sys.getswitchinterval()
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if cores:
            os.sched_setaffinity(0, cores)


# --- ours ----------------------------------------------------------------------------------------------------


class _PatientModel(BuiltinModel):
    """The built-in model, paused until it is released."""

    def __init__(self, builtin: BuiltinModel, may_begin: asyncio.Event) -> None:
        super().__init__(builtin.pool, builtin.yield_to_requests)
        self._may_begin = may_begin

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Segment after the release."""
        await self._may_begin.wait()
        return await super().segment(messages, max_chars=max_chars)


def digested_s(data_dir: Path, said: Talk) -> float:
    """Return the time that a service needs to digest a conversation, on one core."""
    with one_core():
        return asyncio.run(_digested_s(data_dir, said))


async def _digested_s(data_dir: Path, said: Talk) -> float:
    may_begin = asyncio.Event()
    settings = load_settings({"store": {"data_dir": data_dir}, "embedding": {"model": "off"}})
    async with opened(settings, make=lambda _, builtin: _PatientModel(builtin, may_begin)) as service:
        await open_agent(service, OpenAgentRequest(agent_id=AGENT, parameters=SMALL_PASSES))
        for batch in said.batches:
            messages = [Message(role="user", content=turn.text, speaker=turn.speaker) for turn in batch]
            await remember(service, RememberRequest(agent_id=AGENT, messages=messages))
        begun_s = time.perf_counter()
        may_begin.set()
        done = await flush(service, FlushRequest(agent_id=AGENT, timeout_ms=600_000))
        took_s = time.perf_counter() - begun_s
    assert done.digested and not done.parked_batches, "everything was digested within the time"
    return took_s


def _node_count(data_dir: Path) -> int:
    store = open_store(data_dir / "agents" / AGENT)
    try:
        return store.read(lambda txn: txn.counts().node_count)
    finally:
        store.close()


# --- the floor -----------------------------------------------------------------------------------------------


def _floor_s(plan: Plan, said: Talk, digested: Path) -> float:
    """Return the time needed to cut the texts into words and to write the data that the digest left on disk."""
    entries = _entries(digested / "agents" / AGENT)
    share = len(entries) // len(said.batches) + 1
    tagger = rjieba.Jieba()
    tagger.cut("一")
    environment = lmdb.open(str(plan.fresh("floor")), map_size=MAP_BYTES, max_dbs=len(layout.TABLES))
    trees = {
        name: environment.open_db(name.encode(), dupsort=size > 0)
        for name, size in layout.VALUE_SIZES.items()
    }
    with one_core():
        begun_s = time.perf_counter()
        for number, batch in enumerate(said.batches):
            for turn in batch:
                tagger.cut(turn.text)
            with environment.begin(write=True) as txn:
                for tree, key, value in entries[number * share : (number + 1) * share]:
                    txn.put(key, value, db=trees[tree])
        took_s = time.perf_counter() - begun_s
    environment.close()
    return took_s


def _entries(path: Path) -> list[tuple[str, bytes, bytes]]:
    """Return every (tree, key, value) of a store."""
    environment: Any = lmdb.open(str(path), max_dbs=len(layout.TABLES) + 16, readonly=True)
    try:
        found = []
        for tree in layout.VALUE_SIZES:
            handle = environment.open_db(tree.encode(), create=False)
            with environment.begin(db=handle) as txn:
                found += [(tree, bytes(key), bytes(value)) for key, value in txn.cursor()]
        return found
    finally:
        environment.close()
