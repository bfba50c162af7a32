"""events: what happens to an agent's memory, in order, from any number on, as long as somebody listens.

A stream is read in pages from the store, each through a job like any request, and waits in between for the next
commit. Nothing is skipped silently: where the numbers that a caller wants next are no longer kept, the stream is
refused, or ends, with EVENTS_GONE. Events name memories by their ids and never say what they hold. Whether who
watches still may is looked at before each page, and in between: a stream outlives the request that opened it.
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
from ebbtide.fleet.runtime.watching import Watch
from ebbtide.ids import AgentId, batch_text_id, message_text_id, node_text_id
from ebbtide.store.port import ReadTransaction
from ebbtide.verbs.limits import Between
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service

PAGE_SIZE = 100
"""Events read in one job; so many wait in memory for a reader that is slow."""

HEARTBEAT_S = 15.0
"""So often something is sent when nothing happens, so that nobody in between takes the connection for dead."""

LOOK_EVERY_S = 1.0
"""So often it is looked whether the key of whoever watches still counts; a key that expires wakes nobody."""

REQUIRES = of_agent(READ)

GATHERING_S = 0.2
"""How long a stream that was woken waits for more to come: a pass commits every few milliseconds."""

FROM_NOW_ON = -1
"""The `after` of who wants nothing that happened before."""


class EventInfo(Response):
    """One thing that happened. What its kind does not have is null, or empty."""

    sequence: int = Field(description="Its number: one more than that of the event before.", examples=[17])
    happened_at: int = Field(description="ms since the epoch.")
    kind: str = Field(description="What happened; see docs/events.md.", examples=["NodeForgotten"])
    node_id: str | None = Field(description="The memory, or the source of the link.", examples=["n1"])
    target_id: str | None = Field(description="The memory that the link points at.")
    batch_id: str | None = Field(description="The batch.")
    message_id: str | None = Field(description="The message.")
    pass_number: int | None = Field(description="The compression pass.")
    length_before: int | None = Field(description="Characters of the memory before.")
    length: int | None = Field(description="Characters of the memory now.")
    node_count: int | None = Field(description="How many memories the batch became.")
    attempts: int | None = Field(description="Failed rounds of the batch.")
    focus: list[str] = Field(description="The memories in focus now, newest first.")
    parameters: list[str] = Field(description="Names of the parameters that were changed.")


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
    watch = service.fleet.watching.admit(request.owner, CALLER.get().key_id)
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
    """Pages of events; an empty one is a sign of life. To be closed by whoever opened it."""

    def __init__(
        self, service: Service, owner: AgentId, watch: Watch, after: int | None, *, is_following: bool
    ) -> None:
        self._service = service
        self._owner = owner
        self._watch = watch
        self._after = after
        self._is_following = is_following
        self._caller = CALLER.get()
        self._first_page: list[EventInfo] = []
        self._beat = watch.next_beat()

    async def begin(self) -> None:
        """Read the first page."""
        self._first_page = await self._page()

    def close(self) -> None:
        """Give the stream's place back. Idempotent."""
        self._watch.end()

    async def pages(self) -> AsyncIterator[list[EventInfo]]:
        """What is there, page by page, then what happens. EbbtideError where it cannot go on."""
        page = self._first_page
        while True:
            self._refuse_over()
            if page:
                yield page
            if len(page) < PAGE_SIZE:
                if not self._is_following:
                    return
                await self._wait()
                if not self._beat.has_come:
                    yield []
                    page = []
                    continue
                await self._rest(GATHERING_S)
            page = await self._page_with_patience()

    def _refuse_over(self) -> None:
        """SHUTTING_DOWN from the moment a stop begins; the error of a request, once the caller may not ask any more.

        What was asked for is not all told then, so it must not end well. To be asked after `_page` took the beat and
        before that is waited for: a stop that came earlier beats no more.
        """
        if not self._service.is_accepting:
            raise Unavailable("the daemon is stopping", reason="SHUTTING_DOWN", retry_after_s=5.0)
        self._service.authentication.permit_still(self._caller, REQUIRES, self._owner)

    async def _wait(self) -> None:
        """Wait for something to happen, HEARTBEAT_S at most."""
        left_s = HEARTBEAT_S
        while left_s > 0 and not self._beat.has_come:
            await self._beat.wait(min(LOOK_EVERY_S, left_s))
            self._refuse_over()
            left_s -= LOOK_EVERY_S

    async def _rest(self, pause_s: float) -> None:
        """Let time go by, but for a stop."""
        while pause_s > 0:
            self._refuse_over()
            await asyncio.sleep(min(GATHERING_S, pause_s))
            pause_s -= GATHERING_S
        self._refuse_over()

    async def _page_with_patience(self) -> list[EventInfo]:
        """The next page, asked for again where the agent is only busy or being closed at this moment."""
        while True:
            try:
                return await self._page()
            except (Exhausted, Unavailable, Deadline) as error:
                await self._rest(error.retry_after_s or 1.0)

    async def _page(self) -> list[EventInfo]:
        self._beat = self._watch.next_beat()

        def read(txn: ReadTransaction) -> tuple[int, list[EventInfo]]:
            after = _position(txn, self._after)
            return after, [_told(event) for event in islice(txn.events(after + 1), PAGE_SIZE)]

        async with self._service.fleet.using(self._owner) as agent:
            after, found = await agent.run(lambda: agent.workspace.store.read(read))
        self._after = found[-1].sequence if found else after
        return found


def _position(txn: ReadTransaction, after: int | None) -> int:
    """The number after which to go on; EVENTS_GONE where the next one is not there and will never come."""
    first, following = txn.first_event(), txn.next_event()
    if after is None:
        return first - 1
    if after == FROM_NOW_ON:
        return following - 1
    if first - 1 <= after < following:
        return after
    raise _gone(after, first, following - 1)


def _gone(after: int, first: int, last: int) -> EbbtideError:
    told = (
        f"what came after event {after} is no longer kept, or the agent was made anew or restored since"
        if after < first
        else f"event {after} was never told"
    )
    there = f"the events from {first} to {last} are there" if first <= last else f"go on after {last}"
    return NotFound(
        f"{told}; {there}",
        reason="EVENTS_GONE",
        metadata={"first_sequence": str(first), "last_sequence": str(last)},
    )


def _told(event: events.Event) -> EventInfo:
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
        parameters=list(event.names),
    )
