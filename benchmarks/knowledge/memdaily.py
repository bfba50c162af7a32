"""MemDaily: personal messages in which no fact changes, so extraction must retire nothing and contest hardly anything.

The rules read every message, and the ledger replays their statements, as the daemon does. The public set is read in
place (`benchmarks/recall_data.py`) and is not part of this project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.knowledge.table import Row
from benchmarks.recall_data import Corpus, MissingSet, default_folder, read_set
from ebbtide.language.builtin.extraction import extract
from ebbtide.memory.statements import Ledger, Version
from ebbtide.memory.subjects import subject_name
from ebbtide.memory.values import reports_change
from ebbtide.records import Source
from ebbtide.retrieval.times import stated_time
from ebbtide.statements import Assertion

MOST_CONTESTED = 0.005
"""The share of slots that may be contested."""
NAME = "memdaily"


@dataclass(frozen=True, slots=True)
class Slot:
    """The versions of a slot of one entity of a corpus."""

    corpus_id: str
    subject: str
    name: str
    versions: tuple[Version, ...]

    @property
    def is_retired(self) -> bool:
        """Whether a value was ended by another one."""
        return any(one.retired_by for one in self.versions)

    @property
    def is_contested(self) -> bool:
        """Whether two values contradict each other."""
        return any(one.rivals for one in self.versions)


def slots_of(corpus: Corpus) -> Iterator[Slot]:
    """Yield what the ledger contains after all messages of a corpus."""
    ledger, subjects, entry, last_ms = Ledger(), dict[str, int](), 0, 0
    for number, turn in enumerate(corpus.turns, 1):
        last_ms = max(last_ms, turn.timestamp_ms or 0)
        for one in extract(turn.text):
            subject = subject_name(one.subject)
            if subject is None:
                continue
            entry += 1
            quote = turn.text[one.offset : one.offset + one.length]
            stated = stated_time(quote, last_ms, "plan" if one.planned else "event")
            assertion = Assertion(
                entry=entry,
                statement=entry,
                subject=subjects.setdefault(subject, len(subjects) + 1),
                slot=one.slot,
                object=one.object,
                source=Source(number, one.offset, one.offset + one.length),
                told_at_ms=last_ms,
                known_at_ms=last_ms,
                kind=one.kind,
                negated=one.negated,
                modality="planned" if one.planned and stated is not None else "asserted",
                reports_change=reports_change(quote),
                since_ms=None if stated is None else stated.since_ms,
            )
            ledger.apply([assertion])
    replay = ledger.known()
    used = {(one.subject, one.slot) for one in ledger.all_assertions()}
    names = {number: name for name, number in subjects.items()}
    for number, slot in sorted(used):
        yield Slot(corpus.corpus_id, names[number], slot, tuple(replay.versions(number, slot)))


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of MemDaily; a row without a result if the set is not available."""
    corpora = read_set(NAME, default_folder())
    if isinstance(corpora, MissingSet):
        return [Row("MemDaily, where no fact changes", "0 retired", f"not measured: {corpora.reason}", None)]
    slots = [slot for corpus in corpora for slot in slots_of(corpus)]
    retired = sum(slot.is_retired for slot in slots)
    contested = sum(slot.is_contested for slot in slots)
    share = contested / max(1, len(slots))
    return [
        Row("MemDaily, slots with a retired value", "0", f"{retired} of {len(slots)}", retired == 0),
        Row(
            "MemDaily, contested slots",
            f"≤ {MOST_CONTESTED:.1%}",
            f"{share:.2%} ({contested} of {len(slots)})",
            share <= MOST_CONTESTED,
        ),
    ]
