"""The records of statements: what was asserted, and what was ruled about it. All are frozen, without I/O.

A statement is a node (`records.py`) and at least one assertion. An assertion states once, in one message, what the
statement says; a later message that says the same adds an assertion to the same node. Rulings merge entities, settle
conflicts, correct, retract, pin and vote. Assertions and rulings share one sequence of entry numbers, in order of
arrival. The current statements are a replay of the entries. Only the deletion of a source changes an entry.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

import msgspec

from ebbtide.bounds import Count, Id, Name, Number, Strength, Text, Time
from ebbtide.ids import NodeId
from ebbtide.records import Source

MAX_ATTRIBUTES: Final = 16
MAX_ATTRIBUTE_NAME_CHARS: Final = 64
MAX_ATTRIBUTE_CHARS: Final = 500
MAX_RULING_SOURCES: Final = 16

StatementKind = Literal["fact", "event", "relation", "opinion", "preference", "task", "reflection"]
KINDS: Final[tuple[str, ...]] = get_args(StatementKind)
STATEMENT_KINDS: Final = frozenset(KINDS)
Modality = Literal["asserted", "reported", "planned"]
Granularity = Literal["", "year", "season", "month", "week", "day", "hour", "minute"]
"""How exact a time is; empty if the words give no time."""
Scope = Literal["private", "team", "public"]
Signed = Annotated[float, msgspec.Meta(ge=-1, le=1)]
Attributes = Annotated[
    dict[
        Annotated[str, msgspec.Meta(max_length=MAX_ATTRIBUTE_NAME_CHARS)],
        Annotated[str, msgspec.Meta(max_length=MAX_ATTRIBUTE_CHARS)],
    ],
    msgspec.Meta(max_length=MAX_ATTRIBUTES),
]


class Assertion(msgspec.Struct, frozen=True, array_like=True):
    """One assertion of a statement, with the words of a message that support it.

    The quote is the range `source`. Without times in the quote, `since_ms` is None, and the statement is true from
    `told_at_ms` on. `author` is `user`, `tool:KEY`, `rules@N`, `habits@N` or `model:NAME`.
    """

    entry: Id
    """Its place in the order of arrival."""
    statement: NodeId
    subject: NodeId
    """The entity that it is about."""
    slot: Name
    """The canonical name of a known slot, else the caller's topic, normalised."""
    object: Text
    source: Source
    told_at_ms: Time
    """The time of the message."""
    known_at_ms: Time
    """The time of the commit that stored it."""
    kind: StatementKind = "fact"
    object_entity: Number = 0
    """The entity that is the object; 0 for none."""
    negated: bool = False
    modality: Modality = "asserted"
    reports_change: bool = False
    """Whether the quote reports a change (now, no longer, moved …), so that it may end an earlier statement."""
    replaces: Number = 0
    """The statement that the caller says this one replaces; 0 for none."""
    since_ms: Time | None = None
    until_ms: Time | None = None
    granularity: Granularity = ""
    time_words: Name = ""
    confidence: Strength = 0.8
    trust: Strength = 1.0
    importance: Strength = 0.5
    author: Name = "user"
    attributes: Attributes = {}
    valence: Signed | None = None
    arousal: Strength | None = None
    scope: Scope = "private"


RulingKind = Literal[
    "merge", "settle", "correct", "retract", "pin", "unpin", "vote", "undo", "distinct", "cause"
]

CAUSES: Final = "inferred causes"
"""The name of an inferred link from a cause to its effect. A caller's link is named `causes`."""

HABITS_AUTHOR: Final = "habits@1"
"""The author of statements that are inferred from events; the number rises with the rules."""


def is_inferred(assertion: Assertion) -> bool:
    """Return whether an assertion was inferred from others, whose words are its sources."""
    return assertion.author.startswith("habits@")


def is_extracted(author: str) -> bool:
    """Return whether the author of an assertion reads messages: rules or a model."""
    return author.startswith(("rules@", "model:"))


class Ruling(msgspec.Struct, frozen=True, array_like=True):
    """A decision about statements or entities, made by a person, a tool or a rule.

    | kind | `target` | other fields |
    |---|---|---|
    | merge | an entity | `other`: the entity that it is one with |
    | settle | the statement to keep | `other`: the other statement of the conflict |
    | correct | the statement that was wrong | `other`: the statement that corrects it |
    | retract, pin, unpin | a statement | |
    | vote | a statement | `value`: 1 or -1 |
    | undo | the entry number of a ruling | |
    | distinct | an entity | `other`: an entity that it is not one with |
    | cause | a statement | `other`: the statement that it causes; `value`: the confidence |
    """

    entry: Id
    kind: RulingKind
    target: Id
    known_at_ms: Time
    other: Number = 0
    name: Name = ""
    """No kind uses it. It keeps the place of the fields that follow in stored rulings."""
    value: Signed = 0
    author: Name = "user"
    reason: Text = ""
    sources: Annotated[tuple[Source, ...], msgspec.Meta(max_length=MAX_RULING_SOURCES)] = ()


class LedgerState(msgspec.Struct, frozen=True, array_like=True):
    """The next entry number, and the messages up to which extraction is done."""

    next_entry: Id = 1
    extracted_up_to: Number = 0


CONSOLIDATION_STEPS: Final = ("staged", "conflicts", "causes", "concepts", "habits", "tiers")
"""The steps of a consolidation, in order."""

Counts = Annotated[tuple[Count, ...], msgspec.Meta(max_length=len(CONSOLIDATION_STEPS))]


class ConsolidationState(msgspec.Struct, frozen=True, array_like=True):
    """How far the consolidation of an agent's statements is."""

    consolidated_up_to: Number = 0
    """Statements up to this entry number are consolidated; later ones are staged."""
    finished_at_ms: Time = 0
    """When the last run ended; 0 before the first one."""
    run: Count = 0
    """The number of the last run."""
    step: Annotated[int, msgspec.Meta(ge=0, le=len(CONSOLIDATION_STEPS))] = 0
    """The step that comes next, from 1; 0 if no run is in progress."""
    position: Number = 0
    """Where the step continues."""
    up_to: Number = 0
    """The last entry number that the run looks at."""
    looked: Counts = ()
    """By step, the number of items that the run looked at."""
    changed: Counts = ()
    """By step, the number of items that the run changed."""
