"""The workspace of one open agent: its store, what is derived from it, and the jobs that work on both.

Every public method is a job: it runs on a pool thread, to its end, with no other job of this agent beside it.
The rule guarded here: **commit, then apply.** A change is computed from the network without touching it,
written in one transaction, and only then applied to the network. When the commit fails nothing has changed,
neither on disk nor in memory.

Jobs take what they need (`now_ms`, a time budget) as arguments: no clock, no settings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol, TypeVar

import msgspec

from ebbtide.errors import Exhausted, InvalidRequest, Precondition
from ebbtide.fleet.archive import Archive, passages_of
from ebbtide.fleet.arrivals import Accepted, Arrival, accept
from ebbtide.fleet.open_archive import OpenArchive
from ebbtide.fleet.recollected import Recollected, Wanted
from ebbtide.fleet.recollection import Recollector
from ebbtide.fleet.retention import Retold, Sweep, before_ms, citing, retell, withdraw
from ebbtide.fleet.unembedded import Unembedded, Vector, keep_vectors, next_unembedded
from ebbtide.fleet.visits import (
    SCANS_PER_COMMIT,
    SEEN_AHEAD,
    PassStep,
    Shortened,
    ShorteningTask,
    Visits,
)
from ebbtide.memory import association, compression, digestion
from ebbtide.memory.association import Answer
from ebbtide.memory.compression import Shortening
from ebbtide.memory.digestion import NewMemory
from ebbtide.memory.draft import Draft
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.store.port import Identity, ReadTransaction, Store, WriteTransaction
from ebbtide.telemetry import get_log
from ebbtide.vocabulary import (
    REWRITES_KEPT,
    AgentCounts,
    Batch,
    BatchState,
    Change,
    Cue,
    MessageRecord,
    NodeId,
    PassState,
    Rewrite,
    Source,
)

PRUNED_PER_DIGEST = 32
"""Most statuses dropped along with a digest, so that no commit grows without bound."""


@dataclass(frozen=True, slots=True)
class DigestTask:
    """The batch to digest next, with its messages and their texts."""

    batch: Batch
    records: list[MessageRecord]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Draftable:
    """A processed segment before its first content has a place: `own_text` where it is in no message."""

    memory: NewMemory
    own_text: str | None = None


class Amendment(Protocol):
    """What a commit changed about memories that were there: how the network follows it, and how the archive does."""

    @property
    def change(self) -> Change: ...
    @property
    def retold(self) -> Retold | None: ...
    def shelve(self, archive: Archive) -> None: ...


A = TypeVar("A", bound=Amendment)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long statuses of digested batches are kept."""

    keep: int
    older_than_ms: int


