"""Operations on a data directory that no daemon uses: the daemon's own read operations, backup and restore.

The directory is locked meanwhile, so that no daemon can start on it. Nothing is digested and no pass runs.
`OfflineFleet` has as much of a fleet as the read operations need, so offline and online responses are equal.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from ebbtide import __version__
from ebbtide.cli.client import CountedWriter, FileFormat, Json, Progress
from ebbtide.cli.console import warn_of_open_key
from ebbtide.cli.daemon_settings import given, settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.clock import SystemClock
from ebbtide.errors import Conflict, Corrupted, EbbtideError, NotFound
from ebbtide.fleet.archive.unembedded import unembedded_count
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId, parse_agent_id
from ebbtide.language.embedding import embedder_name
from ebbtide.settings import Settings
from ebbtide.store.directory.agent_meta import AgentMeta
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import master_key_of
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.store.transfer.receiving import receive
from ebbtide.store.transfer.sending import Sending
from ebbtide.verbs.agents import counts_info, get_agent
from ebbtide.verbs.attachments import AttachmentRequest, get_attachment
from ebbtide.verbs.audit import (
    ListAuditRecordsRequest,
    VerifyAuditRequest,
    list_audit_records,
    verify_audit,
)
from ebbtide.verbs.batches import ListBatchesRequest, list_batches
from ebbtide.verbs.entities import list_entities
from ebbtide.verbs.erased import (
    ListErasedAgentsRequest,
    VerifyErasedAgentsRequest,
    list_erased_agents,
    verify_erased_agents,
)
from ebbtide.verbs.focus import get_focus
from ebbtide.verbs.inspect import ListNodesRequest, NodeRequest, get_node, list_nodes
from ebbtide.verbs.messages import ListMessagesRequest, list_messages
from ebbtide.verbs.moving import restored
from ebbtide.verbs.paging import AgentPageRequest
from ebbtide.verbs.requests import AgentRequest, Request, Response, validated

PIECE_BYTES = 1 << 20
PAGE_SIZE = 1000

R = TypeVar("R", bound=Request)
T = TypeVar("T")


@contextmanager
def locked(
    path: Path | None, master_key_file: Path | None = None
) -> Iterator[tuple[DataDirectory, Settings]]:
    """Lock the data directory. Raise a Failure if there is none; the lock's error names the process that has it."""
    key_file = None if master_key_file is None else str(master_key_file)
    flags: dict[str, dict[str, Any]] = {
        "store": {"data_dir": path},
        "encryption": {"master_key_file": key_file},
    }
    settings = settings_in_force(given(flags))
    root = settings.store.data_dir
    if not (root / "agents").is_dir():
        why = "it has no folder agents" if root.is_dir() else "it does not exist"
        raise Failure(f"There is no data directory at {root}: {why}.", ExitCode.NOT_FOUND)
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
class ListedAgent:
    """An agent as its `meta.json` describes it, or the problem with that file; then the id is the directory's name."""

    agent_id: str
    meta: AgentMeta | None
    problem: str = ""


def listed_agents(data: DataDirectory) -> Iterator[ListedAgent]:
    """Yield every agent of a directory. An interrupted creation is not an agent."""
    for directory in data.directories():
        path = data.agents / directory
        try:
            meta = data.meta(directory)
            if meta is None and (not (path / "data.mdb").exists() or LmdbStore.is_blank(path)):
                continue
        except EbbtideError as error:
            yield ListedAgent(directory, None, error.message)
            continue
        if meta is None:
            yield ListedAgent(directory, None, _NO_META)
        else:
            yield ListedAgent(meta.agent_id, meta)


def refuse_nameless(data: DataDirectory, name: str) -> None:
    """Raise STORE_CORRUPTED if the name is that of a directory whose agent's id cannot be read."""
    if name.startswith("~") and (data.agents / name).is_dir():
        raise Corrupted(_NO_META, reason="STORE_CORRUPTED")


_NO_META = (
    "its meta.json cannot be read, so the agent's id is unknown; a request for the agent recreates the file"
)


@dataclass(frozen=True, slots=True)
class _NoDigest:
    current_batch: int | None = None


