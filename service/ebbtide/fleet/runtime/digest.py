"""The digest turns the batches of one agent's inbox into memories, in order (memory model, section 4).

Read the head of the inbox (job) → call the model, holding nothing → commit the memories (job), after checking that
the focus is still the one for which the relations were named.

Failures:

* The model server is down. The batch stays at the head, no attempt is counted, and the digest pauses. The order of a
  conversation survives an outage.
* The reply is unusable. The attempt is counted, and the batch moves to the tail with a pause. After
  `park_after_attempts` attempts it is parked: stored and listed, but not retried.

Answers are remembered while the batch stays at the head, so that progress is possible with an unreliable server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from ebbtide.errors import EbbtideError
from ebbtide.fleet.ingest.inbox import BatchChanged, DigestTask, MemoryDraft, StatusRetention
from ebbtide.fleet.ingest.segments import ByteOffsets, digestible_messages, memory_of, utterances
from ebbtide.fleet.runtime.background_task import BackgroundTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.notifier import Notifier
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, batch_text_id
from ebbtide.language.port import (
    BadReply,
    ModelUnavailable,
    Processed,
    Segment,
    TextTooComplex,
    TextToProcess,
    Utterance,
)
from ebbtide.memory.digestion import LinkNames, Mention, named_entities, partners
from ebbtide.records import Batch
from ebbtide.telemetry import loggable, span

SMOOTHING = 0.3
"""Weight of the latest digest in the moving average of digest times."""

HOUR_MS = 3_600_000

MAX_ORIGINS = 1000
"""Most traced batches whose requests are remembered until their digest."""

NO_SERVER = "no model server answers"
"""The most frequent reason why a digest is held up."""


@dataclass(slots=True)
class Progress:
    """The model's answers about one batch so far."""

    batch: Batch
    utterances: list[Utterance]
    indices: list[int]
    segments: list[Segment] | None = None
    fillers: list[tuple[str, ...] | None] | None = None
    """The keywords of each segment that becomes no memory."""
    items: list[MemoryDraft | Mention] = field(default_factory=list)
    focus: list[tuple[NodeId, str]] | None = None
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    entity_names: dict[tuple[int, str], str] = field(default_factory=dict)
    named_count: int = 0
    is_extracted: bool = False


