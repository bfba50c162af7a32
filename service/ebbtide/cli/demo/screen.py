"""The demo on a screen, with one method for each event, in the order of the story.

Memories and answers are printed as the daemon returned them; the screen adds only bars and colours. On a terminal a
panel at the bottom follows the memories while time passes. Elsewhere the same rows are printed without pauses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from ebbtide.cli.demo.events import (
    Done,
    Event,
    Faded,
    Forgotten,
    Kept,
    Memory,
    OnceKnown,
    Recalled,
    Remembered,
    Returned,
    TimePassed,
)
from ebbtide.cli.demo.narration import OF, Language
from ebbtide.cli.demo.panels import COLOURS, answer_panel, end_card, followed_now
from ebbtide.cli.demo.story import RECALLS_AFTER
from ebbtide.cli.pictures import importance_bar, indented

SHOWN_MEMORIES = 4
INDENT = "  "
STAGE_INDENT = " " * 11
MAX_WIDTH = 100
"""Longer lines are tiring to read."""

READ_S, GLANCE_S, BEAT_S, BATCH_S = 0.7, 0.3, 0.12, 0.02
"""Pauses after a paragraph, after a result, between lines, and for one batch of everyday talk."""


class Screen:
    """Print the story to a console."""

    def __init__(
        self,
        console: Console,
        language: Language,
        conversation_count: int,
        *,
        is_paced: bool,
        program: str,
    ) -> None:
        self._console = console
        self._program = program
        self._say = OF[language]
        self._conversation_count = conversation_count
        self._is_paced = is_paced
        self._live: Live | None = None
        self._chapter = 0
        self._chapters: set[str] = set()
        self._width = min(console.width, MAX_WIDTH)

    async def show(self, events: AsyncIterator[Event]) -> None:
        """Print every event of the story."""
        await self._open()
        try:
            async for event in events:
                await self._show(event)
        finally:
            self._end_live()

    async def _show(self, event: Event) -> None:
        match event:
            case Remembered():
                await self._remembered(event)
            case Recalled():
                await self._recalled(event)
            case TimePassed():
                await self._time_passed(event)
            case Faded():
                await self._faded(event)
            case Forgotten():
                await self._forgotten(event)
            case Returned():
                await self._returned(event)
            case OnceKnown():
                await self._once_known(event)
            case Kept():
                await self._kept(event)
            case Done():
                await self._done(event)

    # --- chapters ----------------------------------------------------------------------------------

    async def _open(self) -> None:
        say = self._say
        title = Text.assemble((say.title, "bold cyan"), "  ", (say.tagline, "italic"))
        self._print(Panel(title, border_style="cyan", padding=(0, 2), width=self._width))
        self._paragraph(say.opening.format(count=self._conversation_count))
        self._paragraph(say.pace, "dim")
        await self._pause(READ_S)

    async def _begin(self, heading: str, paragraph: str = "") -> None:
        """Print the heading of a chapter before its first event."""
        if heading in self._chapters:
            return
        self._chapters.add(heading)
        self._chapter += 1
        self._print()
        rule = Rule(f"[bold]{self._chapter}  {heading}[/]", align="left", style="cyan")
        self._console.print(rule, width=self._width)
        if paragraph:
            self._paragraph(paragraph)
        await self._pause(READ_S)

    async def _remembered(self, event: Remembered) -> None:
        await self._begin(self._say.remembering, self._say.remembering_how)
        if event.number > RECALLS_AFTER:
            await self._remembered_briefly(event)
            return
        topic = event.topic
        became = self._say.became.format(messages=event.message_count, memories=len(event.memories))
        self._print()
        self._paragraph(self._say.conversation.format(number=event.number, topic=topic), "bold")
        self._paragraph(became, "dim")
        await self._pause(BEAT_S)
        for memory in _chosen(event.memories):
            self._memory(memory)
            await self._pause(BEAT_S)
        left_out = len(event.memories) - len(_chosen(event.memories))
        if left_out > 0:
            self._paragraph(self._say.more.format(count=left_out), "dim", indent=INDENT)
        self._print(self._focus_line(event.focus))
        await self._pause(GLANCE_S)

    def _memory(self, memory: Memory) -> None:
        """Print the id, phrase and keywords of a memory, and the content of a followed one."""
        colour = COLOURS.get(memory.name, "")
        line = Text(f"{INDENT}{memory.id:<6}", "dim")
        line.append(memory.phrase, colour or "default")
        keywords = " · ".join(memory.keywords)
        room = self._width - line.cell_len - 2
        if room >= 8:
            tail = Text(f"  {keywords}", "dim")
            tail.truncate(room + 2, overflow="ellipsis")
            line.append_text(tail)
        self._print(line)
        if memory.name:
            followed = self._say.followed.format(name=self._say.names[memory.name])
            self._print(Text.assemble((f"{INDENT}►     ", colour), (followed, f"bold {colour}")))
            self._paragraph(memory.content, colour, indent=INDENT + " " * 6)

    def _focus_line(self, focus: list[str]) -> Text:
        return Text.assemble((f"  {self._say.focus}  ", "dim"), ("  ".join(focus), "green"))

    async def _remembered_briefly(self, event: Remembered) -> None:
        if event.number == RECALLS_AFTER + 1:
            self._print()
            self._paragraph(self._say.others.format(count=self._conversation_count - RECALLS_AFTER))
        topic = Text(event.topic)
        topic.truncate(self._width - 24, overflow="ellipsis", pad=True)
        moved = f"→ {event.focus[0]} … {event.focus[-1]}"
        self._print(Text.assemble((f"{event.number:>4}  ", "dim"), topic, "  ", (moved, "green")))
        for memory in event.memories:
            if memory.name:
                self._memory(memory)
        await self._pause(BEAT_S)

    async def _recalled(self, event: Recalled) -> None:
        await self._begin(self._say.recalling, self._say.recalling_how)
        self._print()
        self._paragraph(event.question, "italic")
        await self._pause(GLANCE_S)
        self._print(answer_panel(self._say, event, self._width))
        await self._pause(READ_S)

    # --- time --------------------------------------------------------------------------------------

    async def _time_passed(self, event: TimePassed) -> None:
        await self._begin(self._say.time, self._say.time_how)
        if self._live is None and self._console.is_terminal:
            self._print()
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        if self._live is not None:
            self._live.update(followed_now(self._say, event, self._width), refresh=True)
        await self._pause(BATCH_S)

    async def _faded(self, event: Faded) -> None:
        memory = event.memory
        left = self._say.of.format(length=event.length, original=memory.original_length)
        self._stage(event.batch, memory.name, memory.importance, left)
        self._paragraph(memory.content, COLOURS.get(memory.name, ""), indent=STAGE_INDENT)
        await self._pause(BEAT_S)

    def _stage(self, batch: int, name: str, importance: float, left: str) -> None:
        """Print one change of a memory: the batch, its name, its importance and its length."""
        when = Text(self._say.after.format(count=batch), "dim")
        when.truncate(len(STAGE_INDENT), pad=True)
        which = Text(self._say.names[name], COLOURS.get(name, ""))
        which.truncate(15, pad=True)
        bar = importance_bar(importance)
        self._print(Text.assemble(when, which, bar, f" {importance:4.2f}  ", (left, "dim")))

    async def _forgotten(self, event: Forgotten) -> None:
        name = self._say.names[event.name]
        text = self._say.gone_row.format(name=name, last=event.last_content)
        self._stage(event.batch, event.name, 0.0, self._say.gone)
        colour = COLOURS.get(event.name, "")
        self._paragraph(text[:1].upper() + text[1:], f"bold {colour}", indent=STAGE_INDENT)
        if event.pointed_at_by:
            count = self._say.dangling_row.format(count=len(event.pointed_at_by))
            self._paragraph(count, "dim", indent=STAGE_INDENT)
        await self._pause(GLANCE_S)

    async def _returned(self, event: Returned) -> None:
        memory = event.memory
        self._stage(event.batch, memory.name, memory.importance, self._say.returned)
        how = self._say.returned_how.format(
            message=event.message, name=self._say.names[memory.name], before=event.importance_before
        )
        self._paragraph(how, COLOURS.get(memory.name, ""), indent=STAGE_INDENT)
        self._print(answer_panel(self._say, event, self._width))
        await self._pause(READ_S)

    # --- the end -----------------------------------------------------------------------------------

    async def _once_known(self, event: OnceKnown) -> None:
        self._end_live()
        await self._begin(self._say.once, self._say.once_how)
        self._print(answer_panel(self._say, event, self._width))
        await self._pause(READ_S)
        self._paragraph(self._say.once_before, "dim")
        self._paragraph(event.first_content, "magenta", indent=INDENT)
        self._paragraph(self._say.once_after)
        await self._pause(READ_S)

    async def _kept(self, event: Kept) -> None:
        self._end_live()
        await self._begin(self._say.kept, self._say.kept_how.format(batches=event.batch))
        self._print(answer_panel(self._say, event, self._width))
        await self._pause(READ_S)

    async def _done(self, event: Done) -> None:
        self._end_live()
        self._print()
        self._print(end_card(self._say, event, self._width, self._program))

    # --- helpers ------------------------------------------------------------------------------

    def _print(self, what: RenderableType = "") -> None:
        self._console.print(what, soft_wrap=isinstance(what, Text))

    def _paragraph(self, text: str, style: str = "", indent: str = "") -> None:
        self._print(Text(indented(text, self._width, indent), style))

    async def _pause(self, seconds: float) -> None:
        if self._is_paced:
            await asyncio.sleep(seconds)

    def _end_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _chosen(memories: list[Memory]) -> list[Memory]:
    """Return the first memories of a batch, and the followed one."""
    first = memories[:SHOWN_MEMORIES]
    return first + [memory for memory in memories[SHOWN_MEMORIES:] if memory.name]
