"""Keywords: the three to five nouns or noun phrases a person would file a memory under.

The rule guarded here: every keyword stands in the text, is at most 30 characters long, and is
told once: a shorter one inside a longer one is dropped. The weights come from candidates.py; here
they are only raised by repetition and compared.

Deliberately not here: finding nouns, and the summary itself (phrasing.py), which is re-exported
because the two are asked for together.
"""

from __future__ import annotations

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.phrasing import phrase as phrase
from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.words_english import ADJECTIVES, AMBIGUOUS, VERBS

_KEYWORDS_MAX = 5
_KEYWORDS_GOOD = 3
_LENGTH_MAX = 30
# A fourth or fifth keyword has to earn its place.
_WORTH = 1.0
# What tells so little is no keyword beside one that tells more.
_SLIGHT = 0.7


def keywords(text: str) -> tuple[str, ...]:
    """Return up to five nouns or noun phrases of a text, the most telling first."""
    scored = _score(candidates(text))
    strong = [item for item in scored if item[1].kind != "weak"]
    chosen: list[Candidate] = []
    for score, candidate in strong:
        if len(chosen) >= _KEYWORDS_GOOD and score < _WORTH:
            break
        if chosen and score < _SLIGHT:
            break
        _add(chosen, candidate)
    _fill(chosen, [candidate for _, candidate in scored])
    return tuple(candidate.text for candidate in chosen[:_KEYWORDS_MAX])


def _fill(chosen: list[Candidate], rest: list[Candidate]) -> None:
    """Bring the keywords up to three with slighter nouns; verbs and adjectives only where no noun stands."""
    for candidate in rest:
        if len(chosen) >= _KEYWORDS_GOOD:
            return
        folded = candidate.text.casefold()
        is_noun = folded in AMBIGUOUS or not (folded in VERBS or folded in ADJECTIVES)
        if is_noun or not chosen:
            _add(chosen, candidate)


def stem(text: str) -> str:
    """Fold case and the plural, so that `Cats` and `cat` count as one."""
    folded = text.casefold()
    if folded.endswith("ies") and len(folded) > 4:
        return folded[:-3] + "y"
    if folded.endswith("s") and not folded.endswith(("ss", "us", "is")) and len(folded) > 3:
        return folded[:-1]
    return folded


def _score(found: tuple[Candidate, ...]) -> list[tuple[float, Candidate]]:
    """Order the candidates by weight, raised by repetition and a little by standing early."""
    counts: dict[str, int] = {}
    firsts: dict[str, Candidate] = {}
    for candidate in found:
        if not candidate.text.strip() or len(candidate.text) > _LENGTH_MAX or "\n" in candidate.text:
            continue
        key = stem(candidate.text)
        counts[key] = counts.get(key, 0) + 1
        if key not in firsts or candidate.weight > firsts[key].weight:
            firsts[key] = candidate
    scored = [
        (candidate.weight + 0.3 * min(counts[key] - 1, 4), candidate) for key, candidate in firsts.items()
    ]
    scored.sort(key=lambda item: (-item[0], item[1].start, item[1].end))
    return scored


def _add(chosen: list[Candidate], candidate: Candidate) -> None:
    """Add a candidate unless a chosen one says it already; a longer one takes the place of its
    part.
    """
    key = candidate.text.casefold()
    for index, other in enumerate(chosen):
        held = other.text.casefold()
        if key in held:
            return
        if held in key and len(chosen) <= _KEYWORDS_MAX:
            chosen[index] = candidate
            return
    chosen.append(candidate)
