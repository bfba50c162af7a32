"""How long a text is, by the measure a caller names.

A budget is kept by the count of the tokenizer it is given in, so each is defined here to the last character, and
none needs a vocabulary: "estimate" guesses from above what a language model of the GPT-4 family (cl100k) counts,
the others count what their name says. The rule guarded here: counting is linear and the same everywhere.

Deliberately not here: guesses for unknown models with small contexts, which are the language model's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_ONE_TOKEN = re.compile(
    # English has about 4.5 letters a token, names and rare words fewer, words in capitals fewer still.
    r"[A-Z][a-z]{1,2}|[a-z]{1,3}|[A-Z]{1,2}"
    # The blank before a word goes with the word.
    r"|[ ]{2,4}|[^A-Za-z\x20\x80-\U0010ffff]"
)
_TWO_TOKENS = re.compile(rf"[{_HAN}\u3001-\u3030\u3040-\u30ff\uff00-\uffef\u00a0-\u024f\u2010-\u2026]")
"""Chinese and Japanese characters at worst, their punctuation, accented letters, dashes and curled quotes."""

_SPELLED_OUT = re.compile(rf"[^\x00-\x7f{_TWO_TOKENS.pattern[1:-1]}]+")
"""Emoji and rare scripts. A byte is the least a vocabulary can cut."""

_WORDS = re.compile(
    rf"[{_HAN}\u3040-\u30ff\uac00-\ud7a3]|[^\W_{_HAN}\u3040-\u30ff\uac00-\ud7a3]+(?:['’][^\W_]+)*"
)


def _estimate(text: str) -> int:
    """Rather more tokens than cl100k finds: measured above it on English, Chinese and code."""
    if not text:
        return 0
    # One more, since in a short text a single rare word may take one more than its letters say.
    tokens = 1 + len(_ONE_TOKEN.findall(text))
    if text.isascii():
        return tokens
    return tokens + 2 * len(_TWO_TOKENS.findall(text)) + _utf8_bytes("".join(_SPELLED_OUT.findall(text)))


def _words(text: str) -> int:
    """Words as a reader counts them: of letters and digits, and every Han, kana or hangul character."""
    return sum(1 for _ in _WORDS.finditer(text))


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


TOKENIZERS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {"estimate": _estimate, "characters": len, "words": _words, "utf8_bytes": _utf8_bytes}
)
"""How each tokenizer counts, by the name a caller gives; the first is the default."""


def count_tokens(text: str, tokenizer: str) -> int:
    """The tokens of a text by the tokenizer of that name; ValueError with the known ones for any other name."""
    count = TOKENIZERS.get(tokenizer)
    if count is None:
        raise ValueError(f"no tokenizer {tokenizer!r}; known are {', '.join(TOKENIZERS)}")
    return count(text)
