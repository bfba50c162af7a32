"""The service that read operations need: agents that can be opened, and settings.

The daemon's service satisfies `ReadingService`, and so does the command line's work on a data directory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId
from ebbtide.settings import Settings
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.lmdb.transaction import ReadTransaction

T = TypeVar("T")


class ReadableDigest(Protocol):
    """The digestion of an agent's batches."""

    @property
    def current_batch(self) -> int | None: ...


class ReadableAgent(Protocol):
    """An open agent."""

    @property
    def id(self) -> AgentId: ...
    @property
    def workspace(self) -> Workspace: ...
    @property
    def digest(self) -> ReadableDigest: ...
    async def run(self, job: Callable[[], T]) -> T: ...
    def unembedded_count(self, txn: ReadTransaction) -> int: ...


class ReadableFleet(Protocol):
    """Agents that can be opened one by one."""

    @property
    def data(self) -> DataDirectory: ...
    def using(self, agent_id: AgentId) -> AbstractAsyncContextManager[ReadableAgent]: ...
    async def on_pool(self, fn: Callable[[], T]) -> T: ...


class ReadingService(Protocol):
    """The fleet and the settings."""

    @property
    def fleet(self) -> ReadableFleet: ...
    @property
    def settings(self) -> Settings: ...
