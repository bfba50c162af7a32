"""A plain oracle for statements. Every question replays all entries that are left, from the first.

It was written from the specification of structured memory and the records alone, without knowledge of the ledger.
Comments quote the sentence that the code below them implements. Comments that start with CHOICE name the
interpretation chosen where the specification allows more than one. Nothing is cached and nothing is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ebbtide.statements import Assertion, Ruling

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Rules:
    """What the oracle does not decide itself: words and slots."""

    compare: Callable[[str, str, str], str]
    """`same`, `refines` or `different`, of two objects in a slot."""
    cardinality: Callable[[str], str]
    """`one`, `few` or `many`, of a slot."""
    is_lasting: Callable[[str], bool]
    is_own: Callable[[Assertion], bool] = lambda assertion: assertion.author == "user"
    """Whether the subject of the assertion said it."""


@dataclass(eq=False)
class Version:
    """One value of a slot in one interval, with the assertions that say it, in order of entry."""

    said: list[Assertion]
    since: int
    until: int | None
    state: str = "in force"
    """`in force`, `superseded`, `settled`, `corrected` or `retracted`."""
    replaced_by: Version | None = None
    against: list[Version] = field(default_factory=list)
    """The versions that contest it."""

    @property
    def first(self) -> Assertion:
        return self.said[0]

    @property
    def statement(self) -> int:
        return self.first.statement

    @property
    def statements(self) -> set[int]:
        return {one.statement for one in self.said}

    def contains(self, as_of_ms: int) -> bool:
        # "Intervals are half-open; empty ones are never returned."
        return self.since <= as_of_ms and (self.until is None or as_of_ms < self.until)

    def is_empty(self) -> bool:
        return self.until is not None and self.until <= self.since

    def overlaps(self, other: Version) -> bool:
        since = max(self.since, other.since)
        return all(each.until is None or since < each.until for each in (self, other))

    def end(self, at_ms: int) -> None:
        # CHOICE: an end that the words gave is never moved to a later time.
        self.until = at_ms if self.until is None else min(self.until, at_ms)


class Oracle:
    """The entries that are left, and every question about them."""

    def __init__(self, rules: Rules, entries: Iterable[Assertion | Ruling] = ()) -> None:
        self.rules = rules
        self.entries: list[Assertion | Ruling] = []
        self.add(entries)

    def add(self, entries: Iterable[Assertion | Ruling]) -> None:
        self.entries = sorted([*self.entries, *entries], key=lambda each: each.entry)

    def erase(self, entries: Iterable[int]) -> None:
        # "Erasing, correcting and undoing are one operation: replay without the entry concerned."
        # "What is erased is absent at every known_at."
        gone = set(entries)
        self.entries = [each for each in self.entries if each.entry not in gone]

    # What was known, and which rulings count.

    def assertions(self, known_at_ms: int) -> list[Assertion]:
        # "The answer replays what was known at `known_at`."
        return [
            each for each in self.entries if isinstance(each, Assertion) and each.known_at_ms <= known_at_ms
        ]

    def rulings(self, known_at_ms: int, *kinds: str) -> list[Ruling]:
        known = [
            each for each in self.entries if isinstance(each, Ruling) and each.known_at_ms <= known_at_ms
        ]
        undone: set[int] = set()
        # An undo is a ruling too, so an undo can be undone: the last word comes first.
        for each in reversed(known):
            if each.kind == "undo" and each.entry not in undone:
                # CHOICE: an undo acts only on a ruling that came before it.
                undone |= {each.target} if each.target < each.entry else set()
        return [each for each in known if each.entry not in undone and each.kind in kinds]

    # Entities.

    def group(self, entity: int, known_at_ms: int) -> frozenset[int]:
        """Return the entities that are one with this one."""
        # "`POST …/merges` appends a ruling. Reads go through union-find; records keep their own subject."
        # "Merges can be undone in any order, and the result is exact."
        pairs = [(each.target, each.other) for each in self.rulings(known_at_ms, "merge")]
        group = {entity}
        while more := {one for pair in pairs if group & set(pair) for one in pair} - group:
            group |= more
        return frozenset(group)

    def groups(self, known_at_ms: int) -> set[frozenset[int]]:
        """Return the groups of more than one entity."""
        merged = {one for each in self.rulings(known_at_ms, "merge") for one in (each.target, each.other)}
        groups = {self.group(one, known_at_ms) for one in merged}
        return {group for group in groups if len(group) > 1}

    def names(self, entity: int, known_at_ms: int) -> set[str]:
        """Return the further names of an entity."""
        group = self.group(entity, known_at_ms)
        return {each.name for each in self.rulings(known_at_ms, "alias") if each.target in group}

    # The replay of one slot.

    def relation(self, new: Assertion, old: Version, known_at_ms: int) -> str:
        """Return `same`, `refines`, `different`, `opposite` or `apart`."""
        first = old.first
        # CHOICE: a plan is not true yet. It is compared with other plans only.
        if (new.modality == "planned") != (first.modality == "planned"):
            return "apart"
        value = self.rules.compare(new.object, first.object, new.slot)
        # "Reads go through union-find."
        # CHOICE: objects that are one entity are the same value, whatever their words.
        if new.object_entity and first.object_entity in self.group(new.object_entity, known_at_ms):
            value = "same"
        # "Events (SAME_AS): equal (subject, slot, object, day ± 1) is `same`; nothing looser is."
        # CHOICE: it applies if both are events.
        if value == "same" and new.kind == first.kind == "event":
            days = since(new) // DAY_MS - old.since // DAY_MS
            value = "same" if abs(days) <= 1 else "different"
        if value == "same" and new.negated != first.negated:
            return "opposite"
        # CHOICE: "not Lisbon" and "Porto" agree, and so do "not Lisbon" and "not Porto".
        if value == "different" and (new.negated or first.negated):
            return "apart"
        return value

    def reports_change(self, new: Assertion) -> bool:
        # "A new statement has a cue if its quote reports a change …, if `replaces` is given, or if the slot is `age`."
        has_cue = new.reports_change or bool(new.replaces) or new.slot == "age"
        # "N reported by A about B, or trust(N) < 0.5: retires nothing."
        return has_cue and new.modality != "reported" and new.trust >= 0.5

    def replay(self, versions: list[Version], new: Assertion, known_at_ms: int) -> None:
        """Apply the table of §3 to one new assertion."""
        slot = self.rules.cardinality(new.slot)
        start = since(new)
        # CHOICE: a version is open unless something replaced it or its own words end it before the new one starts.
        opened = [
            old for old in versions if old.state == "in force" and (old.until is None or old.until > start)
        ]
        relations = [(old, self.relation(new, old, known_at_ms)) for old in opened]
        # "same: no new node: N's slice becomes a source of O"
        # CHOICE: the interval of O stays as it was; N retires and contests nothing, even with a cue.
        for old, relation in relations:
            if relation == "same":
                old.said.append(new)
                return
        version = Version([new], start, new.until_ms)
        versions.append(version)
        has_cue = self.reports_change(new)
        late: list[Version] = []
        for old, relation in relations:
            # "Opposite `negated` with a cue counts as `different`: in `one`/`few` the later supersedes the earlier, in
            # `many` the pair is contested."
            if relation in ("different", "opposite") and has_cue and slot in ("one", "few"):
                if start >= old.since:
                    # "different, cue, since(N) ≥ since(O), one/few: O.until = since(N); N supersedes O"
                    old.end(start)
                    old.state, old.replaced_by = "superseded", version
                else:
                    late.append(old)
            # "different, no cue, `one`; or opposite `negated`: contested: both in force, `contradicts` both ways"
            # CHOICE: only statements that are true at one time contest each other.
            elif relation == "opposite" or (relation == "different" and slot == "one"):
                version.against.append(old)
                old.against.append(version)
            # "refines, or different in `many`: both in force"; "different, no cue, `few`: both in force"
        if late:
            # "different, cue, one/few, reported late: since(N) < since(O): N.until = since(O)"
            # CHOICE: of several later ones, the first ends it.
            following = min(late, key=lambda old: old.since)
            if version.until is None or following.since < version.until:
                version.end(following.since)
                version.state, version.replaced_by = "superseded", following

    def settle(self, versions: list[Version], ruling: Ruling) -> None:
        # "settle: `target`: the statement to keep; `other`: the other statement of the conflict"
        # CHOICE: it acts only where the two contest each other when it is given. The one kept acts like one with a
        # cue: from its start on, it replaces the other; a later other was never true.
        for kept in versions:
            for other in kept.against:
                if (
                    ruling.target in kept.statements
                    and ruling.other in other.statements
                    and kept.state == other.state == "in force"
                    and kept.overlaps(other)
                ):
                    other.end(max(kept.since, other.since))
                    other.state, other.replaced_by = "settled", kept
                    return

    def versions(self, subject: int, slot: str, known_at_ms: int) -> list[Version]:
        """Return every version of the slot, in order of arrival, without those that were taken back."""
        group = self.group(subject, known_at_ms)
        # "It appends a ruling. … The old statement stays in history as `corrected`."
        # "`retract` means that the statement was never true."
        # CHOICE: both take back every assertion of the statement, whenever it arrived, and no other statement.
        gone = {each.target for each in self.rulings(known_at_ms, "correct", "retract")}
        entries: list[Assertion | Ruling] = [
            each
            for each in self.assertions(known_at_ms)
            if each.subject in group and each.slot == slot and each.statement not in gone
        ]
        entries += self.rulings(known_at_ms, "settle")
        versions: list[Version] = []
        # "The statements in force are computed by replaying statements and rulings in order of arrival."
        for each in sorted(entries, key=lambda each: each.entry):
            if isinstance(each, Assertion):
                self.replay(versions, each, known_at_ms)
            else:
                self.settle(versions, each)
        return versions

    # Questions.

    def slots(self, subject: int, known_at_ms: int) -> list[str]:
        group = self.group(subject, known_at_ms)
        return sorted({each.slot for each in self.assertions(known_at_ms) if each.subject in group})

    def in_force(self, subject: int, slot: str, as_of_ms: int, known_at_ms: int) -> list[Version]:
        # "… and returns the intervals that contain `as_of`."
        return [each for each in self.versions(subject, slot, known_at_ms) if each.contains(as_of_ms)]

    def profile(self, subject: int, as_of_ms: int, known_at_ms: int) -> dict[str, list[Version]]:
        """Return the statements in force, by slot."""
        found = {
            slot: self.in_force(subject, slot, as_of_ms, known_at_ms)
            for slot in self.slots(subject, known_at_ms)
        }
        return {slot: versions for slot, versions in found.items() if versions}

    def history(self, statement: int, known_at_ms: int) -> list[Version]:
        """Return the versions of the statement's slot, with those taken back, in order of arrival."""
        said = [each for each in self.assertions(known_at_ms) if each.statement == statement]
        if not said:
            return []
        subject, slot = said[0].subject, said[0].slot
        found = [each for each in self.versions(subject, slot, known_at_ms) if not each.is_empty()]
        return sorted(found + self.taken_back(subject, slot, known_at_ms), key=lambda each: each.first.entry)

    def taken_back(self, subject: int, slot: str, known_at_ms: int) -> list[Version]:
        """Return the statements of a slot that were corrected or retracted, with the interval that their words give."""
        group = self.group(subject, known_at_ms)
        rulings = {each.target: each for each in self.rulings(known_at_ms, "correct", "retract")}
        found: dict[int, Version] = {}
        for each in self.assertions(known_at_ms):
            if each.subject in group and each.slot == slot and each.statement in rulings:
                if each.statement in found:
                    found[each.statement].said.append(each)
                else:
                    state = "corrected" if rulings[each.statement].kind == "correct" else "retracted"
                    found[each.statement] = Version([each], since(each), each.until_ms, state)
        return list(found.values())

    def conflicts(self, as_of_ms: int, known_at_ms: int) -> set[frozenset[int]]:
        """Return the pairs of statements that contest each other and are both in force, by the statements shown."""
        return {
            frozenset({each.statement, other.statement})
            for each in self.all_in_force(as_of_ms, known_at_ms)
            for other in each.against
            if other.contains(as_of_ms)
        }

    def all_in_force(self, as_of_ms: int, known_at_ms: int) -> list[Version]:
        keys = {
            (min(self.group(each.subject, known_at_ms)), each.slot) for each in self.assertions(known_at_ms)
        }
        return [
            version
            for subject, slot in sorted(keys)
            for version in self.in_force(subject, slot, as_of_ms, known_at_ms)
        ]

    def pinned(self, known_at_ms: int) -> set[int]:
        """Return the pinned statements: the last of `pin` and `unpin` counts."""
        last = {each.target: each.kind for each in self.rulings(known_at_ms, "pin", "unpin")}
        return {statement for statement, kind in last.items() if kind == "pin"}

    def kept(self, as_of_ms: int, known_at_ms: int) -> set[int]:
        """Return the nodes that do not decay."""
        left = {each.statement for each in self.assertions(known_at_ms)}
        # "A node is *kept* while it is a statement in force in a *lasting* slot (§3), an open task, or pinned."
        # CHOICE: the nodes of all assertions of a version are kept, and a pin keeps a statement in any state.
        lasting = {
            statement
            for each in self.all_in_force(as_of_ms, known_at_ms)
            if self.rules.is_lasting(each.first.slot) or each.first.kind == "task"
            for statement in each.statements
        }
        return lasting | (self.pinned(known_at_ms) & left)

    def settles_itself(self, as_of_ms: int, known_at_ms: int) -> set[tuple[int, int]]:
        """Return the pairs (statement to keep, other) that need no person to decide."""
        # "A contested pair is settled automatically only if ≥ 2 further messages of the subject's own speaker say one
        # and none says the other."
        settled = set()
        for each in self.all_in_force(as_of_ms, known_at_ms):
            for other in each.against:
                contested_from = max(each.first.entry, other.first.entry)
                before = {
                    one.source.message
                    for pair in (each, other)
                    for one in pair.said
                    if one.entry <= contested_from
                }

                def further(side: Version, start: int = contested_from, seen: set[int] = before) -> set[int]:
                    own = [one for one in side.said if one.entry > start and self.rules.is_own(one)]
                    return {one.source.message for one in own} - seen

                if other.contains(as_of_ms) and len(further(each)) >= 2 and not further(other):
                    settled.add((each.statement, other.statement))
        return settled

    def votes(self, statement: int, known_at_ms: int) -> list[float]:
        """Return the votes on a statement, in order of arrival."""
        return [each.value for each in self.rulings(known_at_ms, "vote") if each.target == statement]


