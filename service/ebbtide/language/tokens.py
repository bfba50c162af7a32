"""How many tokens a text takes, guessed without the model's own vocabulary, and rather too many than too few.

A server that gets more than its context holds either refuses (good servers) or drops the front of the prompt
and answers as if nothing had happened (Ollama). So what is sent must be known to fit beforehand, whatever
vocabulary the model has. The figures are those of a small English vocabulary, which is the worst case for
Chinese: about two tokens a Han character, where a Chinese model needs two thirds of one. A test compares them
with a real tokenizer. What a server then counts can only raise the guess (`served.py`), never lower it.
"""

from __future__ import annotations

import math
import re

LETTERS_PER_TOKEN = 3.0
"""English prose has about 4.5 letters a token; names, other languages and inflections have fewer."""

WIDE_TOKENS = 2.0
"""Tokens of a Han or Kana character of ordinary texts, at worst."""

OTHER_TOKENS = 3.0
"""Tokens of any other character beyond ASCII: symbols, emoji, other scripts, spelled out in bytes."""

_WORDS = re.compile(r"[A-Za-z]+")
_SINGLE = re.compile(r"[!-@\[-`{-~\n\t]")
_WIDE = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BEYOND = re.compile(r"[^\x00-\x7f]")
_ACCENTED = re.compile(r"[\u00c0-\u024f]")


def estimate(text: str) -> int:
    """An upper guess of the tokens of a text: digits and signs one each, letters three to a token."""
    words = sum(math.ceil((m.end() - m.start()) / LETTERS_PER_TOKEN) for m in _WORDS.finditer(text))
    single = len(_SINGLE.findall(text))
    wide = len(_WIDE.findall(text))
    accented = len(_ACCENTED.findall(text))
    other = len(_BEYOND.findall(text)) - wide - accented
    return words + single + math.ceil(WIDE_TOKENS * (wide + accented) + OTHER_TOKENS * other)
