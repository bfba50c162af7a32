"""Decide which memories of a ranking answer a query.

The best passage of a ranking may be irrelevant. If even its relevance is below the floor of the query, the response is
empty: small talk would only mislead the reader. Otherwise the floor spares the others, because a memory of little
relevance may complete an answer. Only in a small memory, whose ranking contains nearly all of it, memories of far less
relevance than the best one are dropped, unless the caller requested a size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.recall.query import Query
from ebbtide.language.builtin.small_talk import CHINESE_WORDS, ENGLISH_WORDS, is_courtesy
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.retrieval.passages import PassageIndex
from ebbtide.retrieval.profiles import profile_of
from ebbtide.retrieval.query import AsksFor
from ebbtide.retrieval.ranking import Ranking
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.relevance import CANDIDATES, are_enough, relevance
from ebbtide.retrieval.restating import SMALL

LEAST_SHARE = 0.02
"""Share of the best relevance that a memory of a small agent needs. It halves the response, and costs less than a
point of the evidence among the first five on our conversations; 0.05 costs up to 2.
"""

_SOCIAL_WORDS = ENGLISH_WORDS | CHINESE_WORDS


def are_relevant(
    query: Query, request: RankingRequest, index: PassageIndex, ranking: Ranking
) -> NDArray[np.bool_]:
    """Return which passages of a ranking are relevant: none if none reaches the query's floor.

    A statement that is true and answers the query by its topic is always relevant.

    There is no floor for a query by vector alone, for one that asks for a period, and with vectors of a model whose
    relevance cannot be estimated.
    """
    found = np.ones(len(ranking.passages), dtype=np.bool_)
    weights = profile_of(request.embedding_model).relevance
    if not query.min_relevance or not request.terms or query.time_range != (None, None) or weights is None:
        return found
    first = ranking.passages[:CANDIDATES]
    relevances = relevance(index, request, first, weights)
    enough = are_enough(index, request, first, relevances, query.min_relevance)
    if (
        is_only_courtesy(query.text, request.asks_for)
        or not (enough | np.isin(first, request.on_record)).any()
    ):
        return ~found
    if query.is_size_open and len(index) <= SMALL:
        found[:CANDIDATES] = relevances >= LEAST_SHARE * relevances.max()
        found[:CANDIDATES] |= np.isin(first, request.on_record)
    return found


def best_relevance(request: RankingRequest, index: PassageIndex, ranking: Ranking) -> float | None:
    """Return the relevance of the most relevant passage of a ranking; None if it cannot be estimated."""
    weights = profile_of(request.embedding_model).relevance
    if weights is None or not request.terms:
        return None
    return float(relevance(index, request, ranking.passages[:CANDIDATES], weights).max(initial=0.0))


def is_only_courtesy(text: str, asks_for: AsksFor) -> bool:
    """Return whether a text only greets, thanks or agrees. A name alone is a query for that name."""
    return (
        not asks_for
        and is_courtesy(text)
        and any(token.text.casefold() in _SOCIAL_WORDS for token in tokenize(text))
    )