def since(assertion: Assertion) -> int:
    """Return the time from which an assertion is true."""
    # "since = the time in the quote, else the time of the message."
    return assertion.told_at_ms if assertion.since_ms is None else assertion.since_ms


def confidence(version: Version) -> float:
    """Return how sure the version is, after all messages that say it."""
    # "Each further *message* that says the same raises it: c ← 1 − (1−c)(1−c′) ≤ 0.99."
    certainty = version.first.confidence
    seen = {version.first.source.message}
    for each in version.said[1:]:
        if each.source.message not in seen:
            seen.add(each.source.message)
            # CHOICE: the bound does not lower a correction, which is certain.
            certainty = max(certainty, min(0.99, 1 - (1 - certainty) * (1 - each.confidence)))
    return certainty


def priority(trust: float, days: float, messages: int, supports: int, contradicts: int) -> float:
    """Return the priority of a statement: it orders, it never retires."""
    # "prio = 0.35·trust + 0.30·e^(−Δdays/90) + 0.25·(1−½ⁿ) + 0.10·(1+s−c)/(2+s+c)"
    return (
        0.35 * trust
        + 0.30 * math.exp(-days / 90)
        + 0.25 * (1 - 0.5**messages)
        + 0.10 * (1 + supports - contradicts) / (2 + supports + contradicts)
    )
