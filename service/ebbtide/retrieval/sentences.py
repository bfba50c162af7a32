"""Shorten a text to the sentences that match a query.

Sentences are omitted, never rewritten, and keep their order; "…" marks gaps. A sentence counts by the idf of the query
terms that it contains, each term once, so repetition adds nothing (greedy maximum coverage, H. Takamura & M. Okumura
2009). A shortened text always fits. Weights and the size check are passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.forms import first_form

GAP = "…"
"""The mark for omitted sentences."""

MAX_SENTENCES = 200
"""Sentences of a text that are considered."""

_END = re.compile(
    r"[。！？；…]++[”’」』）\"')]*+\s*+"
    r"|[.!?;](?<![.!?;]{2})[.!?;]*+[\"'”’)\]]*+(?:\s++|$)"
    r"|\n++"
)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of an English or Chinese text. Joined, they are the text."""
    found, begin = [], 0
    for end in _END.finditer(text):
        found.append(text[begin : end.end()])
        begin = end.end()
    return [*found, text[begin:]] if begin < len(text) else found


def key_sentences(
    text: str, weights: Mapping[int, float], fits: Callable[[str], bool], label: str = ""
) -> str:
    """Return the sentences with the highest weight that fit together, or an empty string.

    The label with the speaker is prepended and is not part of the text.
    """
    sentences = sentences_of(text)[:MAX_SENTENCES]
    terms_of = [
        {term for word in words_of(one) if (term := term_of(first_form(word))) in weights}
        for one in sentences
    ]
    chosen: set[int] = set()
    result, left = "", {place for place, terms in enumerate(terms_of) if terms}
    covered: set[int] = set()
    while left:
        gains = {place: sum(weights[term] for term in terms_of[place] - covered) for place in left}
        best = max(left, key=lambda place: (gains[place], -len(sentences[place]), -place))
        left.discard(best)
        if gains[best] <= 0:
            break
        candidate = label + _joined(sentences, chosen | {best}, len(text))
        if fits(candidate):
            result = candidate
            chosen.add(best)
            covered |= terms_of[best]
    return result


def _joined(sentences: list[str], chosen: set[int], length: int) -> str:
    """Join the chosen sentences with marks for gaps."""
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
