"""Causes: a message that joins two statements by because, so, 因为 or 所以 links the cause with the effect.

The link `inferred causes` is stored like every other one, and decays. The ruling that it was inferred by has the words
as its source. So the link leaves with the words, can be undone, and is not inferred again after that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from ebbtide.changes import Change
from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.memory.causes import cause_between
from ebbtide.records import Link, Source
from ebbtide.statements import CAUSES, Assertion, Ruling, is_inferred

Range = tuple[int, int]

AUTHOR: Final = "causes@1"
"""The author of the rulings; the number rises with the rules."""

STRENGTH: Final = 0.5
CONFIDENCE: Final = 0.5

MAX_LINKS_PER_PART: Final = 64


class Causes:
    """Links statements of one message, of which at least one is new."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at some messages."""
        by_message = _new_messages(view, position)
        ruled = {(one.target, one.other) for one in view.ledger.all_rulings() if one.kind == "cause"}
        found: list[Ruling] = []
        looked = 0
        for number in sorted(by_message):
            if looked and (is_time_up() or len(found) >= MAX_LINKS_PER_PART):
                return _part(view, looked, found, number)
            looked += 1
            for ruling in _causes_in(view, number, by_message[number]):
                pair = (ruling.target, ruling.other)
                if pair not in ruled and pair[::-1] not in ruled:
                    ruled.add(pair)
                    found.append(ruling)
        return _part(view, looked, found, None)


def _new_messages(view: View, position: int) -> dict[int, list[Assertion]]:
    """Return the assertions of each message from a number on that has a new one and at least two statements."""
    new = {one.source.message for one in view.staged() if one.source.message >= position}
    by_message: dict[int, list[Assertion]] = defaultdict(list)
    for one in view.ledger.said_in(new):
        if not is_inferred(one) and one.statement in view.network:
            by_message[one.source.message].append(one)
    return {
        number: assertions
        for number, assertions in by_message.items()
        if len({one.statement for one in assertions}) > 1
    }


def _causes_in(view: View, number: int, assertions: Sequence[Assertion]) -> list[Ruling]:
    record = view.txn.messages.get(number)
    text = None if record is None else view.txn.messages.text(record)
    if not text:
        return []
    found = []
    data = text.encode()
    placed = [(one, _value_in(data, one)) for one in assertions]
    in_order = sorted(placed, key=lambda one: (one[1] or _range(one[0].source), one[0].entry))
    for (first, value), (second, other_value) in pairwise(in_order):
        ranges = _clauses(data, first.source, value, second.source, other_value)
        cause = cause_between(text, *ranges) if ranges and first.statement != second.statement else None
        if cause is None:
            continue
        pair = (first.statement, second.statement)
        begin = min(one.source.offset for one in (first, second))
        end = max(_range(one.source)[1] for one in (first, second))
        words = Source(number, begin, end - begin)
        target, other = pair if cause == "causes" else pair[::-1]
        found.append(
            Ruling(
                1,
                "cause",
                target,
                view.now_ms,
                other=other,
                value=CONFIDENCE,
                author=AUTHOR,
                sources=(words,),
            )
        )
    return found


def _range(source: Source) -> Range:
    return source.offset, source.offset + source.length


def _value_in(data: bytes, one: Assertion) -> Range | None:
    """Return where the value of a statement is in its quote; None if its words are others."""
    begin, end = _range(one.source)
    quote = data[begin:end].decode(errors="ignore")
    found = re.search(re.escape(one.object), quote, re.IGNORECASE) if one.object else None
    if found is None:
        return None
    before = begin + len(quote[: found.start()].encode())
    return before, before + len(found[0].encode())


def _clauses(
    data: bytes, first: Source, value: Range | None, second: Source, other_value: Range | None
) -> tuple[Range, Range] | None:
    """Return the (offset, length) of the clauses of two statements.

    Quotes of one sentence overlap. Then the first clause ends with the value of its statement, and the second one
    begins after the last comma before its own, or with it.
    """
    (begin, end), (other_begin, other_end) = _range(first), _range(second)
    if other_begin < end:
        if value is None or other_value is None or other_value[0] < value[1]:
            return None
        end = value[1]
        between = data[end : other_value[0]].decode(errors="ignore")
        comma = max(between.rfind(","), between.rfind("，"))
        other_begin = end + len(between[: comma + 1].encode()) if comma >= 0 else other_value[0]
    return (begin, end - begin), (other_begin, other_end - other_begin)


def _part(view: View, looked: int, found: Sequence[Ruling], position: int | None) -> Part:
    if not found:
        return Part(looked=looked, position=position)
    state = view.txn.meta.ledger
    rulings = [replace(one, entry=state.next_entry + place) for place, one in enumerate(found)]
    links = [
        Link(one.target, one.other, CAUSES, STRENGTH, view.network.scan_count(one.target)) for one in rulings
    ]
    change = Change(
        rulings=rulings, links=links, ledger=replace(state, next_entry=state.next_entry + len(rulings))
    )
    findings = [Finding((one.target, one.other), CAUSES) for one in rulings]
    return Part(looked=looked, changed=len(rulings), change=change, findings=findings, position=position)
