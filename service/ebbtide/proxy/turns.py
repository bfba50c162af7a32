"""Turns of chats that are remembered after the answer, outside the request.

The queue is in memory and bounded: a turn beyond it is dropped and counted. A crash between the answer and the commit
loses that turn. The log contains ids and reasons, never a text.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from ebbtide.access.grants import CALLER, Caller, let_ask
from ebbtide.actor import NO_ACTOR, set_actor
from ebbtide.errors import EbbtideError
from ebbtide.telemetry import get_log, in_background
from ebbtide.verbs.calling import call_operation, ensure_agent
from ebbtide.verbs.service import Service

MAX_TURNS = 1000
"""Most turns that wait to be remembered."""

CLOSE_TIMEOUT_S = 2.0
"""Longest time that a stop of the daemon waits for the queue."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user, and the answer."""

    agent_id: str
    caller: Caller
    conversation: str
    key: str
    """The idempotency key."""
    texts: tuple[tuple[str, str], ...]
    """The role and the text of each message."""


class Turns:
    """The queue of turns."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._waiting: deque[Turn] = deque()
        self._working: asyncio.Task[None] | None = None

    def add(self, turn: Turn) -> None:
        """Remember a turn soon."""
        if len(self._waiting) >= MAX_TURNS:
            self._drop(turn, "queue_full", "QUEUE_FULL")
            return
        self._waiting.append(turn)
        if self._working is None or self._working.done():
            self._working = in_background(self._work())

    async def settled(self) -> None:
        """Wait until no turn waits."""
        while self._working is not None and not self._working.done():
            await asyncio.wait([self._working])

    async def close(self) -> None:
        """Remember what waits, for a short time; drop the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.settled()
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        while self._waiting:
            self._drop(self._waiting.popleft(), "stopped", "SHUTTING_DOWN")

    async def _work(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            try:
                await self._remember(turn)
            except EbbtideError as error:
                is_repeated = error.reason == "IDEMPOTENCY_KEY_REUSED"
                self._drop(turn, "repeated" if is_repeated else "refused", error.reason)
            except Exception as error:
                get_log("proxy").error("turn not remembered", agent=turn.agent_id, exc_info=error)
                self._drop(turn, "refused", "INTERNAL")

    async def _remember(self, turn: Turn) -> None:
        token = CALLER.set(turn.caller)
        let_ask(turn.caller)
        try:
            await ensure_agent(self._service, turn.agent_id)
            await call_operation(
                self._service,
                turn.agent_id,
                "Remember",
                messages=[{"role": role, "content": text} for role, text in turn.texts],
                conversation_id=turn.conversation,
                idempotency_key=turn.key,
            )
        finally:
            CALLER.reset(token)
            set_actor(NO_ACTOR)

    def _drop(self, turn: Turn, outcome: str, reason: str) -> None:
        self._service.metrics.turn_dropped(outcome)
        if outcome != "repeated":
            get_log("proxy").warning(
                "turn not remembered", agent=turn.agent_id, conversation=turn.conversation, reason=reason
            )
