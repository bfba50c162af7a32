"""Drive the context provider with a real agent of Microsoft's Agent Framework and a scripted chat client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    SessionContext,
)
from agent_framework.exceptions import IntegrationInvalidAuthException
from driving import FACTS, KEYS_ON, client, narrow, ratio, refused, stored

from ebbtide_client.integrations.agent_framework import EbbtideContextProvider

prompts: list[str] = []


class Scripted(BaseChatClient):
    """A model that notes its prompt and answers."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        prompts.append("\n".join(message.text for message in messages))
        if stream:

            async def updates() -> Any:
                for text in ("Not", "ed."):
                    content = Content.from_text(text)
                    yield ChatResponseUpdate(role="assistant", contents=[content], response_id="r")

            return self._build_response_stream(updates())

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", ["Noted."])])

        return whole()


def agent_with(provider: EbbtideContextProvider) -> Agent:
    """Return an agent with a memory."""
    return Agent(client=Scripted(), context_providers=[provider])


def user_of(session: AgentSession) -> str | None:
    """Return the agent of the user of a session."""
    return session.state.get("user")


def session_of(user: str | None) -> AgentSession:
    """Return a new session of a user."""
    session = AgentSession()
    if user:
        session.state["user"] = user
    return session


async def main() -> None:
    """Talk in sessions of several users that share one agent."""
    provider = EbbtideContextProvider(client, user_of)
    agent = agent_with(provider)
    for number, (fact, question, word) in enumerate(FACTS):
        user = f"林月{number}"
        session = session_of(user)
        await agent.run(fact, session=session)
        stream = agent.run("The tea is warm today.", session=session, stream=True)
        assert "".join([update.text async for update in stream]) == "Noted."
        await stream.get_final_response()
        said = [fact, "Noted.", "The tea is warm today.", "Noted."]
        assert stored(user) == said, stored(user)
        [batch, _] = client.every_batch(user)
        assert batch.conversation_id == session.session_id
        await agent.run(question, session=session_of(user))
        assert word in prompts[-1], prompts[-1]
        for stranger in (f"other{number}", None):
            await agent.run(question, session=session_of(stranger))
            assert word not in prompts[-1]
        assert fact not in stored(user)[4:], "what was recalled is not stored again"
    agents = {one.agent_id for one in client.every_agent()}
    assert agents == {"林月0", "林月1", "other0", "other1"}, "without an agent nothing is stored"

    session = session_of("late")
    client.lost_before = True
    assert (await agent.run("One.", session=session)).text == "Noted."
    client.lost_before, client.lost_after = False, True
    await agent.run("Two.", session=session)
    client.lost_after = False
    restored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    await agent_with(EbbtideContextProvider(client, user_of)).run("Three.", session=restored)
    said = [text for text in stored("late") if text != "Noted."]
    assert said == ["One.", "Two.", "Three."], "a turn waits in its session, and is stored once"

    session = session_of("late")
    context = SessionContext(session_id="s", input_messages=[Message("user", ["Four."])])
    context._response = ChatResponse(messages=[Message("assistant", ["Noted."])], response_id="r")
    for _ in range(2):
        await provider.after_run(agent=agent, session=session, context=context, state={})
    assert stored("late").count("Four.") == 1
    if KEYS_ON:
        with refused(IntegrationInvalidAuthException):
            await agent_with(EbbtideContextProvider(narrow(), "late")).run("Five.")


asyncio.run(main())
provider = EbbtideContextProvider(client, "late")
session = AgentSession()


async def before() -> None:
    """Recall for a run."""
    context = SessionContext(input_messages=[Message("user", ["What was it?"])])
    await provider.before_run(agent=None, session=session, context=context, state={})


with asyncio.Runner() as loop:
    ratio("recall", lambda: loop.run(before()), lambda: client.recall("late", query="What was it?"))
