"""Turns of chats that are remembered after the answer, outside the request.

The queue is in memory and bounded: a turn beyond it is dropped and counted. A crash between the answer and the commit
loses that turn. The log contains ids and reasons, never a text.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from dataclasses import dataclass

from ebbtide.access.grants import CALLER, Caller, let_ask
from ebbtide.actor import NO_ACTOR, set_actor
from ebbtide.errors import EbbtideError, NotFound
from ebbtide.ids import AgentId, batch_text_id
from ebbtide.telemetry import get_log, in_background
from ebbtide.verbs.batches import BatchRequest, get_batch
from ebbtide.verbs.calling import call_operation, ensure_agent, is_gone
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.service import Service

MAX_TURNS = 1000
"""Most turns that wait to be remembered."""

MAX_AGENTS = 10_000
"""Most agents whose newest turn is known."""

CLOSE_TIMEOUT_S = 2.0
"""Longest time that a stop of the daemon waits for the queue."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user, and the answer."""

    agent_id: str
    caller: Caller
    conversation: str
    key: str
    """Equal for all answers to one message of a chat."""
    texts: tuple[tuple[str, str], ...]
    """The role and the text of each message."""


class Turns:
    """The queue of turns."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._waiting: deque[Turn] = deque()
        self._working: asyncio.Task[None] | None = None
        self._newest: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The key and the batch of the turn of each agent that was stored last."""

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
                self._drop(turn, "refused", error.reason)
            except Exception as error:
                get_log("proxy").error("turn not remembered", agent=turn.agent_id, exc_info=error)
                self._drop(turn, "refused", "INTERNAL")

    async def _remember(self, turn: Turn) -> None:
        token = CALLER.set(turn.caller)
        let_ask(turn.caller)
        try:
            if await self._is_repeated(turn):
                self._service.metrics.turn_dropped("repeated")
                return
            await ensure_agent(self._service, turn.agent_id)
            done: Remembered = await call_operation(
                self._service,
                turn.agent_id,
                "Remember",
                messages=[{"role": role, "content": text} for role, text in turn.texts],
                conversation_id=turn.conversation,
            )
            self._newest[turn.agent_id] = turn.key, done.batch_id
            self._newest.move_to_end(turn.agent_id)
            if len(self._newest) > MAX_AGENTS:
                self._newest.popitem(last=False)
        finally:
            CALLER.reset(token)
            set_actor(NO_ACTOR)

    async def _is_repeated(self, turn: Turn) -> bool:
        """Return whether a turn is another answer to the newest message of its agent, and that is not deleted.

        After any other message an equal turn is news: it may be of another chat that begins with the same words.
        """
        key, batch_id = self._newest.get(turn.agent_id, ("", ""))
        if key != turn.key:
            return False
        try:
            async with self._service.fleet.using(AgentId(turn.agent_id)) as agent:
                newest = batch_text_id(await agent.last_accepted())
            batch = await get_batch(self._service, BatchRequest(agent_id=turn.agent_id, batch_id=batch_id))
        except NotFound:
            return False
        if newest == batch_id and not batch.node_ids:
            # Small talk may have no memory that could be deleted.
            return True
        now_ms = self._service.clock.now_ms()
        return newest == batch_id and not await is_gone(self._service, turn.agent_id, batch_id, now_ms)

    def _drop(self, turn: Turn, outcome: str, reason: str) -> None:
        self._service.metrics.turn_dropped(outcome)
        get_log("proxy").warning(
            "turn not remembered", agent=turn.agent_id, conversation=turn.conversation, reason=reason
        )
