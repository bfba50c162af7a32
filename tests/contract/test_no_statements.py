"""An agent without statements is stored, kept in memory and answers as if there were no statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ebbtide.clock import SystemClock
from ebbtide.daemon import opened
from ebbtide.store import layout
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.verbs.agents import OpenAgentRequest, open_agent
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from ebbtide.verbs.recall import RecallRequest, recall
from tests.support.in_process import settings_for, settle, tell
from tests.support.process import check_data_directory
from tests.support.scanning import MAP

AGENT = "ann"
NOW_MS = 1_800_000_000_000
TEXTS = [
    "The harbour smells of tar and oranges in the morning.",
    "Clara moved the red bicycle behind the house.",
    "我和小雨去青岛看海，海风很大。",
    "Project Heron was cancelled on Monday.",
    "Where is the red bicycle now?",
]
"""None of them states what the rules of the extraction know."""
CUES: tuple[dict[str, Any], ...] = (
    {},
    {"keywords": ["bicycle"], "depth": 3},
    {"query": "Where is my bicycle?"},
    {"query": "我去过哪里？", "citations": True},
    {"query": "What is my job?", "explain": True},
)
DIFFERING = {b"identity", b"proof_key", b"audit_head", b"overrides", b"ledger"}
"""Entries of the table `meta` that may differ: random numbers, the parameter, and how far the extraction is."""


class FixedClock(SystemClock):
    """A clock that always has the same time of day."""

    def now_ms(self) -> int:
        """Return the time."""
        return NOW_MS


async def lived(data_dir: Path, extraction: str) -> tuple[list[str], int, int]:
    """Let an agent remember, compress, forget and answer. Return its answers, and the sizes of ledger and agent."""
    async with opened(settings_for(data_dir, embedding={"model": "off"}), clock=FixedClock()) as service:
        await open_agent(service, OpenAgentRequest(agent_id=AGENT, parameters={"extraction": extraction}))
        for text in TEXTS:
            await tell(service, AGENT, text, conversation_id="c1")
            await settle(service, AGENT)
        await forget_memories(service, ForgetRequest(agent_id=AGENT, topic="Project Heron"))
        await settle(service, AGENT)
        answers = [
            (
                await recall(service, RecallRequest.model_validate({"agent_id": AGENT, **cue}))
            ).model_dump_json()
            for cue in CUES
        ]
        [agent] = service.fleet.open_agents
        sizes = len(agent.workspace.ledger), agent.workspace.resident_bytes
    check_data_directory(data_dir)
    return answers, *sizes


def stored(data_dir: Path) -> dict[bytes, dict[bytes, list[bytes]]]:
    """Return every entry of every table of the agent."""
    store = LmdbStore.open(data_dir / "agents" / AGENT, **MAP)
    found: dict[bytes, dict[bytes, list[bytes]]] = {}
    try:
        for table in layout.TABLES:
            entries = found.setdefault(table.name, {})
            for key, value in store.read(
                lambda txn, table=table: [(bytes(k), bytes(v)) for k, v in txn.tables.items(table)]  # type: ignore[misc]
            ):
                entries.setdefault(key, []).append(value)
    finally:
        store.close()
    return found


async def test_extraction_that_finds_nothing_changes_nothing(tmp_path: Path) -> None:
    """With `extraction=rules`, answers, memory and stored bytes are those of `off`, if no message states anything.

    Only the parameter itself, how far the extraction is, and random numbers differ.
    """
    off, rules = await lived(tmp_path / "off", "off"), await lived(tmp_path / "rules", "rules")
    assert off[0] == rules[0]
    assert off[1:] == (0, rules[2])
    first, second = stored(tmp_path / "off"), stored(tmp_path / "rules")
    for table in (layout.ASSERTIONS, layout.RULINGS):
        assert first[table.name] == second[table.name] == {}
    for name, entries in first.items():
        if name == b"audit":
            assert len(entries) == len(second[name])
            continue
        differing = {key for key in entries | second[name] if entries.get(key) != second[name].get(key)}
        assert differing <= (DIFFERING if name == b"meta" else set()), name
