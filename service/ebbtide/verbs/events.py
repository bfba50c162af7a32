"""events: what happens to an agent's memory, as an ordered stream from any number on.

A stream reads pages from the store, each in a job like any request, and waits for the next commit in between. Nothing
is skipped silently: if the next events are no longer kept, the stream is refused or ends with EVENTS_GONE. Events
name memories by id and never contain their text. The caller's key is checked before each page and while waiting,
since a stream outlives the request that opened it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Annotated

from pydantic import Field

from ebbtide import events
from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import READ, of_agent
from ebbtide.errors import Deadline, EbbtideError, Exhausted, NotFound, Unavailable
from ebbtide.fleet.runtime.event_streams import EventSubscription
from ebbtide.ids import AgentId, batch_text_id, message_text_id, node_text_id
from ebbtide.statements import CONSOLIDATION_STEPS
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.limits import Between
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service

PAGE_SIZE = 100
"""Events read in one job, and the most that wait in memory for a slow reader."""

HEARTBEAT_S = 15.0
"""Interval of heartbeats while nothing happens, so that proxies keep the connection open."""

LOOK_EVERY_S = 1.0
"""How often the caller's key is checked again; its expiry does not wake the stream."""

REQUIRES = of_agent(READ)

GATHERING_S = 0.2
"""How long a woken stream waits for more events: a pass commits every few milliseconds."""

FROM_NOW_ON = -1
"""The `after` for future events only."""


class EventInfo(Response):
    """One event. Fields that its kind does not have are null or empty."""

    sequence: int = Field(
        description="Number of the event, one more than that of the previous one.", examples=[17]
    )
    happened_at: int = Field(description="Time of the event, ms since the epoch.")
    kind: str = Field(
        description="Kind of the event; see docs/events.md. New kinds may be added.",
        examples=["NodeForgotten"],
    )
    node_id: str | None = Field(
        description="The memory, the statement, the entity, or the source of the link.", examples=["n1"]
    )
    target_id: str | None = Field(
        description="The node that the link points at; the other statement or entity of a pair."
    )
    batch_id: str | None = Field(description="The batch.")
    message_id: str | None = Field(description="The message.")
    pass_number: int | None = Field(description="The compression pass.")
    length_before: int | None = Field(description="Characters of the memory before.")
    length: int | None = Field(description="Characters of the memory now.")
    node_count: int | None = Field(description="Number of memories made from the batch.")
    attempts: int | None = Field(description="Failed tries of the batch.")
    focus: list[str] = Field(description="The memories in focus now, newest first.")
    focus_entities: list[str] = Field(description="The entities in focus now, newest first.")
    parameters: list[str] = Field(description="Names of the parameters that were changed.")
    step: str | None = Field(description="The step of the consolidation.", examples=["staged"])
    looked: int | None = Field(description="Number of items that the step looked at.")
    changed: int | None = Field(description="Number of items that the step changed.")


class WatchEventsRequest(AgentRequest):
    """Where the stream begins, and whether it ends."""

    after: Annotated[int, Between(FROM_NOW_ON, None)] | None = Field(
        None,
        description="Number of the last event received; -1: only events that happen from now on; "
        "default: from the oldest event that is kept.",
    )
    follow: bool | None = Field(None, description="false: end after the events that exist now.")


async def watch_events(service: Service, request: WatchEventsRequest) -> EventStream:
    """Stream the events of an agent's memory. Errors in the request are reported before the stream begins."""
    watch = service.fleet.event_streams.admit(request.owner, CALLER.get().key_id)
    stream = EventStream(
        service, request.owner, watch, request.after, is_following=request.follow is not False
    )
    try:
        await stream.begin()
    except BaseException:
        stream.close()
        raise
    return stream


