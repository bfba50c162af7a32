"""A context provider for Microsoft's Agent Framework: `EbbtideContextProvider`.

Before a run it adds what the agent remembers about the input, and after it it stores the input and the answer. A turn
that cannot be stored waits in the state of its session, which the framework persists with the session.
Needs `agent-framework-core`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_framework import AgentSession, ContextProvider, Message, SessionContext
from agent_framework.exceptions import (
    IntegrationException,
    IntegrationInvalidAuthException,
    IntegrationInvalidRequestException,
)

from ebbtide_client.client import Client
from ebbtide_client.context_window import HEADING
from ebbtide_client.errors import EbbtideError, Forbidden, InvalidRequest, Unauthenticated
from ebbtide_client.integrations.sending import Batch, Sender, batches_of, digest, messages_of

ROLES = ("user", "assistant")


class EbbtideContextProvider(ContextProvider):
    """Memory for an agent. The same provider may serve the sessions of many users."""

    def __init__(
        self,
        client: Client,
        agent_id: str | Callable[[AgentSession], str | None],
        source_id: str = "ebbtide",
        *,
        heading: str = HEADING,
        token_budget: int | None = None,
    ) -> None:
        """Use the memory of an agent, or that of the agent that a function returns for a session.

        Without an agent for its session, a run has no memory.
        """
        super().__init__(source_id)
        self._sender = Sender(client)
        self._agent_id = agent_id
        self._heading = heading
        self._token_budget = token_budget

    def _agent_of(self, session: AgentSession) -> str | None:
        return self._agent_id if isinstance(self._agent_id, str) else self._agent_id(session)

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what the agent remembers about the input, as a message."""
        if not (agent_id := self._agent_of(session)):
            return
        query = "\n".join(message.text for message in context.input_messages if message.role == "user")
        with _integration_errors():
            await asyncio.to_thread(self._sender.send_waiting, agent_id, _waiting(state, agent_id))
            text = await asyncio.to_thread(
                self._sender.recall, agent_id, query, token_budget=self._token_budget
            )
        if text:
            context.extend_messages(self, [Message("user", [self._heading + text])])

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the input and the answer."""
        if not (agent_id := self._agent_of(session)):
            return
        response = context.response
        said = [
            part
            for message in [*context.input_messages, *(response.messages if response else [])]
            if message.role in ROLES
            for part in messages_of(str(message.role), message.text)
        ]
        # The id of a response alone is not unique with every model server.
        known = response.response_id if response else None
        key = digest(session.session_id, known, said) if known else uuid.uuid4().hex
        waiting = _waiting(state, agent_id)
        waiting += batches_of(said, key, session.session_id)
        with _integration_errors():
            await asyncio.to_thread(self._sender.send_waiting, agent_id, waiting)


def _waiting(state: dict[str, Any], agent_id: str) -> list[Batch]:
    """Return the batches of a session that wait for its agent: those of another agent are never sent to this one."""
    waiting: list[Batch] = state.setdefault("waiting", {}).setdefault(agent_id, [])
    return waiting


@contextmanager
def _integration_errors() -> Iterator[None]:
    """Raise errors of the daemon as those of the framework."""
    try:
        yield
    except (Unauthenticated, Forbidden) as error:
        raise IntegrationInvalidAuthException(str(error), error) from error
    except InvalidRequest as error:
        raise IntegrationInvalidRequestException(str(error), error) from error
    except EbbtideError as error:
        raise IntegrationException(str(error), error) from error
