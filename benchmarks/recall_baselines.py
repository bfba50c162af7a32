"""Baselines for recall: the latest turns, plain BM25, vectors alone, and both in equal parts.

Each is an obvious first design, over "speaker: text" of every turn, with all turns kept. BM25 has the usual k1 1.2
and b 0.75, and the usual terms: no stop words, stemmed words, and pairs of characters in Chinese. The vectors are
wordllama's, whose package contains its weights. It knows English only, so it is always left out for Chinese. The two
are joined by reciprocal rank fusion (Cormack, Clarke, Büttcher 2009).

The rule guarded here: a baseline is not tuned, neither up nor down, and uses no code of the product, so that it stays
the same when the product changes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from benchmarks.recall_data import Corpus
from benchmarks.recall_measures import LONGEST_ANSWER, Result

K1, B = 1.2, 0.75
RRF_OFFSET = 60
MOST = 200
"""Turns that a baseline ranks, so that fusing sees enough of both."""

_PIECE = re.compile(r"(?P<han>[\u3400-\u9fff]+)|[^\W_\u3400-\u9fff]+")

_FUNCTION_WORDS = """
a about after all also am an and any are as at be because been before being but by can could did do does doing for
from had has have having he her hers him his how i if in into is it its just me my no not of on or our ours out s
she should so some t than that the their them then there these they this those to too up us very was we were what
when where which while who whom whose why will with would you your yours
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

Scores = NDArray[np.float64]
Ask = Callable[[str], list[int]]
"""From a question to places of turns, best first."""

TokenCount = Callable[[str], int]


class Unavailable(Exception):
    """A baseline cannot answer questions about a corpus, with the reason."""


def simple_words(text: str) -> Iterator[str]:
    """Return lower-case, stemmed words without stop words; in Chinese, all pairs of neighbouring characters."""
    for piece in _PIECE.finditer(text.casefold()):
        run = piece[0]
        if piece["han"]:
            yield from (run[place : place + 2] for place in range(max(len(run) - 1, 1)))
        elif run not in STOP_WORDS:
            yield _stem(run)


@cache
def _stem(word: str) -> str:
    stemmed: str = _STEMMER.stemWord(word)
    return stemmed


_STEMMER = snowballstemmer.stemmer("english")


class PlainWords:
    """BM25 over texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [Counter(simple_words(text)) for text in texts]
        lengths = np.array([words.total() for words in counted], dtype=np.float64)
        self._norms: Scores = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        gathered: dict[str, tuple[list[int], list[int]]] = {}
        for place, words in enumerate(counted):
            for word, count in words.items():
                places, counts = gathered.setdefault(word, ([], []))
                places.append(place)
                counts.append(count)
        self._postings = {
            word: (np.array(places), np.array(counts, dtype=np.float64))
            for word, (places, counts) in gathered.items()
        }

    def scores(self, query: str) -> Scores:
        """Score every text. A word that is repeated in the query counts each time."""
        total = np.zeros(len(self._norms))
        for word, times in Counter(simple_words(query)).items():
            if word in self._postings:
                places, counts = self._postings[word]
                idf = math.log1p((len(total) - len(places) + 0.5) / (len(places) + 0.5))
                total[places] += times * idf * counts * (K1 + 1) / (counts + self._norms[places])
        return total

    def ask(self, query: str) -> list[int]:
        """Return the indices of texts that share a word with the query, best first."""
        scores = self.scores(query)
        return [place for place in _best_first(scores) if scores[place] > 0]


class PlainVectors:
    """Cosine of static embeddings."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._model = embedder()
        self._vectors = self._embedded(list(texts))

    def ask(self, query: str) -> list[int]:
        """Return the indices of texts, nearest first."""
        return _best_first(self._vectors @ self._embedded([query])[0])

    def _embedded(self, texts: list[str]) -> Scores:
        vectors = np.asarray(self._model.embed(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Scores = vectors / np.maximum(lengths, 1e-12)
        return unit


@cache
def embedder() -> Any:
    """Load wordllama from its own package, without the network. Raise Unavailable if it is not installed."""
    try:
        wordllama: Any = import_module("wordllama")
    except ImportError as missing:
        raise Unavailable("wordllama is not installed (pip install wordllama)") from missing
    # Without these arguments it would download its weights instead of reading them from its package.
    place = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=place, disable_download=True)


def _best_first(scores: Scores) -> list[int]:
    # Stable: of equal scores the earlier turn comes first, on every machine.
    order: list[int] = np.argsort(-scores, kind="stable")[:MOST].tolist()
    return order


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Fuse rankings by equal reciprocal ranks. Of equal sums, the item that appeared first ranks first."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            sums[place] = sums.get(place, 0.0) + 1 / (RRF_OFFSET + rank)
    return sorted(sums, key=lambda place: -sums[place])[:MOST]


def baseline(name: str, corpus: Corpus) -> Ask:
    """Prepare a baseline for a corpus. Raise Unavailable if this is impossible."""
    return BASELINES[name](corpus)


def _recency(corpus: Corpus) -> Ask:
    latest = list(reversed(range(len(corpus.turns))))[:MOST]
    return lambda _: latest


def _bm25(corpus: Corpus) -> Ask:
    return PlainWords([turn.spoken for turn in corpus.turns]).ask


def _dense(corpus: Corpus) -> Ask:
    if corpus.is_chinese:
        raise Unavailable("the small embedder knows English only")
    return PlainVectors([turn.spoken for turn in corpus.turns]).ask


def _rrf(corpus: Corpus) -> Ask:
    dense, words = _dense(corpus), _bm25(corpus)
    return lambda query: fused([words(query), dense(query)])


BASELINES: dict[str, Callable[[Corpus], Ask]] = {
    "recency": _recency,
    "bm25": _bm25,
    "dense": _dense,
    "rrf": _rrf,
}
"""By name, in the order they are shown."""


def results_of(places: Sequence[int], corpus: Corpus, count_tokens: TokenCount) -> list[Result]:
    """Return these turns as the results of an answer."""
    turns = (corpus.turns[place] for place in places[:LONGEST_ANSWER])
    return [Result((turn.turn_id,), count_tokens(turn.spoken)) for turn in turns]
