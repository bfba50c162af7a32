"""Turn a segment into a memory: content, summary and keywords.

The summary and keywords are taken from the shortened content. A text in words may stay longer than the target length if
nothing shorter says something; see `shortening`.
"""

from __future__ import annotations

from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.port import Processed


def process(text: str, target_length: int | None, first: str = "") -> Processed:
    """Return the memory made from `text`, shortened to `target_length` characters if that is given.

    `first` is the first content of the memory; the default is `text`.
    """
    content = text if target_length is None else shorten(text, target_length, first)
    return Processed(content=content, phrase=phrase(content), keywords=keywords(content))
