"""Count the length of a text in the unit that a caller names.

Token budgets are counted by one of these tokenizers, which need no vocabulary. "estimate" is an upper estimate for
models of the GPT-4 family (cl100k); the others count what their names say. Counting takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_ONE_TOKEN = re.compile(
    # English has about 4.5 letters per token. Names and rare words have fewer, words in capitals fewer still.
    r"[A-Z][a-z]{1,2}|[a-z]{1,3}|[A-Z]{1,2}"
    # The blank before a word is part of its token.
    r"|[ ]{2,4}|[^A-Za-z\x20\x80-\U0010ffff]"
)
_TWO_TOKENS = re.compile(rf"[{_HAN}\u3001-\u3030\u3040-\u30ff\uff00-\uffef\u00a0-\u024f\u2010-\u2026]")
"""Chinese and Japanese characters at worst, their punctuation, accented letters, dashes and curly quotes."""

_SPELLED_OUT = re.compile(rf"[^\x00-\x7f{_TWO_TOKENS.pattern[1:-1]}]+")
"""Emoji and rare scripts, which a vocabulary may split into bytes."""

_WORDS = re.compile(
    rf"[{_HAN}\u3040-\u30ff\uac00-\ud7a3]|[^\W_{_HAN}\u3040-\u30ff\uac00-\ud7a3]+(?:['’][^\W_]+)*"
)


def _estimate(text: str) -> int:
    """Return an upper estimate of cl100k tokens, measured on English, Chinese and code."""
    if not text:
        return 0
    # One more, because in a short text a rare word may take one more than its letters.
    tokens = 1 + len(_ONE_TOKEN.findall(text))
    if text.isascii():
        return tokens
    return tokens + 2 * len(_TWO_TOKENS.findall(text)) + _utf8_bytes("".join(_SPELLED_OUT.findall(text)))


def _words(text: str) -> int:
    """Return the number of words; each Han, kana or hangul character counts as one."""
    return sum(1 for _ in _WORDS.finditer(text))


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


TOKENIZERS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {"estimate": _estimate, "characters": len, "words": _words, "utf8_bytes": _utf8_bytes}
)
"""Counting functions by name; the first is the default."""


def count_tokens(text: str, tokenizer: str) -> int:
    """Return the tokens of a text. Raise ValueError with the known names for an unknown tokenizer."""
    count = TOKENIZERS.get(tokenizer)
    if count is None:
        raise ValueError(f"unknown tokenizer {tokenizer!r}; known are {', '.join(TOKENIZERS)}")
    return count(text)
