"""Record `ebbtide demo` as docs/demo.svg, a terminal window with scrolling text. `make demo-picture` runs this."""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from ebbtide.cli.demo.screen import Screen
from ebbtide.cli.demo.story import Story, demo_settings
from ebbtide.daemon import opened
from ebbtide.telemetry import configure_log
from tests.tidy.pages import DOCS

PICTURE = DOCS / "demo.svg"
COLUMNS, ROWS = 82, 30
LINE_HEIGHT = 24.4
"""The height of a line in the pictures that rich draws, in pixels."""

SECONDS_PER_LINE = 0.18
PAUSE_SECONDS = 4
"""How long the first and the last screen stay."""

FRAME = """\
<svg viewBox="0 0 {{width}} {height}" xmlns="http://www.w3.org/2000/svg">
<title>ebbtide demo: an agent remembers, recalls, forgets, and knows that it forgot</title>
<style>
.{{unique_id}}-matrix {{{{
  font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {{char_height}}px; line-height: {{line_height}}px;
}}}}
{{styles}}
.scroll {{{{ animation: scroll {seconds:.0f}s steps({steps}) infinite; }}}}
@keyframes scroll {{{{
  0%, {begin:.1f}% {{{{ transform: none; }}}}
  {end:.1f}%, 100% {{{{ transform: translateY(-{distance}px); }}}}
}}}}
</style>
<defs><clipPath id="window"><rect width="{{width}}" height="{visible}"/></clipPath>{{lines}}</defs>
<rect width="{{width}}" height="{height}" rx="8" fill="#1e1e1e"/>
<circle cx="22" cy="18" r="6" fill="#ff5f57"/>
<circle cx="42" cy="18" r="6" fill="#febc2e"/>
<circle cx="62" cy="18" r="6" fill="#28c840"/>
<g transform="translate(9 38)" clip-path="url(#window)"><g class="scroll">
{{backgrounds}}
<g class="{{unique_id}}-matrix">{{matrix}}</g>
</g></g>
</svg>
"""


async def recorded() -> Console:
    """Return a console that has recorded the demo."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=False)
    with tempfile.TemporaryDirectory() as directory:
        async with opened(demo_settings(Path(directory))) as service:
            story = Story(service, "en")
            # As in a clone of the repository after `make demo`.
            screen = Screen(
                console, "en", story.conversation_count, is_paced=False, program=".venv/bin/ebbtide"
            )
            await screen.show(story.events())
    return console


def picture(console: Console) -> str:
    """Return the recording as an SVG picture that needs no network and no script."""
    line_count = console.export_text(clear=False).count("\n")
    steps = max(1, line_count - ROWS)
    seconds = steps * SECONDS_PER_LINE + 2 * PAUSE_SECONDS
    visible = round(ROWS * LINE_HEIGHT) + 8
    frame = FRAME.format(
        height=visible + 52,
        visible=visible,
        begin=100 * PAUSE_SECONDS / seconds,
        end=100 - 100 * PAUSE_SECONDS / seconds,
        distance=round(steps * LINE_HEIGHT, 1),
        seconds=seconds,
        steps=steps,
    )
    svg = console.export_svg(theme=MONOKAI, code_format=frame, unique_id="demo")
    return re.sub(r"\s*\n\s*", "\n", svg)


def main() -> None:
    """Write the picture."""
    configure_log("error", "console")
    PICTURE.write_text(picture(asyncio.run(recorded())), encoding="utf-8")


if __name__ == "__main__":
    main()
