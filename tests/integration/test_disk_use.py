"""The disk space of a small agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.daemon import opened
from ebbtide.settings import load_settings
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.verbs.agents import OpenAgentRequest, open_agent
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.remember import Message, RememberRequest, remember

MOST_BYTES = 60_000


async def remember_two(data_dir: Path) -> None:
    """Run a service in which one agent remembers two messages, and close it."""
    settings = load_settings({"store": {"data_dir": data_dir}, "embedding": {"model": "off"}})
    async with opened(settings) as service:
        await open_agent(service, OpenAgentRequest(agent_id="ann"))
        for number, content in enumerate(("Maria lives in Lisbon.", "Her brother Tom works in Porto.")):
            messages = [Message(role="user", content=content, speaker="Ann")]
            request = RememberRequest(agent_id="ann", messages=messages, idempotency_key=f"k{number}")
            await remember(service, request)
            await flush(service, FlushRequest(agent_id="ann", timeout_ms=60_000, passes=True))


async def test_an_agent_with_two_messages_is_small(tmp_path: Path) -> None:
    """After it was closed, all files of an agent with two messages take at most 60 kB on disk."""
    await remember_two(tmp_path)
    files = list((tmp_path / "agents" / "ann").iterdir())
    assert {file.name for file in files} == {"data.mdb", "lock.mdb", "meta.json"}
    assert sum(file.stat().st_blocks * 512 for file in files) <= MOST_BYTES


async def test_an_agent_that_cannot_be_trimmed_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its file cannot be written again, an agent is closed with the file that it has."""

    def fail(_: LmdbStore) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LmdbStore, "_compact_file", fail)
    await remember_two(tmp_path)
    assert not (tmp_path / "agents" / "ann" / "in-use").exists()
    assert (tmp_path / "agents" / "ann" / "data.mdb").stat().st_size > MOST_BYTES
