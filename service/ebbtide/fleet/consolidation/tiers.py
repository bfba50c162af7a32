"""Tiers: how firmly each statement is known. The label is computed and never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.memory.statements import DAY_MS, MAX_EVIDENCE, Version
from ebbtide.memory.tiers import Tier, is_short, tier_of
from ebbtide.records import MessageRecord


def tier(
    message_of: Callable[[int], MessageRecord | None],
    version: Version,
    now_ms: int,
    *,
    was_found: bool = False,
) -> Tier:
    """Return how firmly a statement is known."""
    age_ms = now_ms - min(one.told_at_ms for one in version.assertions)
    if is_short(age_ms, was_found=was_found):
        return "short"
    records = list(filter(None, map(message_of, sorted(version.messages)[:MAX_EVIDENCE])))
    # Messages of one day without the id of a conversation count as one conversation.
    conversations = {one.conversation_id or str(one.time_ms // DAY_MS) for one in records}
    return tier_of(age_ms, len(conversations), len(records), version.confidence, was_found=was_found)


class Tiers:
    """Counts the statements that are true by tier."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at some statements."""
        true = {one.statement: one for one in view.ledger.known().true_at(view.now_ms)}
        looked = 0
        for statement in sorted(one for one in true if one >= position):
            if looked and is_time_up():
                return Part(looked=looked, position=statement)
            looked += 1
            self._counts[tier(view.txn.messages.get, true[statement], view.now_ms)] += 1
        findings = [Finding((), f"{count} {name}") for name, count in sorted(self._counts.items())]
        return Part(looked=looked, findings=findings)
