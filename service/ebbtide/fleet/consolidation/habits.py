"""Habits: events that happen again at the same time become a preference, with the words of the events as its sources.

The node of a habit cites no message itself; only its assertions do. So a habit never keeps a text from being deleted,
and it leaves with the first of its sources. The next run finds it again if enough events are left, but a habit that was
retracted or deleted itself is not found again in the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ebbtide.changes import Change
from ebbtide.clock import offset_of
from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.han import contains_han
from ebbtide.memory.habits import Habit, habits
from ebbtide.memory.statements import MAX_EVIDENCE, Replay
from ebbtide.memory.values import normalised
from ebbtide.memory.wording import word_statement
from ebbtide.records import Link, Node
from ebbtide.statements import HABITS_AUTHOR, Assertion, is_inferred

SLOT: Final = "habit"
CONFIDENCE: Final = 0.5
TRUST: Final = 0.4
"""Below the trust with which a statement ends another one."""
STRENGTH: Final = round(0.5 * CONFIDENCE + 0.3 * TRUST + 0.2, 4)

MAX_HABITS_PER_PART: Final = 16
MAX_PHRASE_CHARS: Final = 60
MAX_OBJECT_CHARS: Final = 500


class Habits:
    """Finds habits in all events, some new ones in each part."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Store some habits."""
        ledger, replay = view.ledger, view.ledger.known()
        said = [one for one in ledger.all_assertions() if not is_inferred(one)]
        known = {
            (replay.root(one.subject), normalised(one.object))
            for one in ledger.all_assertions()
            if one.author == HABITS_AUTHOR
        }
        rejected = {
            source
            for one in ledger.rulings()
            if one.kind == "retract" and not ledger.is_said(one.target)
            for source in one.sources
        }
        offset_minutes = offset_of(view.parameters.time_zone)(view.now_ms) // 60_000
        events = [one for one in said if one.kind == "event"]
        happened = (one for one in events if _has_happened(one, replay, view.now_ms))
        change, findings = Change(), []
        state, node_id = view.txn.meta.ledger, view.network.next_node_id
        is_complete = True
        for habit, evidence in habits(happened, replay.root, offset_minutes):
            value, subject = in_words(habit, evidence[0].object), evidence[0].subject
            key = (replay.root(subject), normalised(value))
            if not evidence[0].object.strip() or key in known or subject not in view.network.entities:
                continue
            if any(one.source in rejected for one in evidence):
                continue
            if len(change.nodes) == MAX_HABITS_PER_PART or (change.nodes and is_time_up()):
                is_complete = False
                break
            if ledger.statement_count + len(change.nodes) >= view.parameters.max_statements:
                break
            known.add(key)
            assertions = _assertions(view, node_id, value, evidence, state.next_entry)
            _add(view, change, node_id, value, assertions)
            state = replace(state, next_entry=state.next_entry + len(assertions))
            findings.append(Finding((node_id, *dict.fromkeys(one.statement for one in evidence)), value))
            node_id += 1
        count = len(change.nodes)
        looked = 0 if position else len(events)
        change.ledger, change.next_node_id = state, node_id
        return Part(
            looked=looked,
            changed=count,
            change=change if count else None,
            findings=findings,
            position=None if is_complete else position + count,
        )


def _has_happened(event: Assertion, replay: Replay, now_ms: int) -> bool:
    """Return whether an event is past, and neither retracted nor corrected."""
    version = replay.version_of(event.statement)
    is_past = event.since_ms is None or event.since_ms <= now_ms
    return is_past and version is not None and not version.withdrawn


def in_words(habit: Habit, value: str) -> str:
    """Return what happens and when: "swimming every Monday", 每周一游泳."""
    if contains_han(value):
        return f"{habit.in_words(True)}{value.strip()}"[:MAX_OBJECT_CHARS]
    return f"{value.strip()} {habit.in_words(False)}"[:MAX_OBJECT_CHARS]


def _assertions(
    view: View, node_id: int, value: str, evidence: Sequence[Assertion], entry: int
) -> list[Assertion]:
    """Return an assertion of the habit for the words of each event, the latest ones."""
    return [
        Assertion(
            entry=entry + place,
            statement=node_id,
            subject=evidence[0].subject,
            slot=SLOT,
            object=value,
            source=one.source,
            told_at_ms=one.told_at_ms,
            known_at_ms=view.now_ms,
            kind="preference",
            since_ms=one.since_ms,
            confidence=CONFIDENCE,
            trust=TRUST,
            author=HABITS_AUTHOR,
            scope=one.scope,
        )
        for place, one in enumerate(evidence[-MAX_EVIDENCE:])
    ]


def _add(view: View, change: Change, node_id: int, value: str, assertions: Sequence[Assertion]) -> None:
    subject = assertions[0].subject
    name = view.network.entities[subject].name
    content = word_statement(name, SLOT, value) if contains_han(value) else f"{name} {SLOT}: {value}"
    change.nodes.append(
        Node(
            id=node_id,
            content=content,
            phrase=content[:MAX_PHRASE_CHARS],
            keywords=(value, name, SLOT),
            created_at_ms=view.now_ms,
            original_length=len(content),
            kind="preference",
        )
    )
    scans = view.network.scan_count(subject)
    change.links += [Link(node_id, subject, SLOT, STRENGTH, 0), Link(subject, node_id, SLOT, STRENGTH, scans)]
    change.assertions += assertions
