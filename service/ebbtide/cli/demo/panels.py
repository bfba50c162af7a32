"""The panels of the demo's screen: an answer, the followed memories, the summary."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ebbtide.cli.demo.events import Done, Kept, OnceKnown, Recalled, Returned, TimePassed
from ebbtide.cli.demo.narration import Narration
from ebbtide.cli.pictures import fold, importance_bar
from ebbtide.memory.wording import SEPARATOR

COLOURS = {"lighthouse": "cyan", "bakery": "yellow", "whistle": "magenta", "allergy": "green"}
"""The colours of the followed memories, by name."""


def answer_panel(say: Narration, event: Recalled | Returned | OnceKnown | Kept, width: int) -> Panel:
    """Return the answer to a recall, under its command."""
    sentences = event.sentences if isinstance(event, OnceKnown) else []
    body = Text()
    for index, block in enumerate(event.text.split(SEPARATOR)):
        if index:
            body.append(SEPARATOR, "dim")
        style = "bold magenta" if block in sentences else ""
        body.append("\n".join(fold(block, width - 4)), style)
    if not event.text:
        body = Text(say.nothing, "dim")
    words = " ".join(f'"{word}"' if " " in word else word for word in event.keywords)
    return Panel(
        body,
        title=Text(f"ebbtide recall {words}", "bold"),
        title_align="left",
        border_style="green",
        padding=(0, 1),
        width=width,
    )


def followed_now(say: Narration, event: TimePassed, width: int) -> RenderableType:
    """Return the importance and length of the followed memories after a batch."""
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=14)
    table.add_column(width=20)
    table.add_column(no_wrap=True)
    alive = {memory.name: memory for memory in event.followed}
    for name, colour in COLOURS.items():
        label = Text(say.names[name], colour)
        memory = alive.get(name)
        if memory is None:
            table.add_row(label, importance_bar(0.0), Text(say.gone, "dim"))
        else:
            left = say.of.format(length=memory.length, original=memory.original_length)
            table.add_row(label, importance_bar(memory.importance), Text(left))
    count = Text(say.batches.format(count=event.batch), "bold")
    table.add_row(count, importance_bar(event.kept, "blue"), f"{event.kept:.0%}")
    said = Text(say.said.format(message=event.message), "dim", no_wrap=True)
    said.truncate(width - 4, overflow="ellipsis")
    return Group(Text(), table, said)


def end_card(say: Narration, event: Done, width: int, program: str) -> Panel:
    """Return the totals and the next commands to try. `program` is how the person calls Ebbtide."""
    seen = say.seen.format(
        batches=event.batch_count,
        passes=event.pass_count,
        made=event.memories_made,
        gone=event.memories_forgotten,
        left=event.memories_left,
    )
    commands = {
        say.next_serve: f"{program} serve",
        say.next_remember: f'echo "Ann: I moved to Lisbon." | {program} remember -',
        say.next_recall: f'{program} recall -q "Where did Ann move?"',
    }
    steps = [Text.assemble(what, "\n", (f"  {command}", "bold")) for what, command in commands.items()]
    body = Group(Text("\n".join(fold(seen, width - 6))), Text(), Text(say.next, "bold cyan"), *steps)
    return Panel(
        body,
        title=Text(say.end, "bold"),
        title_align="left",
        border_style="cyan",
        padding=(1, 2),
        width=width,
    )
