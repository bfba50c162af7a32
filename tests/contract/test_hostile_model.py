"""A hostile model server: each call ends in time, uses few resources, and contacts no other server."""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from ebbtide.language.port import BadReply, ModelUnavailable, Segment, Utterance
from ebbtide.language.served.breaker import BreakerPolicy
from ebbtide.language.served.chat import ServerOptions
from ebbtide.language.served.connection import HttpConnection
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.ollama import OllamaChat
from ebbtide.language.served.openai_compatible import OpenAICompatibleChat
from ebbtide.language.served.replies import checked_processed, checked_segments
from tests.support.hostile_model_server import (
    CONTENT,
    HostileServer,
    chat,
    endless,
    fast_attacks,
    replies,
    slow_attacks,
    whole,
)

KEY = "the key of the server"
SAID = [Utterance("user", "", CONTENT)]
FAST, SLOW, REPLIES = fast_attacks(), slow_attacks(), replies()
MIB = 1 << 20

HARMLESS = {
    "many keys",
    "a fraction of 100000 digits",
    "numbers that are none",
    "UTF-16",
    "cookies",
}
"""Valid JSON without usable content."""


class Strain:
    """Measures the cost of a call for the event loop, in CPU time of its thread, so that other load does not count."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._began_s = time.thread_time()

    async def watch(self) -> None:
        """Record the longest time that the loop was blocked."""
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest_s = max(self.longest_s, time.thread_time() - before_s)

    @property
    def total_s(self) -> float:
        """Return the total CPU time."""
        return time.thread_time() - self._began_s


@asynccontextmanager
async def strained() -> AsyncIterator[Strain]:
    """Assert that the event loop runs and memory stays flat during a block."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    strain = Strain()
    watching = asyncio.create_task(strain.watch())
    try:
        yield strain
    finally:
        watching.cancel()
    assert strain.longest_s < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


async def fault_of(call: Awaitable[object]) -> str:
    """Return the fault of a failed call, or nothing if it succeeded."""
    try:
        await call
    except (ModelUnavailable, BadReply) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FAST)
async def test_an_attack_ends_as_an_outage(name: str) -> None:
    """Endless data, bombs, redirects and nonsense end at once; no byte is sent elsewhere and no cookie is accepted."""
    async with HostileServer(FAST[name]).running_here() as server, strained():
        wire = HttpConnection(server.url, timeout_s=10.0, api_key=KEY)
        for _ in range(2):
            fault = await fault_of(wire.post("/api/chat", {"content": CONTENT}))
            assert (fault == "") == (name in HARMLESS), fault
            assert "did not answer" not in fault and CONTENT not in fault
        await wire.close()
    # Two calls, two requests: no redirect was followed. The key is sent to this server, and no cookie is returned.
    assert len(server.requests) == 2
    assert all("cookie" not in request.headers for request in server.requests)
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert server.sent_bytes < 64 * MIB


@pytest.mark.parametrize("name", SLOW)
async def test_a_drip_ends_at_the_deadline(name: str) -> None:
    """A slow drip does not extend the deadline of the call, and its data uses little memory."""
    async with HostileServer(SLOW[name]).running_here() as server, strained():
        wire = HttpConnection(server.url, timeout_s=0.4, api_key=KEY)
        begin_s = time.monotonic()
        with pytest.raises(ModelUnavailable):
            await wire.get("/api/tags", timeout_s=0.4)
        assert time.monotonic() - begin_s < 5.0
        await wire.close()


def test_little_is_read_ahead_of_a_limit() -> None:
    """Under the event loop of the daemon, ten responses that are too long leave at most 2 MiB unread in memory."""

    async def unread_bytes(url: str) -> int:
        http = HttpConnection(url, timeout_s=10.0, connections=2)
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                with pytest.raises(BadReply):
                    await http.post("/api/chat", {})
            queues = [one for one in gc.get_objects() if isinstance(one, deque)]
        finally:
            gc.enable()
            await http.close()
        return sum(len(piece) for queue in queues for piece in queue if isinstance(piece, bytes))

    with (
        HostileServer(endless("connection: close")).running_beside() as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        assert runner.run(unread_bytes(server.url)) <= 2 * MIB


async def test_interim_responses_are_counted() -> None:
    """A flood of 1xx responses ends by its size, long before a deadline of minutes."""
    flood = endless(piece=b"HTTP/1.1 100 Continue\r\nx: " + b"y" * 8000 + b"\r\n\r\n")
    async with HostileServer(flood).running_here() as server, strained():
        wire = HttpConnection(server.url, timeout_s=60.0)
        with pytest.raises(ModelUnavailable, match="sent too much"):
            await wire.post("/api/chat", {})
        await wire.close()
    assert server.sent_bytes < 16 * MIB


async def segmented(model: ServedModel) -> None:
    """Request segments, as a digest does."""
    segments = checked_segments(await model.segment(SAID, max_chars=200), SAID, 200)
    assert sum(len(segment.text) for segment in segments) < 2000


async def processed(model: ServedModel) -> None:
    """Request a summary, as a digest does."""
    checked_processed(await model.process(CONTENT), CONTENT, None)


def on(server: HostileServer, kind: Any) -> ServedModel:
    """Return a model client on a hostile server."""
    breaker = BreakerPolicy(failures=1000)
    return ServedModel(kind(ServerOptions(server.url, "m", timeout_s=10.0, breaker=breaker)))


@pytest.mark.parametrize(("number", "name"), list(enumerate(REPLIES)))
async def test_replies_are_parsed_within_bounds(number: int, name: str) -> None:
    """Half a megabyte in a well-formed reply is accepted within limits, or refused, at little cost."""
    kind = (OllamaChat, OpenAICompatibleChat)[number % 2]
    async with HostileServer(whole(chat(REPLIES[name]))).running_here() as server, strained():
        model = on(server, kind)
        with capture_logs() as logs:
            assert "kettle" not in await fault_of(segmented(model))
            assert "kettle" not in await fault_of(processed(model))
        assert "kettle" not in str(logs)
        await model.close()


def test_segments_are_not_far_more_than_was_said() -> None:
    """Each segment becomes a memory: a model cannot create thousands of one message, from text or single letters."""
    alone = Segment(CONTENT, (0,), 0)
    assert checked_segments([alone], SAID, 200) == [alone]
    for more in ([Segment(str(n), (0,), None) for n in range(100)], [alone] * 16):
        with pytest.raises(BadReply, match="longer than the messages"):
            checked_segments([alone, *more], SAID, 200)
