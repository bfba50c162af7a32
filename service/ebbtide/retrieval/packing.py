"""Packing: which of the found memories go into an answer that must not be long.

Near copies go first: of two texts that say the same the better one stays. Without a budget the best of what is left
are taken. With one, memories are chosen by what they bring for what they cost, where saying again what is chosen
already brings less (maximal marginal relevance, J. Carbonell & J. Goldstein 1998), and what then still fits is
filled in. The rule guarded here: the answer as it is worded never counts more tokens than the budget, whatever the
tokenizer does; and what is kept stays in the order of its value.

Deliberately not here: how an answer is worded, and how tokens are counted. Both are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

RELEVANCE = 0.7
"""Share of a memory's own value in what it brings; the rest is taken away by likeness to what is chosen."""

LIKENESS_TENTHS = 9
"""Two memories are near copies when this many tenths of their terms are shared."""

POOL_BUDGETS = 1.5
"""The best memories, up to so many budgets full, compete by value for cost: beyond them a short text is cheap, not
good, and only fills what is left."""

_LABEL = re.compile(r"[^:：]{1,60}[:：]")
_NUMBER_OR_NOT = re.compile(r"\d+|\b(?:not?|never|none|without)\b|n['’]t\b|[不没沒无無未别別非]")

Marks = tuple[str, tuple[str, ...]]
Reason = Literal["budget", "near copy", "max_results"]
Count = Callable[[str], int]
Word = Callable[[Sequence[str]], str]
Shorten = Callable[["Candidate", Callable[[str], bool]], str]
"""The text of a candidate made so short that it fits; empty where that cannot be."""

MAX_SHORTENED = 20
"""Memories that are tried in a shorter form for one answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may go into the answer: whose, what it says, what it is worth, the terms it holds."""

    key: Hashable
    text: str
    value: float
    terms: frozenset[int]


@dataclass(frozen=True, slots=True)
class Packed:
    """What goes into the answer, best first; what does not, in the order it was found, and why."""

    kept: tuple[Candidate, ...]
    dropped: tuple[tuple[Hashable, Reason], ...]
    shortened: frozenset[Hashable] = frozenset()
    """Whose texts are not told whole."""


def pack(
    candidates: Sequence[Candidate],
    *,
    max_results: int,
    token_budget: int | None,
    count: Count,
    word: Word,
    shorten: Shorten | None = None,
) -> Packed:
    """The candidates, best first, that make the answer: no near copies, at most so many, within the budget.

    What does not fit whole is told in a shorter form, where one is handed in.
    """
    best_first = sorted(candidates, key=lambda candidate: -candidate.value)
    fresh = _without_near_copies(best_first)
    room = max(0, max_results)
    chosen = set(fresh[:room])
    shortened: dict[int, Candidate] = {}
    if token_budget is not None:
        budget = _Budget(token_budget, count, word, shorten)
        chosen, shortened = _within_budget(best_first, fresh, room, budget)
    left_out: dict[int, Reason] = dict.fromkeys(range(len(best_first)), "near copy")
    for rank, place in enumerate(fresh):
        is_beyond = rank >= room and (token_budget is None or len(chosen) >= room)
        left_out[place] = "max_results" if is_beyond else "budget"
    return Packed(
        tuple(shortened.get(place, best_first[place]) for place in sorted(chosen)),
        tuple((best_first[place].key, why) for place, why in left_out.items() if place not in chosen),
        frozenset(candidate.key for place, candidate in shortened.items() if place in chosen),
    )


