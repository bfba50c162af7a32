"""Relations: a short name for what two texts have to do with each other.

The rule guarded here: a name is 2-4 Han characters or 1-2 words that both texts use as a noun,
the most specific one, and nothing at all where they share only pronouns, numbers, times or
commonplaces.

Deliberately not here: relations of meaning (cause, contrast), which need a model.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.keywords import stem
from ebbtide.language.builtin.scripts import is_han
from ebbtide.language.builtin.tokens import Candidate, search_words
from ebbtide.language.builtin.words_chinese import PRONOUNS, TIME_FILLERS, VAGUE_NOUNS
from ebbtide.language.builtin.words_english import VAGUE_NOUNS as VAGUE_ENGLISH

_NAME_MAX = 32
_HAN_MIN, _HAN_MAX = 2, 4
_WORDS_MAX = 2
_KINDS = frozenset(("name", "title", "code", "noun", "kin"))
_STOPPED = PRONOUNS | TIME_FILLERS | VAGUE_NOUNS
# A lone letter or two-letter scrap names nothing.
_LATIN_MIN = 2


def relate(node: str, focuses: Sequence[str]) -> list[str]:
    """Name the relation of `node` to each focus, or "" where they share nothing worth a name."""
    own = _names(node)
    return [_best_shared(own, _names(focus)) for focus in focuses]


def _best_shared(own: dict[str, tuple[float, str]], other: dict[str, tuple[float, str]]) -> str:
    best: tuple[float, str] | None = None
    for key, (weight, name) in own.items():
        if key not in other:
            continue
        score = min(weight, other[key][0]) + 0.02 * len(name)
        if best is None or score > best[0]:
            best = (score, name)
    return best[1] if best else ""


def _names(text: str) -> dict[str, tuple[float, str]]:
    """Return the possible names in a text by their folded form, in the order of the text."""
    names: dict[str, tuple[float, str]] = {}
    for candidate in candidates(text):
        if candidate.kind not in _KINDS or candidate.weight < 0.5:
            continue
        for weight, name in _forms(candidate):
            key = " ".join(stem(word) for word in name.split(" "))
            if key not in names or names[key][0] < weight:
                names[key] = (weight, name)
    return names


def _forms(candidate: Candidate) -> list[tuple[float, str]]:
    """Give the forms of a noun phrase that are short enough for a name, whole first, then its
    parts.
    """
    text = candidate.text.strip("《》")
    if is_han(text):
        forms = [(candidate.weight, text)] if _HAN_MIN <= len(text) <= _HAN_MAX else []
        if len(text) > 3:
            parts = [word for word in search_words(text) if _HAN_MIN <= len(word) <= _HAN_MAX]
            forms += [(candidate.weight * 0.6, word) for word in parts if word != text]
        return [(weight, name) for weight, name in forms if name not in _STOPPED]
    words = text.split()
    forms = []
    if len(words) <= _WORDS_MAX:
        forms.append((candidate.weight, text))
    if len(words) == 3:
        forms.append((candidate.weight * 0.8, " ".join(words[1:])))
    if len(words) > 1:
        forms += [(candidate.weight * 0.55, word) for word in words]
    return [(weight, name) for weight, name in forms if _is_name(name)]


def _is_name(name: str) -> bool:
    if not _LATIN_MIN <= len(name) <= _NAME_MAX or "\n" in name:
        return False
    if name.casefold() in VAGUE_ENGLISH or name in _STOPPED:
        return False
    return any(char.isalpha() for char in name)
