"""`ContextWindow`: keeps a conversation within its model's context, and its past within reach.

Add messages as they are said; before each call of your model, `prepare`. When the window is over its threshold the
oldest turns are remembered as one batch and leave it; what the agent recalls is put before the rest. **One batch is
one unit of the memory's time.**

Memory that cannot be reached does not stop the conversation: `prepare` then returns what is in the window, and
tries again next time. Nothing leaves the window before the daemon has it on disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ebbtide_client.async_client import AsyncClient
from ebbtide_client.calls import AnyMessage
from ebbtide_client.client import Client
from ebbtide_client.errors import ConnectionFailed, Deadline, EbbtideError, Exhausted, NotFound, Unavailable
from ebbtide_client.models import Remembered
from ebbtide_client.window import Parcel, Window, estimate_tokens

HEADING = "What you remember from earlier conversations:\n"

PASSING = (ConnectionFailed, Deadline, Exhausted, Unavailable)
"""Failures that `prepare` survives; anything else is a fault that does not pass by itself, and is raised."""

C = TypeVar("C", Client, AsyncClient)


class _ContextWindow(Generic[C]):
    """What both kinds share: everything but waiting."""

    def __init__(
        self,
        client: C,
        agent_id: str,
        *,
        context_max_tokens: int,
        context_threshold_ratio: float = 0.8,
        context_keep_ratio: float = 0.2,
        count_tokens: Callable[[str], int] = estimate_tokens,
        conversation_id: str | None = None,
        heading: str = HEADING,
    ) -> None:
        self._client: C = client
        self._agent_id = agent_id
        self._conversation_id = conversation_id
        self._heading = heading
        self._window = Window(
            max_tokens=context_max_tokens,
            threshold_ratio=context_threshold_ratio,
            keep_ratio=context_keep_ratio,
            count_tokens=count_tokens,
        )
        self.last_error: EbbtideError | None = None
        """What the latest `prepare` or `submit` met; None when all went well."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What is in the window, as a language model takes it, without memories."""
        return self._window.messages

    @property
    def token_count(self) -> int:
        """What it weighs."""
        return self._window.tokens

    @property
    def is_over_threshold(self) -> bool:
        """Whether the next `prepare` or `submit` has something to remember."""
        return self._window.is_over

    def add(self, *messages: AnyMessage) -> None:
        """Put messages at the end. Nothing is sent, so nothing can fail."""
        now_ms = int(time.time() * 1000)
        for message in messages:
            self._window.add(message, now_ms)

    def _batch(self, parcel: Parcel) -> dict[str, Any]:
        return {
            "messages": parcel.messages,
            "conversation_id": self._conversation_id,
            "idempotency_key": parcel.key,
        }

    def _survive(self, error: EbbtideError, verb: str) -> None:
        self.last_error = error
        if not isinstance(error, PASSING):
            raise error
        logging.getLogger("ebbtide_client").warning("%s failed, to be tried again: %s", verb, error)

    def _survive_recall(self, error: EbbtideError) -> str:
        # An agent that has never remembered anything has nothing to recall, and that is no failure.
        if not (isinstance(error, NotFound) and error.reason == "AGENT_NOT_FOUND"):
            self._survive(error, "recall")
        return ""


class ContextWindow(_ContextWindow[Client]):
    """A conversation's window over a `Client`. For one thread."""

    def prepare(self, *keywords: str, **options: Any) -> list[dict[str, Any]]:
        """The messages for the next call of your model, with what the agent recalls put first.

        Remembers what is over the threshold before. `options` are those of `recall`.
        """
        self.last_error = None
        try:
            self._submit(everything=False)
        except EbbtideError as error:
            self._survive(error, "remember")
        try:
            text = self._client.recall(self._agent_id, keywords, **options).text
        except EbbtideError as error:
            text = self._survive_recall(error)
        return self._window.with_memory(self._heading, text)

    def submit(self, *, everything: bool = False) -> Remembered | None:
        """Remember what is over the threshold, or everything; None when there was nothing to remember.

        Raises what `remember` raises; the messages are then still in the window.
        """
        self.last_error = None
        try:
            return self._submit(everything)
        except EbbtideError as error:
            self.last_error = error
            raise

    def _submit(self, everything: bool) -> Remembered | None:
        remembered = None
        while (parcel := self._window.due(everything=everything)) is not None:
            remembered = self._client.remember(self._agent_id, **self._batch(parcel))
            self._window.settle(parcel)
        return remembered


class AsyncContextWindow(_ContextWindow[AsyncClient]):
    """A conversation's window over an `AsyncClient`. For one event loop."""

    async def prepare(self, *keywords: str, **options: Any) -> list[dict[str, Any]]:
        """The messages for the next call of your model, with what the agent recalls put first.

        Remembers what is over the threshold before. `options` are those of `recall`.
        """
        self.last_error = None
        try:
            await self._submit(everything=False)
        except EbbtideError as error:
            self._survive(error, "remember")
        try:
            text = (await self._client.recall(self._agent_id, keywords, **options)).text
        except EbbtideError as error:
            text = self._survive_recall(error)
        return self._window.with_memory(self._heading, text)

    async def submit(self, *, everything: bool = False) -> Remembered | None:
        """Remember what is over the threshold, or everything; None when there was nothing to remember.

        Raises what `remember` raises; the messages are then still in the window.
        """
        self.last_error = None
        try:
            return await self._submit(everything)
        except EbbtideError as error:
            self.last_error = error
            raise

    async def _submit(self, everything: bool) -> Remembered | None:
        remembered = None
        while (parcel := self._window.due(everything=everything)) is not None:
            remembered = await self._client.remember(self._agent_id, **self._batch(parcel))
            self._window.settle(parcel)
        return remembered
