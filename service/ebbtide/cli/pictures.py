"""Small pictures made of characters: bars, and text folded to a width.

Folding is done here because a terminal line of Chinese breaks between characters, not only at spaces, and
because a full stop or a closing quote must not begin a line.
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
    """A bar that is full from 1 on, green while a memory is whole, then yellow, then red."""
    share = max(0.0, min(importance, 1.0))
    filled = round(share * BAR_WIDTH)
    if share > 0 and filled == 0:
        filled = 1
    if not style:
        style = "green" if share >= 1 - 1e-9 else "yellow" if share >= 1 / 3 else "red"
    return Text.assemble(("█" * filled, style), ("░" * (BAR_WIDTH - filled), "dim"))


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` cells. Line breaks in it are kept."""
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
    """An unbreakable text in parts that fit."""
    parts, begin, used = [], 0, 0
    for index, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width and index > begin:
            parts.append(text[begin:index])
            begin, used = index, 0
        used += cells
    return [*parts, text[begin:]]


def indented(text: str, width: int, indent: str = "", first: str | None = None) -> str:
    """The text folded, each line behind `indent`, the first behind `first` where one is given."""
    room = max(10, width - cell_len(indent))
    lines = fold(text, room)
    head = indent if first is None else first
    return "\n".join([head + lines[0], *(indent + line if line else "" for line in lines[1:])])
