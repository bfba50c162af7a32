"""The state of one open agent: its store, and the data in memory that is derived from it.

The rule guarded here: **commit, then apply.** A change is computed without touching the network, written in one
transaction, and only then applied to the network and the archive. If the commit fails, nothing has changed on disk or
in memory. If the derived data cannot be updated after a commit, it is discarded and rebuilt.

The jobs that compute changes are in `inbox.py`, `passes.py` and `workspace.py`. They take `now_ms` and time budgets as
arguments and read no clock and no settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from ebbtide.changes import Change
from ebbtide.events import EventRun, names_run
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.open_archive import OpenArchive
from ebbtide.fleet.archive.retention import PassageUpdates, citing, refresh_passages
from ebbtide.fleet.state.event_builder import EventLog, build_events, statement_events
from ebbtide.fleet.state.recall_filter import RecallFilter
from ebbtide.ids import NodeId
from ebbtide.memory.focus import reparametrised
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network, TextReader
from ebbtide.memory.statements import Ledger
from ebbtide.memory.texts import FoldedTexts
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts, Identity, NodeText
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction
from ebbtide.telemetry import get_log


@dataclass(frozen=True, slots=True)
class Figures:
    """The values that metrics report of one agent, besides its counts."""

    used_bytes: int = 0
    """Size of the pages of the store's file that are in use."""
    statements: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of statements, by kind and state."""
    open_conflicts: int = 0


class State:
    """One agent's store, network and archive."""

    def __init__(self, store: LmdbStore, defaults: AgentParameters, log: EventLog | None = None) -> None:
        self.store = store
        self.log = log or EventLog()
        self._defaults = defaults
        self.identity: Identity
        self.overrides: dict[str, object]
        self._network: Network | None = None
        self._ledger: Ledger | None = None
        self._is_kept_due = True
        """Whether the network must learn which statements are kept."""
        self.open_archive: OpenArchive
        self.recall_filter = RecallFilter(self.log.now_ms)
        self.epoch = 0
        """Incremented when everything computed from the network becomes invalid."""
        self.is_compaction_due = store.read(lambda txn: txn.meta.compaction_due)
        """Whether the store's file may still contain erased data."""
        self.are_figures_due = True
        """Whether the figures may have changed since they were read."""
        self.load()
        store.on_reopened = self._reopened
        store.sources_of = self._sources_of

    # --- opening and parameters --------------------------------------------------------------------

    @property
    def network(self) -> Network:
        """The network, rebuilt from the store if it was discarded."""
        if self._network is None:
            self.load()
        assert self._network is not None
        return self._network

    @property
    def ledger(self) -> Ledger:
        """The ledger of statements, read from the store on first use."""
        return self.store.read(self.ledger_in) if self._ledger is None else self._ledger

    def ledger_in(self, txn: ReadTransaction) -> Ledger:
        """Return the ledger within a transaction of a reader."""
        if self._ledger is None:
            self._ledger = Ledger(txn.statements.entries())
        return self._ledger

    def is_full_of_statements(self, now_ms: int) -> bool:
        """Return whether passes skip as many statements as the agent may keep."""
        ledger, most = self.ledger, self.parameters.max_statements
        if len(ledger) < most:
            return False
        return ledger.statement_count >= most and len(ledger.known().kept(now_ms)) >= most

    def keep_statements(self, *, is_new_pass: bool) -> None:
        """Commit which statements passes skip, if that may have changed. The time changes it too."""
        if self._is_kept_due or is_new_pass:
            ledger = self.ledger
            if ledger.statement_count or self._is_kept_due:
                change = self.network.keeping(ledger.known().kept(self.log.now_ms()))
                if change.kept:
                    self.commit(change)
            self._is_kept_due = False

    def load(self) -> None:
        """Build the derived data from the store. Re-anchor all links if the default decay rate has changed."""
        identity, self.overrides, rate, sealed_with = self.store.read(
            lambda txn: (txn.meta.identity, txn.meta.overrides, txn.meta.decay_rate, txn.meta.sealed_with)
        )
        assert identity is not None, "an open store has its identity"
        self.identity = identity
        self.open_archive = OpenArchive(identity.agent_id, self.store.path, saves_index=not sealed_with)
        parameters = self._resolve(self.overrides)
        written_with = parameters.decay_rate if rate is None else rate
        self._is_kept_due = True
        as_written = parameters.model_copy(update={"decay_rate": written_with})
        read_texts = partial(_read_texts, self.store)
        self._network = self.store.read(lambda txn: _read_network(txn, as_written, read_texts))
        self.epoch += 1
        if rate != parameters.decay_rate:
            self._reanchor(self.overrides, parameters)
        self.network.parameters = parameters

    @property
    def parameters(self) -> AgentParameters:
        """The current parameters."""
        return self.network.parameters

    def _resolve(self, overrides: Mapping[str, object]) -> AgentParameters:
        return AgentParameters.model_validate({**self._defaults.model_dump(), **overrides})

    def change_parameters(
        self, changes: Mapping[str, object], entry: AuditEntry | None = None
    ) -> AgentParameters:
        """Set parameters of this agent; null restores the daemon's default. `entry` is written to the audit log.

        A new `decay_rate` first re-anchors every link at its present strength, in the same transaction.
        """
        overrides = {**self.overrides, **changes}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        parameters = self._resolve(overrides)
        runs = [names_run(sorted(changes))] if overrides != self.overrides else []
        self._reanchor(overrides, parameters, entry, runs)
        self.overrides = overrides
        self.network.parameters = parameters
        self.epoch += 1
        return parameters

    def _reanchor(
        self,
        overrides: Mapping[str, object],
        parameters: AgentParameters,
        entry: AuditEntry | None = None,
        events: Sequence[EventRun] = (),
    ) -> None:
        change = reparametrised(self.network, parameters)

        def also(txn: WriteTransaction) -> None:
            in_force = self.network.entity_memories
            txn.meta.set(overrides=overrides, decay_rate=parameters.decay_rate, entity_memories=in_force)
            if entry is not None:
                txn.audit.append(entry, self.identity.agent_id)

        self.commit(change, also, events)

    def commit(
        self,
        change: Change,
        also: Callable[[WriteTransaction], None] | None = None,
        events: Sequence[EventRun] = (),
    ) -> None:
        """Commit a change with its events, `also` and additional `events`, and apply it."""
        if change.deleted_entities:
            # The assertions of forgotten statements go with their entity.
            lost = self.ledger.lost(change.deleted_entities, (), lambda _: False)
            change.removed_entries += lost.entries
            gone = {*change.deleted, *change.forgotten}
            change.deleted += [one for one in lost.inferred if one in self.network and one not in gone]
        runs = [*self.events_of(change), *events]

        def write(txn: WriteTransaction) -> PassageUpdates | None:
            messages = citing(txn, change)
            if messages:
                # Before the commit: after a kill, no vectors of removed texts may be left.
                self.open_archive.remove_index_file()
            txn.apply(change)
            if also is not None:
                also(txn)
            self.log.write(txn, runs)
            return refresh_passages(txn, messages)

        self.follow(change, self.store.write(write))
        self.log.notify(runs)

    def events_of(self, change: Change, erased_messages: Sequence[int] = ()) -> list[EventRun]:
        """Return the events of a change that is not yet applied. The network and the ledger are in memory."""
        statements = statement_events(self.ledger, change, self.log.now_ms()) if _has_entries(change) else []
        return [*build_events(self.network, change, erased_messages), *statements]

    def follow(
        self,
        change: Change,
        passage_updates: PassageUpdates | None,
        update_archive: Callable[[Archive], None] | None = None,
    ) -> None:
        """Apply a committed change. If that fails, for example for lack of memory, discard the derived data.

        A network that lags behind the store would reuse ids. The next job rebuilds it.
        """
        self.are_figures_due = True
        try:
            self.network.apply(change)
            self._follow_entries(change)
        except Exception as error:
            self._discard()
            get_log("workspace").error(
                "network discarded because it could not be updated",
                agent_id=self.identity.agent_id,
                exc_info=error,
            )
            return
        if change.forgotten:
            # Recalled text may no longer be known; if it is said again, it must be remembered.
            self.recall_filter.clear()
        self.open_archive.follow(lambda archive: archive.add_memories(change.nodes))
        if update_archive is not None:
            self.open_archive.follow(update_archive)
        self.refresh_passages(passage_updates)

    def _follow_entries(self, change: Change) -> None:
        if self._ledger is not None and _has_entries(change):
            self._ledger.remove(change.removed_entries)
            self._ledger.apply([*change.assertions, *change.rulings])
            self._is_kept_due = True

    def _reopened(self) -> None:
        self._discard()
        get_log("workspace").warning("store reopened after a failed commit", agent_id=self.identity.agent_id)

    def _sources_of(self, node_id: NodeId) -> Sequence[NodeId] | None:
        """Return the sources of the stored links to a node; None without a network."""
        network = self._network
        if network is None:
            return None
        slot = network.slot_of(node_id)
        return network.ids_to(slot) if slot >= 0 else ()

    def _discard(self) -> None:
        """Discard the derived data. The next job rebuilds it."""
        self.open_archive.discard()
        self._network = None
        self._ledger, self._is_kept_due = None, True
        self.epoch += 1

    def refresh_passages(self, passage_updates: PassageUpdates | None) -> None:
        """Update the passages of messages without text in the archive; None discards the archive."""
        if passage_updates is None:
            self.open_archive.discard()
        elif passage_updates:
            self.open_archive.remove_index_file()
            self.open_archive.follow(lambda archive: archive.replace_withdrawn(passage_updates))

    def compact(self) -> None:
        """Remove erased data from all files: drop unused relation names, then rewrite the store."""
        self.open_archive.discard()
        self.open_archive.remove_index_file()
        self.store.write(lambda txn: txn.links.drop_unused_relations())
        self.store.compact()
        self.is_compaction_due = False

    @property
    def resident_bytes(self) -> int:
        """Size of the derived data in memory."""
        network = 0 if self._network is None else self._network.resident_bytes
        ledger = 0 if self._ledger is None else self._ledger.resident_bytes
        return network + ledger + self.open_archive.resident_bytes + self.recall_filter.resident_bytes

    def counts(self) -> AgentCounts:
        """Return the agent's counts."""
        return self.store.read(lambda txn: txn.counts())

    def figures(self) -> Figures:
        """Return the values that metrics report of the agent besides its counts. This may read all statements."""
        self.are_figures_due = False
        used, next_entry = self.store.read(lambda txn: (txn.tables.used_bytes(), txn.meta.ledger.next_entry))
        if next_entry == 1:
            return Figures(used)
        now_ms, replay = self.log.now_ms(), self.ledger.known()
        return Figures(used, replay.counts(now_ms), len(replay.conflicts(now_ms, now_ms)))

    def rng(self, purpose: str, number: int) -> Random:
        """Return a random generator that yields the same numbers whenever the same step is repeated."""
        return Random(f"{self.identity.seed}/{purpose}/{number}")


def _has_entries(change: Change) -> bool:
    return bool(change.assertions or change.rulings or change.removed_entries)


def _read_texts(store: LmdbStore, fold: Callable[[Iterable[NodeText]], FoldedTexts]) -> FoldedTexts:
    """Return the folded texts of the last commit, also within a transaction that writes."""
    return store.read(lambda txn: fold(txn.nodes.texts()))


def _read_network(txn: ReadTransaction, parameters: AgentParameters, read_texts: TextReader) -> Network:
    return load_network(
        parameters,
        txn.nodes.facts(),
        read_texts,
        txn.scans.columns(),
        txn.links.columns(),
        txn.meta.focus,
        txn.meta.next_node_id,
        txn.entities.all(),
        txn.meta.entity_focus,
        txn.meta.entity_memories,
    )