class Workspace:
    """One agent's store and network."""

    def __init__(self, store: Store, defaults: AgentParameters) -> None:
        self.store = store
        self._defaults = defaults
        self._visits: Visits | None = None
        self.identity: Identity
        self.overrides: dict[str, object]
        self._network: Network | None = None
        self._archive: OpenArchive
        self._sweep: Sweep | None = None
        self.load()

    # --- opening and parameters --------------------------------------------------------------------

    @property
    def network(self) -> Network:
        """The derived state, built anew where it was lost."""
        if self._network is None:
            self.load()
        assert self._network is not None
        return self._network

    def load(self) -> None:
        """Build the derived state from the ground state; re-anchor links if the default rate has changed."""
        identity, self.overrides, rate = self.store.read(
            lambda txn: (txn.identity(), txn.overrides(), txn.decay_rate())
        )
        assert identity is not None, "an open store has its identity"
        self.identity = identity
        self._archive = OpenArchive(identity.agent_id, self.store.path)
        parameters = self._resolve(self.overrides)
        written_with = parameters.decay_rate if rate is None else rate
        self._network = self.store.read(
            lambda txn: _read_network(txn, parameters.model_copy(update={"decay_rate": written_with}))
        )
        self._visits = None
        if rate != parameters.decay_rate:
            self._reanchor(self.overrides, parameters)
        self.network.parameters = parameters

    @property
    def parameters(self) -> AgentParameters:
        """The parameters in force."""
        return self.network.parameters

    def _resolve(self, overrides: Mapping[str, object]) -> AgentParameters:
        return AgentParameters.model_validate({**self._defaults.model_dump(), **overrides})

    def change_parameters(self, changes: Mapping[str, object]) -> AgentParameters:
        """Set parameters of this agent; a null goes back to the daemon's default.

        A new `decay_rate` first re-anchors every link at its present strength, in the same transaction.
        """
        overrides = {**self.overrides, **changes}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        parameters = self._resolve(overrides)
        self._reanchor(overrides, parameters)
        self.overrides = overrides
        self.network.parameters = parameters
        self._visits = None
        return parameters

    def _reanchor(self, overrides: Mapping[str, object], parameters: AgentParameters) -> None:
        changed = parameters.decay_rate != self.network.parameters.decay_rate
        change = Change(links=self.network.reanchored() if changed else [])
        self._commit(change, lambda txn: txn.set_overrides(overrides, parameters.decay_rate))

    def _commit(self, change: Change, also: Callable[[WriteTransaction], None] | None = None) -> None:
        def write(txn: WriteTransaction) -> Retold | None:
            messages = citing(txn, change)
            txn.apply(change)
            if also is not None:
                also(txn)
            return retell(txn, messages, change)

        self._follow(change, self.store.write(write))

    def amend(self, write: Callable[[WriteTransaction], A]) -> A:
        """Commit what changes memories that are there, what they were made from included, and follow it."""
        self._archive.drop_index_file()
        amended = self.store.write(write)
        self._follow(amended.change, amended.retold, amended.shelve)
        return amended

    def _follow(
        self, change: Change, retold: Retold | None, shelve: Callable[[Archive], None] | None = None
    ) -> None:
        """Apply what was committed. Where that fails, for want of memory, the network is given up, not the change.

        A network behind the disk would give ids a second time; it is built anew by the next job.
        """
        try:
            self.network.apply(change)
        except Exception as error:
            self._archive.give_up()
            self._network = self._visits = None
            get_log("workspace").error("network given up", agent_id=self.identity.agent_id, exc_info=error)
            return
        self._archive.follow(lambda archive: archive.note(change.nodes))
        if shelve is not None:
            self._archive.follow(shelve)
        self._retell(retold)

    def _retell(self, retold: Retold | None) -> None:
        """Let the archive follow what tells messages without their text; loaded anew where that is not known."""
        if retold is None:
            self._archive.give_up()
        elif retold:
            self._archive.drop_index_file()
            self._archive.follow(lambda archive: archive.retold(retold))

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that the agent's derived state holds."""
        order = 0 if self._visits is None else self._visits.order.nbytes
        return (
            order
            + self._archive.resident_bytes
            + (0 if self._network is None else self._network.resident_bytes)
        )

    def counts(self) -> AgentCounts:
        """How much the agent holds."""
        return self.store.read(lambda txn: txn.counts())

    def _dice(self, purpose: str, number: int) -> Random:
        return Random(f"{self.identity.seed}/{purpose}/{number}")

    # --- remember: the inbox -----------------------------------------------------------------------

    def accept(self, arrivals: Sequence[Arrival]) -> list[Accepted | Exception]:
        """Store batches in the inbox, all in one commit; what became of each.

        Each fares as if they came one after the other: what refuses one leaves the others alone, and a key
        finds its first batch in this commit too. When there is no room for all of them nothing is stored, and
        then each by itself: one may be small enough.
        """
        outcomes = self._accept_all(arrivals)
        self._shelve(arrivals, outcomes)
        return outcomes

    def _accept_all(self, arrivals: Sequence[Arrival]) -> list[Accepted | Exception]:
        try:
            return self.store.write(lambda txn: [self._accept(txn, arrival) for arrival in arrivals])
        except Exhausted:
            if len(arrivals) == 1:
                raise
        return [self._accept_alone(arrival) for arrival in arrivals]

    def _shelve(self, arrivals: Sequence[Arrival], outcomes: Sequence[Accepted | Exception]) -> None:
        """Let the archive follow what was committed; where that fails it is loaded anew when it is needed."""

        def shelve(archive: Archive) -> None:
            for arrival, outcome in zip(arrivals, outcomes, strict=True):
                if isinstance(outcome, Accepted) and outcome.records:
                    spoken = zip(arrival.texts, outcome.records, strict=True)
                    passages = arrival.passages or [passages_of(text, one.speaker) for text, one in spoken]
                    archive.accepted(outcome.records, passages, arrival.metadata)

        self._archive.follow(shelve)

    def _accept(self, txn: WriteTransaction, arrival: Arrival) -> Accepted | Exception:
        return accept(txn, arrival, self.parameters.max_queue_size)

    def _accept_alone(self, arrival: Arrival) -> Accepted | Exception:
        try:
            return self.store.write(lambda txn: self._accept(txn, arrival))
        except Exception as error:
            # Those before it may be stored: what goes wrong from now on is this one's alone.
            return error

    def next_task(self, now_ms: int) -> DigestTask | int | None:
        """The next batch to digest; how long to wait (ms) when all are put off; None when none waits."""

        def read(txn: ReadTransaction) -> DigestTask | int | None:
            soonest: int | None = None
            for batch in txn.waiting():
                if batch.not_before_ms <= now_ms:
                    return _task(txn, batch)
                wait_ms = batch.not_before_ms - now_ms
                soonest = wait_ms if soonest is None else min(soonest, wait_ms)
            return soonest

        return self.store.read(read)

    def focus_texts(self) -> list[tuple[NodeId, str]]:
        """(id, content without the speaker's label) of the nodes in focus, newest first."""
        focus = self.network.focus[: self.parameters.focus_limit]

        def read(txn: ReadTransaction) -> list[tuple[NodeId, str]]:
            found = []
            for node_id in focus:
                node = txn.node(node_id)
                assert node is not None, "what is in focus lives"
                found.append((node_id, node.content.removeprefix(node.prefix)))
            return found

        return self.store.read(read)

    def digest(
        self,
        batch: Batch,
        drafts: Sequence[Draftable],
        relation_names: Mapping[tuple[int, int], str],
        expected_focus: Sequence[NodeId],
        now_ms: int,
        retention: Retention,
    ) -> bool:
        """Commit what a batch became. False, and nothing done, when the focus has moved meanwhile."""
        if tuple(expected_focus) != self.network.focus[: self.parameters.focus_limit]:
            return False
        owed = self.store.read(lambda txn: txn.owed_passes())
        change = digestion.digest(
            self.network,
            [draft.memory for draft in drafts],
            relation_names,
            batch=batch.number,
            owed_passes=owed,
            dice=self._dice("digest", batch.number),
        )
        new = {node.id: index for index, node in enumerate(change.nodes)}

        def write(txn: WriteTransaction) -> Retold:
            placed = msgspec.structs.replace(change, nodes=list(change.nodes))
            for node_id, index in new.items():
                own_text = drafts[index].own_text
                if own_text is not None:
                    key = txn.put_chunk(own_text)
                    node = msgspec.structs.replace(placed.nodes[index], first_key=key)
                    assert node.id == node_id
                    placed.nodes[index] = node
            txn.apply(placed)
            done = msgspec.structs.replace(batch, digested_at_ms=now_ms, node_ids=tuple(new), not_before_ms=0)
            txn.finish_batch(done)
            txn.prune(
                keep=retention.keep,
                older_than_ms=retention.older_than_ms,
                most=PRUNED_PER_DIGEST,
            )
            if self.parameters.kept_days != 0:
                return {}
            first = batch.first_message
            return withdraw(txn, range(first, first + batch.message_count), placed.nodes)

        self._follow(change, self.store.write(write))
        return True

    def put_off(self, batch: Batch, error: str, not_before_ms: int, park_after: int) -> bool:
        """Count a failed round: to the tail with a pause, or parked; whether it is parked now."""
        failed = msgspec.structs.replace(
            batch, attempts=batch.attempts + 1, last_error=error, not_before_ms=not_before_ms
        )
        parked = failed.attempts >= park_after

        def write(txn: WriteTransaction) -> None:
            if parked:
                txn.park_batch(failed)
            else:
                txn.defer_batch(failed)

        self.store.write(write)
        return parked

    def retry(self, number: int) -> Batch | None:
        """Put a parked batch back into the inbox with its attempts forgotten; None when there is none."""

        def write(txn: WriteTransaction) -> Batch | None:
            batch = txn.batch(number)
            if batch is None:
                return None
            if batch.state != BatchState.PARKED.value:
                raise Precondition(f"batch b{number} is {batch.state}, not parked", reason="BATCH_NOT_PARKED")
            fresh = msgspec.structs.replace(batch, attempts=0, not_before_ms=0)
            return txn.unpark_batch(fresh)

        return self.store.write(write)

    # --- vectors -----------------------------------------------------------------------------------

    def next_unembedded(self, model: str, dimension: int) -> Unembedded | None:
        """The next messages that lack vectors of a model, of a size unless that is 0; None when none does."""
        return self.store.read(lambda txn: next_unembedded(txn, model, dimension))

    def keep_vectors(self, work: Unembedded, vectors: Sequence[Vector | None]) -> None:
        """Commit vectors, for each text that was asked for."""
        kept = self.store.write(lambda txn: keep_vectors(txn, work, vectors))
        if kept:
            self._archive.follow(lambda archive: archive.follow(work.state, kept.items()))

    @property
    def wants_index(self) -> bool:
        """Whether questions would go faster with an index that is not built yet."""
        return self._archive.wants_index

    def holds_other_than(self, dimension: int) -> bool:
        """Whether questions are held against vectors that have not so many numbers."""
        return self._archive.holds_other_than(dimension)

    def index_vectors(self, is_time_up: Callable[[], bool]) -> bool:
        """Build at the index of very many vectors for a while; whether more is to do."""
        return self._archive.index_some(is_time_up)

    def keep_index(self) -> None:
        """Keep what of the index was built since it was opened. OSError where that fails."""
        self._archive.keep_index()

    # --- retention ---------------------------------------------------------------------------------

    def sweep(self, now_ms: int, is_time_up: Callable[[], bool]) -> bool:
        """One step of withdrawing texts whose time is over; whether more is to do."""
        days = self.parameters.kept_days
        if days is None:
            self._sweep = None
            return False
        # A failed step begins everything anew: what is left to do stands in the store.
        sweep, self._sweep = self._sweep, None
        if sweep is None or sweep.retention != self.parameters.retention:
            sweep = Sweep(self.parameters.retention, before_ms(days, now_ms))
        self._retell(sweep.step(self.store, is_time_up))
        if not sweep.is_done:
            self._sweep = sweep
        return not sweep.is_done

    # --- compression -------------------------------------------------------------------------------

    def owe_passes(self, count: int) -> AgentCounts:
        """Owe that many passes more; TOO_MANY_PASSES beyond `max_owed_passes`."""

        def write(txn: WriteTransaction) -> AgentCounts:
            owed, most = txn.owed_passes(), self.parameters.max_owed_passes
            if owed + count > most:
                raise InvalidRequest(
                    f"passes = {count}: the agent owes {owed} passes and may owe at most {most}",
                    reason="TOO_MANY_PASSES",
                )
            txn.apply(Change(owed_passes=owed + count))
            return txn.counts()

        return self.store.write(write)

    def compress(
        self,
        finished: Collection[Shortened],
        is_time_up: Callable[[], bool],
        most_tasks: int = 1,
    ) -> PassStep:
        """Go on with the pass under way, or begin one that is owed, until a text must be shortened.

        `finished` are texts that earlier steps asked for. Visits are committed in groups; a step ends when
        the group is full, `is_time_up` says so, or a text is missing: then up to `most_tasks` are asked for.
        """
        state, owed, done = self.store.read(
            lambda txn: (txn.pass_state(), txn.owed_passes(), txn.finished_passes())
        )
        if state is None:
            if owed == 0:
                return PassStep(is_idle=True)
            state = self._begin_pass(done + 1)
        network = self.network  # building it anew drops the visits
        if self._visits is None:
            self._visits = Visits(compression.nodes_to_visit(network, state))
        draft = Draft(network)
        # From here on a failed commit must not leave the order half consumed.
        visits, self._visits = self._visits, None
        waiting = {shortened.task.shortening.node_id: shortened for shortened in finished}
        settle = partial(self._settle, draft, waiting, state.number)
        missing = None
        left = SCANS_PER_COMMIT
        # Asked before the first visits too, since that begins the time; these are made in any case.
        while visits.left and left > 0 and not missing and not (is_time_up() and left < SCANS_PER_COMMIT):
            gone_before = len(draft.change.forgotten)
            visited, missing = compression.visit(draft, visits.next(min(visits.size, left)), state, settle)
            # One that is forgotten costs as much as a hundred that are not: the time must be looked at.
            visits.advance(visited, undisturbed=not missing and len(draft.change.forgotten) == gone_before)
            left -= visited
        if not visits.left:
            compression.end_pass(draft, state, owed)
        elif draft.change.pass_state is None:
            draft.change.pass_state = state
        self._commit(draft.change)
        self._visits = visits if visits.left else None
        if missing is None:
            return PassStep(is_idle=False)
        wanted = [missing] if most_tasks == 1 else self._wanted_soon(visits, state, most_tasks)
        return PassStep(is_idle=False, tasks=self._shortening_tasks(wanted))

    def _wanted_soon(self, visits: Visits, state: PassState, most: int) -> list[Shortening]:
        """The next texts that the pass will need, as things stand: visits made in a draft that nobody commits."""
        wanted: list[Shortening] = []

        def note(shortening: Shortening) -> bool:
            wanted.append(shortening)
            return len(wanted) < most

        compression.visit(Draft(self.network), visits.next(SEEN_AHEAD), state, note)
        return wanted

    def _begin_pass(self, number: int) -> PassState:
        """Begin a pass. Unless limits were lowered it is written along with its first visits."""
        begun = compression.begin_pass(self.network, number, self._dice("pass", number))
        assert begun.pass_state is not None
        if begun.forgotten or begun.links or begun.focus is not None:
            self._commit(begun)
        self._visits = None
        return begun.pass_state

    def _shortening_tasks(self, shortenings: Sequence[Shortening]) -> tuple[ShorteningTask, ...]:
        def task(txn: ReadTransaction, shortening: Shortening) -> ShorteningTask:
            node = txn.node(shortening.node_id)
            assert node is not None
            first = txn.first_content(node)
            text = node.content if first is None else first
            prefix = node.prefix if text.startswith(node.prefix) else ""
            return ShorteningTask(shortening, text, prefix, node.content, node.sources)

        return self.store.read(lambda txn: tuple(task(txn, shortening) for shortening in shortenings))

    def _settle(
        self, draft: Draft, finished: Mapping[NodeId, Shortened], number: int, shortening: Shortening
    ) -> bool:
        """Put the new text of a node into the draft; False where none fits the node as it is now."""
        shortened = finished.get(shortening.node_id)
        if shortened is None:
            return False
        node = self.store.read(lambda txn: txn.node(shortening.node_id))
        assert node is not None
        if (node.content, node.sources) != (shortened.task.content, shortened.task.sources):
            return False
        processed = shortened.processed
        if processed is None:
            return True
        if shortening.target != shortened.task.shortening.target:
            return False
        before, after = len(node.content), len(processed.content)
        rewrite = Rewrite(number, shortening.importance, before, after, shortened.model)
        draft.change.nodes.append(
            msgspec.structs.replace(
                node,
                content=processed.content,
                phrase=processed.phrase,
                keywords=processed.keywords,
                rewrites=(*node.rewrites, rewrite)[-REWRITES_KEPT:],
            )
        )
        return True

    # --- recall ------------------------------------------------------------------------------------

    def recall(self, cue: Cue) -> tuple[Answer, AgentCounts]:
        """What the cue brings back, and how many batches were not digested yet."""

        def read(txn: ReadTransaction) -> tuple[Answer, AgentCounts]:
            def content_of(node_id: NodeId) -> str:
                node = txn.node(node_id)
                assert node is not None, "the network and the store agree on who lives"
                return node.content

            answer = association.recall(self.network, cue, content_of, self.parameters.locale)
            return answer, txn.counts()

        return self.store.read(read)

    def archive(self, txn: ReadTransaction) -> Archive:
        """What was said, loaded if it is not there."""
        return self._archive.of(txn)

    def recollect(
        self, wanted: Wanted, now_ms: int, count_tokens: Callable[[str], int]
    ) -> tuple[Recollected, AgentCounts]:
        """The answer to a question over everything the agent ever heard, and how many batches wait."""

        def read(txn: ReadTransaction) -> tuple[Recollected, AgentCounts]:
            archive, locale = self.archive(txn), self.parameters.locale
            recollector = Recollector(txn, archive, self.network, now_ms, locale, count_tokens)
            return recollector.answer(wanted), txn.counts()

        return self.store.read(read)


def _read_network(txn: ReadTransaction, parameters: AgentParameters) -> Network:
    return load_network(
        parameters,
        txn.node_texts(),
        txn.scan_columns(),
        txn.link_columns(),
        txn.focus(),
        txn.next_node_id(),
    )


def _task(txn: ReadTransaction, batch: Batch) -> DigestTask:
    records, texts = [], []
    for number in range(batch.first_message, batch.first_message + batch.message_count):
        record = txn.message(number)
        assert record is not None, "an undigested batch has its messages"
        text = txn.message_text(record)
        assert text is not None, "an undigested message has its text"
        records.append(record)
        texts.append(text)
    return DigestTask(batch, records, texts)


def slice_source(record: MessageRecord, text: str, start: int, length: int) -> Source:
    """The source of a slice of a message, given in code points, as UTF-8 bytes."""
    before = start if text.isascii() else len(text[:start].encode())
    return Source(record.number, before, len(text[start : start + length].encode()))


def whole_source(record: MessageRecord, text: str) -> Source:
    """The whole of a message as a source."""
    return Source(record.number, 0, len(text.encode()))
