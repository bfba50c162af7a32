"""Clean up the ends of a piece taken out of a text.

The result has no dangling comma and no unpaired bracket or quote. Only punctuation is removed.
"""

from __future__ import annotations

import re

_MAY_MARK = re.compile(r"[*_~`#•·>\d-]")
_MARKUP = re.compile(r"\*\*|__|~~|^[^\S\n]*+(?:#{1,6}|[-*•·]|>|\d{1,2}[.)、])\s++|```\w*+", re.MULTILINE)
# For str.strip, which is much faster than a pattern. No white space lies above U+3000.
_SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_DANGLING_END = _SPACES + ",，、;；:：-–—~～(（[【《「『“‘#*_|/&+=<>"
_DANGLING_START = _SPACES + ",，、;；:：.。!！?？…·•-–—~～)）]】》」』”’*_|/&+=>"
_END_MARKS = _SPACES + ".。．!！?？…,，、;；:：~～-–—"
_PAIRS = (
    ("（", "）"),
    ("(", ")"),
    ("《", "》"),
    ("「", "」"),
    ("『", "』"),
    ("“", "”"),
    ("【", "】"),
    ("[", "]"),
)
_PAIRED = re.compile("[" + re.escape("".join(map("".join, _PAIRS))) + '"*`]')


def plain(text: str) -> str:
    """Remove markup and fold white space to one line."""
    if _MAY_MARK.search(text):
        text = _MARKUP.sub("", text)
    return " ".join(text.split())


def trim(text: str) -> str:
    """Remove dangling punctuation at both ends, and unpaired brackets and quotes."""
    return trim_end(text.lstrip(_DANGLING_START)).strip()


def trim_end(text: str) -> str:
    """Remove dangling punctuation at the end, and unpaired brackets and quotes."""
    previous = ""
    while previous != text:
        previous = text
        text = _unpaired(text.rstrip(_DANGLING_END))
    return text


def without_end_mark(text: str) -> str:
    """Remove closing punctuation as well. A closing quote or bracket stays."""
    return trim(trim(text).rstrip(_END_MARKS))


def _unpaired(text: str) -> str:
    """Remove unpaired brackets and quotes."""
    if _PAIRED.search(text) is None:
        return text
    for opener, closer in _PAIRS:
        if text.count(opener) != text.count(closer):
            text = _keep_pairs(text, opener, closer)
    if text.count('"') % 2:
        text = text.replace('"', "")
    for mark in ("**", "`"):
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text


def _keep_pairs(text: str, opener: str, closer: str) -> str:
    opened: list[int] = []
    lost: set[int] = set()
    for index, char in enumerate(text):
        if char == opener:
            opened.append(index)
        elif char == closer:
            if opened:
                opened.pop()
            else:
                lost.add(index)
    lost.update(opened)
    return "".join(char for index, char in enumerate(text) if index not in lost)
