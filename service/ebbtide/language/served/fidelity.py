"""Check that a model's shortening says only what the memory says (memory model, section 5.1)."""

from __future__ import annotations

import re
from itertools import pairwise

from ebbtide.language.builtin import words_english
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.scripts import HAN, is_han
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.language.port import BadReply

MIN_TAKEN = 0.8
"""Minimum share of the words of a shortening that come from the present content."""

_WORD = re.compile(rf"[^\W_{HAN}](?:[^\W{HAN}]|[-'.,:/+#](?=[^\W_{HAN}]))*")
_HAN_RUN = re.compile(f"[{HAN}]+")
_HAN_NAME_TAGS = ("nr", "ns", "nt", "nz")


def check_fidelity(content: str, present: str) -> None:
    """Raise BadReply unless a shortening takes its words from the present content.

    It must add no number, name, code or negation, and at least `MIN_TAKEN` of its words must occur in the present
    content. Of Han text, pairs of characters count as words.
    """
    words, known = _words(content), {word.casefold() for word in _words(present)}
    known.update(_pairs(present))
    characters = frozenset(present)
    for word in words:
        is_telling = any(map(str.isdigit, word)) or (
            any(map(str.isupper, word)) and word.casefold() not in words_english.FUNCTION_WORDS
        )
        if is_telling and word.casefold() not in known:
            raise BadReply("the content has a number, name or code that the memory lacks")
    for token in tokenize(content):
        text = token.text.replace("’", "'").casefold()
        if is_han(text):
            is_telling = is_negation(token) or (len(text) > 1 and token.tag.startswith(_HAN_NAME_TAGS))
            is_known = known.issuperset(_pairs(text)) if len(text) > 1 else text in characters
        else:
            is_telling, is_known = is_negation(token), text in known
        if is_telling and not is_known:
            raise BadReply("the content has a name or negation that the memory lacks")
    units = [word.casefold() for word in words] + _pairs(content)
    if sum(unit in known for unit in units) < MIN_TAKEN * len(units):
        raise BadReply("the content takes too few of its words from the memory")


def _words(text: str) -> list[str]:
    """Return the words outside Han text, without a possessive ending."""
    return [word.removesuffix("'s") for word in _WORD.findall(text.replace("’", "'"))]


def _pairs(text: str) -> list[str]:
    """Return the pairs of characters of each run of Han text; a run of one character is a unit."""
    runs = _HAN_RUN.findall(text)
    return [pair for run in runs for pair in (map("".join, pairwise(run)) if len(run) > 1 else (run,))]
