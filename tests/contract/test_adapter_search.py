"""Adapters of frameworks find each memory with its own words: a deletion by id deletes the text that was shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ebbtide.language.port import Segment
from ebbtide_client import Client
from ebbtide_client.integrations.sending import Sender
from tests.support.in_process import service_in, settle, tell
from tests.support.rest_in_process import served
from tests.support.scripted_model import ScriptedModel

WORK = "I take Prozac every morning. I work at Siemens in Graz."
CHILD = "My daughter Ida has asthma and sees Dr. Weber every week."
FAMILY = f"{WORK} {CHILD}"


async def test_an_adapter_finds_each_memory_with_its_own_words(tmp_path: Path) -> None:
    """One passage of two memories is found as two; words of it without a memory have no id."""
    model = ScriptedModel()
    async with service_in(tmp_path, model) as service, served(service) as url:
        model.script["segment"].append(lambda: [Segment(CHILD, (0,), FAMILY.index(CHILD))])
        await tell(service, "ann", FAMILY)
        await settle(service, "ann", passes=False)
        await tell(service, "bob", FAMILY)
        await settle(service, "bob", passes=False)
        with Client(url) as client:
            sender = Sender(client)
            found = {}
            for agent in ("ann", "bob"):
                memories = await asyncio.to_thread(sender.search, agent, "Who has asthma?", 5)
                found[agent] = [(one.id, one.content) for one in memories]
            assert found["bob"] == [("n2", CHILD), ("n1", WORK)]
            assert found["ann"] == [("n1", CHILD), ("", WORK)]
            few = await asyncio.to_thread(sender.search, "bob", "Who has asthma?", 1)
            assert [one.content for one in few] == [CHILD]
