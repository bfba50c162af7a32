"""Embedding: what an agent was told gets vectors in the background, as soon as its model can give them.

Read the next messages that have none (job) → ask the embedder (nothing held meanwhile) → commit what it gave
(job). Whatever goes wrong costs nothing but time: words find what has no vector, and the work goes on where it
stopped after a failure, a restart, or a change of the model. A text that a model cannot take costs that text its
vector, not the others theirs; but only a model that is seen to be well may say so, since it is never asked again.

An agent is not kept open for this: vectors are made while it is open anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from ebbtide.errors import EbbtideError
from ebbtide.fleet.archive.unembedded import Vector
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.slice import Budget
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.language.embedding import PROBE, Embedder
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.limiter import Priority, PriorityLimiter
from ebbtide.language.served.retry import RetryPolicy
from ebbtide.metrics import Metrics
from ebbtide.telemetry import get_log, span

GATHERING_S = 0.3
"""How long a round waits for more to come: each round is a commit."""


class Embedding:
    """Gives vectors to one agent's messages until it is cancelled."""

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        embedder: Embedder,
        gate: PriorityLimiter,
        patience: RetryPolicy,
        budget: Callable[[], Budget],
        on_embedded: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._embedder = embedder
        self._gate = gate
        self._patience = patience
        self._budget = budget
        self._on_embedded = on_embedded
        self._metrics = metrics
        self._arrived = asyncio.Event()
        self._failures = 0
        self._has_probed = False
        """Whether the model was seen to be well in this round."""
        self._has_given_up = False
        """Whether a text was left without a vector in this round."""
        self.held_up_by = ""
        """What it waits over, after a failure; nothing while it goes on."""
        self.model_fault = ""
        """The same, where the model is to blame."""
        self._log = get_log("embedding").bind(agent_id=workspace.identity.agent_id)

    @property
    def model(self) -> str:
        """The name that the vectors are stamped with."""
        return self._embedder.model

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; 0 until that is known."""
        return self._embedder.dimension or 0

    @property
    def is_held_up(self) -> bool:
        """Whether it sleeps over a failure, and nothing gets vectors meanwhile."""
        return self.held_up_by != ""

    def notice(self) -> None:
        """Messages have arrived, or have to be embedded again, or the index has fallen behind."""
        self._arrived.set()

    async def run(self) -> None:
        """Embed for ever."""
        while True:
            try:
                await self._once()
            except ModelUnavailable as error:
                await self._hold(
                    error.retry_after_s, "no embedder answers", str(error), model_fault=str(error)
                )
            except EbbtideError as error:
                await self._hold(error.retry_after_s, "the store refused", error.reason)
            except Exception as error:
                # A fault of ours must not end it: nothing would be embedded until the next opening.
                self._log.error("embedding failed", exc_info=error)
                await self._hold(None, "a fault of ours", type(error).__name__)

    async def _hold(self, pause_s: float | None, why: str, detail: str, *, model_fault: str = "") -> None:
        self._failures += 1
        self.held_up_by, self.model_fault = f"{why}: {detail}", model_fault
        pause_s = pause_s or self._patience.pause_s(self._failures)
        self._log.warning("embedding waits", why=why, detail=detail, pause_s=pause_s)
        await asyncio.sleep(pause_s)

    async def _once(self) -> None:
        """One round; where nothing lacks a vector, wait for what does."""
        self._arrived.clear()
        job = partial(self._workspace.next_unembedded, self.model, self.dimension)
        work = await self._mailbox.run(job)
        if work is not None:
            vectors = await self._round(work.all_texts)
            await self._mailbox.run(partial(self._workspace.keep_vectors, work, vectors))
            self._goes_on()
            self._on_embedded()
            return
        await self._index()
        self._goes_on()
        await self._arrived.wait()
        await asyncio.sleep(GATHERING_S)

    def _goes_on(self) -> None:
        self._failures = 0
        self.held_up_by = self.model_fault = ""

    async def _round(self, texts: Sequence[str]) -> list[Vector | None]:
        """A vector for each text, or None for those that the model cannot take. ModelUnavailable if it takes none."""
        self._has_probed = self._has_given_up = False
        vectors = await self._vectors(texts)
        if self._has_given_up:
            # It may have broken down after it was seen to be well.
            await self._probe()
        return vectors

    async def _vectors(self, texts: Sequence[str]) -> list[Vector | None]:
        if not texts:
            return []
        try:
            return await self._asked(texts)
        except BadReply:
            if len(texts) == 1:
                return [await self._alone(texts[0])]
        half = len(texts) // 2
        return await self._vectors(texts[:half]) + await self._vectors(texts[half:])

    async def _alone(self, text: str) -> Vector | None:
        """The vector of a text that has failed, asked for again of a model that is well; None where it fails again."""
        if not self._has_probed:
            await self._probe()
            self._has_probed = True
        try:
            return (await self._asked([text]))[0]
        except BadReply as error:
            self._has_given_up = True
            self._log.warning("a text gets no vector", detail=str(error))
            return None

    async def _probe(self) -> None:
        """Make sure that the model is well. ModelUnavailable where it is not: then no text is to blame."""
        try:
            await self._asked([PROBE])
        except BadReply as error:
            raise ModelUnavailable(f"{self.model} gives no vectors that can be used: {error}") from error

    async def _asked(self, texts: Sequence[str]) -> list[Vector | None]:
        async with self._gate.passing(Priority.BACKGROUND):
            begun_s, outcome = asyncio.get_running_loop().time(), "cancelled"
            try:
                with span("embedding", texts=len(texts)):
                    vectors = await self._embedder.embed(texts)
                outcome = "ok"
                return vectors
            except (ModelUnavailable, BadReply) as error:
                outcome = "bad_reply" if isinstance(error, BadReply) else "unavailable"
                raise
            finally:
                self._metrics.model_call("embed", outcome, asyncio.get_running_loop().time() - begun_s)

    async def _index(self) -> None:
        """Bring the index of very many vectors up to date, a little at a time; what arrives goes first."""
        while not self._arrived.is_set():
            if not await self._mailbox.run(lambda: self._workspace.index_vectors(self._budget())):
                return
