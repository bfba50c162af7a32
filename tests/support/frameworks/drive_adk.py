"""Drive the memory service with a real runner of Google's ADK and a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from driving import FACTS, KEYS_ON, client, narrow, ratio, refused, stored
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory, preload_memory
from google.genai import types

from ebbtide_client import ConnectionFailed, Forbidden
from ebbtide_client.integrations.adk import EbbtideMemoryService

prompts: list[str] = []
APP = "shop"


class Scripted(BaseLlm):
    """A model that calls `load_memory` if the user asks, and then answers."""

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Note the prompt, and answer."""
        parts = [part for content in llm_request.contents for part in content.parts or []]
        prompts.append("\n".join(part.text or str(part.function_response or "") for part in parts))
        said = parts[-1].text or ""
        if "load_memory" in llm_request.tools_dict and said.endswith(("?", "？")):
            call = types.FunctionCall(name="load_memory", args={"query": said})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
        else:
            parts = [types.Part(text="secret thought", thought=True), types.Part(text="Noted.")]
            yield LlmResponse(content=types.Content(role="model", parts=parts))


async def add_session(callback_context: Any) -> None:
    """Add the session after each turn, as ADK's documentation shows."""
    await callback_context.add_session_to_memory()


sessions = InMemorySessionService()
service = EbbtideMemoryService(client)


async def talk(user_id: str, session_id: str, text: str, tool: Any) -> str:
    """Say a text. Return the last prompt of the model."""
    agent = LlmAgent(
        name="helper", model=Scripted(model="scripted"), tools=[tool], after_agent_callback=add_session
    )
    runner = Runner(
        app_name=APP,
        agent=agent,
        session_service=sessions,
        memory_service=service,
        auto_create_session=True,
    )
    message = types.Content(role="user", parts=[types.Part(text=text)])
    async for _ in runner.run_async(user_id=user_id, session_id=session_id, new_message=message):
        pass
    return prompts[-1]


def event(number: int, text: str, invocation: str = "i") -> Event:
    """Return an event of a user."""
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(
        id=f"e{number}", author="user", invocation_id=invocation, content=content, timestamp=1_700_000_000
    )


async def main() -> None:
    """Talk, ask in another session, and add sessions again and again."""
    for number, (fact, question, word) in enumerate(FACTS):
        user, agent_id = f"林月{number}", f"shop:林月{number}"
        await talk(user, "s1", fact, preload_memory)
        await talk(user, "s1", "The tea is warm today.", preload_memory)
        session = await sessions.get_session(app_name=APP, user_id=user, session_id="s1")
        assert session is not None
        for memory in (service, EbbtideMemoryService(client)):
            await memory.add_session_to_memory(session)
        said = [fact, "Noted.", "The tea is warm today.", "Noted."]
        assert stored(agent_id) == said, stored(agent_id)
        for tool, asking in ((preload_memory, "s2"), (load_memory, "s3")):
            assert word in await talk(user, asking, question, tool)
            assert word not in await talk(f"other{number}{asking}", asking, question, tool)

    search = {"app_name": APP, "user_id": "林月0"}
    [found, *_] = (await service.search_memory(query="Where did I move to?", **search)).memories
    assert found.content.parts[0].text == FACTS[0][0] and found.author == "user" and found.timestamp, found
    assert not (await service.search_memory(query=" ", **search)).memories
    await service.delete_memory(memory_id=found.id, **search)
    await service.delete_memory(memory_id=found.id, **search)
    session = await sessions.get_session(app_name=APP, user_id="林月0", session_id="s1")
    assert session is not None
    await service.add_session_to_memory(session)
    left = (await service.search_memory(query="Where did I move to?", **search)).memories
    assert FACTS[0][0] not in [one.content.parts[0].text for one in left], "deleted memories do not come back"

    # The marks of a session are not written, as if the program had ended before.
    crashed = Session(id="c", app_name=APP, user_id="crash", events=[event(1, "One.", "a")])
    client.lost_after = True
    with refused(ConnectionFailed):
        await service.add_session_to_memory(crashed)
    client.lost_after = False
    crashed.events += [event(2, "Two.", "b"), event(1, "One.", "a")]
    await asyncio.gather(*(EbbtideMemoryService(client).add_session_to_memory(crashed) for _ in range(4)))
    assert stored("shop:crash") == ["One.", "Two."], stored("shop:crash")
    delta = {"app_name": APP, "user_id": "crash", "session_id": "c", "custom_metadata": {"topic": "tea"}}
    await service.add_events_to_memory(events=[event(2, "Two.", "b"), event(3, "Three.", "b")], **delta)
    assert stored("shop:crash") == ["One.", "Two.", "Three."]
    await service.add_events_to_memory(events=[], **delta)
    entry = MemoryEntry(id="m1", content=types.Content(parts=[types.Part(text="Four.")]))
    for _ in range(2):
        await service.add_memory(app_name=APP, user_id="crash", memories=[entry])
    assert stored("shop:crash")[3:] == ["Four."]

    for user in ("a:b", "a%3Ab"):
        await service.add_memory(app_name=user, user_id="c", memories=[entry])
    assert {"a%3Ab:c", "a%253Ab:c"} <= {one.agent_id for one in client.every_agent()}
    if KEYS_ON:
        closed = EbbtideMemoryService(narrow())
        with refused(Forbidden):
            await closed.search_memory(query="Where?", **search)
        with refused(Forbidden):
            await closed.add_session_to_memory(crashed)


asyncio.run(main())
asked = {"app_name": APP, "user_id": "crash", "query": "What was it?"}
with asyncio.Runner() as loop:
    ratio(
        "search",
        lambda: loop.run(service.search_memory(**asked)),
        lambda: client.search("shop:crash", "What was it?", max_results=10),
    )
