"""A search returns each memory with its own words on request: a deletion by id deletes the text that was shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ebbtide.language.port import Segment
from ebbtide_client import Client
from ebbtide_client.errors import InvalidRequest
from ebbtide_client.integrations.sending import Sender
from tests.support.in_process import service_in, settle, tell
from tests.support.rest_in_process import served
from tests.support.scripted_model import ScriptedModel

WORK = "I take Prozac every morning. I work at Siemens in Graz."
CHILD = "My daughter Ida has asthma and sees Dr. Weber every week."
FAMILY = f"{WORK} {CHILD}"


async def test_an_adapter_finds_each_memory_with_its_own_words(tmp_path: Path) -> None:
    """One passage of two memories is found as two; words of it without a memory have the id of their message."""
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
            assert found["ann"] == [("n1", CHILD), ("m1", WORK)]
            few = await asyncio.to_thread(sender.search, "bob", "Who has asthma?", 1)
            assert [one.content for one in few] == [CHILD]
            await asyncio.to_thread(client.delete_node, "ann", "m1")
            left = await asyncio.to_thread(sender.search, "ann", "Who has asthma? Who works at Siemens?", 5)
            assert [(one.id, one.content) for one in left] == [("n1", CHILD)]
            whole = await asyncio.to_thread(client.search, "bob", "Who has asthma?")
            assert [one.content for one in whole.memories] == [FAMILY]
            with pytest.raises(InvalidRequest, match="own_words: not allowed with the kind record"):
                await asyncio.to_thread(
                    client.search, "bob", "asthma", own_words=True, kinds=["memory", "record"]
                )
