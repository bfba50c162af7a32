"""Train the trees of the learned signal: `python -m benchmarks.train_fusion`, with the extras `dev` and `train`.

Reads the judged conversations of this project and the public sets, indexes each corpus with the product's own modules,
and runs its questions as recall would. The trees get the product's features and learn which candidates are evidence.
`--embedder builtin` trains the default trees, without vectors and with those of the English embedder; `--embedder
multilingual` trains the trees for that embedder's vectors.

`--judge` first trains trees with a part left out, each part in turn (every fifth corpus, or a fifth of the questions of
a set of one corpus), and reports their quality on that part. Choose parameters by the project's conversations there.

The rule guarded here: a set whose licence allows evaluation only is evaluated, never used for training.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.long_conversations import JOINED, can_be_joined, joined
from benchmarks.recall_data import (
    APART,
    Corpus,
    MissingSet,
    Question,
    default_folder,
    read_own,
    read_set,
    together,
)
from benchmarks.recall_measures import paired_interval
from benchmarks.stored_vectors import EMBEDDERS, StoredVectors
from ebbtide.fleet.archive.archive import conversation_key
from ebbtide.fleet.recall.recollection import weighted_terms
from ebbtide.han import contains_han
from ebbtide.retrieval import learned
from ebbtide.retrieval.analysis import term_of, whole_words_of, words_of
from ebbtide.retrieval.features import FEATURES, features
from ebbtide.retrieval.lexical import Scores, WordScores
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of, with_speaker
from ebbtide.retrieval.query import parse_query
from ebbtide.retrieval.ranking import fuse
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.restating import SMALL
from ebbtide.retrieval.topics import topics_of
from ebbtide.retrieval.vectors import Vectors

OWN = ("friends_en", "friends_zh", "work_and_assistant")
"""Judged conversations of this project."""

LEARNT = ("memdaily", "longmemeval", "musique", "hotpot", "2wiki", "cmrc")
"""Public sets used for training."""

LONG = ("longmemeval", "musique", "hotpot", "2wiki", "cmrc")
"""Sets of long texts. A slow embedder would take hours, so its trees learn from their questions without vectors."""

JUDGED_ONLY = ("locomo", "memorybank_cn")
"""Sets that only evaluate trees. LoCoMo is CC BY-NC 4.0 and must not be used for training."""

WEIGHTS = {
    **dict.fromkeys((*OWN, JOINED), 2.0),
    "memdaily": 1.5,
    "longmemeval": 10.0,
    "musique": 3.0,
    "hotpot": 3.0,
}
"""How much a question of these sets counts; 1 for the others."""

EACH = {"2wiki": 2, "cmrc": 6}
"""Of large sets, one question in this many is used for training."""

RISES = (
    "fused", "words", "says", "either says", "own", "own telling", "speaker", "date", "conversation",
    "conversation's best", "second previous", "around", "previous asks", "semantic", "window",
)  # fmt: skip
FALLS = ("fused place", "words place", "days away", "asks last", "semantic place", "window place")
"""Features with a monotone effect, so that trees generalise beyond their training data."""

PARTS, SEED = 5, 1
ROUNDS = 240
"""More trees order our own conversations slightly better, but lengthen every query."""

GROWING: dict[str, Any] = {
    "objective": "lambdarank",
    "learning_rate": 0.08,
    "num_leaves": 8,
    "min_data_in_leaf": 80,
    "max_bin": 63,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "lambdarank_truncation_level": 20,
    "label_gain": [0, 1],
    "num_threads": 1,
    "seed": SEED,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}

VECTORS = Path(__file__).with_name("results") / "vectors"

MEASURES = ("R@5", "R@10", "R@20", "MRR")


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with its candidates: features, fused scores, and which gold group each belongs to (0 for none)."""

    set_name: str
    part: int
    category: str
    has_vectors: bool
    rows: NDArray[np.float64]
    scores: NDArray[np.float64]
    passages: NDArray[np.int64]
    groups: NDArray[np.int64]
    group_count: int


