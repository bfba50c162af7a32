"""Word lists: how this package writes them down.

The rule guarded here: a list of words is one string of words with spaces between them, which a
reader can extend without counting quotation marks. Membership lists are frozen sets; lists whose
order matters are tuples, so that nothing ever depends on the order of a set.

Deliberately not here: any word.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a list for asking whether one is among them."""
    return frozenset(text.split())


def ordered(text: str) -> tuple[str, ...]:
    """Return the words of a list in their order."""
    return tuple(text.split())
