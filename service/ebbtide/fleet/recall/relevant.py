"""Decide whether a ranking answers a query at all.

The best passage of a ranking may be irrelevant. If even its relevance is below the floor of the query, the response is
empty: small talk would only mislead the reader. The floor applies to the whole response: a memory of little
relevance may still complete an answer, and dropping single memories would lose evidence.
"""

from __future__ import annotations

from ebbtide.fleet.recall.query import Query
from ebbtide.language.builtin.small_talk import CHINESE_WORDS, ENGLISH_WORDS, is_courtesy
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.retrieval.passages import PassageIndex
from ebbtide.retrieval.profiles import profile_of
from ebbtide.retrieval.query import AsksFor
from ebbtide.retrieval.ranking import Ranking
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.relevance import CANDIDATES, relevance

_SOCIAL_WORDS = ENGLISH_WORDS | CHINESE_WORDS


def is_relevant(query: Query, request: RankingRequest, index: PassageIndex, ranking: Ranking) -> bool:
    """Return whether the best passage reaches the query's floor.

    There is no floor for a query by vector alone, for one that asks for a period, and with vectors of a model whose
    relevance cannot be estimated.
    """
    weights = profile_of(request.embedding_model).relevance
    if not query.min_relevance or not request.terms or query.time_range != (None, None) or weights is None:
        return True
    if is_only_courtesy(query.text, request.asks_for):
        return False
    best = relevance(index, request, ranking.passages[:CANDIDATES], weights).max(initial=0.0)
    return bool(best >= query.min_relevance)


def is_only_courtesy(text: str, asks_for: AsksFor) -> bool:
    """Return whether a text only greets, thanks or agrees. A name alone is a query for that name."""
    return (
        not asks_for
        and is_courtesy(text)
        and any(token.text.casefold() in _SOCIAL_WORDS for token in tokenize(text))
    )