class Digest(BackgroundTask):
    """Digests one agent's inbox until it is cancelled."""

    NO_MODEL = NO_SERVER

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        shared: SharedResources,
        on_digested: Callable[[], None],
        before_digest: Callable[[DigestTask], Awaitable[None]],
    ) -> None:
        self._agent_id = workspace.identity.agent_id
        super().__init__("digest", self._agent_id, shared.model_client.patience)
        self._workspace = workspace
        self._mailbox = mailbox
        self._model_client = shared.model_client
        self._fallback = shared.fallback
        self._clock = shared.clock
        self._policy = shared.digest_policy
        self._metrics = shared.metrics
        self._on_digested = on_digested
        self._before_digest = before_digest
        self._progress: Progress | None = None
        self._oldest_ms: int | None = None
        self.origins: dict[int, str] = {}
        """Trace context of the request that brought a batch, by batch number."""
        self.current_batch: int | None = None
        """Number of the batch being digested."""
        self.recent_s = 0.0
        """Moving average of digest times."""
        self.progressed = Notifier()
        """Notified when a batch is digested, deferred or parked."""

    @property
    def lag_s(self) -> float:
        """Age of the current or held-up batch, in seconds since it was accepted."""
        if self._oldest_ms is None:
            return 0.0
        return max(0.0, (self._clock.now_ms() - self._oldest_ms) / 1000)

    def set_origin(self, number: int, origin: str) -> None:
        """Remember the trace context of a batch while there is room."""
        if origin and len(self.origins) < MAX_ORIGINS:
            self.origins[number] = origin

    def _on_pause(self, why: str, detail: str) -> None:
        self.current_batch = None
        self.progressed.notify()

    async def _once(self) -> None:
        self._arrived.clear()
        longest_ms = round(self._patience.cap_s * 1000)
        task = await self._mailbox.run_in_background(
            lambda: self._workspace.inbox.next_task(self._clock.now_ms(), longest_ms)
        )
        if isinstance(task, DigestTask):
            self._oldest_ms = task.batch.accepted_at_ms
            await self._digest(task)
            return
        # The store works again, so an earlier failure is over even if no batch waits.
        self._reset_failures()
        self._oldest_ms = None
        self.progressed.notify()
        try:
            async with asyncio.timeout(None if task is None else task / 1000):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _digest(self, task: DigestTask) -> None:
        self.current_batch = task.batch.number
        parent = self.origins.pop(task.batch.number, "")
        with span("digest", parent=parent, agent_id=self._agent_id) as digest_span:
            digest_span.set("batch_id", batch_text_id(task.batch.number))
            await self._digest_batch(task)
        self._on_digested()
        self.progressed.notify()

    async def _digest_batch(self, task: DigestTask) -> None:
        begun_s = self._clock.monotonic_s()
        try:
            count = await self._turn_into_memories(task)
        except (ModelUnavailable, EbbtideError):
            raise
        except TextTooComplex as error:
            # Another attempt would take as long and fail in the same way.
            await self._defer(task, str(error), park_after=1)
        except BadReply as error:
            await self._defer(task, str(error))
        except BatchChanged:
            self._progress = None
        except Exception as error:
            # A bug must neither stop the digest nor lose the batch.
            self._log.error("digest failed", batch_id=batch_text_id(task.batch.number), exc_info=error)
            await self._defer(task, f"internal error: {type(error).__name__}")
        else:
            took_s = self._clock.monotonic_s() - begun_s
            self.recent_s += SMOOTHING * (took_s - self.recent_s) if self.recent_s else took_s
            self._log.debug(
                "batch digested",
                batch_id=batch_text_id(task.batch.number),
                nodes=count,
                first=loggable(task.texts[0] if task.texts else ""),
                took_ms=round(took_s * 1000),
            )
            self._progress = None
        finally:
            self.current_batch = None

    async def _turn_into_memories(self, task: DigestTask) -> int:
        """Segment, process, relate and commit a batch. Return the number of new memories."""
        progress = self._resume(task)
        await self._segment(progress)
        await self._process(progress, task)
        if not progress.is_extracted:
            await self._before_digest(task)
            progress.is_extracted = True
        drafts = [one for one in progress.items if isinstance(one, MemoryDraft)]
        while True:
            await self._relate(progress, drafts)
            assert progress.focus is not None
            now_ms = self._clock.now_ms()
            commit = partial(
                self._workspace.inbox.digest,
                task.batch,
                progress.items,
                LinkNames(progress.names, progress.entity_names),
                [node_id for node_id, _ in progress.focus],
                now_ms,
                StatusRetention(self._policy.status_keep, now_ms - self._policy.status_keep_h * HOUR_MS),
            )
            if await self._mailbox.run_in_background(commit):
                self._metrics.fillers.inc(len(progress.items) - len(drafts))
                return len(drafts)
            progress.focus, progress.names, progress.entity_names, progress.named_count = None, {}, {}, 0

    def _resume(self, task: DigestTask) -> Progress:
        if self._progress is None or self._progress.batch != task.batch:
            parameters = self._workspace.parameters
            indices = digestible_messages(task, parameters)
            self._progress = Progress(task.batch, utterances(task, indices, parameters), indices)
        return self._progress

    async def _segment(self, progress: Progress) -> None:
        if progress.segments is None:
            limit = self._workspace.parameters.segment_max_chars
            spoken = progress.utterances
            progress.segments = await self._model_client.segment(spoken, max_chars=limit) if spoken else []

    async def _process(self, progress: Progress, task: DigestTask) -> None:
        """Turn each segment into a memory, or into the mention of what a filler names."""
        assert progress.segments is not None
        parameters = self._workspace.parameters
        if progress.fillers is None:
            texts = [segment.text for segment in progress.segments]
            progress.fillers = await self._fallback.filler_keywords(
                texts, remember_questions=parameters.remember_questions
            )
        records = [task.records[i] for i in progress.indices]
        offsets = ByteOffsets(progress.utterances)
        parts = list(zip(progress.segments, progress.fillers, strict=True))
        answers: list[Processed] = []
        while len(progress.items) < len(parts):
            segment, filler = parts[len(progress.items)]
            if filler is not None:
                progress.items.append(Mention(filler))
                continue
            if not answers:
                rest = parts[len(progress.items) :]
                waiting: list[TextToProcess] = [(one.text, None) for one, words in rest if words is None]
                # In groups: all of a long batch at once would block other agents.
                answers = await self._first_processed(waiting)
            draft = memory_of(segment, answers.pop(0), progress.utterances, records, offsets)
            progress.items.append(draft)

    async def _first_processed(self, waiting: list[TextToProcess]) -> list[Processed]:
        """Process the first texts: as many as the model accepts in one call, or one."""
        answers = await self._model_client.process_many(waiting)
        if answers:
            return answers
        text = waiting[0][0]
        try:
            return [await self._model_client.process(text)]
        except BadReply:
            # Store the segment as it is; the built-in model derives phrase and keywords.
            return [await self._fallback.process(text)]

    async def _relate(self, progress: Progress, drafts: list[MemoryDraft]) -> None:
        """Let a language model on a server name the links of each memory. Links without a name are named by rules."""
        parameters = self._workspace.parameters
        if self._model_client.names_by_rules:
            # Rules need no texts. The commit checks that the focus is still the same.
            focus = self._workspace.network.focus[: parameters.focus_limit]
            progress.focus = [(node_id, "") for node_id in focus]
            return
        if progress.focus is None:
            progress.focus = await self._mailbox.run_in_background(self._workspace.inbox.focus_texts)
        ids = [node_id for node_id, _ in progress.focus]
        texts = [draft.memory.content for draft in drafts]
        all_partners = partners(ids, len(drafts), parameters.focus_limit)
        old = [text for _, text in progress.focus]
        for index in range(progress.named_count, len(drafts)):
            named = named_entities(drafts[index].memory.keywords, parameters)
            others = [
                old[one.position] if one.index is None else texts[one.index] for one in all_partners[index]
            ]
            # One call names the links with the memories in focus and with the entities.
            answers = await self._named(texts[index], [*others, *named.values()])
            for partner, name in zip(all_partners[index], answers, strict=False):
                progress.names[index, partner.position] = name
            for key, name in zip(named, answers[len(others) :], strict=True):
                progress.entity_names[index, key] = name
            progress.named_count = index + 1

    async def _named(self, text: str, others: list[str]) -> list[str]:
        """Return a name for the relation of a memory to each of the others; empty for none."""
        if not others:
            return []
        try:
            return await self._model_client.relate(text, others)
        except BadReply:
            return [""] * len(others)

    async def _defer(self, task: DigestTask, error: str, park_after: int | None = None) -> None:
        attempts = task.batch.attempts + 1
        pause_ms = round(self._patience.pause_s(attempts) * 1000)
        job = partial(
            self._workspace.inbox.defer,
            task.batch,
            error,
            self._clock.now_ms() + pause_ms,
            self._policy.park_after_attempts if park_after is None else park_after,
        )
        self._progress = None
        try:
            parked = await self._mailbox.run_in_background(job)
        except BatchChanged:
            return
        self._log.warning(
            "batch parked" if parked else "batch deferred",
            batch_id=batch_text_id(task.batch.number),
            attempts=attempts,
            detail=error,
        )
