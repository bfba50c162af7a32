"""Recognise what makes a statement worth keeping: a decision, what it names, and that it is no background."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.word_lists import ordered_list

DECIDING = re.compile("|".join(ordered_list("deciding")), re.IGNORECASE)
BACKGROUND = re.compile("|".join(ordered_list("background")), re.IGNORECASE)

_TELLING = 0.6


def names_something(found: Iterable[Candidate]) -> bool:
    """Return whether a noun phrase among those of a statement says something by itself."""
    return any(candidate.kind != "weak" and candidate.weight > _TELLING for candidate in found)