class EventStream:
    """Pages of events; an empty page is a heartbeat. The verb's caller closes the stream."""

    def __init__(
        self,
        service: Service,
        owner: AgentId,
        subscription: EventSubscription,
        after: int | None,
        *,
        is_following: bool,
    ) -> None:
        self._service = service
        self._owner = owner
        self._subscription = subscription
        self._after = after
        self._is_following = is_following
        self._caller = CALLER.get()
        self._first_page: list[EventInfo] = []
        self._notification = subscription.next_notification()

    async def begin(self) -> None:
        """Read the first page."""
        self._first_page = await self._page()

    def close(self) -> None:
        """Release the stream's place. Idempotent."""
        self._subscription.end()

    async def pages(self) -> AsyncIterator[list[EventInfo]]:
        """Yield the existing events page by page, then new ones. Raise EbbtideError if the stream cannot continue."""
        page = self._first_page
        while True:
            self._refuse_over()
            if page:
                yield page
            if len(page) < PAGE_SIZE:
                if not self._is_following:
                    return
                await self._wait()
                if not self._notification.has_occurred:
                    yield []
                    page = []
                    continue
                await self._rest(GATHERING_S)
            page = await self._page_with_patience()

    def _refuse_over(self) -> None:
        """Raise SHUTTING_DOWN once a stop begins, AGENT_MOVING once the agent has moved to another node of a cluster.

        Raise the error of a request once the caller lost its right.

        The stream is incomplete then, so it must end with an error. Call this after `_page` took the next beat and
        before waiting for it: a stop before that causes no further beat.
        """
        if not self._service.is_accepting:
            raise Unavailable(
                "The daemon is stopping. Retry when it is running again.",
                reason="SHUTTING_DOWN",
                retry_after_s=5.0,
            )
        if not self._service.fleet.data.owns(self._owner):
            raise self._service.fleet.refusal()
        self._service.authentication.permit_still(self._caller, REQUIRES, self._owner)

    async def _wait(self) -> None:
        """Wait for an event, at most HEARTBEAT_S."""
        left_s = HEARTBEAT_S
        while left_s > 0 and not self._notification.has_occurred:
            await self._notification.wait(min(LOOK_EVERY_S, left_s))
            self._refuse_over()
            left_s -= LOOK_EVERY_S

    async def _rest(self, pause_s: float) -> None:
        """Pause; a stop ends the pause."""
        while pause_s > 0:
            self._refuse_over()
            await asyncio.sleep(min(GATHERING_S, pause_s))
            pause_s -= GATHERING_S
        self._refuse_over()

    async def _page_with_patience(self) -> list[EventInfo]:
        """Return the next page; retry while the agent is busy or being closed."""
        while True:
            try:
                return await self._page()
            except (Exhausted, Unavailable, Deadline) as error:
                await self._rest(error.retry_after_s or 1.0)

    async def _page(self) -> list[EventInfo]:
        self._notification = self._subscription.next_notification()

        def read(txn: ReadTransaction) -> tuple[int, list[EventInfo]]:
            after = _position(txn, self._after)
            return after, [_event_info(event) for event in islice(txn.events.since(after + 1), PAGE_SIZE)]

        async with self._service.fleet.using(self._owner) as agent:
            after, found = await agent.run(lambda: agent.workspace.store.read(read))
        self._after = found[-1].sequence if found else after
        return found


def _position(txn: ReadTransaction, after: int | None) -> int:
    """Return the number to continue after. EVENTS_GONE if the next event does not exist and never will."""
    first, following = txn.events.first_number(), txn.meta.next_event
    if after is None:
        return first - 1
    if after == FROM_NOW_ON:
        return following - 1
    if first - 1 <= after < following:
        return after
    raise _gone(after, first, following - 1)


def _gone(after: int, first: int, last: int) -> EbbtideError:
    why = (
        f"The events after {after} are no longer kept, or the agent was created again or restored since"
        if after < first
        else f"Event {after} does not exist yet"
    )
    available = f"Available: {first} to {last}." if first <= last else f"Continue after {last}."
    return NotFound(
        f"{why}. {available}",
        reason="EVENTS_GONE",
        metadata={"first_sequence": str(first), "last_sequence": str(last)},
    )


def _event_info(event: events.Event) -> EventInfo:
    numbers = event.numbers
    return EventInfo(
        sequence=event.sequence,
        happened_at=event.at_ms,
        kind=event.kind,
        node_id=node_text_id(numbers["node"]) if numbers.get("node") else None,
        target_id=node_text_id(numbers["target"]) if numbers.get("target") else None,
        batch_id=batch_text_id(numbers["batch"]) if numbers.get("batch") else None,
        message_id=message_text_id(numbers["message"]) if numbers.get("message") else None,
        pass_number=numbers.get("pass_number") or None,
        length_before=numbers.get("length_before"),
        length=numbers.get("length"),
        node_count=numbers.get("node_count"),
        attempts=numbers.get("attempts"),
        focus=[node_text_id(node_id) for node_id in event.focus],
        focus_entities=[node_text_id(node_id) for node_id in event.entity_focus],
        parameters=list(event.names),
        step=CONSOLIDATION_STEPS[numbers["step"] - 1] if numbers.get("step") else None,
        looked=numbers.get("looked"),
        changed=numbers.get("changed"),
    )
