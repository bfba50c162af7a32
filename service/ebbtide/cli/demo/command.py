"""`ebbtide demo`: the story on a screen, or as JSON lines."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ebbtide.cli.console import out, write_json
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ebbtide.cli.demo.events import Event


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Without any pause.")] = False,
    lang: Annotated[
        Literal["zh", "en", "auto"],
        typer.Option("--lang", help="Language of the narration; auto asks the locale."),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Watch an agent remember, recall and forget. Needs no daemon and no model server."""
    from ebbtide.telemetry import configure_log

    configure_log("error", "console")
    try:
        asyncio.run(_demo(fast, lang, as_json))
    except asyncio.CancelledError:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _end_on_signals() -> None:
    """A closed terminal or a SIGTERM ends the demo like Ctrl-C: its directory is removed."""
    running = asyncio.current_task()
    assert running is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)


async def _demo(fast: bool, lang: str, as_json: bool) -> None:
    from ebbtide.cli.demo.narration import language
    from ebbtide.cli.demo.screen import Screen
    from ebbtide.cli.demo.story import Story, demo_settings
    from ebbtide.daemon import opened

    _end_on_signals()
    console = out()
    with tempfile.TemporaryDirectory(prefix="ebbtide-demo-") as directory:
        async with opened(demo_settings(Path(directory))) as service:
            events = Story(service).events()
            if as_json:
                await _as_json(events)
            else:
                screen = Screen(console, language(lang), is_paced=console.is_terminal and not fast)
                await screen.show(events)


async def _as_json(events: AsyncIterator[Event]) -> None:
    async for event in events:
        if event.kind:
            write_json(event.as_json())