class OfflineAgent:
    """An agent with an open store and without background work."""

    digest = _NoDigest()

    def __init__(self, agent_id: AgentId, workspace: Workspace, embedding_model: str | None) -> None:
        self.id = agent_id
        self.workspace = workspace
        self._embedding_model = embedding_model

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job in this thread."""
        return job()

    def unembedded_count(self, txn: ReadTransaction) -> int:
        """Return how many messages have no vectors of the current embedding model; 0 without one."""
        return 0 if self._embedding_model is None else unembedded_count(txn, self._embedding_model, 0)


class OfflineFleet:
    """Opens agents one after the other, for reading."""

    def __init__(self, data: DataDirectory, settings: Settings) -> None:
        self.data = data
        self._settings = settings

    async def on_pool(self, fn: Callable[[], T]) -> T:
        """Run a blocking function in this thread."""
        return fn()

    @asynccontextmanager
    async def using(self, agent_id: AgentId) -> AsyncIterator[OfflineAgent]:
        """Open the agent for the block. Raise AGENT_NOT_FOUND if it does not exist."""
        refuse_nameless(self.data, agent_id)
        if not self.data.exists(agent_id):
            raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
        store = self.data.open_store(agent_id)
        try:
            yield OfflineAgent(agent_id, self._workspace(store), embedder_name(self._settings.embedding))
        finally:
            store.close()

    def _workspace(self, store: LmdbStore) -> Workspace:
        # With the decay rate of its stored links, a workspace writes nothing when it loads.
        rate = store.read(lambda txn: txn.meta.decay_rate)
        defaults = self._settings.memory
        if rate is not None:
            defaults = defaults.model_copy(update={"decay_rate": rate})
        return Workspace(store, defaults)


class OfflineClient:
    """A `MemoryClient` of a locked data directory."""

    def __init__(self, data: DataDirectory, settings: Settings) -> None:
        self._data = data
        self._settings = settings
        fleet = OfflineFleet(data, settings)
        self._service = _Service(fleet, settings)

    def list_agents(self) -> list[Json]:
        """Return every agent, as its `meta.json` describes it."""
        return [_listing(listed) for listed in listed_agents(self._data)]

    def get_agent(self, agent_id: str) -> Json:
        """Return an agent: parameters, counts, focus."""
        return _ran(get_agent(self._service, AgentRequest(agent_id=agent_id)))

    def list_batches(self, agent_id: str) -> list[Json]:
        """Return every batch whose state is stored."""
        return _all(
            "batches",
            lambda token: list_batches(
                self._service, ListBatchesRequest(agent_id=agent_id, page_size=PAGE_SIZE, page_token=token)
            ),
        )

    def get_node(self, agent_id: str, node_id: str) -> Json:
        """Return one memory with its links."""
        return _ran(get_node(self._service, NodeRequest(agent_id=agent_id, node_id=node_id)))

    def get_focus(self, agent_id: str) -> Json:
        """Return the memories and the entities in focus."""
        return _ran(get_focus(self._service, AgentRequest(agent_id=agent_id)))

    def list_entities(self, agent_id: str) -> list[Json]:
        """Return every entity."""
        return _all(
            "entities",
            lambda token: list_entities(
                self._service, AgentPageRequest(agent_id=agent_id, page_size=PAGE_SIZE, page_token=token)
            ),
        )

    def list_messages(self, agent_id: str, metadata: Json) -> list[Json]:
        """Return every stored message with these values."""
        request = self._listing(ListMessagesRequest, agent_id, metadata)
        return _all("messages", lambda token: list_messages(self._service, request(token)))

    def get_attachment(self, agent_id: str, message: str, index: int) -> bytes:
        """Return the content of an attachment."""
        request = AttachmentRequest(agent_id=agent_id, message=message, index=index)
        return asyncio.run(get_attachment(self._service, request)).bytes

    def list_nodes(
        self, agent_id: str, kinds: Sequence[str], metadata: Json, ids: Sequence[str]
    ) -> list[Json]:
        """Return living nodes: of these kinds, every memory made from what was said, or those with these ids."""
        request = self._listing(ListNodesRequest, agent_id, metadata, kinds=list(kinds), ids=list(ids))
        return _all("nodes", lambda token: list_nodes(self._service, request(token)))

    def _listing(self, kind: type[R], agent_id: str, metadata: Json, **more: object) -> Callable[[str], R]:
        """Return from a page token to the request of a listing."""
        fields = {"agent_id": agent_id, "metadata": metadata, "page_size": PAGE_SIZE, **more}
        return lambda token: validated(kind, {**fields, "page_token": token}, self._settings.limits)

    def list_audit_records(self, agent_id: str) -> list[Json]:
        """Return every record of an agent's audit log."""
        return _all(
            "records",
            lambda token: list_audit_records(
                self._service,
                ListAuditRecordsRequest(agent_id=agent_id, page_size=PAGE_SIZE, page_token=token),
            ),
        )

    def verify_audit(self, agent_id: str, texts: list[str]) -> Json:
        """Check that an agent's audit log is intact, and whether texts were deleted."""
        return _ran(verify_audit(self._service, VerifyAuditRequest(agent_id=agent_id, texts=texts)))

    def list_erased_agents(self) -> list[Json]:
        """Return every record of a deleted agent."""
        return _all(
            "records",
            lambda token: list_erased_agents(
                self._service, ListErasedAgentsRequest(page_size=PAGE_SIZE, page_token=token)
            ),
        )

    def verify_erased_agents(self, texts: list[str]) -> Json:
        """Check that the log of deleted agents is intact, and whether they had the texts."""
        return _ran(verify_erased_agents(self._service, VerifyErasedAgentsRequest(texts=texts)))

    # --- files -------------------------------------------------------------------------------------

    def download(self, agent_id: str, form: FileFormat, file: BinaryIO, progress: Progress) -> None:
        """Write the backup or the export of an agent to a file."""
        refuse_nameless(self._data, agent_id)
        owner = parse_agent_id(agent_id)
        if not self._data.exists(owner):
            raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
        store = self._data.open_store(owner)
        sending = Sending(self._data, __version__, SystemClock().now_ms())
        try:
            identity = store.read(lambda txn: txn.meta.identity)
            assert identity is not None, "an open store has its identity"
            made = sending.export(store, identity) if form == "export" else sending.backup(store, identity)
        finally:
            store.close()
        with made:
            shutil.copyfileobj(made, CountedWriter(file, progress), PIECE_BYTES)

    def upload(
        self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, progress: Progress
    ) -> Json:
        """Restore an agent from a file."""
        self._data.refuse_other_cluster("")
        owner = parse_agent_id(agent_id)
        exists = self._data.has_files(owner) and (replace or self._data.exists(owner))
        if exists and not replace:
            raise Conflict(
                "an agent with this id already exists; pass --replace to overwrite it", reason="AGENT_EXISTS"
            )
        folder = self._data.make_transfer()
        try:
            staged = receive(
                self._data,
                file,
                folder,
                expected=owner,
                rename=rename,
                defaults=self._settings.memory,
                now_ms=SystemClock().now_ms(),
            )
            self._data.install(owner, staged.path, staged.entry)
        finally:
            self._data.end_transfer(folder)
        return restored(staged, exists).model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class _Service:
    fleet: OfflineFleet
    settings: Settings


def _ran(verb: Coroutine[Any, Any, Response]) -> Json:
    return asyncio.run(verb).model_dump(mode="json")


def _all(field: str, page_of: Callable[[str], Coroutine[Any, Any, Any]]) -> list[Json]:
    """Return the items of every page of a listing."""
    found: list[Json] = []
    token = ""
    while True:
        page = _ran(page_of(token))
        found += page[field]
        token = page["next_page_token"]
        if not token:
            return found


def _listing(listed: ListedAgent) -> Json:
    meta = listed.meta
    if meta is None:
        return {"agent_id": listed.agent_id, "problem": listed.problem}
    return {
        "agent_id": meta.agent_id,
        "created_at": meta.created_at_ms,
        "open": False,
        "counts": counts_info(meta.counts).model_dump(),
    }
