"""The type of a finding: a statement that a rule reads in a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["fact", "preference", "relation", "task", "event"]


class Finding(NamedTuple):
    """A statement in a sentence: the range of its words, whom it is about, and what it says."""

    begin: int
    end: int
    subject: str
    """I, 我, a relative such as "my sister", or a name."""
    slot: str
    object: str
    kind: Kind = "fact"
    is_negated: bool = False
    is_planned: bool = False
