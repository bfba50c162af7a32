"""`ebbtide demo`: the story on a screen, as JSON lines, or in the web view."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ebbtide.cli.console import out, say, write_json
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import program
from ebbtide.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ebbtide.cli.demo.events import Event
    from ebbtide.cli.demo.narration import Language


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Do not pause between steps.")] = False,
    lang: Annotated[Literal["en", "zh"], typer.Option("--lang", help="Language of the demo.")] = "en",
    serve: Annotated[
        bool, typer.Option("--serve", help="Show it in the web view, and serve until Ctrl-C.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Watch an agent remember, recall and forget. Needs no daemon and no model server."""
    if serve and as_json:
        raise typer.BadParameter("cannot be used with --serve", param_hint="--json")
    from ebbtide.telemetry import configure_log

    configure_log("error", "console")
    try:
        asyncio.run(_serve(fast, lang) if serve else _demo(fast, lang, as_json))
    except asyncio.CancelledError:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _cancel_on_signals() -> None:
    """Cancel the demo on SIGTERM and on a closed terminal, so that its directory is removed."""
    running = asyncio.current_task()
    assert running is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)


async def _serve(fast: bool, language: Language) -> None:
    from ebbtide.cli.demo.serving import serve_demo

    def announce(url: str) -> None:
        say(f"Watch an agent remember and forget:\n\n  {url}\n\nCtrl-C ends the demo and deletes its memory.")

    await serve_demo(language, announce, is_paced=not fast)


async def _demo(fast: bool, language: Language, as_json: bool) -> None:
    from ebbtide.cli.demo.screen import Screen
    from ebbtide.cli.demo.story import Story, demo_settings
    from ebbtide.daemon import opened

    _cancel_on_signals()
    console = out()
    with tempfile.TemporaryDirectory(prefix="ebbtide-demo-") as directory:
        async with opened(demo_settings(Path(directory))) as service:
            story = Story(service, language)
            if as_json:
                await _write_events(story.events())
            else:
                is_paced = console.is_terminal and not fast
                screen = Screen(
                    console, language, story.conversation_count, is_paced=is_paced, program=program()
                )
                await screen.show(story.events())


async def _write_events(events: AsyncIterator[Event]) -> None:
    async for event in events:
        if event.kind:
            write_json(event.as_json())
