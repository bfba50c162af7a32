"""Loads an agent's workspace from its files, or creates the agent.

Work that an earlier run left unfinished in the store is completed here, before the agent is used: a compaction owed by
an erasure, and a work marker without work. The fleet decides which agents are opened, and how many at a time. All
methods block; they run on the job threads.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ebbtide.errors import Exhausted, Unavailable
from ebbtide.events import EventRun, names_run
from ebbtide.fleet.runtime.agent_quota import AgentQuota
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.event_builder import EventLog
from ebbtide.heap import fresh_pages
from ebbtide.ids import AgentId
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts, Identity
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.telemetry import get_log


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """How to create an agent that does not exist."""

    create: bool
    overrides: Mapping[str, object]
    agent_quota: AgentQuota | None
    actor_name: str
    """The actor recorded in the audit log."""


class Loading:
    """Creates workspaces from the files of one data directory."""

    def __init__(
        self,
        shared: SharedResources,
        defaults: AgentParameters,
        on_events: Callable[[AgentId, Sequence[EventRun]], None],
    ) -> None:
        self._shared = shared
        self._defaults = defaults
        self._on_events = on_events
        self._log = get_log("fleet")

    def load(self, agent_id: AgentId, exists: bool, options: CreateOptions) -> tuple[Workspace, AgentCounts]:
        """Load the agent, or create it if it does not exist. Return its workspace and counts."""
        with fresh_pages():
            log = self._log_of(agent_id)
            store = (
                self._shared.data.open_store(agent_id) if exists else self._created(agent_id, options, log)
            )
        try:
            workspace = Workspace(store, self._defaults, log, self._shared.texts, self._shared.search)
            self._compact(workspace)
            counts = workspace.counts()
            if workspace.is_compaction_due:
                return workspace, counts
            if counts.pending_batches == 0 and counts.owed_passes == 0:
                self._shared.data.unmark(agent_id)
            return workspace, counts
        except BaseException:
            store.close()
            raise

    def _created(self, agent_id: AgentId, options: CreateOptions, log: EventLog) -> LmdbStore:
        """Create the agent's store. The creating commit contains its parameters and its first audit record."""
        now_ms = self._shared.clock.now_ms()
        identity = Identity(agent_id, now_ms, secrets.randbits(63), layout.FORMAT_VERSION)
        overrides = {name: value for name, value in options.overrides.items() if value is not None}
        parameters = AgentParameters.model_validate({**self._defaults.model_dump(), **overrides})
        entry = AuditEntry(now_ms, options.actor_name, "created", {"parameters": dict(options.overrides)})
        runs = [names_run(sorted(options.overrides))] if overrides else []

        def begin(txn: WriteTransaction) -> None:
            txn.meta.set(overrides=overrides, decay_rate=parameters.decay_rate)
            txn.audit.append(entry, agent_id)
            log.write(txn, runs)

        store = self._shared.data.create_store(identity, begin)
        log.notify(runs)
        return store

    def _log_of(self, agent_id: AgentId) -> EventLog:
        shared = self._shared
        return EventLog(shared.clock.now_ms, shared.events_keep, partial(self._on_events, agent_id))

    def _compact(self, workspace: Workspace) -> None:
        """Complete the compaction of an earlier erasure. If it fails, it stays due."""
        if workspace.is_compaction_due:
            try:
                workspace.compact()
            except (Exhausted, Unavailable) as error:
                agent_id = workspace.identity.agent_id
                self._log.warning("compaction postponed", agent_id=agent_id, reason=error.reason)
