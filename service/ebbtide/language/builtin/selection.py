"""Select the clauses of a text to keep within a number of characters.

Clauses keep their order and punctuation. A condition (如果…, if …,) is one unit with the clause that it belongs to.
"""

from __future__ import annotations

import re

from ebbtide.language.builtin.composing import Kept
from ebbtide.language.builtin.condensing import condense
from ebbtide.language.builtin.excerpts import excerpt, is_verb
from ebbtide.language.builtin.scripts import is_dense, is_japanese
from ebbtide.language.builtin.tokens import Candidate, Token, tokens_within
from ebbtide.language.builtin.trimming import without_opener
from ebbtide.language.builtin.units import HARD_CONDITION, Unit, is_condition

# Separates a condition from its consequence.
_COMMA = re.compile("[,，]")
# A clause that begins otherwise has a pronoun as subject, or depends on more than its subject.
_OPEN = re.compile(r"(?![它他她其这那我你您因所才以从比例包特尤但却不过而并把被使让])")


def keep_best(text: str, units: list[Unit], found: tuple[Candidate, ...], target: int) -> list[Kept]:
    """Select the units with the highest value for their length, then fill the remaining room."""
    by_density = sorted(
        range(len(units)),
        key=lambda i: (-units[i].value / (units[i].end - units[i].start + 20), units[i].start),
    )
    by_density.sort(key=lambda i: (units[i].idle, units[i].hollow))
    chosen, room = _greedy(units, by_density, target)
    if units:
        top = max(range(len(units)), key=lambda i: (units[i].value, -i))
        if top not in chosen:
            first = _greedy(units, [top, *by_density], target)
            if _worth(units, first[0]) > _worth(units, chosen):
                chosen, room = first
    better = _better_part(text, units, chosen, found, target)
    if better is not None:
        return [better]
    kept = [_whole(text, units[index]) for index in sorted(chosen)]
    if len(chosen) == 1:
        kept = [_with_subject(text, units, units[min(chosen)], found, kept[0], room)]
    return _fill(text, units, chosen, kept, found, target, room)


def _worth(units: list[Unit], chosen: set[int]) -> float:
    return sum(units[index].value for index in chosen)


def _greedy(units: list[Unit], order: list[int], target: int) -> tuple[set[int], int]:
    """Select units in order while they fit.

    Hollow units only fill up, small talk is kept only after all else. A unit is skipped if it would mislead or if the
    unit with its subject is missing.
    """
    chosen: set[int] = set()
    room = target
    all_hollow = all(unit.hollow for unit in units)
    informative_count = sum(not unit.idle for unit in units)
    for bound in (False, True):
        for index in order:
            unit = units[index]
            size = unit.end - unit.start + 1
            if index in chosen or (unit.hollow and not chosen and not all_hollow):
                continue
            if (unit.idle and len(chosen) < informative_count) or not _is_hosted(unit, chosen, bound):
                continue
            if size <= room + 1 and not _would_mislead(units, index, chosen, room - size):
                chosen.add(index)
                room -= size
    return chosen, room


def _is_hosted(unit: Unit, chosen: set[int], bound: bool) -> bool:
    """Return whether the unit with the subject is selected, or no unit that could be mistaken for it."""
    return unit.host < 0 or unit.host in chosen or (bound and not chosen and not unit.strict)


def _better_part(
    text: str, units: list[Unit], chosen: set[int], found: tuple[Candidate, ...], target: int
) -> Kept | None:
    """Return an excerpt of the best unit if it is more informative than all selected units."""
    if not units:
        return None
    top = max(range(len(units)), key=lambda i: (units[i].value, -i))
    held = sum(units[index].value for index in chosen)
    if (
        units[top].strict
        or top in chosen
        or held > 0.6 * units[top].value
        or _would_mislead(units, top, chosen, -1)
    ):
        return None
    part = _part(text, units[top], found, target)
    if part is None:
        return None
    gained = sum(c.weight for c in found if part.start <= c.start and c.end <= part.end)
    return part if gained > held else None