class Stand:
    """An indexed corpus, ready for queries."""

    def __init__(self, corpus: Corpus, stored: StoredVectors | None) -> None:
        """Index a corpus, with vectors unless `stored` is None."""
        self.shelf, self.owners, self.texts = PassageIndex(), [], []
        self._put(corpus)
        self.words = WordScores(self.shelf)
        self._terms: list[frozenset[int]] = [frozenset(map(term_of, words_of(text))) for text in self.texts]
        self._stored, self._vectors = stored, None
        if stored is not None:
            known = [(passage, one) for passage, one in enumerate(stored.of(self.texts)) if one is not None]
            if known:
                self._vectors = Vectors(stored.model, len(known[0][1]))
                self._vectors.put(
                    np.array([passage for passage, _ in known]), np.array([one for _, one in known])
                )

    def _put(self, corpus: Corpus) -> None:
        is_loose = len(corpus.sessions) == len(corpus.turns)
        shelved = []
        for number, turn in enumerate(turn for said in corpus.sessions.values() for turn in said):
            for entry in entries_of(turn.text, turn.speaker):
                # Paragraphs come in batches of a hundred, as in the benchmark.
                conversation = f"b{number // 100}" if is_loose else conversation_key(turn.session_id)
                shelved.append(
                    IndexedPassage(
                        number, entry, turn.timestamp_ms or 0, turn.speaker, conversation, role=turn.role
                    )
                )
                self.owners.append(turn.turn_id)
                said = turn.text[entry.begin : entry.begin + entry.length]
                self.texts.append(with_speaker(said, turn.speaker))
        self.shelf.add(shelved)

    def asked(self, query: str) -> RankingRequest:
        """Return the query as recall runs it."""
        shelf = self.shelf
        known = shelf.speakers_named_by(map(term_of, words_of(query)))
        question = parse_query(query, speakers=known, reference_ms=int(shelf.column("time_ms").max()))
        speakers = [shelf.speaker_numbers[name] for name in known if name.casefold() in question.speakers]
        semantic, window = self._nearness(query)
        return RankingRequest(
            terms=weighted_terms(question, query),
            whole_words=weighted_terms(question, query, whole_words_of),
            is_chinese=contains_han(query),
            parts=[self._terms_of(part) for part in question.parts],
            speakers=speakers,
            dates=[(span.begin_ms, span.end_ms) for span in question.dates],
            semantic=semantic,
            window=window,
            embedding_model=self._stored.model if self._stored is not None and semantic is not None else "",
            names=lambda one: shelf.passages_named_by(self._terms[one], int(shelf.column("speaker")[one])),
            asks_for=question.asks_for,
            recency=question.recency,
            topics=topics_of(query) if question.is_about_user and len(shelf) > SMALL else None,
            addresses_assistant=question.addresses_assistant,
            alike=self._vectors.likeness if self._vectors is not None else None,
            texts=self._text,
        )

    def _nearness(self, query: str) -> tuple[Scores | None, Scores | None]:
        if self._stored is None or self._vectors is None:
            return None, None
        vector = self._stored.of([query], is_query=True)[0]
        if vector is None:
            return None, None
        single, count = vector.astype(np.float32), len(self.shelf)
        beside = self.shelf.neighbours("previous"), self.shelf.neighbours("next")
        return self._vectors.scores(single, count), self._vectors.window_scores(single, count, *beside)

    def _terms_of(self, part: str) -> dict[int, float]:
        return weighted_terms(parse_query(part, speakers=(), reference_ms=0), part)

    def _text(self, passage: int) -> str:
        speaker = self.shelf.speakers[int(self.shelf.column("speaker")[passage])]
        return self.texts[passage].removeprefix(f"{speaker}: " if speaker else "")

    def judged(self, corpus: Corpus, question: Question, part: int) -> Judged | None:
        """Return the candidates of a question; None if there are none."""
        asked = self.asked(question.text)
        fused, _ = fuse(self.shelf, self.words, asked)
        first = fused.first
        if not len(first) or "words" not in fused.given:
            return None
        groups = np.array([_group_of(self.owners[passage], question) for passage in first.tolist()])
        return Judged(
            corpus.set_name,
            part,
            question.category,
            asked.semantic is not None,
            features(fused),
            fused.total[first],
            first,
            groups,
            len(question.gold),
        )


def _group_of(turn_id: str, question: Question) -> int:
    return next((number for number, group in enumerate(question.gold, 1) if turn_id in group), 0)


