"""Hostile texts for a pattern, built from its parts: for each repeat, a prefix that leads to it and a long run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from re import _constants as ops  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]

FEWEST = 16
"""A repeat with a smaller maximum cannot make a text slow alone."""

MOST_SAMPLES = 3
"""The number of characters of a set that are tried."""

SUFFIXES = ("", "\x00", "é", "x", "1 ")
"""Characters that make a match fail at the end of a repeat, for nearly every pattern."""

_ALPHABET = [
    *map(chr, range(1, 127)),
    *"\u00a0\u00c0\u00e9\u0301\u0323\u0660\u0e01\u0e31\u1100\u1160\u11a8\u200b\u200d\u2014\u2019\u201c\u201d\u2026\u3000\u3001\u3002",
    *"\u3005\u300a\u300b\u300c\u300d\u3042\u30a2\u4e00\u4e2d\u662f\u6708\uac00\uff01\uff0c\uff1a\uff1b\uff1f\uff10\uff21\ufeff\U0001f600\U00020000",
]

Parsed = Any


@cache
def parsed(pattern: str, flags: int) -> Parsed:
    """Return a pattern as the standard library parses it."""
    return _parser.parse(pattern, flags & ~re.DEBUG)


def single(node: tuple[Any, Any], flags: int) -> re.Pattern[str] | None:
    """Return the pattern of a node that matches exactly one character; None for any other node."""
    if node[0] not in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY):
        return None
    return _compiled_single(
        str(node), node[0] is ops.ANY, flags & (re.IGNORECASE | re.DOTALL | re.ASCII), _key(node)
    )


def _key(node: tuple[Any, Any]) -> Any:
    return (node[0], tuple(node[1])) if node[0] is ops.IN else node


@cache
def _compiled_single(_text: str, _is_any: bool, flags: int, node: Any) -> re.Pattern[str]:
    return re.compile(_written(node), flags)


def _written(node: tuple[Any, Any]) -> str:
    kind, value = node
    if kind is ops.ANY:
        return "."
    if kind is ops.LITERAL:
        return re.escape(chr(value))
    if kind is ops.NOT_LITERAL:
        return f"[^{_in_set(value)}]"
    parts = "".join(map(_part, value))
    return f"[{parts}]"


def _in_set(point: int) -> str:
    return f"\\U{point:08x}"


_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}


def _part(part: tuple[Any, Any]) -> str:
    kind, value = part
    if kind is ops.NEGATE:
        return "^"
    if kind is ops.LITERAL:
        return _in_set(value)
    if kind is ops.RANGE:
        return f"{_in_set(value[0])}-{_in_set(value[1])}"
    return _CATEGORIES[value]


@cache
def characters(one: re.Pattern[str]) -> frozenset[str]:
    """Return the characters of the alphabet that a pattern of one character matches."""
    return frozenset(c for c in _ALPHABET if one.fullmatch(c))


def samples(node: tuple[Any, Any], flags: int) -> list[str]:
    """Return some characters that a node matches."""
    one = single(node, flags)
    assert one is not None
    if node[0] is ops.LITERAL:
        return [chr(node[1])]
    found = [c for c in _ALPHABET if one.fullmatch(c)]
    favoured = [c for c in "a1 .\n中-'" if c in found]
    return [*favoured, *found][:MOST_SAMPLES] or ["a"]


def shortest(nodes: Parsed, flags: int, groups: dict[int, str] | None = None) -> str:
    """Return a short text that a part of a pattern matches, without look-arounds."""
    known = {} if groups is None else groups
    said = ""
    for node in nodes:
        kind, value = node
        if kind in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY):
            said += samples(node, flags)[0]
        elif kind in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            said += shortest(value[2], flags, known) * value[0]
        elif kind is ops.SUBPATTERN:
            inner = shortest(value[3], (flags | value[1]) & ~value[2], known)
            if value[0] is not None:
                known[value[0]] = inner
            said += inner
        elif kind is ops.ATOMIC_GROUP:
            said += shortest(value, flags, known)
        elif kind is ops.BRANCH:
            said += shortest(value[1][0], flags, known)
        elif kind is ops.GROUPREF:
            said += known.get(value, "")
    return said


def _variants(nodes: Parsed, flags: int) -> list[str]:
    """Return some texts that the body of a repeat matches."""
    if len(nodes) == 1 and single(nodes[0], flags) is not None:
        return samples(nodes[0], flags)
    found = [shortest(nodes, flags)]
    for place, (kind, value) in enumerate(nodes):
        if kind is ops.BRANCH:
            found += [shortest([*nodes[:place], *one, *nodes[place + 1 :]], flags) for one in value[1]]
        if kind is ops.SUBPATTERN:
            inner = _variants(list(value[3]), (flags | value[1]) & ~value[2])
            found += [
                shortest(nodes[:place], flags) + one + shortest(nodes[place + 1 :], flags) for one in inner
            ]
    return [one for one in dict.fromkeys(found) if one][:6]


def _repeats(nodes: Parsed, flags: int, lead: str) -> Iterator[tuple[str, str]]:
    """Yield (prefix, body) for each repeat that may be long."""
    for node in nodes:
        kind, value = node
        if kind in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            if value[1] is ops.MAXREPEAT or value[1] >= FEWEST:
                for body in _variants(list(value[2]), flags):
                    yield lead, body
            yield from _repeats(value[2], flags, lead)
        elif kind is ops.SUBPATTERN:
            yield from _repeats(value[3], (flags | value[1]) & ~value[2], lead)
        elif kind is ops.ATOMIC_GROUP:
            yield from _repeats(value, flags, lead)
        elif kind is ops.BRANCH:
            for one in value[1]:
                yield from _repeats(one, flags, lead)
        lead += shortest([node], flags)


def pumps(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """Yield (prefix, pump, suffix) of each text that may make a pattern slow."""
    tree = parsed(pattern.pattern, pattern.flags)
    found: dict[tuple[str, str, str], None] = {}
    for lead, body in _repeats(list(tree), pattern.flags, ""):
        for prefix, suffix in product(dict.fromkeys((lead, "")), SUFFIXES[:3]):
            found[prefix, body, suffix] = None
        if lead:
            found["", lead + body, ""] = None
            found["", lead, ""] = None
    whole = shortest(list(tree), pattern.flags)
    for one in (whole, whole[:-1], whole[: len(whole) // 2]):
        if one:
            found["", one, "\x00"] = None
    return list(found)


def pumped(prefix: str, pump: str, suffix: str, size: int) -> str:
    """Return a text of this many characters."""
    return prefix + (pump * (size // len(pump) + 1))[: max(0, size - len(prefix) - len(suffix))] + suffix
