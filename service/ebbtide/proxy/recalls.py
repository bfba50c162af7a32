"""The block of memories for a chat, within a deadline. No fault of the memory is raised.

Every round of a tool loop gets the block of its first round, so the model and its prompt cache see the same words.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from ebbtide.errors import EbbtideError
from ebbtide.han import contains_han
from ebbtide.proxy.chats import Chat, block_of, hashed
from ebbtide.retrieval.tokenizers import count_tokens
from ebbtide.telemetry import get_log
from ebbtide.verbs.calling import call_operation
from ebbtide.verbs.service import Service

MAX_BLOCKS = 1000
FIRST_TIMEOUT_S = 10.0
"""Longest time for the first memories in a language, since the first query in it loads word lists and models."""

BLOCK_TTL_S = 900.0
"""Blocks are kept this long, for further rounds of the same turn."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A block, or why there is none."""

    block: str = ""
    outcome: str = "empty"
    """used, empty, timeout or error."""

    @property
    def header(self) -> str:
        """The value of the header `X-Ebbtide-Memory`."""
        if self.outcome == "used":
            return f"used; tokens={count_tokens(self.block, 'estimate')}"
        return self.outcome if self.outcome == "empty" else f"skipped; reason={self.outcome}"


OFF = Recalled(outcome="off")
"""No memories are recalled for this request."""


class Recalls:
    """Recalls for chats."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._blocks: OrderedDict[str, tuple[float, Recalled]] = OrderedDict()
        self._is_warm = {False: False, True: False}
        """Whether memories were recalled, by whether the query contained Chinese."""

    async def of(self, agent_id: str, conversation: str, chat: Chat) -> Recalled:
        """Return the block for the last message of the user."""
        key = hashed(agent_id, conversation, chat.turn_key)
        now_s = self._service.clock.monotonic_s()
        if not chat.is_first_round and key in self._blocks:
            kept_s, kept = self._blocks[key]
            if now_s - kept_s < BLOCK_TTL_S:
                return kept
        found = await self._recall(agent_id, chat.text)
        if found.outcome in ("used", "empty"):
            self._blocks[key] = (now_s, found)
            self._blocks.move_to_end(key)
            if len(self._blocks) > MAX_BLOCKS:
                self._blocks.popitem(last=False)
        return found

    async def _recall(self, agent_id: str, text: str) -> Recalled:
        settings = self._service.settings
        timeout_s, is_han = settings.proxy.recall_timeout_ms / 1000, contains_han(text)
        try:
            async with asyncio.timeout(
                timeout_s if self._is_warm[is_han] else max(timeout_s, FIRST_TIMEOUT_S)
            ):
                found = await call_operation(
                    self._service,
                    agent_id,
                    "Recall",
                    query=text[: settings.limits.max_query_chars],
                    token_budget=settings.proxy.token_budget,
                    patience_ms=0,
                )
        except TimeoutError:
            self._is_warm[is_han] = True
            return Recalled(outcome="timeout")
        except EbbtideError as error:
            get_log("proxy").warning("no memories recalled", agent=agent_id, reason=error.reason)
            return Recalled(outcome="error")
        except Exception as error:
            get_log("proxy").error("no memories recalled", agent=agent_id, exc_info=error)
            return Recalled(outcome="error")
        if not found.text:
            # An agent that does not exist loads nothing.
            return Recalled()
        self._is_warm[is_han] = True
        return Recalled(block_of(found.text), "used")
