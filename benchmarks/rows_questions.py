"""P3: a query over everything an agent heard, in the engine, compared with plain versions of its two costly parts.

The parts are a BM25 query of tantivy, over the same terms of the same texts, and, where the engine also compares
vectors, a numpy product of all vectors with the query. Engine and parts answer the same query one after the other.
They need not agree: the engine also considers neighbours, names, times, links and the focus, and it formats and packs
an answer of at most `BUDGET` tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contest import attend, opened
from benchmarks.measuring import Spread, in_turns, settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.report import Figure, at_most
from benchmarks.stores import kept_graph
from benchmarks.synthetic import Topology
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import analysed
from ebbtide.retrieval.tokenizers import count_tokens
from ebbtide.retrieval.vectors import Vectors

DIMENSION = 256
"""Of the vectors: that of the built-in embedder."""

BUDGET = 1000
MOST_RESULTS = 100
WARM_UPS = 3
WORDS, CHARACTERS = 6, 10
"""How much of a text a question repeats, by script."""

LEAST_TERMS = 3
"""A query with fewer terms consists mostly of common words."""

NOW_MS = 1_800_000_000_000
MODEL = "drawn"
"""The model name of these vectors."""


def questions(plan: Plan) -> list[Figure]:
    """P3: words, graph, packing, and vectors if the agent has some."""
    scale = plan.scale_for("L")
    store = plan.store(scale)
    count = plan.times(200, 12) + WARM_UPS
    dice = np.random.default_rng([plan.seed, 3])
    foci = Topology(kept_graph(store)).focus_sets(count, plan.seed + 3)
    with opened(store, plan) as workspace:
        texts = workspace.store.read(lambda txn: [node.content for node in txn.nodes.texts()])
        asked = _questions(texts, count, dice)
        plan.tell("P3: tantivy")
        words = TermIndex(texts)
        vectors = _directions(len(texts), dice)
        plan.tell("P3: the shelf")
        _, loading_ms = timed(lambda: _ask(workspace, asked[0], vectors[0]))
        _fill(workspace, vectors)
        settle_garbage()
        plan.tell("P3: questions")
        samples = _asked_in_turns(workspace, words, vectors, asked, foci)
        found = sum(_ask(workspace, *pair) for pair in zip(asked, vectors, strict=False))
        assert found >= 0.9 * len(asked), "what a text says finds texts"
    figure = _figure(samples, f"question, {scale.name}", counts=scale.name == "L")
    figure.beside["shelf loaded, with texts analysed, ms"] = loading_ms
    return [figure]


class TermIndex:
    """Texts in an index of tantivy, in memory, cut into terms as the engine cuts them."""

    def __init__(self, texts: Sequence[str]) -> None:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("passage", stored=True)
        builder.add_text_field("terms", stored=False, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        index = tantivy.Index(self._schema)
        writer = index.writer(heap_size=128_000_000, num_threads=1)
        for passage, text in enumerate(texts):
            terms, counts, _ = analysed(text)
            said = " ".join(map(str, np.repeat(terms, counts).tolist()))
            writer.add_document(tantivy.Document(passage=passage, terms=said))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher, self._tantivy = index.searcher(), tantivy

    def first(self, question: str, most: int) -> list[int]:
        """Return the best passages by BM25."""
        query, should = self._tantivy.Query, self._tantivy.Occur.Should
        terms = analysed(question)[0].tolist()
        wanted = [(should, query.term_query(self._schema, "terms", str(term))) for term in terms]
        found = self._searcher.search(query.boolean_query(wanted), most)
        return [self._searcher.doc(address)["passage"][0] for _, address in found.hits]


def nearest(vectors: NDArray[np.float32], query: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """Return the vectors with the largest products, largest first."""
    near = vectors @ query
    chosen = np.argpartition(-near, min(most, len(near)) - 1)[:most]
    return chosen[np.argsort(-near[chosen])]


def _asked_in_turns(
    workspace: Workspace,
    words: TermIndex,
    vectors: NDArray[np.float32],
    asked: Sequence[str],
    foci: Sequence[tuple[int, ...]],
) -> dict[str, list[float]]:
    """Return the latencies of each participant, without those of the first queries."""
    samples: dict[str, list[float]] = {}
    for number, (question, focus) in enumerate(zip(asked, foci, strict=True)):
        attend(workspace, focus)
        vector = vectors[number]
        tasks: dict[str, Callable[[], Any]] = {
            "ours": lambda q=question, v=vector: _ask(workspace, q, v),  # type: ignore[misc]
            "tantivy": lambda q=question: words.first(q, MOST_RESULTS),  # type: ignore[misc]
            "numpy product": lambda v=vector: nearest(vectors, v, MOST_RESULTS),  # type: ignore[misc]
        }
        took = in_turns(1, {name: lambda task=task: timed(task)[1] for name, task in tasks.items()})
        if number >= WARM_UPS:
            for name, (took_ms,) in took.items():
                samples.setdefault(name, []).append(took_ms)
    return samples


def _ask(workspace: Workspace, question: str, vector: NDArray[np.float32]) -> bool:
    """Run a query. Return whether it found anything: one with only names and common words may find nothing."""
    wanted = Query(question, MOST_RESULTS, token_budget=BUDGET, vector=vector, embedding_model=MODEL)
    answer, _ = workspace.recollect(wanted, NOW_MS, lambda text: count_tokens(text, "estimate"))
    return bool(answer.memories)


def _fill(workspace: Workspace, vectors: NDArray[np.float32]) -> None:
    """Give every passage its vector, as the background task would."""

    def put(archive: Archive) -> None:
        archive.vectors = Vectors(MODEL, DIMENSION)
        archive.vectors.put(np.arange(len(archive.index)), vectors[: len(archive.index)])

    workspace.store.read(lambda txn: put(workspace.archive(txn)))


def _figure(samples: dict[str, list[float]], what: str, *, counts: bool) -> Figure:
    compared = ["tantivy", "numpy product"]
    parts = [sum(took) for took in zip(*(samples[name] for name in compared), strict=True)]
    baselines = {name: Spread.of(samples[name]) for name in ("tantivy", "numpy product")}
    name = " + ".join(compared)
    baselines[name] = Spread.of(parts)
    figure = Figure("P3", what, "ms", Spread.of(samples["ours"]), baselines)
    ratio = figure.ours.p50 / baselines[name].p50
    figure.ratio = f"{ratio:.2g} × {name}"
    figure.claims = [
        at_most(figure.ours.p95, 30.0, "ms", what="p95", counts=counts),
        at_most(ratio, 2.0, f"× {name}", counts=counts),
    ]
    return figure


def _questions(texts: Sequence[str], count: int, dice: np.random.Generator) -> list[str]:
    """Return queries of `LEAST_TERMS` terms and more."""
    asked: list[str] = []
    while len(asked) < count:
        question = _question(texts[int(dice.integers(0, len(texts)))], dice)
        if len(analysed(question)[0]) >= LEAST_TERMS:
            asked.append(question)
    return asked


def _question(text: str, dice: np.random.Generator) -> str:
    """Return some words that are adjacent in a text."""
    if contains_han(text):
        begin = int(dice.integers(0, max(1, len(text) - CHARACTERS)))
        return text[begin : begin + CHARACTERS] + "？"
    said = text.split()
    begin = int(dice.integers(0, max(1, len(said) - WORDS)))
    return " ".join(said[begin : begin + WORDS]) + "?"


def _directions(count: int, dice: np.random.Generator) -> NDArray[np.float32]:
    """Return unit vectors. The duration of a product does not depend on their meaning."""
    drawn = dice.standard_normal((count, DIMENSION), dtype=np.float32)
    directions: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return directions
