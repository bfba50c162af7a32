"""Embedding: an agent's messages get vectors in the background.

Read the next messages without vectors (job) → call the embedder, holding nothing → commit the vectors (job). A failure
costs only time: recall finds messages without vectors by their words, and the work resumes after a failure, a
restart or a change of the model. A text that the model rejects stays without a vector and is not retried. The
model must therefore be proven healthy before a text is blamed.

Embedding does not keep an agent open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.archive.unembedded import TEXTS_PER_ROUND, Vector
from ebbtide.fleet.runtime.background_task import BackgroundTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.language.embedding import PROBE, Embedder
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.limiter import Priority
from ebbtide.telemetry import span

GATHERING_S = 0.3
"""How long a round waits for more messages: each round is one commit."""

MAX_NAMES = 1000
"""Most names that are compared by their vectors; more are compared by their words alone."""

NAMES_PER_CALL = 64

NAMES_TIMEOUT_S = 2.0
"""How long the vectors of names are awaited, for example while a message of another agent is embedded."""


class Embedding(BackgroundTask):
    """Computes vectors of one agent's messages until it is cancelled."""

    NO_MODEL = "no embedder answers"

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        embedder: Embedder,
        shared: SharedResources,
        on_embedded: Callable[[], None],
    ) -> None:
        super().__init__("embedding", workspace.identity.agent_id, shared.model_client.patience)
        self._workspace = workspace
        self._mailbox = mailbox
        self._embedder = embedder
        self._shared = shared
        self._on_embedded = on_embedded
        self._texts_per_round: int = getattr(embedder, "texts_per_round", TEXTS_PER_ROUND)
        self._is_model_healthy = False
        """Whether the probe succeeded in this round."""
        self._has_skipped = False
        """Whether a text was left without a vector in this round."""
        self._name_vectors: dict[str, Vector | None] = {}
        """The vectors of the names that were compared last."""
        self.model_fault = ""
        """Why the model is unavailable; empty while it works."""

    @property
    def model(self) -> str:
        """The name of the model, with which vectors are stamped."""
        return self._embedder.model

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; 0 until it is known."""
        return self._embedder.dimension or 0

    async def run(self) -> None:
        """Repeat until cancelled. An agent often opens for a request that adds messages, so begin after it."""
        await asyncio.sleep(GATHERING_S)
        await super().run()

    async def _once(self) -> None:
        """Run one round. If no message lacks vectors, update the index and wait for new work."""
        self._arrived.clear()
        job = partial(self._workspace.next_unembedded, self.model, self.dimension, self._texts_per_round)
        work = await self._mailbox.run_in_background(job)
        if work is not None:
            vectors = await self._round(work.all_texts)
            await self._mailbox.run_in_background(partial(self._workspace.keep_vectors, work, vectors))
            self._on_embedded()
            return
        await self._index()
        self._reset_failures()
        await self._arrived.wait()
        await asyncio.sleep(GATHERING_S)

    def _reset_failures(self) -> None:
        super()._reset_failures()
        self.model_fault = ""

    def _on_pause(self, why: str, detail: str) -> None:
        self.held_up_by = f"{why}: {detail}"
        self.model_fault = detail if why == self.NO_MODEL else ""

    async def _round(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return a vector for each text, or None where the model rejects it. Raise ModelUnavailable if it is down."""
        self._is_model_healthy = self._has_skipped = False
        vectors: list[Vector | None] = []
        # Short calls go first between two parts of a long message.
        for begin in range(0, len(texts), self._texts_per_round):
            vectors += await self._vectors(texts[begin : begin + self._texts_per_round])
        if self._has_skipped:
            # The model may have failed after the first probe.
            await self._probe()
        return vectors

    async def vectors_of_names(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Return a vector for each name, zeros where the model has none.

        Return None without vectors, for many names, or if the model does not answer in time.
        """
        if len(names) > MAX_NAMES:
            return None
        known = dict(self._name_vectors)
        missing = [name for name in dict.fromkeys(names) if name not in known]
        try:
            async with asyncio.timeout(NAMES_TIMEOUT_S):
                for begin in range(0, len(missing), NAMES_PER_CALL):
                    some = missing[begin : begin + NAMES_PER_CALL]
                    known |= dict(zip(some, await self._embed(some, Priority.FOREGROUND), strict=True))
        except (TimeoutError, ModelUnavailable, BadReply):
            return None
        self._name_vectors = {name: known[name] for name in names}
        sizes = {len(vector) for vector in self._name_vectors.values() if vector is not None}
        if len(sizes) != 1:
            return None
        nothing = np.zeros(sizes.pop(), dtype=np.float32)
        rows = (nothing if vector is None else vector for vector in map(self._name_vectors.get, names))
        return np.stack(list(rows)).astype(np.float32)

    async def _vectors(self, texts: Sequence[str]) -> list[Vector | None]:
        if not texts:
            return []
        try:
            return await self._embed(texts)
        except BadReply:
            if len(texts) == 1:
                return [await self._embed_alone(texts[0])]
        half = len(texts) // 2
        return await self._vectors(texts[:half]) + await self._vectors(texts[half:])

    async def _embed_alone(self, text: str) -> Vector | None:
        """Retry a text that failed, with a model known to be healthy. Return None if it fails again."""
        if not self._is_model_healthy:
            await self._probe()
            self._is_model_healthy = True
        try:
            return (await self._embed([text]))[0]
        except BadReply as error:
            self._has_skipped = True
            self._log.warning("a text was skipped because the embedder rejects it", detail=str(error))
            return None

    async def _probe(self) -> None:
        """Raise ModelUnavailable unless the model can embed a known text."""
        try:
            await self._embed([PROBE])
        except BadReply as error:
            raise ModelUnavailable(f"{self.model} returns no usable vectors: {error}") from error

    async def _embed(
        self, texts: Sequence[str], priority: Priority = Priority.BACKGROUND
    ) -> list[Vector | None]:
        async with self._shared.embedding_gate.passing(priority):
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
                took_s = asyncio.get_running_loop().time() - begun_s
                self._shared.metrics.model_call("embed", outcome, took_s)

    async def _index(self) -> None:
        """Update the vector index in steps. Stop when messages arrive: they go first."""
        while not self._arrived.is_set():
            if not await self._mailbox.run_in_background(self._index_step):
                return

    def _index_step(self) -> bool:
        return self._workspace.open_archive.build_index(self._shared.budget(self._mailbox.is_awaited))
