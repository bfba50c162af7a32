"""Check that a model's shortening says only what the memory says (memory model, section 5.1)."""

from __future__ import annotations

import re
from itertools import pairwise

from ebbtide.language.builtin import words_english
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.scripts import HAN, is_han
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.port import BadReply

MIN_TAKEN = 0.8
"""Minimum share of the words of a shortening that come from the present content."""

_WORD = re.compile(rf"[^\W_{HAN}](?:[^\W{HAN}]|[-'.,:/+#](?=[^\W_{HAN}]))*")
_HAN_RUN = re.compile(f"[{HAN}]+")
_HAN_NAME_TAGS = ("nr", "ns", "nt", "nz")
_COMMON_WORDS = (
    words_english.PRONOUNS
    | words_english.DETERMINERS
    | words_english.PREPOSITIONS
    | words_english.CONJUNCTIONS
    | words_english.AUXILIARIES
    | words_english.ADVERBS
)
"""Words that may begin a sentence with a capital and are no names."""


def check_fidelity(content: str, present: str) -> None:
    """Raise BadReply unless a shortening takes its words from the present content.

    It must add no number, name, code or negation, and at least `MIN_TAKEN` of its words must occur in the present
    content. Of Han text, pairs of characters count as words.
    """
    words, known = _words(content), {word.casefold() for word in _words(present)}
    folded = present.casefold()
    for word in words:
        is_telling = any(map(str.isdigit, word)) or (
            any(map(str.isupper, word)) and word.casefold() not in _COMMON_WORDS
        )
        if is_telling and word.casefold() not in known:
            raise BadReply("the content has a number, name or code that the memory lacks")
    telling = {_folded(token) for token in tokenize(content) if _is_telling(token)}
    if any(text not in (folded if is_han(text) else known) for text in telling):
        raise BadReply("the content has a name or negation that the memory lacks")
    units = [word.casefold() for word in words] + _pairs(content)
    known.update(_pairs(present))
    if sum(unit in known for unit in units) < MIN_TAKEN * len(units):
        raise BadReply("the content takes too few of its words from the memory")


def _is_telling(token: Token) -> bool:
    """Return whether a word is a negation or a Chinese name."""
    is_name = is_han(token.text) and len(token.text) > 1 and token.tag.startswith(_HAN_NAME_TAGS)
    return is_name or is_negation(token)


def _folded(token: Token) -> str:
    return token.text.replace("’", "'").casefold()


def _words(text: str) -> list[str]:
    """Return the words outside Han text, without a possessive ending."""
    return [word.removesuffix("'s") for word in _WORD.findall(text.replace("’", "'"))]


def _pairs(text: str) -> list[str]:
    """Return the pairs of characters of each run of Han text; a run of one character is a unit."""
    runs = _HAN_RUN.findall(text)
    return [pair for run in runs for pair in (map("".join, pairwise(run)) if len(run) > 1 else (run,))]
