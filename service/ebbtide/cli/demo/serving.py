"""`ebbtide demo --serve`: the story in a daemon with a temporary directory, watched in the web view."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from ebbtide.cli.demo.events import Remembered, TimePassed
from ebbtide.cli.demo.story import AGENT, Story, demo_settings
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.daemon import bound_servers, opened, run_servers
from ebbtide.process.supervision import Supervision
from ebbtide.settings import ServerSettings, Settings
from ebbtide.telemetry import in_background

if TYPE_CHECKING:
    from ebbtide.cli.demo.events import Event
    from ebbtide.cli.demo.narration import Language
    from ebbtide.rest.server import RestServer
    from ebbtide.rpc.server import GrpcServer

PORTS_TRIED: Final = 20
"""Ports after the usual ones that are tried if they are in use."""

CONVERSATION_S, BATCH_S = 1.2, 0.07
"""Time for a conversation and for a batch of everyday talk, so that a viewer sees the memory grow and fade."""

Sleep = Callable[[float], Awaitable[None]]


async def serve_demo(language: Language, on_ready: Callable[[str], None], *, is_paced: bool) -> None:
    """Play the story while serving, then serve until SIGTERM or SIGINT. `on_ready` receives the address of the view.

    Raise Failure if no port is free.
    """
    with tempfile.TemporaryDirectory(prefix="ebbtide-demo-") as directory:
        settings = demo_settings(Path(directory))
        supervision = Supervision(settings.server.shutdown_grace_s, "console")
        async with (
            _servers(settings) as (rest, rpc),
            opened(settings, on_beat=supervision.beat) as service,
            supervision.until_stopped() as stop,
        ):
            playing: list[asyncio.Task[None]] = []

            def announce() -> None:
                on_ready(f"{rest.url}/ui/a/{AGENT}?tour=1")
                events = Story(service, language).events()
                playing.append(
                    in_background(paced(events, monotonic, asyncio.sleep) if is_paced else drained(events))
                )

            await run_servers(service, rest, rpc, stop, announce)
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)


@contextlib.asynccontextmanager
async def _servers(settings: Settings) -> AsyncIterator[tuple[RestServer, GrpcServer]]:
    """Bind the usual ports, or the next pair that is free."""
    usual = settings.server
    for step in range(PORTS_TRIED):
        server = ServerSettings(rest_port=usual.rest_port + step, grpc_port=usual.grpc_port + step)
        tried = settings.model_copy(update={"server": server})
        async with AsyncExitStack() as ports:
            try:
                bound = await ports.enter_async_context(bound_servers(tried, None))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            yield bound
            return
    last = usual.rest_port + PORTS_TRIED - 1
    raise Failure(f"No port is free between {usual.rest_port} and {last}.", ExitCode.PORT_TAKEN)


async def paced(events: AsyncIterator[Event], clock: Callable[[], float], sleep: Sleep) -> None:
    """Play a story in its time.

    Work is part of that time, and a late story does not pause: the tour of a minute needs its examples in time.
    """
    due = clock()
    async for event in events:
        if isinstance(event, Remembered):
            due += CONVERSATION_S
        elif isinstance(event, TimePassed):
            due += BATCH_S
        if (early := due - clock()) > 0:
            await sleep(early)


async def drained(events: AsyncIterator[Event]) -> None:
    """Play a story without pauses."""
    async for _ in events:
        pass
