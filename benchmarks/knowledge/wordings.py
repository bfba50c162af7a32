"""Facts in several wordings: how many nodes they make.

The labels are `data/wordings.jsonl`: five facts in each language, each in three wordings. Each language is an agent
and each wording a statement with the labelled fields. Its nodes are statements and entities.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.knowledge.sets import LANGUAGES, Wordings, read_wordings
from benchmarks.knowledge.table import Row
from ebbtide.daemon import opened
from ebbtide.settings import load_settings
from ebbtide.verbs.inspect import RESERVED_KINDS, ListNodesRequest, list_nodes
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import CreateStatementRequest, create_statement

BAR = 9


async def _kinds(service: Service, agent: str, facts: Sequence[Wordings]) -> list[str]:
    """Store the first wording of every fact, then the second ones and so on. Return the kinds of the agent's nodes."""
    for wordings in zip(*(fact.wordings for fact in facts), strict=True):
        for fact, wording in zip(facts, wordings, strict=True):
            request = CreateStatementRequest(
                agent_id=agent, subject=fact.subject, topic=fact.slot, object=fact.object, content=wording
            )
            await create_statement(service, request)
    every = ListNodesRequest(agent_id=agent, kinds=["episode", *RESERVED_KINDS], page_size=100)
    return [node.kind for node in (await list_nodes(service, every)).nodes]


async def _measured() -> list[tuple[str, int, int, int]]:
    """Return each language with its facts, and the statements and nodes that they made."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"store": {"data_dir": Path(folder)}, "embedding": {"model": "off"}})
        async with opened(settings) as service:
            for lang in LANGUAGES:
                facts = [one for one in read_wordings() if one.lang == lang]
                kinds = await _kinds(service, lang, facts)
                found.append((lang, len(facts), len(kinds) - kinds.count("entity"), len(kinds)))
    return found


def rows(_: bool) -> list[Row]:
    """Return the row of nodes."""
    found = asyncio.run(_measured())
    measured = ", ".join(f"{lang} {nodes} ({statements} statements)" for lang, _, statements, nodes in found)
    is_met = all(facts <= statements and nodes <= BAR for _, facts, statements, nodes in found)
    return [Row("nodes of 5 facts × 3 wordings", f"≤ {BAR}", measured, is_met)]