def _whole(text: str, unit: Unit) -> Kept:
    words = text[unit.start : unit.end]
    stop = "。" if is_dense(text[:400]) else "."
    return Kept(unit.start, unit.end, unit.closes, "" if unit.closes else stop, words, whole=True)


def _with_subject(
    text: str, units: list[Unit], unit: Unit, found: tuple[Candidate, ...], piece: Kept, room: int
) -> Kept:
    """Put the subject before a Chinese clause if the clause that named it was removed."""
    if unit.host < 0 or not is_dense(piece.words) or not _OPEN.match(piece.words):
        return piece
    host = units[unit.host]
    first = next((c for c in found if c.start >= host.start and c.kind in ("kin", "name")), None)
    if first is None or first.start > host.start + 2 or text[first.end : first.end + 1] in "的和与跟、，":
        return piece
    if len(first.text) > room or text[host.start : first.start] not in ("", "我", "我的"):
        return piece
    return piece._replace(words=first.text + piece.words)


def _would_mislead(units: list[Unit], index: int, chosen: set[int], room: int) -> bool:
    """Return whether selecting a unit would omit the "but" that follows it."""
    after = index + 1
    if after >= len(units) or after in chosen or not units[after].contrast:
        return False
    return units[after].end - units[after].start + 1 > room


def _fill(
    text: str,
    units: list[Unit],
    chosen: set[int],
    kept: list[Kept],
    found: tuple[Candidate, ...],
    target: int,
    room: int,
) -> list[Kept]:
    """Fill the remaining room with an excerpt of one more unit."""
    least = 4 if is_dense(text[:400]) else 14
    if room < least or (kept and room < target * 0.25):
        return kept
    best: tuple[float, Kept] | None = None
    has_informative = any(not unit.idle for unit in units)
    for index, unit in enumerate(units[:60]):
        if index in chosen or _would_mislead(units, index, chosen, -1) or (unit.idle and has_informative):
            continue
        if (kept or unit.strict) and unit.host >= 0 and unit.host not in chosen:
            continue
        part = _part(text, unit, found, room - (2 if kept else 0), bool(kept))
        if part is None or len(part.words) < least // 2 or (kept and not part.mark):
            continue
        used_chars = len(part.words) if part.mark == "…" else unit.end - unit.start
        worth = unit.value * used_chars / (unit.end - unit.start)
        if best is None or worth > best[0]:
            best = (worth, part)
    if best is None:
        return kept
    return sorted([*kept, best[1]])


def _part(
    text: str, unit: Unit, found: tuple[Candidate, ...], room: int, joined: bool = False
) -> Kept | None:
    """Return as much of a unit as fits: a condensed form, otherwise its best excerpt."""
    tokens = _tokens(text, unit)
    while tokens and tokens[-1].tag == "punct" and tokens[-1].text not in "》”」)）":
        tokens.pop()
    if not tokens or is_japanese(text[unit.start : unit.end]):
        return None
    final = text[unit.end - 1]
    final = final if final in "。！？.!?" else ""
    condensed = condense(text, tokens, found, room - 1)
    if condensed:
        return Kept(unit.start, unit.end, unit.closes, final, condensed)
    conditional = HARD_CONDITION.match(text, unit.start) is not None
    from_start = joined or conditional or final in ("?", "？")
    span = excerpt(tokens, found, room - 1, room, from_start)
    if span is None:
        return None
    led = conditional or (span[0] == tokens[0].start and is_condition(text[unit.start : unit.start + 16]))
    if led and not _COMMA.search(text, *span):
        return None
    inside = [token for token in tokens if span[0] <= token.start < span[1]]
    if span[1] == tokens[-1].end:
        mark = final if span[0] == tokens[0].start or any(map(is_verb, inside)) else ""
    else:
        mark = "…" if any(is_verb(token) and token.tag in ("v", "word") for token in inside) else ""
    return Kept(span[0], span[1], unit.closes, mark, text[slice(*span)])


def _tokens(text: str, unit: Unit) -> list[Token]:
    shift = unit.end - len(without_opener(text[unit.start : unit.end]))
    return tokens_within(text, shift, min(unit.end, shift + 1200))