def read(names: Sequence[str], folder: Path, stored: StoredVectors | None) -> Iterator[Judged]:
    """Read all questions of the available sets. Sets of one corpus are split by question, others by corpus.

    With vectors, questions that the embedder does not support are left out.
    """
    for name in names:
        corpora = read_own(name) if name in OWN else read_set(name, folder)
        if isinstance(corpora, MissingSet):
            print(corpora)
            continue
        numbered = list(enumerate(corpora))
        if name in OWN:
            # Our conversations are short. Those of a part also share one agent, as in larger stores.
            numbered += [(part, together(corpora[part::PARTS])) for part in range(PARTS)]
        for number, corpus in numbered:
            yield from _judged(corpus, number if len(corpora) > 1 else None, stored)


def read_joined(stored: StoredVectors | None) -> Iterator[Judged]:
    """Read our English conversations between people, those of a part as one between the same two people."""
    by_part: list[list[Corpus]] = [[] for _ in range(PARTS)]
    for name in OWN:
        for number, corpus in enumerate(read_own(name)):
            if can_be_joined(corpus):
                by_part[number % PARTS].append(corpus)
    for part, corpora in enumerate(by_part):
        yield from _judged(joined(corpora), part, stored)


def _judged(corpus: Corpus, number: int | None, stored: StoredVectors | None) -> Iterator[Judged]:
    """Read the questions of a corpus, which belong to the part of its number, or to the parts in turn."""
    stand = Stand(corpus, stored)
    for place, question in enumerate(corpus.questions):
        if question.category not in APART.get(corpus.set_name, ()):
            judged = stand.judged(corpus, question, (place if number is None else number) % PARTS)
            if judged is not None and judged.has_vectors == (stored is not None):
                yield judged


def learnt(embedder: str, folder: Path, stored: StoredVectors) -> list[Judged]:
    """Read the questions used for training.

    The default trees also rank without vectors, so they see each question without vectors as well.
    """
    names = [*OWN, *LEARNT]
    if embedder == "builtin":
        return [*read(names, folder, None), *read(names, folder, stored)]
    with_vectors = [name for name in names if name not in LONG]
    return [*read(with_vectors, folder, stored), *read(LONG, folder, None), *read_joined(stored)]


def grown(questions: Sequence[Judged], names: Sequence[str]) -> Any:
    """Train trees on questions."""
    import lightgbm

    kept = [one for one in questions if one.groups.any()]
    data = lightgbm.Dataset(
        np.concatenate([one.rows for one in kept]),
        np.concatenate([one.groups > 0 for one in kept]).astype(int),
        group=[len(one.rows) for one in kept],
        weight=np.concatenate([np.full(len(one.rows), WEIGHTS.get(one.set_name, 1.0)) for one in kept]),
    )
    bent = [(name in RISES) - (name in FALLS) for name in names]
    return lightgbm.train({**GROWING, "monotone_constraints": bent}, data, ROUNDS)


def thinned(questions: Sequence[Judged]) -> list[Judged]:
    """Return the questions used for training."""
    counted: dict[str, int] = {}
    kept = []
    for one in questions:
        place = counted[one.set_name] = counted.get(one.set_name, -1) + 1
        if place % EACH.get(one.set_name, 1) == 0:
            kept.append(one)
    return kept


def kept_form(booster: Any, names: Sequence[str], spread: float) -> dict[str, Any]:
    """Return trained trees in the format that `trees.py` reads."""
    arrays: dict[str, list[Any]] = {
        key: [] for key in ("roots", "feature", "threshold", "left", "right", "missing_left", "leaves")
    }

    def put(node: Mapping[str, Any]) -> int:
        if "leaf_value" in node and "split_feature" not in node:
            arrays["leaves"].append(float(f"{node['leaf_value']:.6g}"))
            return -len(arrays["leaves"])
        at = len(arrays["feature"])
        arrays["feature"].append(node["split_feature"])
        arrays["threshold"].append(float(f"{node['threshold']:.9g}"))
        # A missing feature follows the branch of 0, unless the tree met missing values in training.
        is_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
        arrays["missing_left"].append(int(is_left))
        arrays["left"].append(0)
        arrays["right"].append(0)
        arrays["left"][at] = put(node["left_child"])
        arrays["right"][at] = put(node["right_child"])
        return at

    for tree in booster.dump_model()["tree_info"]:
        arrays["roots"].append(put(tree["tree_structure"]))
    return {"version": learned.VERSION, "features": list(names), "spread": round(spread, 6), **arrays}


