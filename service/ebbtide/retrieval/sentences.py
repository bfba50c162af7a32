"""Key sentences: a text that is too long, told by those of its sentences that a question is about.

Extractive: sentences are left out, never rewritten, and stay in their order; "…" stands where some are missing. What
counts is the weight of the question's terms that a sentence holds (their idf), each term once: a second sentence that
says the same brings nothing (maximum coverage by the greedy rule, as H. Takamura & M. Okumura 2009 have it for
summaries). The rule guarded here: a shortened text always fits, and says nothing that the text does not say.

Deliberately not here: how weights come about, and what fits. Both are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.forms import first_form

GAP = "…"
"""What stands for sentences that were left out."""

MAX_SENTENCES = 200
"""Sentences of a text that are looked at."""

_END = re.compile(
    r"[。！？；…]++[”’」』）\"')]*+\s*+"
    r"|[.!?;](?<![.!?;]{2})[.!?;]*+[\"'”’)\]]*+(?:\s++|$)"
    r"|\n++"
)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in English and Chinese; put together they are the text."""
    found, begin = [], 0
    for end in _END.finditer(text):
        found.append(text[begin : end.end()])
        begin = end.end()
    return [*found, text[begin:]] if begin < len(text) else found


def key_sentences(
    text: str, weights: Mapping[int, float], fits: Callable[[str], bool], label: str = ""
) -> str:
    """The text by those sentences that hold most of the weight and fit together; empty where none does.

    The label, which says who speaks, stays in front; it is no part of the text.
    """
    sentences = sentences_of(text)[:MAX_SENTENCES]
    held = [
        {term for word in words_of(one) if (term := term_of(first_form(word))) in weights}
        for one in sentences
    ]
    chosen: set[int] = set()
    told, left = "", {place for place, terms in enumerate(held) if terms}
    covered: set[int] = set()
    while left:
        gains = {place: sum(weights[term] for term in held[place] - covered) for place in left}
        best = max(left, key=lambda place: (gains[place], -len(sentences[place]), -place))
        left.discard(best)
        if gains[best] <= 0:
            break
        candidate = label + _joined(sentences, chosen | {best}, len(text))
        if fits(candidate):
            told = candidate
            chosen.add(best)
            covered |= held[best]
    return told


def _joined(sentences: list[str], chosen: set[int], length: int) -> str:
    """The chosen sentences in order, with a mark for what is missing before, between and behind."""
    whole = "".join(sentences)
    gap = GAP if contains_han(whole) else f" {GAP} "
    parts, expected = [], 0
    for place in sorted(chosen):
        if place != expected:
            parts.append(gap)
        parts.append(sentences[place].rstrip() if place + 1 not in chosen else sentences[place])
        expected = place + 1
    if expected != len(sentences) or len(whole) < length:
        parts.append(gap)
    return "".join(parts).strip()
