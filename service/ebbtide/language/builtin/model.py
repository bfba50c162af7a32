"""The built-in model's second task: a segment becomes a memory.

The rule guarded here: content never exceeds the target, and the summary and keywords are taken
from what the content still says, not from what it once said, and never from the speaker's label.

Deliberately not here: the port's asynchronous face, and the other two tasks (segmentation.py,
relations.py).
"""

from __future__ import annotations

from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.port import Processed


def process(text: str, prefix: str, target_length: int | None) -> Processed:
    """Make a memory of `text`, shortened to `target_length` characters where one is given."""
    content = text if target_length is None else shorten(text, prefix, target_length)
    said = content[len(prefix) :] if prefix and content.startswith(prefix) else content
    return Processed(content=content, phrase=phrase(said), keywords=keywords(said))
