"""Erasure: after a topic is forgotten, whether any file still contains a word of it.

An agent gets statements of every kind with the word in each place that takes words of the caller: value, attribute,
topic, subject, content, and the reasons of rulings. Further statements are corrected, retracted, merged, linked and
extracted from a message, and all are consolidated. Then the word is forgotten as a topic, and every byte of the agent's
directory is searched, raw and decoded, for the word, for the compressed texts that contained it, and for their keys.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from benchmarks.knowledge.table import Row
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.verbs.agents import OpenAgentRequest, open_agent
from ebbtide.verbs.consolidation import ConsolidateRequest, consolidate
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from ebbtide.verbs.links import CreateLinkRequest, create_link
from ebbtide.verbs.profile import GiveFeedbackRequest, MergeEntitiesRequest, give_feedback, merge_entities
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import (
    CorrectStatementRequest,
    CreateStatementRequest,
    ListStatementsRequest,
    RetractStatementRequest,
    StatementInfo,
    correct_statement,
    create_statement,
    list_statements,
    retract_statement,
)
from tests.support.in_process import service_in, settle, tell
from tests.support.scanning import Traces

AGENT = "ann"
WORD = "Zyxomarq"
KEPT = "Lisbon"
WAITS = 400


async def _fill(service: Service) -> None:
    """Store the word in every place, and one statement without it."""
    await open_agent(service, OpenAgentRequest(agent_id=AGENT, parameters={"extraction": "rules"}))
    await _says(service, "I", "residence", KEPT)
    kinds = sorted(STATEMENT_KINDS)
    made = [
        await _says(service, "I", f"topic of {kind}", f"{WORD} {kind}", kind=kind, attributes={"at": WORD})
        for kind in kinds
    ]
    await create_link(
        service, CreateLinkRequest(agent_id=AGENT, source=made[0], target=made[1], relation="causes")
    )
    await _says(service, "I", WORD, "a topic of its own")
    await _says(service, WORD, "occupation", "baker")
    await _says(service, f"Old {WORD}", "hobby", "chess")
    await merge_entities(
        service, MergeEntitiesRequest(agent_id=AGENT, entity=WORD, other=f"Old {WORD}", reason=WORD)
    )
    corrected = await _says(service, "I", "employer", f"{WORD} Works")
    await correct_statement(
        service,
        CorrectStatementRequest(
            agent_id=AGENT, node_id=corrected, object="Acme", reason=f"Not {WORD}, I misheard."
        ),
    )
    await retract_statement(
        service, RetractStatementRequest(agent_id=AGENT, node_id=made[2], reason=f"{WORD} was a joke.")
    )
    await give_feedback(service, GiveFeedbackRequest(agent_id=AGENT, node_id=made[3], action="pin"))
    await tell(service, AGENT, f"I moved to {WORD}.", f"My sister is called {WORD}.")
    await settle(service, AGENT)
    for _ in range(WAITS):
        if any(one.author.startswith("rules") for one in await _statements(service)):
            await consolidate(service, ConsolidateRequest(agent_id=AGENT))
            return
        await asyncio.sleep(0.05)
    raise RuntimeError("no statement was extracted")


async def _says(service: Service, subject: str, topic: str, value: str, **fields: object) -> str:
    request = CreateStatementRequest.model_validate(
        {"agent_id": AGENT, "subject": subject, "topic": topic, "object": value, **fields}
    )
    return (await create_statement(service, request)).id


async def _statements(service: Service) -> list[StatementInfo]:
    return (await list_statements(service, ListStatementsRequest(agent_id=AGENT, page_size=100))).statements


async def _traces(data_dir: Path) -> tuple[int, int, list[str]]:
    """Return the number of statements before and after, and the places of the word afterwards."""
    directory = data_dir / "agents" / AGENT
    off = {"model": "off"}
    async with service_in(data_dir, embedding=off) as service:
        await _fill(service)
    traces = Traces.noted(directory, [WORD, WORD.casefold()])
    async with service_in(data_dir, embedding=off) as service:
        before = len(await _statements(service))
        await forget_memories(service, ForgetRequest(agent_id=AGENT, topic=WORD))
        after = len(await _statements(service))
    return before, after, traces.found_in(directory)


def rows(_: bool) -> list[Row]:
    """Return the row of erasure."""
    with tempfile.TemporaryDirectory() as folder:
        before, after, found = asyncio.run(_traces(Path(folder)))
    measured = f"{len(found)} ({before} statements before, {after} after)"
    measured += f": {', '.join(found[:3])}" if found else ""
    is_met = not found and before > len(STATEMENT_KINDS) and after > 0
    return [Row("places of a word that is forgotten", "0", measured, is_met)]
