"""Rules for patterns, checked on the parse tree of the standard library.

1. An unbounded repeat does not backtrack: it is possessive, in an atomic group, or nothing after it can fail.
2. An unbounded repeat before something that can fail starts at only one place of its run: the character before it
   cannot belong to the run, or a look-behind excludes it. Otherwise a search tries every place.
3. Two adjacent repeats with common characters do not multiply: the product of their widths is bounded.
4. A repeat does not repeat another one directly: its rounds have a separator, or few ways to divide a run.

Alternatives: regexploit (fails on possessive repeats and atomic groups, reports no quadratic pattern); recheck and
redos-detector for JavaScript (no possessive repeats; one guesses behind a look-behind, one refuses every repeat).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.pumped import characters, ops, parsed, single

LONG = 5_000
"""A repeat with a larger maximum counts as unbounded."""

MOST_WAYS = 2_000
"""The number of ways in which two adjacent repeats may divide their characters."""

REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
Nodes = Sequence[tuple[Any, Any]]
Set = frozenset[str]


@dataclass(frozen=True, slots=True)
class Before:
    """The characters that may, and those that may not, precede a node."""

    last: Set | None = None
    guard: Set | None = None

    def fences(self, taken: Set) -> bool:
        """Whether a repeat of these characters cannot start within a run of them."""
        return (self.last is not None and not self.last & taken) or (
            self.guard is not None and taken <= self.guard
        )


def can_fail(nodes: Nodes) -> bool:
    """Whether a part of a pattern can fail to match."""
    for kind, value in nodes:
        if kind in REPEATS:
            if value[0] and (value[0] > 1 or can_fail(value[2])):
                return True
        elif kind is ops.SUBPATTERN:
            if can_fail(value[3]):
                return True
        elif kind is ops.ATOMIC_GROUP:
            if can_fail(value):
                return True
        elif kind is ops.BRANCH:
            if all(can_fail(one) for one in value[1]):
                return True
        else:
            return True
    return False


def taken(nodes: Nodes, flags: int) -> Set:
    """Return every character that a part of a pattern can match."""
    found: Set = frozenset()
    for node in nodes:
        one = single(node, flags)
        if one is not None:
            found |= characters(one)
        else:
            for inner, own in _inner(node, flags):
                found |= taken(inner, own)
    return found


def _inner(node: tuple[Any, Any], flags: int) -> list[tuple[Nodes, int]]:
    kind, value = node
    if kind in REPEATS:
        return [(value[2], flags)]
    if kind is ops.SUBPATTERN:
        return [(value[3], (flags | value[1]) & ~value[2])]
    if kind is ops.ATOMIC_GROUP:
        return [(value, flags)]
    if kind is ops.BRANCH:
        return [(one, flags) for one in value[1]]
    return []


def _last(nodes: Nodes, flags: int) -> tuple[Set, bool]:
    """Return the possible last characters of a part, and whether the part can match nothing."""
    found: Set = frozenset()
    for node in reversed(list(nodes)):
        kind, value = node
        one = single(node, flags)
        if one is not None:
            return found | characters(one), False
        ends = [_last(inner, own) for inner, own in _inner(node, flags)]
        for end, _ in ends:
            found |= end
        is_optional = not ends or any(empty for _, empty in ends) or (kind in REPEATS and value[0] == 0)
        if not is_optional:
            return found, False
    return found, True


def _guard(kind: Any, value: Any, flags: int, before: Before) -> Before:
    """Return the state after a zero-width node."""
    if kind is ops.AT:
        if value in (ops.AT_BEGINNING_STRING,) or (value is ops.AT_BEGINNING and not flags & re.MULTILINE):
            return Before(frozenset(), before.guard)
        if value is ops.AT_BEGINNING:
            return Before(frozenset("\n"), before.guard)
        if value is ops.AT_BOUNDARY:
            return Before(before.last, frozenset(c for c in characters(re.compile(r"\w"))))
    elif kind is ops.ASSERT_NOT and value[0] < 0:
        said = taken(value[1][:1], flags)
        return Before(before.last, said | (before.guard or frozenset()))
    elif kind is ops.ASSERT and value[0] < 0:
        return Before(taken(value[1][-1:], flags), before.guard)
    return before


def faults(pattern: re.Pattern[str], *, is_anchored: bool) -> list[str]:
    """Return the violations of the rules in a pattern."""
    tree = list(parsed(pattern.pattern, pattern.flags))
    return list(dict.fromkeys(_faults(tree, pattern.flags, Before(), False, False, is_anchored)))


def _faults(
    nodes: Nodes, flags: int, before: Before, follows: bool, is_atomic: bool, is_anchored: bool
) -> Iterator[str]:
    """Yield the violations of a sequence; `follows` says whether the part after it can fail."""
    for place, node in enumerate(nodes):
        kind, value = node
        rest_fails = follows or can_fail(nodes[place + 1 :])
        if kind in REPEATS:
            body = taken(value[2], flags)
            if value[1] is ops.MAXREPEAT or value[1] > LONG:
                what = f"a repeat of {_shown(body)}"
                if kind is not ops.POSSESSIVE_REPEAT and rest_fails and not is_atomic:
                    yield f"{what} gives back"
                if not is_anchored and (rest_fails or value[0] > 64) and not before.fences(body):
                    yield f"{what} can begin anywhere"
            if follows or can_fail(nodes[place + 1 :]):
                yield from _neighbours(nodes, place, flags, is_atomic)
                yield from _rounds(node, flags, is_atomic)
            again, _ = _last(value[2], flags)
            loop = Before(None if before.last is None else before.last | again, before.guard)
            # A repeat that fails once more only ends, unless a minimum requires more; a possessive one is not entered
            # again.
            inner_fails = value[0] > 1 or (rest_fails and kind is not ops.POSSESSIVE_REPEAT)
            yield from _faults(
                value[2], flags, before if value[1] == 1 else loop, inner_fails, False, is_anchored
            )
        elif kind in (ops.SUBPATTERN, ops.ATOMIC_GROUP, ops.BRANCH):
            for inner, own in _inner(node, flags):
                within = is_atomic or kind is ops.ATOMIC_GROUP
                yield from _faults(inner, own, before, rest_fails, within, is_anchored)
        elif kind in (ops.ASSERT, ops.ASSERT_NOT) and value[0] > 0:
            yield from _faults(value[1], flags, before, True, True, is_anchored)
        before = _after(node, flags, before)


def _after(node: tuple[Any, Any], flags: int, before: Before) -> Before:
    kind, value = node
    if kind in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
        return _guard(kind, value, flags, before)
    maybe = taken([node], flags)
    # A guard applies to a whole run of the guarded characters: a match can start at only one place of the run.
    guard = before.guard if before.guard is not None and maybe <= before.guard else None
    last, is_optional = _last([node], flags)
    if not is_optional:
        return Before(last, guard)
    return Before(None if before.last is None else before.last | last, guard)


def _neighbours(nodes: Nodes, place: int, flags: int, is_atomic: bool) -> Iterator[str]:
    """Yield a violation if two adjacent repeats can divide the same characters in too many ways."""
    kind, (least, most, body) = nodes[place]
    if (
        kind is ops.POSSESSIVE_REPEAT
        or is_atomic
        or place + 1 >= len(nodes)
        or nodes[place + 1][0] not in REPEATS
    ):
        return
    _, (other_least, other_most, other_body) = nodes[place + 1]
    shared = taken(body, flags) & taken(other_body, flags)
    ways = (_number(most) - least + 1) * (_number(other_most) - other_least + 1)
    if shared and ways > MOST_WAYS:
        yield f"repeats of {_shown(shared)} share out what they take in {ways} ways"


def _rounds(node: tuple[Any, Any], flags: int, is_atomic: bool) -> Iterator[str]:
    """Yield a violation if the rounds of a repeat can divide a run of characters in too many ways."""
    kind, (_, rounds, body) = node
    if kind is ops.POSSESSIVE_REPEAT or is_atomic:
        return
    *separator, last = body
    if last[0] in (ops.MAX_REPEAT, ops.MIN_REPEAT) and _last(separator, flags)[1]:
        least, most, _ = last[1]
        ways = (_number(most) - least + 1) ** min(_number(rounds), 64)
        if ways > MOST_WAYS:
            yield f"{rounds} rounds share out a run of {_shown(taken([last], flags))} in {ways} ways"


def _number(most: Any) -> int:
    return LONG if most is ops.MAXREPEAT else int(most)


def _shown(characters: Set) -> str:
    said = "".join(sorted(characters))
    return repr(said if len(said) <= 12 else f"{said[:12]}…")
