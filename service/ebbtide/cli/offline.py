"""Agents at rest: the daemon's reading verbs on a data directory that no daemon holds.

The lock is held meanwhile, so that no daemon starts underneath; but there is no fleet: nothing is digested,
no pass runs, nothing is written. `RestingFleet` is as much of a fleet as the verbs that only read ask for, so
offline and online answers are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from ebbtide.cli.console import warn_of_open_key
from ebbtide.cli.daemon_settings import given, settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.errors import Corrupted, EbbtideError, NotFound
from ebbtide.fleet.archive.unembedded import unembedded_count
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId
from ebbtide.language.embedding import embedder_name
from ebbtide.records import AgentSummary
from ebbtide.settings import Settings
from ebbtide.store.directory.agent_meta import AgentMeta
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import master_key_of
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.agents import get_agent
from ebbtide.verbs.audit import VerifyAuditRequest, list_audit_records, verify_audit
from ebbtide.verbs.batches import ListBatchesRequest, list_batches
from ebbtide.verbs.erased import (
    ListErasedAgentsRequest,
    VerifyErasedAgentsRequest,
    list_erased_agents,
    verify_erased_agents,
)
from ebbtide.verbs.inspect import NodeRequest, get_node
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

Json = dict[str, Any]
T = TypeVar("T")


@contextmanager
def held(path: Path | None, master_key_file: Path | None = None) -> Iterator[tuple[DataDirectory, Settings]]:
    """The data directory under our lock. A Failure names who holds it, or says that there is none."""
    key_file = None if master_key_file is None else str(master_key_file)
    flags: dict[str, dict[str, Any]] = {
        "store": {"data_dir": path},
        "encryption": {"master_key_file": key_file},
    }
    settings = settings_in_force(given(flags))
    root = settings.store.data_dir
    if not (root / "agents").is_dir():
        raise Failure(f"There is no data directory at {root}.", ExitCode.NOT_FOUND)
    data = DataDirectory(
        root,
        initial_map_bytes=settings.store.initial_map_bytes,
        max_map_bytes=settings.store.max_map_bytes,
        master_key=master_key_of(settings.encryption),
    )
    if settings.encryption.master_key_file:
        warn_of_open_key(Path(settings.encryption.master_key_file), "the file of the master key")
    data.acquire()
    try:
        yield data, settings
    finally:
        data.release()


@dataclass(frozen=True, slots=True)
class ToldAgent:
    """An agent as its `meta.json` tells it, or why that cannot be had; then its directory stands for its id."""

    agent_id: str
    meta: AgentMeta | None
    problem: str = ""


def told_agents(data: DataDirectory) -> Iterator[ToldAgent]:
    """Every agent of a directory. What was cut off while it came into being is none."""
    for directory in data.directories():
        path = data.agents / directory
        try:
            meta = data.meta(directory)
            if meta is None and (not (path / "data.mdb").exists() or LmdbStore.is_blank(path)):
                continue
        except EbbtideError as error:
            yield ToldAgent(directory, None, error.message)
            continue
        if meta is None:
            yield ToldAgent(directory, None, _NO_META)
        else:
            yield ToldAgent(meta.agent_id, meta)


def refuse_nameless(data: DataDirectory, name: str) -> None:
    """STORE_CORRUPTED for the name of a directory that stands for an id which cannot be read."""
    if name.startswith("~") and (data.agents / name).is_dir():
        raise Corrupted(_NO_META, reason="STORE_CORRUPTED")


_NO_META = "its meta.json cannot be read, so nobody knows whose it is; a request for the agent makes it anew"


@dataclass(frozen=True, slots=True)
class _NoDigest:
    current_batch: int | None = None


class RestingAgent:
    """An agent whose store is open and whose work is not taken up."""

    digest = _NoDigest()

    def __init__(self, agent_id: AgentId, workspace: Workspace, embedding_model: str | None) -> None:
        self.id = agent_id
        self.workspace = workspace
        self._embedding_model = embedding_model

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job here and now."""
        return job()

    def unembedded_count(self, txn: ReadTransaction) -> int:
        """Messages that have no vectors yet of the model in force; 0 where there is none."""
        return 0 if self._embedding_model is None else unembedded_count(txn, self._embedding_model, 0)


