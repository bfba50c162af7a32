"""Bars made of characters, and text folded to a width.

`textwrap` breaks lines only at spaces. Chinese text also breaks between characters, but never before a full stop or a
closing quote.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.text import Text

BAR_WIDTH = 16

_WIDE = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
_CLOSING = "，。！？、：；”’）》」』】…"
_OPENING = "“‘（《「『【"
_PIECE = re.compile(rf"\s++|[{_OPENING}]*+(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]++)?[{_CLOSING}]*+|.")
"""A unit that is not broken across lines: white space, one wide character, or a word with its punctuation."""


def importance_bar(importance: float, style: str = "") -> Text:
    """Return a bar for an importance from 0 to 1: green at 1, then yellow, below a third red."""
    share = max(0.0, min(importance, 1.0))
    filled = round(share * BAR_WIDTH)
    if share > 0 and filled == 0:
        filled = 1
    if not style:
        style = "green" if share >= 1 - 1e-9 else "yellow" if share >= 1 / 3 else "red"
    return Text.assemble(("█" * filled, style), ("░" * (BAR_WIDTH - filled), "dim"))


def fold(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` cells. Existing line breaks stay."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _PIECE.findall(paragraph):
            if line and cell_len(line) + cell_len(piece) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece if line else piece.lstrip()
            if cell_len(line) > width:
                *full, line = _cut(line, width)
                lines += full
        lines.append(line.rstrip())
    return lines


def _cut(text: str, width: int) -> list[str]:
    """Return a text without places to break in parts of at most `width` cells."""
    parts, begin, used = [], 0, 0
    for index, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width and index > begin:
            parts.append(text[begin:index])
            begin, used = index, 0
        used += cells
    return [*parts, text[begin:]]


def indented(text: str, width: int, indent: str = "", first: str | None = None) -> str:
    """Return the text folded, with `indent` before each line, or `first` before the first one."""
    room = max(10, width - cell_len(indent))
    lines = fold(text, room)
    head = indent if first is None else first
    return "\n".join([head + lines[0], *(indent + line if line else "" for line in lines[1:])])