def written(questions: Sequence[Judged], names: Sequence[str]) -> str:
    """Return the content of the file of the trees trained on questions."""
    booster = grown(questions, names)
    sums = [booster.predict(one.rows)[: learned.SPREAD_OVER] for one in questions]
    spread = float(np.mean([some.std() for some in sums]))
    return json.dumps(kept_form(booster, names, spread), separators=(",", ":")) + "\n"


def ordered(one: Judged, model: learned.Model | None) -> NDArray[np.int64]:
    """Return the gold groups of the candidates in their order, with the trees or without."""
    worth = one.scores
    if model is not None:
        worth = learned.weighed(model.trees.sums(one.rows), one.scores, model.spread)
    groups: NDArray[np.int64] = one.groups[np.lexsort((-one.passages, -worth))]
    return groups


def measures(one: Judged, model: learned.Model | None) -> dict[str, float]:
    """Return how much of a question's evidence is found."""
    groups = ordered(one, model)
    told = {f"R@{k}": len(set(groups[:k].tolist()) - {0}) / one.group_count for k in (5, 10, 20)}
    places = np.flatnonzero(groups)
    return {**told, "MRR": 1 / (int(places[0]) + 1) if len(places) else 0.0}


def tell(label: str, questions: Sequence[Judged], models: Mapping[int, learned.Model]) -> None:
    """Print the figures of a set under trees that did not see it, by part, and the gain over the order without."""
    answered = [(measures(one, models[one.part]), measures(one, None)) for one in questions]
    cells = [f"{label:28}", f"{len(questions):5}"]
    for name in MEASURES:
        ours, theirs = [pair[0][name] for pair in answered], [pair[1][name] for pair in answered]
        gain = paired_interval(ours, theirs)
        mean, *interval = (f"{100 * points:+.1f}" for points in (gain.mean, gain.low, gain.high))
        cells.append(f"{name} {100 * np.mean(ours):5.1f} ({mean}: {' to '.join(interval)})")
    print("  ".join(cells), flush=True)


def judge(questions: Sequence[Judged], names: Sequence[str], judged_only: Sequence[Judged]) -> None:
    """Evaluate trees on unseen data: each part of the training sets, and the sets never used for training."""
    thin = thinned(questions)
    print("parts left out")
    by_part = {
        part: learned.model_of(written([one for one in thin if one.part != part], names))
        for part in range(PARTS)
    }
    _tell_each(questions, by_part)
    print("never learnt from")
    _tell_each(judged_only, dict.fromkeys(range(PARTS), learned.model_of(written(thin, names))))


def _tell_each(questions: Sequence[Judged], models: Mapping[int, learned.Model]) -> None:
    for name in dict.fromkeys(one.set_name for one in questions):
        for has_vectors in (False, True):
            of_set = [one for one in questions if one.set_name == name and one.has_vectors == has_vectors]
            if not of_set:
                continue
            tell(f"{name}{', vectors' if has_vectors else ''}", of_set, models)
            categories = sorted({one.category for one in of_set}) if name in JUDGED_ONLY else []
            for category in categories:
                tell(f"  {category}", [one for one in of_set if one.category == category], models)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, evaluate if requested, train, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="the folder of the public sets")
    parser.add_argument(
        "--embedder", choices=EMBEDDERS, default="builtin", help="whose vectors; default: builtin"
    )
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="the folder that keeps vectors")
    parser.add_argument("--judge", action="store_true", help="first evaluate trees on unseen data")
    parser.add_argument("--out", type=Path, help="file for the trees; without it they are not written")
    asked = parser.parse_args(arguments)
    stored = StoredVectors(asked.vectors, asked.embedder)
    questions = learnt(asked.embedder, asked.data, stored)
    if asked.judge:
        judged_only = list(read(JUDGED_ONLY, asked.data, stored))
        if asked.embedder == "builtin":
            judged_only += read(JUDGED_ONLY, asked.data, None)
        judge(questions, FEATURES, judged_only)
    if asked.out is not None:
        asked.out.write_text(written(thinned(questions), FEATURES), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
