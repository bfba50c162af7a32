"""Estimate the tokens of a text without the model's vocabulary, rather too many than too few.

A server whose context is exceeded rejects the request, or drops the front of the prompt and answers anyway (Ollama). So
the prompt must be known to fit before it is sent. The figures are those of a small English vocabulary, the worst case
for Chinese: about two tokens per Han character, where a Chinese model needs two thirds of one. A test compares them
with a real tokenizer. The server's counts can only raise the estimate.
"""

from __future__ import annotations

import math
import re

LETTERS_PER_TOKEN = 3.0
"""English prose has about 4.5 letters per token. Names, inflections and other languages have fewer."""

WIDE_TOKENS = 2.0
"""Tokens of a Han or Kana character in ordinary texts, at worst."""

OTHER_TOKENS = 3.0
"""Tokens of any other non-ASCII character: symbols, emoji and other scripts, encoded as bytes."""

_WORDS = re.compile(r"[A-Za-z]+")
_SINGLE = re.compile(r"[!-@\[-`{-~\n\t]")
_WIDE = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BEYOND = re.compile(r"[^\x00-\x7f]")
_ACCENTED = re.compile(r"[\u00c0-\u024f]")


def estimate(text: str) -> int:
    """Return an upper estimate of the tokens: one per digit and sign, one per three letters."""
    words = sum(math.ceil((m.end() - m.start()) / LETTERS_PER_TOKEN) for m in _WORDS.finditer(text))
    single = len(_SINGLE.findall(text))
    wide = len(_WIDE.findall(text))
    accented = len(_ACCENTED.findall(text))
    other = len(_BEYOND.findall(text)) - wide - accented
    return words + single + math.ceil(WIDE_TOKENS * (wide + accented) + OTHER_TOKENS * other)
