"""`ContextWindow`: keep a conversation within the context of its model, and its past in memory.

Add each message, and call `prepare` before each call of your model. Over its threshold, the window stores its oldest
turns as one batch and removes them. It puts first what the agent remembers about the last message of the user. **One
batch is one unit of the memory's time.**

If the daemon is unavailable, the conversation continues: `prepare` returns the messages of the window and tries again
next time. A message is removed only after the daemon has stored it on disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ebbtide_client.async_client import AsyncClient
from ebbtide_client.calls import AnyMessage
from ebbtide_client.client import Client
from ebbtide_client.errors import ConnectionFailed, Deadline, EbbtideError, Exhausted, Unavailable
from ebbtide_client.models import Remembered
from ebbtide_client.window import Parcel, Window, estimate_tokens

HEADING = "What you remember from earlier conversations:\n"

PASSING = (ConnectionFailed, Deadline, Exhausted, Unavailable)
"""Temporary failures, which `prepare` does not raise."""

C = TypeVar("C", Client, AsyncClient)


class _ContextWindow(Generic[C]):
    """Everything that the sync and the async window share."""

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
        """The error of the latest `prepare` or `submit`; None if it succeeded."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the window, as a language model takes them, without memories."""
        return self._window.messages

    @property
    def token_count(self) -> int:
        """Tokens of the messages in the window."""
        return self._window.tokens

    @property
    def is_over_threshold(self) -> bool:
        """Whether the next `prepare` or `submit` stores a batch."""
        return self._window.is_over

    def add(self, *messages: AnyMessage) -> None:
        """Append messages. Nothing is sent."""
        now_ms = int(time.time() * 1000)
        for message in messages:
            self._window.add(message, now_ms)

    def _cue(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a recall, by default with dates and the user's last message as the query."""
        defaults: dict[str, Any] = {"dates": True}
        if not options.get("relations") and options.get("mode") != "associative":
            defaults["query"] = self._window.question
        return defaults | options

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
        logging.getLogger("ebbtide_client").warning("%s failed, will be retried: %s", verb, error)


class ContextWindow(_ContextWindow[Client]):
    """A conversation's window over a `Client`. For one thread."""

    def prepare(self, *keywords: str, **options: Any) -> list[dict[str, Any]]:
        """Return the messages for the next call of your model, with the recalled memories first.

        Store what is over the threshold before. `options` are those of `recall`. By default `query` is the last message
        of the user and `dates` is on; `query=None` recalls by keywords and focus alone.
        """
        self.last_error = None
        try:
            self._submit(everything=False)
        except EbbtideError as error:
            self._survive(error, "remember")
        try:
            text = self._client.recall(self._agent_id, keywords, **self._cue(options)).text
        except EbbtideError as error:
            self._survive(error, "recall")
            text = ""
        return self._window.with_memory(self._heading, text)

    def submit(self, *, everything: bool = False) -> Remembered | None:
        """Store what is over the threshold, or everything. Return None if there was nothing to store.

        Raises the errors of `remember`; the messages then stay in the window.
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
        """Return the messages for the next call of your model, with the recalled memories first.

        Store what is over the threshold before. `options` are those of `recall`. By default `query` is the last message
        of the user and `dates` is on; `query=None` recalls by keywords and focus alone.
        """
        self.last_error = None
        try:
            await self._submit(everything=False)
        except EbbtideError as error:
            self._survive(error, "remember")
        try:
            text = (await self._client.recall(self._agent_id, keywords, **self._cue(options))).text
        except EbbtideError as error:
            self._survive(error, "recall")
            text = ""
        return self._window.with_memory(self._heading, text)

    async def submit(self, *, everything: bool = False) -> Remembered | None:
        """Store what is over the threshold, or everything. Return None if there was nothing to store.

        Raises the errors of `remember`; the messages then stay in the window.
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
