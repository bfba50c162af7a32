"""Choose the memories for an answer of limited size.

First, near duplicates are removed: of two texts with the same content the better one stays. Without a token budget, the
best memories are taken. With one, memories are chosen by value for cost, where repetition of chosen content reduces the
value (maximal marginal relevance, J. Carbonell & J. Goldstein 1998), and remaining room is filled. The worded answer
never exceeds the budget, whatever the tokenizer, and memories stay in the order of their value. Wording and counting
are passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Literal

RELEVANCE = 0.7
"""Share of a memory's own value in its gain; the rest is reduced by similarity to chosen ones."""

LIKENESS_TENTHS = 9
"""Two memories are near duplicates if they share this many tenths of their terms."""

POOL_BUDGETS = 1.5
"""Only the best memories, up to this many budgets, compete by value for cost. Short texts beyond them are cheap, not
good, and only fill the rest.
"""

_LABEL = re.compile(r"[^:：]{1,60}[:：]")
_NUMBER_OR_NOT = re.compile(r"\d+|\b(?:not?|never|none|without)\b|n['’]t\b|[不没沒无無未别別非]")

Marks = tuple[str, tuple[str, ...]]
Reason = Literal["budget", "near copy", "max_results"]
Count = Callable[[str], int]
Word = Callable[[Sequence[str]], str]
Shorten = Callable[["Candidate", Callable[[str], bool]], str]
"""Shortens the text of a candidate until it fits; empty if that is impossible."""

MAX_SHORTENED = 20
"""Memories that are shortened for one answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be part of the answer: its key, text, value and terms."""

    key: Hashable
    text: str
    value: float
    terms: frozenset[int]


@dataclass(frozen=True, slots=True)
class Packed:
    """The memories of the answer, best first, and the omitted ones with the reason."""

    kept: tuple[Candidate, ...]
    dropped: tuple[tuple[Hashable, Reason], ...]
    shortened: frozenset[Hashable] = frozenset()
    """Keys of the memories with shortened text."""


def first_fresh(candidates: Iterable[Candidate], most: int) -> list[Candidate]:
    """Return the first candidates, at most `most`, that are no near duplicates of an earlier one. Take no others."""
    return [candidate for _, candidate in islice(_fresh(candidates), max(0, most))]


def pack(
    candidates: Sequence[Candidate],
    *,
    max_results: int,
    token_budget: int | None,
    count: Count,
    word: Word,
    shorten: Shorten | None = None,
) -> Packed:
    """Choose the candidates for an answer: no near duplicates, at most `max_results`, within the budget.

    Candidates that do not fit are shortened if `shorten` is given.
    """
    best_first = sorted(candidates, key=lambda candidate: -candidate.value)
    fresh = [place for place, _ in _fresh(best_first)]
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


def _fresh(candidates: Iterable[Candidate]) -> Iterator[tuple[int, Candidate]]:
    """Yield the candidates that are no near duplicates of an earlier one, with their positions.

    Two sets share nine tenths only if the first few of their terms, in any fixed order, have one in common (prefix
    filtering, R. Bayardo et al., "Scaling Up All Pairs Similarity Search", 2007), so few pairs are compared. Terms are
    hashes, so their numeric order will do.
    """
    texts: set[str] = set()
    by_first_terms: dict[int, list[Candidate]] = {}
    marks_of = cache(_marks)
    for place, candidate in enumerate(candidates):
        terms = candidate.terms
        prefix = sorted(terms)[: len(terms) * (10 - LIKENESS_TENTHS) // 10 + 1]
        if candidate.text in texts or any(
            _is_near(terms, other.terms) and marks_of(candidate.text) == marks_of(other.text)
            for term in prefix
            for other in by_first_terms.get(term, ())
        ):
            continue
        texts.add(candidate.text)
        for term in prefix:
            by_first_terms.setdefault(term, []).append(candidate)
        yield place, candidate


def _marks(text: str) -> Marks:
    """Return what distinguishes texts of the same words: speaker label, numbers and negations."""
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
    """A token budget, with the functions that count, word and shorten texts."""

    tokens: int
    count: Count
    word: Word
    shorten: Shorten | None = None

    def taken_by(self, texts: Sequence[str]) -> int:
        """Return the tokens of an answer with these texts."""
        return self.count(self.word(texts))


def _within_budget(
    candidates: Sequence[Candidate], fresh: Sequence[int], room: int, budget: _Budget
) -> tuple[set[int], dict[int, Candidate]]:
    """Return the positions of the candidates that fit, and the shortened ones. Costs are estimated, then verified."""
    candidates_in_use = list(candidates)

    def fits(places: Iterable[int]) -> bool:
        return budget.taken_by([candidates_in_use[place].text for place in sorted(places)]) <= budget.tokens

    best = fresh[:room]
    # The usual case: everything fits. One count instead of hundreds.
    if not best or fits(best):
        return set(best), {}
    alone = {place: budget.taken_by([candidates_in_use[place].text]) for place in fresh}
    joining = 0
    if len(fresh) > 1:
        pair = budget.taken_by([candidates_in_use[place].text for place in fresh[:2]])
        joining = max(0, pair - alone[fresh[0]] - alone[fresh[1]])
    # Every memory pays for the separator before it, and the first one gets that back.
    costs = {place: max(1, tokens + joining) for place, tokens in alone.items()}
    most = budget.tokens + joining
    shortened: dict[int, Candidate] = {}

    def is_shortened(place: int, most: int) -> bool:
        candidate = _shortened(candidates[place], budget, most - joining)
        if candidate is not None:
            candidates_in_use[place] = shortened[place] = candidate
            costs[place] = max(1, budget.taken_by([candidate.text]) + joining)
        return candidate is not None

    # Memories that exceed the budget compete in a shortened form: the best one may be among them.
    for place in islice((place for place in best if costs[place] > most), MAX_SHORTENED):
        is_shortened(place, most if place == best[0] else most // 2)
    chosen = _chosen(candidates_in_use, fresh, room, most, costs)
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
    """Return positions whose costs fit the budget: the best one that fits, then those with the most value for cost."""
    left = budget
    chosen: set[int] = set()
    pool = _pool(fresh[:room], budget, costs)
    brings = _shares_of_value(candidates, pool)
    likeness = dict.fromkeys(pool, 0.0)
    while pool:
        gains = {p: RELEVANCE * brings[p] - (1 - RELEVANCE) * likeness[p] for p in pool}
        # The best memory must not be displaced by two cheap ones.
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
    """Return the best candidates that fit alone, until they fill the budget several times."""
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
    """Return values as shares of the best one. Negative values shift all of them up first."""
    values = {place: candidates[place].value for place in pool}
    least = min(0.0, *values.values()) if values else 0.0
    most = max(values.values(), default=0.0) - least
    return {place: (value - least) / most if most > 0 else 1.0 for place, value in values.items()}
