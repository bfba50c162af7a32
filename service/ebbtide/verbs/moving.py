"""backup, export, restore: an agent as one file, and an agent from such a file, here or on another machine.

Backup and export: copy the open agent while its jobs run, make the file from the copy, send it. Restore: store the
uploaded file, make and verify an agent from it while other agents work, then rename it into place. Once the upload is
complete, the restore completes even if the client disconnects. A stop, or the deadline of the transfer, cancels it up
to the rename; a cancelled restore changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from pydantic import Field

from ebbtide import __version__
from ebbtide.access.grants import CALLER
from ebbtide.actor import actor
from ebbtide.errors import Conflict, InvalidRequest
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.agent_quota import AgentQuota
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.translation import translated
from ebbtide.verbs.agents import Counts, counts_info
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service
from ebbtide.verbs.transfers import Transfer, handed_over, in_time

if TYPE_CHECKING:
    from ebbtide.store.transfer.receiving import Staged
    from ebbtide.store.transfer.sending import Sending

BACKUP_TYPE = "application/octet-stream"
EXPORT_TYPE = "application/x-ndjson"


class RestoreAgentRequest(AgentRequest):
    """Which agent to restore, and how."""

    replace: bool = Field(False, description="Replace an existing agent with this id.")
    rename: bool = Field(False, description="Accept the backup of an agent with another id.")


class Restored(Response):
    """The restored agent."""

    agent_id: str = Field(description="The agent's id.", examples=["ann"])
    replaced: bool = Field(description="Whether it replaced an existing agent.")
    counts: Counts = Field(description="Number of living memories, entities, links and stored messages.")
    pending_batches: int = Field(description="Accepted batches not yet digested.")
    parked_batches: int = Field(description="Batches parked after repeated failures.")
    owed_passes: int = Field(description="Compression passes owed, including the running one.")


@dataclass(slots=True)
class Leaving:
    """A file to send, and its place among the transfers. A `with` block releases both."""

    service: Service
    transfer: Transfer
    file: BinaryIO
    size: int
    name: str
    media_type: str
    held: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.close()

    async def hand_over(self, take: Callable[[bytes], Awaitable[object]]) -> None:
        """Send the whole file, piece by piece."""
        await handed_over(self.transfer, self.file, self.service.transfers.run, take)


async def backup_agent(service: Service, request: AgentRequest) -> Leaving:
    """Return the agent as one backup file, also while it is at work. It contains every batch accepted before.

    STORE_FULL if there is no room for the file; the agent does not change.
    """
    return await _leaving(
        service, request.owner, lambda agent, how: how.backup(*_store_of(agent)), "ebb", BACKUP_TYPE
    )


async def export_agent(service: Service, request: AgentRequest) -> Leaving:
    """Return the agent as JSON lines, also while it is at work."""
    return await _leaving(
        service, request.owner, lambda agent, how: how.export(*_store_of(agent)), "jsonl", EXPORT_TYPE
    )


def _store_of(agent: Agent) -> tuple[LmdbStore, Identity]:
    return agent.workspace.store, agent.workspace.identity


async def _leaving(
    service: Service, owner: AgentId, make: Callable[[Agent, Sending], BinaryIO], suffix: str, media_type: str
) -> Leaving:
    data, now_ms = service.fleet.data, service.clock.now_ms()
    with ExitStack() as held:
        transfer = held.enter_context(service.transfers.place())
        async with service.fleet.using(owner) as agent:

            def send(is_given_up: Callable[[], bool]) -> BinaryIO:
                from ebbtide.store.transfer.sending import Sending

                return make(agent, Sending(data, __version__, now_ms, is_given_up, transfer.rest))

            file = await service.transfers.make(send, discard=BinaryIO.close)
        held.callback(file.close)
        size = file.seek(0, 2)
        file.seek(0)
        name = f"{directory_name(owner)}.{suffix}"
        return Leaving(service, transfer, file, size, name, media_type, held.pop_all())


async def restore_agent(
    service: Service, request: RestoreAgentRequest, pieces: AsyncIterator[bytes]
) -> Restored:
    """Restore an agent from a backup or an export, sent as the body.

    Raise AGENT_EXISTS if the agent exists, unless `replace`; and BACKUP_OF_ANOTHER_AGENT if the file is of an agent
    with another id, unless `rename`. A refused or interrupted restore changes nothing.
    """
    owner = request.owner
    fleet = service.fleet
    with ExitStack() as held:
        transfer = held.enter_context(service.transfers.place())
        if not request.replace and await fleet.on_pool(lambda: fleet.data.has_meta(owner)):
            # Before the client sends the whole file in vain.
            raise Conflict(
                "An agent with this id already exists. Pass replace=true to overwrite it.",
                reason="AGENT_EXISTS",
            )
        folder = await fleet.on_pool(fleet.data.make_transfer)
        held.callback(service.transfers.soon, partial(fleet.data.end_transfer, folder))
        await _take_in(service, folder / "arrived", in_time(transfer, pieces))
        # The caller is known here only: the work outlives the request.
        covers = CALLER.get().grant.reach.covers
        wish = _Wish(owner, request.replace, request.rename, actor(), service.agent_quota, covers)
        work = _restored(service, wish, folder, transfer, held.pop_all())
        return await service.transfers.to_its_end(work)


async def _take_in(service: Service, path: Path, pieces: AsyncIterator[bytes]) -> None:
    most, size = service.settings.limits.max_upload_bytes, 0
    try:
        with path.open("wb") as file:
            async for piece in pieces:
                size += len(piece)
                if size > most:
                    raise InvalidRequest(f"the upload exceeds {most} bytes", reason="BODY_TOO_LARGE")
                await service.transfers.run(partial(file.write, piece))
    except OSError as error:
        raise translated(error, path) from error


@dataclass(frozen=True, slots=True)
class _Wish:
    """Which agent to restore, how, and for which caller."""

    owner: AgentId
    replace: bool
    rename: bool
    asker: str
    agent_quota: AgentQuota | None
    covers: Callable[[str], bool]


async def _restored(
    service: Service, wish: _Wish, folder: Path, transfer: Transfer, held: ExitStack
) -> Restored:
    now_ms = service.clock.now_ms()

    def make() -> Staged:
        from ebbtide.store.transfer.receiving import receive

        path = folder / "arrived"
        try:
            source = path.open("rb")
        except OSError as error:
            raise translated(error, path) from error
        with source:
            return receive(
                service.fleet.data,
                source,
                folder,
                expected=wish.owner,
                rename=wish.rename,
                defaults=service.fleet.defaults,
                now_ms=now_ms,
                actor=wish.asker,
                covers=wish.covers,
                pause=transfer.rest,
            )

    with held:
        staged = await service.transfers.run(make)
        replaced = await service.fleet.install(staged, replace=wish.replace, agent_quota=wish.agent_quota)
    return restored(staged, replaced)


def restored(staged: Staged, replaced: bool) -> Restored:
    """Return the description of a restored agent."""
    counts = staged.counts
    return Restored(
        agent_id=staged.agent_id,
        replaced=replaced,
        counts=counts_info(counts),
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        owed_passes=counts.owed_passes,
    )
