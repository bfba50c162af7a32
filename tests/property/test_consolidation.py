"""Consolidation between the steps of any history changes no value, and a kill within it loses and repeats nothing."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ebbtide.errors import EbbtideError
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.ids import AgentId
from ebbtide.statements import CONSOLIDATION_STEPS, is_inferred
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.consolidation import ConsolidateRequest, consolidate
from ebbtide.verbs.inspect import NodeRequest
from ebbtide.verbs.memories import delete_node
from ebbtide.verbs.profile import (
    MergeEntitiesRequest,
    RulingRequest,
    merge_entities,
    reject_merge,
    undo_ruling,
)
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import (
    CreateStatementRequest,
    RetractStatementRequest,
    create_statement,
    retract_statement,
)
from tests.property.test_ledger_against_oracle import RULES, by_first, of_ledger, of_oracle
from tests.support.in_process import service_in
from tests.support.knowledge.oracle import Oracle
from tests.support.tier import amount
from tests.support.waiting import eventually

DAY_MS = 86_400_000
MONDAY_MS = 1_704_067_200_000
NOW_MS = 4_000_000_000_000
TOPICS = {
    "residence": ["Lisbon", "Porto", "里斯本"],
    "birthday": ["1990-05-07", "1991-05-07"],
    "employer": ["Acme", "华为"],
    "likes": ["tea", "green tea"],
    "did": ["swimming", "游泳"],
}
SUBJECTS = ["I", "Bob", "Bob Smith", "小明"]


async def does_something(service: Service, random: Random) -> None:
    """Store, retract, merge, reject, undo or delete something."""
    async with service.fleet.using(AgentId("ann"), create=True) as agent:
        ledger = agent.workspace.ledger
        statements, rulings = sorted(ledger.statements), [one.entry for one in ledger.rulings()]
    kind = random.choice(["say"] * 7 + ["retract", "merge", "reject", "undo", "delete"])
    own: dict[str, Any] = {"agent_id": "ann"}
    if kind == "retract" and statements:
        await retract_statement(
            service, RetractStatementRequest(**own, node_id=f"n{random.choice(statements)}")
        )
    elif kind in ("merge", "reject"):
        entity, other = random.sample(SUBJECTS, 2)
        await (merge_entities if kind == "merge" else reject_merge)(
            service, MergeEntitiesRequest(**own, entity=entity, other=other)
        )
    elif kind == "undo" and rulings:
        await undo_ruling(service, RulingRequest(**own, ruling_id=f"r{random.choice(rulings)}"))
    elif kind == "delete" and statements:
        await delete_node(service, NodeRequest(**own, node_id=f"n{random.choice(statements)}"))
    else:
        topic = random.choice(sorted(TOPICS))
        value, subject = random.choice(TOPICS[topic]), random.choice(SUBJECTS)
        week = random.randint(0, 9)
        await create_statement(
            service,
            CreateStatementRequest(
                **own,
                subject=subject,
                topic=topic,
                object=value,
                kind="event" if topic == "did" else "fact",
                since=MONDAY_MS + 7 * week * DAY_MS,
                content=random.choice(["", f"now {value} {subject} in W{week}"]),
            ),
        )


def assert_as_said(agent: Agent) -> None:
    """Assert that everything that was said has the versions that the oracle computes without consolidation."""
    ledger = agent.workspace.ledger
    said = [one for one in ledger.all_assertions() if not is_inferred(one)]
    ruled = [one for one in ledger.all_rulings() if one.kind not in ("cause", "distinct")]
    oracle = Oracle(RULES, sorted([*said, *ruled], key=lambda one: one.entry))
    replay = ledger.known()
    for statement in {one.statement for one in said}:
        found = by_first([of_ledger(one) for one in replay.history(statement)])
        assert found == by_first([of_oracle(one) for one in oracle.history(statement, NOW_MS)])


@pytest.mark.parametrize("run", range(4))
async def test_consolidation_changes_no_value(tmp_path: Path, run: int) -> None:
    """After every step of a history with runs and rehearsals in between, what was said is true as without them."""
    for seed in range(run, amount("CONSOLIDATIONS", 12, 200), 4):
        random = Random(seed)
        async with service_in(tmp_path / str(seed)) as service:
            for _ in range(25):
                try:
                    await does_something(service, random)
                except EbbtideError:
                    continue  # for example an unknown name
                if random.random() < 0.3:
                    request = ConsolidateRequest(agent_id="ann", dry_run=random.random() < 0.3)
                    await consolidate(service, request)
                async with service.fleet.using(AgentId("ann")) as agent:
                    assert_as_said(agent)


async def tell_habits(service: Service) -> None:
    """Store events that form three habits, names that may be one, and a conflict."""
    for value in ("swimming", "游泳", "chess"):
        for week in range(4):
            request = CreateStatementRequest(
                agent_id="ann",
                subject="I",
                topic="did",
                object=value,
                kind="event",
                since=MONDAY_MS + 7 * week * DAY_MS,
                content=f"{value} in W{week}",
            )
            await create_statement(service, request)
    for day in (7, 8):
        request = CreateStatementRequest(
            agent_id="ann", subject="I", topic="birthday", object=f"1990-05-0{day}"
        )
        await create_statement(service, request)


def of_store(txn: ReadTransaction) -> Any:
    """Return what a consolidation wrote, apart from times and numbers."""
    inferred = sorted(
        (one.object, one.source.message) for one in txn.statements.assertions() if is_inferred(one)
    )
    events = [
        (one.kind, one.numbers)
        for one in txn.events.since(1)
        if one.kind in ("Consolidated", "ConflictFound")
    ]
    return inferred, events, txn.meta.consolidation.consolidated_up_to


@pytest.mark.full
async def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    """After a kill at any part of a run, the next start ends it: same habits, each step reported once."""
    async with service_in(tmp_path / "whole") as service:
        await tell_habits(service)
        async with service.fleet.using(AgentId("ann")) as agent:
            store, consolidation = agent.workspace.store, agent.workspace.consolidation
            consolidation.begin()
            copies = 0
            while consolidation.is_running:
                consolidation.advance(NOW_MS, lambda: True)
                # The files are those that a kill leaves: each part has committed, or has not changed anything.
                shutil.copytree(
                    tmp_path / "whole", tmp_path / str(copies), ignore=shutil.ignore_patterns("*.lock")
                )
                copies += 1
            expected = store.read(of_store)
    assert copies >= len(CONSOLIDATION_STEPS) - 1 and len(expected[0]) == 12
    for number in range(copies):
        async with (
            service_in(tmp_path / str(number)) as service,
            service.fleet.using(AgentId("ann")) as agent,
        ):
            store, consolidation = agent.workspace.store, agent.workspace.consolidation
            stored = store.read(lambda txn: txn.meta.consolidation)
            if not stored.step and not stored.finished_at_ms:
                # Nothing of the run had an effect, so nothing of it is left.
                await consolidate(service, ConsolidateRequest(agent_id="ann"))
            await eventually(partial(consolidation.is_done, 1))
            inferred, events, up_to = store.read(of_store)
        assert inferred == expected[0], number
        assert up_to >= expected[2]
        steps = [one["step"] for kind, one in events if kind == "Consolidated"]
        assert steps == sorted(steps) and len(steps) == len(set(steps)), number
