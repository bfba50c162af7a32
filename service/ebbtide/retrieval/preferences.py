"""Preferences: order the top candidates by what a question expects besides relevance.

First, messages that are no statements of the user count less. An earlier question resembles the query more than its
answer does. A query is about the user, unless it addresses the assistant ("what did you suggest?"), so the assistant's
replies count less. Replies that repeat the user count less in either case. A query about the user that names a topic
of daily life, such as his home, expects a statement about that topic, whatever its words (`topics.py`).

Then, of messages that restate a matter, the newer one comes first (`restating.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import known_term, words_of
from ebbtide.retrieval.features import MAX_REORDERED, Fused
from ebbtide.retrieval.marks import HAS_QUESTION, ONLY_ASKS, have
from ebbtide.retrieval.questions import asks
from ebbtide.retrieval.relevance import are_among
from ebbtide.retrieval.restating import ASSISTANT, MOST_COMPARED, newer_first
from ebbtide.retrieval.sentences import sentences_of

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

REPLY = 2.0
"""How much less an assistant's message is worth, unless the question addresses the assistant.

Worths are in units of the spread of the trees' sums.
"""

QUESTION = 1.5
"""How much less a message is worth that only asks."""

ON_TOPIC = 1.0
"""How much more a message of a person is worth that has a word of a topic which the query names."""

ON_RECORD = 3.0
"""How much more a message is worth that supports a statement which is true and on the topic."""

ON_RECORD_NOW = 6.0
"""The same for a query that asks for the present, or for a past time that it names.

"Now" or the year in another message says nothing about the topic.
"""

WITHDRAWN = 6.0
"""How much less a message is worth whose statement on the topic was corrected or retracted."""

COMMON = 0.25
"""Share of the passages that have a word which says nothing about a topic, because so many have it."""

FEW = 3
"""Passages with a word that do not make it common."""

REPEATED = 10.0
"""The same for a message that only asks the query again: it follows everything else."""

ECHOED = 0.6
"""Share of the words of an echo that the message before it contains."""


def in_preferred_order(fused: Fused, worths: Numbers, most: int = MAX_REORDERED) -> Places:
    """Return the candidates in order of their worth and the preferences; of equal ones the newer first.

    Only the first `most` are certain to be in this order.
    """
    first, texts = fused.first, fused.request.texts
    worths = worths - REPLY * _are_replies(fused) + ON_TOPIC * _are_on_topic(fused)
    is_exact = fused.request.recency == "explicit" or fused.request.is_dated
    on_record = ON_RECORD_NOW if is_exact else ON_RECORD
    worths = worths + on_record * np.isin(first, fused.request.on_record)
    worths -= WITHDRAWN * np.isin(first, fused.request.withdrawn)
    marks = fused.marks(first)
    may_ask, only_asks = have(marks, HAS_QUESTION), have(marks, ONLY_ASKS)
    most = max(most, MOST_COMPARED)
    while True:
        places = np.lexsort((-first, -worths))
        # Questions only lose worth, so the texts of later ones need not be read.
        unread = places[:most][may_ask[places[:most]]]
        if texts is None or not len(unread):
            break
        for place in unread.tolist():
            text = texts(int(first[place]))
            worths[place] -= less_for_questions(text, fused.request.terms, only_asks=bool(only_asks[place]))
        may_ask[unread] = False
    order: Places = first[newer_first(fused, worths, places)]
    return order


def _are_replies(fused: Fused) -> NDArray[np.bool_]:
    """Return which candidates are messages of the assistant; if the query addresses it, only its echoes."""
    request, first = fused.request, fused.first
    is_reply = fused.index.column("role") == ASSISTANT
    are_replies: NDArray[np.bool_] = is_reply[first]
    if not request.addresses_assistant:
        return are_replies
    before = fused.index.column("previous")[first]
    are_replies &= (before >= 0) & ~is_reply[before]
    for place in np.flatnonzero(are_replies).tolist():
        texts = request.texts
        are_replies[place] = texts is not None and is_echo(
            texts(int(first[place])), texts(int(before[place]))
        )
    return are_replies


def _are_on_topic(fused: Fused) -> NDArray[np.bool_]:
    """Return which candidates are statements of a person with a word of a topic that the query names."""
    index, first = fused.index, fused.first
    found = np.zeros(len(first), dtype=np.bool_)
    for term in frozenset().union(*(fused.request.topics or ())):
        passages = index.postings(term)[0]
        if 0 < len(passages) <= COMMON * len(index) + FEW:
            found |= are_among(first, passages)
    if found.any():
        found &= (index.column("role")[first] != ASSISTANT) & ~have(fused.marks(first), ONLY_ASKS)
    return found


def is_echo(text: str, before: str) -> bool:
    """Return whether a text mostly repeats the words of the one before it, and adds no number."""
    words, known = set(words_of(text)), set(words_of(before))
    new = words - known
    return len(new) <= (1 - ECHOED) * len(words) and not any(word.isdigit() for word in new)


def less_for_questions(text: str, terms: Mapping[int, float], *, only_asks: bool) -> float:
    """Return how much less a text that asks is worth for a query with these terms. `only_asks` is its mark.

    A text that also states something is worth less if only its questions contain words of the query.
    """
    if only_asks:
        return REPEATED if terms.keys() >= set(map(known_term, words_of(text))) else QUESTION
    matching = [
        sentence
        for sentence in sentences_of(text)
        if not terms.keys().isdisjoint(map(known_term, words_of(sentence)))
    ]
    return QUESTION if matching and all(map(asks, matching)) else 0.0