class RestingFleet:
    """Opens one agent after the other, for reading."""

    def __init__(self, data: DataDirectory, settings: Settings) -> None:
        self.data = data
        self._settings = settings

    async def on_pool(self, fn: Callable[[], T]) -> T:
        """Do what blocks here and now."""
        return fn()

    @asynccontextmanager
    async def using(self, agent_id: AgentId) -> AsyncIterator[RestingAgent]:
        """The agent, open for the block. AGENT_NOT_FOUND when there is none."""
        refuse_nameless(self.data, agent_id)
        if not self.data.exists(agent_id):
            raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
        store = self.data.open_store(agent_id)
        try:
            yield RestingAgent(agent_id, self._workspace(store), embedder_name(self._settings.embedding))
        finally:
            store.close()

    def _workspace(self, store: LmdbStore) -> Workspace:
        # With the decay rate its links were written with, a workspace has nothing to write when it loads.
        rate = store.read(lambda txn: txn.meta.decay_rate)
        defaults = self._settings.memory
        if rate is not None:
            defaults = defaults.model_copy(update={"decay_rate": rate})
        return Workspace(store, defaults)


class OfflineClient:
    """The same questions as `Remote` answers, asked of a data directory at rest."""

    def __init__(self, data: DataDirectory, settings: Settings) -> None:
        self._data = data
        fleet = RestingFleet(data, settings)
        self._service = cast(Service, _ReadingService(fleet, settings))

    def agents(self) -> list[Json]:
        """Every agent, by what its `meta.json` says."""
        found: list[Json] = []
        for told in told_agents(self._data):
            meta = told.meta
            if meta is None:
                found.append({"agent_id": told.agent_id, "problem": told.problem})
                continue
            summary = AgentSummary(meta.agent_id, meta.created_at_ms, meta.format_version, False, meta.counts)
            found.append(_listing(summary))
        return found

    def agent(self, agent_id: str) -> Json:
        """An agent: parameters, counts, focus."""
        return _ran(get_agent(self._service, AgentRequest(agent_id=agent_id))).model_dump(mode="json")

    def batches(self, agent_id: str) -> list[Json]:
        """Every batch whose status is kept."""
        return _all(
            "batches",
            lambda token: list_batches(
                self._service, ListBatchesRequest(agent_id=agent_id, page_size=1000, page_token=token)
            ),
        )

    def audit(self, agent_id: str) -> list[Json]:
        """Every record of an agent's audit log."""
        return _all(
            "records",
            lambda token: list_audit_records(
                self._service, AgentPageRequest(agent_id=agent_id, page_size=1000, page_token=token)
            ),
        )

    def verify_audit(self, agent_id: str, texts: list[str]) -> Json:
        """Whether an agent's audit log is whole, and whether texts were erased."""
        command = VerifyAuditRequest(agent_id=agent_id, texts=texts)
        return _ran(verify_audit(self._service, command)).model_dump(mode="json")

    def erased_agents(self) -> list[Json]:
        """Every record of an erased agent."""
        return _all(
            "records",
            lambda token: list_erased_agents(
                self._service, ListErasedAgentsRequest(page_size=1000, page_token=token)
            ),
        )

    def verify_erased(self, texts: list[str]) -> Json:
        """Whether the log of erased agents is whole, and whether texts were among what they held."""
        command = VerifyErasedAgentsRequest(texts=texts)
        return _ran(verify_erased_agents(self._service, command)).model_dump(mode="json")

    def node(self, agent_id: str, node_id: str) -> Json:
        """One memory with its links."""
        return _ran(get_node(self._service, NodeRequest(agent_id=agent_id, node_id=node_id))).model_dump(
            mode="json"
        )


@dataclass(frozen=True, slots=True)
class _ReadingService:
    fleet: RestingFleet
    settings: Settings


def _ran(verb: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(verb)


def _all(kind: str, page_of: Callable[[str], Coroutine[Any, Any, Any]]) -> list[Json]:
    """What every page of a listing holds under the name of its kind."""
    found: list[Json] = []
    token = ""
    while True:
        page = _ran(page_of(token))
        found += [one.model_dump(mode="json") for one in getattr(page, kind)]
        token = page.next_page_token
        if not token:
            return found


def _listing(summary: AgentSummary) -> Json:
    counts = summary.counts
    return {
        "agent_id": summary.agent_id,
        "created_at": summary.created_at_ms,
        "open": summary.open,
        "counts": {
            "nodes": counts.node_count,
            "links": counts.link_count,
            "messages": counts.message_count,
        },
    }
