"""Forms of words: tables in `data/` of patterns that follow a subject, with the slot that each fills.

A line has four columns: slot, check of the object, flags, and the pattern between slashes. `<NAME>` in a pattern is a
part that the module of the language defines. The groups `o` and `o2` are the object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ebbtide.language.builtin.finding import Kind
from ebbtide.language.builtin.word_lists import ordered_list

Check = Callable[[str], bool]
"""Whether a text may be the object."""

_KINDS: Final[Mapping[str, Kind]] = {
    "likes": "preference",
    "event": "event",
    "appointment": "task",
    "reminder": "task",
}
"""The kinds of slots whose statements are no facts."""
_FLAGS: Final = frozenset({"negated", "list", "own", "planned"})
_PART: Final = re.compile(r"<([A-Z_]{2,20})>")


class Form(NamedTuple):
    """A form of words after its subject, with the slot that it fills."""

    pattern: re.Pattern[str]
    slot: str
    check: Check
    kind: Kind
    is_negated: bool
    is_list: bool
    """Whether further items may follow the object."""
    is_own: bool
    """Whether only the speaker is its subject."""
    is_planned: bool


def read_forms(name: str, parts: Mapping[str, str], checks: Mapping[str, Check]) -> tuple[Form, ...]:
    """Return the forms of a table in their order: the first one that matches counts."""
    return tuple(_form(line, parts, checks) for line in ordered_list(name))


def _form(line: str, parts: Mapping[str, str], checks: Mapping[str, Check]) -> Form:
    slot, check, said, pattern = line.split(" ", 3)
    flags = frozenset(said.split(",")) - {"-"}
    assert flags <= _FLAGS, line
    assert pattern[0] == pattern[-1] == "/", line
    compiled = re.compile(_PART.sub(lambda part: parts[part[1]], pattern[1:-1]))
    kind = _KINDS.get(slot, "fact")
    return Form(
        compiled,
        slot,
        checks[check],
        kind,
        *(flag in flags for flag in ("negated", "list", "own", "planned")),
    )


def object_of(match: re.Match[str]) -> tuple[int, int]:
    """Return where the object is."""
    return match.span("o") if match["o"] is not None else match.span("o2")
