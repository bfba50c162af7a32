"""Whether a text contains Chinese characters, which decides between Chinese and English wording."""

from __future__ import annotations

import re

_HAN = re.compile(
    "[\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9"
    "\U00016fe2-\U00016fe3\U00016ff0-\U00016ff1\U00020000-\U0002a6df\U0002a700-\U0002b739"
    "\U0002b740-\U0002b81d\U0002b820-\U0002cea1\U0002ceb0-\U0002ebe0\U0002ebf0-\U0002ee5d"
    "\U0002f800-\U0002fa1d\U00030000-\U0003134a\U00031350-\U000323af]"
)
"""The Unicode script Han."""


def contains_han(text: str) -> bool:
    """Return whether a text contains a Han character, which decides between Chinese and English wording."""
    return not text.isascii() and _HAN.search(text) is not None
