"""Drive the memory block with a real agent of LlamaIndex and a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

from driving import FACTS, KEYS_ON, client, narrow, ratio, refused, stored
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory

from ebbtide_client import Forbidden
from ebbtide_client.integrations.llamaindex import EbbtideMemoryBlock

prompts: list[str] = []


def answer(messages: Any, **_: Any) -> ChatMessage:
    """Note the prompt, and answer as a model does."""
    prompts.append("\n".join(message.content or "" for message in messages))
    return ChatMessage(role="assistant", content="Noted.")


async def talk(memory: Memory, text: str) -> str:
    """Say a text to an agent. Return the prompt of its model."""
    agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=answer, is_chat_model=True))
    await agent.run(user_msg=text, memory=memory)
    return prompts[-1]


def memory_of(block: EbbtideMemoryBlock, token_limit: int = 60) -> Memory:
    """Return the memory of a session, whose window overflows after a few messages."""
    return Memory.from_defaults(
        token_limit=token_limit, token_flush_size=10, memory_blocks=[block], tokenizer_fn=list
    )


async def main() -> None:
    """Talk until messages leave the window, and ask in another session."""
    for number, (fact, question, word) in enumerate(FACTS):
        agent_id = f"林月{number}"
        memory = memory_of(EbbtideMemoryBlock(client=client, agent_id=agent_id))
        await talk(memory, fact)
        for _ in range(3):
            await talk(memory, "The tea is warm today.")
        assert stored(agent_id).count(fact) == 1, stored(agent_id)
        assert stored(agent_id).count("Noted.") >= 1
        block = EbbtideMemoryBlock(client=client, agent_id=agent_id)
        assert word in await talk(memory_of(block, 3000), question)
        other = EbbtideMemoryBlock(client=client, agent_id=f"other{number}")
        assert word not in await talk(memory_of(other, 3000), question)

    block = EbbtideMemoryBlock(client=client, agent_id="late")
    client.lost_before = True
    await block.aput([ChatMessage(role="user", content="One.")], session_id="s")
    client.lost_before, client.lost_after = False, True
    await block.aput([ChatMessage(role="user", content="Two.")], session_id="s")
    client.lost_after = False
    assert await block.aget([ChatMessage(role="user", content="Nothing yet?")]) is not None
    assert stored("late") == ["One.", "Two."], "what could not be stored waits, and is stored once"
    [batch, _] = client.every_batch("late")
    assert batch.conversation_id == "s"

    await block.aput([ChatMessage(role="tool", content="x"), ChatMessage(role="user", content=None)])
    assert len(stored("late")) == 2
    assert await block.aget([]) == await block.aget(None) == ""
    if KEYS_ON:
        with refused(Forbidden):
            await EbbtideMemoryBlock(client=narrow(), agent_id="late").aget(
                [ChatMessage(role="user", content="Two?")]
            )


asyncio.run(main())
block = EbbtideMemoryBlock(client=client, agent_id="late")
asked = [ChatMessage(role="user", content="What was it?")]
with asyncio.Runner() as runner:
    ratio(
        "recall", lambda: runner.run(block.aget(asked)), lambda: client.recall("late", query="What was it?")
    )
