"""Drive the memory store with a real agent of Strands and a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

from driving import FACTS, KEYS_ON, client, narrow, ratio, refused, stored
from strands import Agent
from strands.memory import AggregateMemoryError, InvocationTrigger, MemoryManager
from strands.models import Model

from ebbtide_client.integrations.strands import EbbtideMemoryStore

prompts: list[str] = []


class Scripted(Model):
    """A model that notes its prompt, calls a tool if the script says so, and answers."""

    call: dict[str, Any] | None = None

    def update_config(self, **_: Any) -> None:
        """Ignore options."""

    def get_config(self) -> dict[str, Any]:
        """Return no options."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Offer no structured output."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        """Note the prompt, and answer."""
        prompts.append(str(messages))
        call, self.call = self.call, None
        yield {"messageStart": {"role": "assistant"}}
        if call:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call["name"], "toolUseId": "t1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": call["input"]}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Noted."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if call else "end_turn"}}


def store_of(agent_id: str, **options: Any) -> EbbtideMemoryStore:
    """Return a store that keeps every turn."""
    return EbbtideMemoryStore(client, agent_id, extraction={"trigger": InvocationTrigger()}, **options)


def agent_with(store: EbbtideMemoryStore, **options: Any) -> tuple[Agent, MemoryManager, Scripted]:
    """Return an agent with a memory, its manager and its model."""
    manager, model = MemoryManager(stores=[store], **options), Scripted()
    return Agent(model=model, memory_manager=manager, callback_handler=None), manager, model


async def main() -> None:
    """Talk, ask in another conversation, and lose responses."""
    for number, (fact, question, word) in enumerate(FACTS):
        user = f"林月{number}"
        agent, manager, _ = agent_with(store_of(user))
        await agent.invoke_async(fact)
        await agent.invoke_async("The tea is warm today.")
        await manager.flush()
        said = [fact, "Noted.", "The tea is warm today.", "Noted."]
        assert stored(user) == said, stored(user)
        agent, _, model = agent_with(store_of(user))
        await agent.invoke_async(question)
        assert word in prompts[-1], "memories are injected"
        agent, _, model = agent_with(store_of(user), injection=False)
        model.call = {"name": "search_memory", "input": f'{{"query": "{question}"}}'}
        await agent.invoke_async(question)
        assert word in prompts[-1], "the tool finds memories"
        agent, _, _ = agent_with(store_of(f"other{number}"))
        await agent.invoke_async(question)
        assert word not in prompts[-1]

    agent, manager, _ = agent_with(store_of("late"))
    client.lost_after = True
    await agent.invoke_async("One.")
    await manager.flush()
    client.lost_after, client.lost_before = False, True
    await agent.invoke_async("Two.")
    await manager.flush()
    client.lost_before = False
    await agent.invoke_async("Three.")
    await manager.flush()
    assert [text for text in stored("late") if text != "Noted."] == ["One.", "Two.", "Three."]

    agent, manager, model = agent_with(EbbtideMemoryStore(client, "added"), add_tool_config=True)
    for _ in range(2):
        model.call = {"name": "add_memory", "input": '{"entries": ["Ann likes jasmine tea."]}'}
        await agent.invoke_async("Keep that.")
    assert stored("added") == ["Ann likes jasmine tea."]
    await manager.add("Ann likes walks.", {"metadata": {"topic": "sport"}})
    [first, *_] = await manager.search("Which walks?")
    assert first.content == "Ann likes walks." and first.metadata and first.metadata["said_at"], first
    assert len(await manager.search("Ann", {"max_search_results": 1})) == 1
    assert not await manager.search(" ")
    with refused(ValueError):
        await EbbtideMemoryStore(client, "added", writable=False).add("x")
    if KEYS_ON:
        _, manager, _ = agent_with(EbbtideMemoryStore(narrow(), "added"))
        with refused(AggregateMemoryError):
            await manager.add("x")
        assert await manager.search("Which walks?") == []


# A synchronous call of an agent has an event loop of its own.
for _ in range(2):
    agent_with(store_of("sync"))[0]("I keep bees.")
asyncio.run(main())
store = store_of("added")
with asyncio.Runner() as loop:
    ratio(
        "search",
        lambda: loop.run(store.search("Which walks?")),
        lambda: client.search("added", "Which walks?", max_results=10),
    )
