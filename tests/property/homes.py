"""A workspace on a real LMDB store in a temporary directory, with its jobs called one after the other.

`Home` takes the place of the fleet: it accepts, digests and compresses, reopens the store, and can make the next commit
fail. It lifts the bound on max_nodes, because small memories find more errors. It knows neither the oracle nor any rule
of the memory model, and uses no threads.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from ebbtide import parameters as bounds
from ebbtide.errors import Exhausted
from ebbtide.fleet.compression.passes import PassStep, Shortened, ShorteningTask
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch
from ebbtide.fleet.ingest.inbox import DigestTask, MemoryDraft, StatusRetention
from ebbtide.fleet.ingest.segments import ByteOffsets, digestible_messages, memory_of, utterances
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.language.port import Processed, Segment
from ebbtide.memory.digestion import LinkNames, Mention
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, Identity, MessageRecord, Node
from ebbtide.store import layout
from ebbtide.store.journal import Journal
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.property.histories import keywords_for
from tests.support.networks import all_links

SEED = 7
FAST_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
MAPS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 28}
KEEP_ALL = StatusRetention(keep=10**6, older_than_ms=0)

Shorten = Callable[[str, int], str | None]


class FailingStore:
    """A store whose next commit can be made to fail after everything was written."""

    def __init__(self, store: LmdbStore) -> None:
        self.store = store
        self.path = store.path
        self.is_full = False

    def read(self, fn: Callable[[Any], Any]) -> Any:
        return self.store.read(fn)

    def write(self, fn: Callable[[Any], Any]) -> Any:
        def fail(txn: Any) -> None:
            fn(txn)
            raise Exhausted("the disk is full", reason="STORE_FULL")

        return self.store.write(fail if self.is_full else fn)

    def compact(self) -> None:
        self.store.compact()

    def close(self) -> None:
        self.store.close()


def told(segments: Sequence[tuple[str, list[str]]]) -> tuple[list[str], list[Segment]]:
    """Return messages that contain the segments, and their positions; every fourth segment is rephrased."""
    texts: list[str] = []
    placed: list[Segment] = []
    for index, (content, _) in enumerate(segments):
        if index % 3 == 0:
            texts.append("…")
        start = len(texts[-1])
        rephrased = index % 4 == 3
        texts[-1] += "(said otherwise)" if rephrased else content + " | "
        placed.append(Segment(content, (len(texts) - 1,), None if rephrased else start))
    return texts or [" \n"], placed


class Home:
    """One agent's workspace, which can be reopened. `close` it."""

    def __init__(self, defaults: Mapping[str, object], journal: Journal | None = None) -> None:
        self._headroom, bounds.SLOT_HEADROOM = bounds.SLOT_HEADROOM, -(10**6)
        self.path = Path(tempfile.mkdtemp(dir=FAST_DISK))
        identity = Identity("ann", 0, SEED, layout.FORMAT_VERSION)
        self.journal = journal
        self.store = FailingStore(LmdbStore.create(self.path, identity, journal=journal, **MAPS))
        self.defaults = {"speaker_prefix": "never", **defaults}
        self.workspace = Workspace(self.store, AgentParameters(**self.defaults))

    def close(self) -> None:
        """Close the store and remove it."""
        bounds.SLOT_HEADROOM = self._headroom
        self.store.close()
        shutil.rmtree(self.path)

    def reopen(self, defaults: Mapping[str, object] | None = None) -> None:
        """Close the store and open it again, possibly with other defaults."""
        self.store.close()
        self.store = FailingStore(LmdbStore.open(self.path, journal=self.journal, **MAPS))
        if defaults is not None:
            self.defaults = {"speaker_prefix": "never", **defaults}
        self.workspace = Workspace(self.store, AgentParameters(**self.defaults))

    # --- what is kept ------------------------------------------------------------------------------

    def nodes(self) -> dict[int, Node]:
        """Return every node on disk."""
        found: dict[int, Node] = self.store.read(lambda txn: {node.id: node for node in txn.nodes.all()})
        return found

    def counters(self) -> tuple[int, int]:
        """Return (finished passes, owed passes)."""
        found: tuple[int, int] = self.store.read(lambda txn: (txn.meta.finished_passes, txn.meta.owed_passes))
        return found

    def faults(self) -> list[Any]:
        """Return the findings of the consistency checker."""
        if importlib.util.find_spec("ebbtide.store.integrity.check") is None:
            return []
        checker = importlib.import_module("ebbtide.store.integrity.check")
        return list(checker.check_store(self.store.store))

    # --- remember ----------------------------------------------------------------------------------

    def accept(
        self, texts: Sequence[str], *, roles: Sequence[str] = (), speakers: Sequence[str] = ()
    ) -> Batch:
        """Put a batch into the inbox."""
        spoken = zip(texts, chain(roles, repeat("user")), chain(speakers, repeat("")), strict=False)
        records = [
            MessageRecord(0, 0, index, role, speaker, "", None, 5, "", layout.text_key(text))
            for index, (text, role, speaker) in enumerate(spoken)
        ]
        [outcome] = self.workspace.inbox.accept(
            [IncomingBatch(Batch(0, 5, 0, len(texts)), records, texts, b"")]
        )
        assert isinstance(outcome, Accepted)
        return outcome.batch

    def task(self) -> DigestTask:
        """Return the batch to digest now."""
        task = self.workspace.inbox.next_task(10)
        assert isinstance(task, DigestTask)
        return task

    def drafts(
        self, task: DigestTask, placed: Sequence[Segment], keywords: Sequence[Sequence[str]]
    ) -> list[MemoryDraft]:
        """Return the memories of a task's segments, verbatim."""
        indices = digestible_messages(task, self.workspace.parameters)
        heard = utterances(task, indices, self.workspace.parameters)
        records = [task.records[i] for i in indices]
        return [
            memory_of(segment, Processed(segment.text, "", tuple(own)), heard, records, ByteOffsets(heard))
            for segment, own in zip(placed, keywords, strict=True)
        ]

    def digest(
        self,
        task: DigestTask,
        drafts: Sequence[MemoryDraft | Mention],
        names: LinkNames | Mapping[tuple[int, int], str],
    ) -> None:
        """Commit the memories of a batch."""
        focus = [node_id for node_id, _ in self.workspace.inbox.focus_texts()]
        names = names if isinstance(names, LinkNames) else LinkNames(names)
        assert self.workspace.inbox.digest(task.batch, drafts, names, focus, 10, KEEP_ALL)

    def remember(
        self,
        segments: Sequence[tuple[str, list[str]]],
        names: LinkNames | Mapping[tuple[int, int], str],
    ) -> Batch:
        """Accept a batch of these segments and digest it."""
        texts, placed = told(segments)
        self.accept(texts)
        task = self.task()
        self.digest(task, self.drafts(task, placed, [own for _, own in segments]), names)
        return task.batch

    # --- compress ----------------------------------------------------------------------------------

    def step(
        self, finished: Collection[Shortened] = (), times_up: Iterable[bool] = (), most_tasks: int = 1
    ) -> PassStep:
        """Run one step of compression, which ends early when `times_up` says so."""
        clock = iter(times_up)
        step = self.workspace.passes.compress(finished, lambda: next(clock, False), most_tasks)
        assert len(step.tasks) <= most_tasks
        return step

    def compress(
        self, shorten: Shorten, times_up: Sequence[bool] = (), reopen_at: Sequence[int] = ()
    ) -> None:
        """Run one owed pass in steps. Before the steps in `reopen_at` the store is reopened."""
        done, owed = self.counters()
        assert owed > 0
        clock = iter(times_up)
        finished: list[Shortened] = []
        number = 0
        while self.counters()[0] == done:
            if number in reopen_at:
                self.reopen()
            # One or several texts are requested at a time, and not all of them are answered.
            step = self.step(finished, clock, 1 + number % 4)
            assert not step.is_idle
            finished = [shortened(task, shorten) for task in step.tasks[: 1 + number % 3]]
            number += 1
        assert not finished


def shortened(task: ShorteningTask, shorten: Shorten) -> Shortened:
    """Return the result of a shortening."""
    content = shorten(task.content, task.shortening.target)
    processed = None if content is None else Processed(content, "", tuple(keywords_for(content)))
    return Shortened(task, processed, "test")


def snapshot(network: Network) -> dict[str, object]:
    """Return all derived data as plain values for comparison."""
    ids = network.node_ids(with_entities=True)
    return {
        "nodes": {node_id: network.node(node_id) for node_id in ids},
        "entities": network.entities,
        "texts": {node_id: network.texts.piece(network.slot_of(node_id)) for node_id in network.node_ids()},
        "keys": network.entity_of_key,
        "pins": network.pinned(),
        "links": {
            (link.source, link.target, link.relation): (link.strength, link.anchor, strength)
            for link, strength in all_links(network)
        },
        "arriving": {(source, n, name) for n in ids for source, name, _ in network.links_to(n)},
        "dangling": {node_id: network.dangling(node_id) for node_id in ids},
        "focus": (network.focus, network.entity_focus, network.entity_memories),
        "next": network.next_node_id,
        "count": (network.node_count, network.link_count),
        "parameters": network.parameters,
    }
