"""A memory block for LlamaIndex: `EbbtideMemoryBlock`.

The block stores what leaves the short-term memory, and returns what the agent remembers about the last message of the
user. A batch that cannot be stored waits in the block, because LlamaIndex passes messages only once.
Needs `llama-index-core`.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field, PrivateAttr

from ebbtide_client.client import Client
from ebbtide_client.integrations.sending import Batch, Sender, batches_of, messages_of

ROLES = ("user", "assistant")


class EbbtideMemoryBlock(BaseMemoryBlock[str]):
    """The memory of one agent: one block for each user."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = "ebbtide"
    client: Client = Field(exclude=True, description="The client of the daemon.")
    agent_id: str = Field(description="The agent whose memory it is.")
    token_budget: int | None = Field(default=None, description="Most tokens of a recall.")

    _sender: Sender = PrivateAttr()
    _waiting: list[Batch] = PrivateAttr(default_factory=list)

    def model_post_init(self, _: Any, /) -> None:
        """Make the sender."""
        self._sender = Sender(self.client)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        said = [message.content or "" for message in messages or [] if message.role == "user"]
        return await asyncio.to_thread(self._recall, said[-1] if said else "")

    def _recall(self, query: str) -> str:
        self._sender.send_waiting(self.agent_id, self._waiting)
        return self._sender.recall(self.agent_id, query, token_budget=self.token_budget)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        said = [
            part
            for message in messages
            if message.role in ROLES
            for part in messages_of(str(message.role.value), message.content or "")
        ]
        session_id = messages[0].additional_kwargs.get("session_id") if messages else None
        self._waiting += batches_of(said, uuid.uuid4().hex, session_id)
        await asyncio.to_thread(self._sender.send_waiting, self.agent_id, self._waiting)
