"""Updates: two statements of one speaker, and which of them are current afterwards.

The labels are `data/updates.jsonl`. No statement may be retired that every reader keeps.
"""

from __future__ import annotations

from benchmarks.knowledge.sets import Said, Update, read_updates
from benchmarks.knowledge.table import Row
from ebbtide.memory.slot_names import canonical
from ebbtide.memory.statements import Ledger
from ebbtide.memory.values import reports_change
from ebbtide.records import Source
from ebbtide.statements import Assertion, Modality

BAR = 0.95
SUBJECT = 1
FIRST, SECOND = 101, 102


def _assertion(entry: int, statement: int, said: Said) -> Assertion:
    modality: Modality = "asserted"
    if said.modality in ("reported", "planned"):
        modality = "reported" if said.modality == "reported" else "planned"
    return Assertion(
        entry=entry,
        statement=statement,
        subject=SUBJECT,
        slot=canonical(said.slot),
        object=said.object,
        source=Source(entry, 0, 1),
        told_at_ms=said.told_at,
        known_at_ms=said.told_at,
        negated=said.negated,
        modality=modality,
        reports_change=reports_change(said.quote),
        since_ms=said.since,
    )


def answer(case: Update) -> tuple[str, frozenset[str]]:
    """Return the outcome of the second statement, and the current ones at its time."""
    first, second = _assertion(1, FIRST, case.first), _assertion(2, SECOND, case.second)
    ledger = Ledger([first])
    is_evidence = bool(ledger.evidence(second))
    ledger.apply([second])
    replay = ledger.known()
    slots = {first.slot, second.slot}
    versions = [one for slot in sorted(slots) for one in replay.versions(SUBJECT, slot)]
    current = {one.statement for one in versions if one.holds_at(case.second.told_at)}
    names = frozenset({FIRST: "first", SECOND: "second"}[one] for one in current)
    by_statement = {one.statement: one for one in versions}
    if is_evidence:
        return "same", names
    old, new = by_statement[FIRST], by_statement[SECOND]
    if old.retired_by:
        return "superseded", names
    if new.retired_by:
        return "late", names
    return ("contested" if new in old.rivals else "both"), names


def missed() -> list[tuple[Update, tuple[str, frozenset[str]]]]:
    """Return the pairs that are judged otherwise than labelled, with the outcome."""
    return [(case, found) for case in read_updates() if not case.accepts(*(found := answer(case)))]


def rows(_: bool) -> list[Row]:
    """Return the rows of updates."""
    cases = read_updates()
    right = sum(case.accepts(*answer(case)) for case in cases)
    retired = sum(case.retires_wrongly(answer(case)[1]) for case in cases)
    share = right / len(cases)
    return [
        Row("updates", f"≥ {BAR:.0%}", f"{share:.1%} ({right} of {len(cases)})", share >= BAR),
        Row("wrongly retired", "0", str(retired), retired == 0),
    ]