def _without_near_copies(candidates: Sequence[Candidate]) -> list[int]:
    """Places of the candidates that are no near copies of a better one.

    Two sets can only share nine tenths when the first few of their terms, in any one order, have one in common
    (prefix filtering, R. Bayardo et al., "Scaling Up All Pairs Similarity Search", 2007): few pairs are compared.
    Terms are hashes, so their own order is as good as any but that of rarity, and costs nothing.
    """
    fresh: list[int] = []
    texts: set[str] = set()
    by_first_terms: dict[int, list[tuple[frozenset[int], Marks]]] = {}
    for place, candidate in enumerate(candidates):
        terms = candidate.terms
        prefix = sorted(terms)[: len(terms) * (10 - LIKENESS_TENTHS) // 10 + 1]
        marks = _marks(candidate.text)
        if candidate.text in texts or any(
            marks == others_marks and _is_near(terms, other)
            for term in prefix
            for other, others_marks in by_first_terms.get(term, ())
        ):
            continue
        fresh.append(place)
        texts.add(candidate.text)
        for term in prefix:
            by_first_terms.setdefault(term, []).append((terms, marks))
    return fresh


def _marks(text: str) -> Marks:
    """What makes two texts of the same words say different things: who speaks, numbers, negations."""
    label = _LABEL.match(text)
    return label[0] if label else "", tuple(_NUMBER_OR_NOT.findall(text.casefold()))


def _is_near(terms: frozenset[int], others: frozenset[int]) -> bool:
    fewer, more = sorted((len(terms), len(others)))
    if 10 * fewer < LIKENESS_TENTHS * more:
        return False
    shared = len(terms & others)
    return 10 * shared >= LIKENESS_TENTHS * (fewer + more - shared)


def _likeness(terms: frozenset[int], others: frozenset[int]) -> float:
    shared = len(terms & others)
    return shared / (len(terms) + len(others) - shared) if shared else 0.0


@dataclass(frozen=True, slots=True)
class _Budget:
    """Tokens, how they are counted in an answer as it is worded, and how texts are shortened, if they are."""

    tokens: int
    count: Count
    word: Word
    shorten: Shorten | None = None

    def taken_by(self, texts: Sequence[str]) -> int:
        """Tokens of an answer."""
        return self.count(self.word(texts))


def _within_budget(
    candidates: Sequence[Candidate], fresh: Sequence[int], room: int, budget: _Budget
) -> tuple[set[int], dict[int, Candidate]]:
    """Places of the candidates whose answer fits, chosen by estimates, verified as a whole; which are shortened."""
    told = list(candidates)

    def fits(places: Iterable[int]) -> bool:
        return budget.taken_by([told[place].text for place in sorted(places)]) <= budget.tokens

    best = fresh[:room]
    # The usual case: a budget that holds everything. One count instead of hundreds.
    if not best or fits(best):
        return set(best), {}
    alone = {place: budget.taken_by([told[place].text]) for place in fresh}
    joining = 0
    if len(fresh) > 1:
        pair = budget.taken_by([told[place].text for place in fresh[:2]])
        joining = max(0, pair - alone[fresh[0]] - alone[fresh[1]])
    # Every memory pays for what joins it to the one before, and the first gets that back.
    costs = {place: max(1, tokens + joining) for place, tokens in alone.items()}
    most = budget.tokens + joining
    shortened: dict[int, Candidate] = {}

    def is_shortened(place: int, most: int) -> bool:
        candidate = _shortened(candidates[place], budget, most - joining)
        if candidate is not None:
            told[place] = shortened[place] = candidate
            costs[place] = max(1, budget.taken_by([candidate.text]) + joining)
        return candidate is not None

    # What no answer could hold whole takes part in its shorter form: the best one may be among them.
    for place in islice((place for place in best if costs[place] > most), MAX_SHORTENED):
        is_shortened(place, most if place == best[0] else most // 2)
    chosen = _chosen(told, fresh, room, most, costs)
    left = most - sum(costs[place] for place in chosen)
    for place in islice((place for place in best if place not in chosen), MAX_SHORTENED):
        if len(chosen) < room and is_shortened(place, left):
            chosen.add(place)
            left -= costs[place]
    while chosen and not fits(chosen):
        chosen.remove(max(chosen))
    return chosen, shortened


def _shortened(candidate: Candidate, budget: _Budget, most: int) -> Candidate | None:
    if budget.shorten is None or most <= 0:
        return None
    text = budget.shorten(candidate, lambda shorter: budget.taken_by([shorter]) <= most)
    return replace(candidate, text=text) if text else None


def _chosen(
    candidates: Sequence[Candidate], fresh: Sequence[int], room: int, budget: int, costs: dict[int, int]
) -> set[int]:
    """Places whose costs sum up to the budget at most: the best that fits, then what brings most for its cost."""
    left = budget
    chosen: set[int] = set()
    pool = _pool(fresh[:room], budget, costs)
    brings = _shares_of_value(candidates, pool)
    likeness = dict.fromkeys(pool, 0.0)
    while pool:
        gains = {p: RELEVANCE * brings[p] - (1 - RELEVANCE) * likeness[p] for p in pool}
        # The best answer there is must not give way to two cheap ones.
        taken = max(pool, key=lambda place: gains[place] / costs[place]) if chosen else pool[0]
        if chosen and gains[taken] <= 0:
            break
        chosen.add(taken)
        left -= costs[taken]
        pool = [place for place in pool if place != taken and costs[place] <= left]
        terms = candidates[taken].terms
        for place in pool:
            likeness[place] = max(likeness[place], _likeness(candidates[place].terms, terms))
    for place in fresh:
        if len(chosen) < room and place not in chosen and costs[place] <= left:
            chosen.add(place)
            left -= costs[place]
    return chosen


def _pool(best: Sequence[int], budget: int, costs: dict[int, int]) -> list[int]:
    """The best that fit by themselves, as many as fill the budget so many times."""
    pool: list[int] = []
    total = 0
    for place in best:
        if costs[place] <= budget:
            pool.append(place)
            total += costs[place]
        if total > POOL_BUDGETS * budget:
            break
    return pool


def _shares_of_value(candidates: Sequence[Candidate], pool: Sequence[int]) -> dict[int, float]:
    """Values as shares of the best one; values below 0 move all of them up first."""
    values = {place: candidates[place].value for place in pool}
    least = min(0.0, *values.values()) if values else 0.0
    most = max(values.values(), default=0.0) - least
    return {place: (value - least) / most if most > 0 else 1.0 for place, value in values.items()}
