"""Join the kept pieces of a text.

Pieces keep their order and the punctuation of the text. Where text between them is missing, the punctuation is
repaired. The result ends like a sentence, with an ellipsis only if a clause was cut short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ebbtide.language.builtin.scripts import is_dense
from ebbtide.language.builtin.trimming import trim, trim_end, without_dangling_words, without_opener

# Joining a piece changes only the end of the result: at most this many characters before it are read again.
_OPEN_CHARS = 2000


class Kept(NamedTuple):
    """A piece of the result: its position, its words, and the mark that follows them."""

    start: int
    end: int
    closes: bool
    mark: str
    words: str
    whole: bool = False


def compose(text: str, kept: list[Kept], target: int) -> str:
    """Join the kept pieces, repair the punctuation between them, and end cleanly."""
    dense = is_dense(text[:400])
    record_success: list[str] = []
    result = ""
    previous: Kept | None = None
    for piece in kept:
        words = piece.words
        if previous is None:
            result = without_opener(words) if piece.start > 0 else words
        else:
            result = _seam(text, result, words, previous, piece, dense, trim_end if record_success else trim)
        previous = piece
        if len(result) > 2 * _OPEN_CHARS:
            record_success.append(result[:-_OPEN_CHARS])
            result = result[-_OPEN_CHARS:]
    result = without_dangling_words(trim("".join([*record_success, result])))
    if previous is not None and result:
        result = _ending(result, previous, target)
    return result


def _seam(
    text: str,
    result: str,
    words: str,
    previous: Kept,
    piece: Kept,
    dense: bool,
    trim: Callable[[str], str],
) -> str:
    gap = text[previous.end : piece.start]
    if previous.mark == "…":
        return trim(result) + ("…" if dense else "… ") + without_opener(words)
    if "\n" in gap:
        return trim(result) + previous.mark + "\n" + words
    if previous.closes and result[-1].isalnum():
        result += previous.mark or ("。" if dense else ".")
        return result + ("" if dense else " ") + _capital(without_opener(words))
    if result[-1].isalnum() and not gap.strip():
        return result + ("，" if dense else ", ") + words
    if not gap.strip():
        return result + gap + words
    if previous.closes:
        return result + ("" if dense else " ") + _capital(without_opener(words))
    if _ends_between(gap):
        return trim(result) + ("。" if dense else ". ") + _capital(without_opener(words))
    return trim(result) + ("，" if dense else ", ") + words


def _ends_between(gap: str) -> bool:
    return any(mark in gap for mark in "。！？!?") or ". " in gap


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _ending(result: str, last: Kept, target: int) -> str:
    """End the result with an ellipsis if a clause was cut short, otherwise with a full stop."""
    if len(result) >= target or result[-1] in "。！？.!?…":
        return result
    return result + last.mark
