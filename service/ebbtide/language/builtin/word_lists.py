"""Read the word lists of the built-in model from `data/`.

A list is a text file with one entry per line; lines that begin with `#` are comments. Lists for membership tests become
frozen sets. Lists whose order matters become tuples, so that no result depends on the order of a set.
"""

from __future__ import annotations

from pathlib import Path

_DATA = Path(__file__).with_name("data")


def ordered_list(name: str) -> tuple[str, ...]:
    """Return the entries of a list in their order."""
    lines = (_DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def word_list(name: str) -> frozenset[str]:
    """Return the entries of a list as a set."""
    return frozenset(ordered_list(name))


def words(text: str) -> frozenset[str]:
    """Return the words of a short list within the code as a set."""
    return frozenset(text.split())
