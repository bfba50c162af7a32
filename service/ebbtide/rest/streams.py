"""Event streams as text/event-stream: `id` is the number of the event, `event` its kind, `data` its fields.

A reconnecting browser sends the last number in `Last-Event-ID`, and misses nothing. A stream that cannot continue ends
with an event `StreamEnded`, whose data is the body of an error: the status was sent long before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ebbtide.errors import Corrupted, EbbtideError, Internal, InvalidRequest
from ebbtide.rest.problems import problem
from ebbtide.telemetry import get_log
from ebbtide.verbs.events import EventStream

STILL_HERE = ": still here\n\n"


class ServerSentEvents(StreamingResponse):
    """A response of events; it closes the stream in any case."""

    media_type = "text/event-stream"

    def __init__(self, stream: EventStream) -> None:
        super().__init__(_sent(stream), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


async def _sent(stream: EventStream) -> AsyncIterator[str]:
    try:
        async for page in stream.pages():
            yield "".join(_frame(str(e.sequence), e.kind, e.as_json()) for e in page) or STILL_HERE
    except EbbtideError as error:
        if isinstance(error, (Corrupted, Internal)):
            get_log("rest").error("stream failed", reason=error.reason, exc_info=error)
        yield _frame("", "StreamEnded", bytes(problem(error).body).decode())
    except Exception as error:
        get_log("rest").error("stream failed", reason="INTERNAL", exc_info=error)
        yield _frame("", "StreamEnded", bytes(problem(Internal("unexpected")).body).decode())


def _frame(number: str, kind: str, data: str) -> str:
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {kind}\ndata: {data}\n\n"


def position(after: int | None, last_event_id: str | None) -> int | None:
    """Return the number to continue after. The header is newer than the address that a browser reconnects to."""
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 20):
        raise InvalidRequest(
            "The Last-Event-ID header is not the number of an event.", reason="INVALID_VALUE"
        )
    return int(last_event_id)
