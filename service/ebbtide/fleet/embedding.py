"""Embedding: what an agent was told gets vectors in the background, as soon as its model can give them.

Read the next messages that have none (job) → ask the embedder (nothing held meanwhile) → commit what it gave
(job). Whatever goes wrong costs nothing but time: words find what has no vector, and the work goes on where it
stopped after a failure, a restart, or a change of the model. A text that a model cannot take costs that text its
vector, not the others theirs.

An agent is not kept open for this: vectors are made while it is open anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import EbbtideError
from ebbtide.fleet.mailbox import Mailbox
from ebbtide.fleet.slice import Budget
from ebbtide.fleet.workspace import Workspace
from ebbtide.language.embedding import Embedder
from ebbtide.language.gate import Gate, Priority
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.retry import Patience
from ebbtide.telemetry import get_log

GATHERING_S = 0.3
"""How long a round waits for more to come: each round is a commit."""


class Embedding:
    """Gives vectors to one agent's messages until it is cancelled."""

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        embedder: Embedder,
        gate: Gate,
        patience: Patience,
        budget: Callable[[], Budget],
        on_embedded: Callable[[], None],
    ) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._embedder = embedder
        self._gate = gate
        self._patience = patience
        self._budget = budget
        self._on_embedded = on_embedded
        self._arrived = asyncio.Event()
        self._failures = 0
        self._log = get_log("embedding").bind(agent_id=workspace.identity.agent_id)

    @property
    def model(self) -> str:
        """The name that the vectors are stamped with."""
        return self._embedder.model

    def notice(self) -> None:
        """Messages have arrived, or have to be embedded again, or the index has fallen behind."""
        self._arrived.set()

    async def run(self) -> None:
        """Embed for ever."""
        while True:
            try:
                await self._once()
                self._failures = 0
            except ModelUnavailable as error:
                await self._hold(error.retry_after_s, "no embedder answers", str(error))
            except EbbtideError as error:
                await self._hold(error.retry_after_s, "the store refused", error.reason)
            except Exception as error:
                # A fault of ours must not end it: nothing would be embedded until the next opening.
                self._log.error("embedding failed", exc_info=error)
                await self._hold(None, "a fault of ours", type(error).__name__)

    async def _hold(self, pause_s: float | None, why: str, detail: str) -> None:
        self._failures += 1
        pause_s = pause_s or self._patience.pause_s(self._failures)
        self._log.warning("embedding waits", why=why, detail=detail, pause_s=pause_s)
        await asyncio.sleep(pause_s)

    async def _once(self) -> None:
        """One round; where nothing lacks a vector, wait for what does."""
        self._arrived.clear()
        work = await self._mailbox.run(partial(self._workspace.next_unembedded, self.model))
        if work is not None:
            vectors = await self._vectors(work.all_texts)
            await self._mailbox.run(partial(self._workspace.keep_vectors, work, vectors))
            self._on_embedded()
            return
        await self._index()
        await self._arrived.wait()
        await asyncio.sleep(GATHERING_S)

    async def _vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        if not texts:
            return []
        async with self._gate.passing(Priority.BACKGROUND):
            try:
                return await self._embedder.embed(texts)
            except BadReply as error:
                if len(texts) == 1:
                    self._log.warning("a text gets no vector", detail=str(error))
                    return [None]
        half = len(texts) // 2
        return await self._vectors(texts[:half]) + await self._vectors(texts[half:])

    async def _index(self) -> None:
        """Bring the index of very many vectors up to date, a little at a time; what arrives goes first."""
        while not self._arrived.is_set():
            if not await self._mailbox.run(lambda: self._workspace.index_vectors(self._budget())):
                return
