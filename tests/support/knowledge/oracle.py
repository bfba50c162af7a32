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
YEAR_MS = 366 * DAY_MS


@dataclass(frozen=True)
class Rules:
    """Decisions that are not the oracle's own: words and slots."""

    compare: Callable[[str, str, str], str]
    """`same`, `refines` or `different`, of two objects in a slot."""
    cardinality: Callable[[str], str]
    """`one`, `few` or `many`, of a slot."""
    is_lasting: Callable[[str], bool]
    is_own: Callable[[Assertion], bool] = lambda one: one.modality == "asserted" and one.trust >= 1
    """Whether the subject's own speaker said it. CHOICE: the record has no speaker, so the speaker's trust stands for
    it."""


@dataclass(eq=False)
class Version:
    """One value of a slot in one interval, with the assertions that say it, in order of entry."""

    said: list[Assertion]
    since: int
    until: int | None
    state: str = "current"
    """`in_force`, `superseded`, `corrected` or `retracted`."""
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

    def overlaps(self, other: Version) -> bool:
        since = max(self.since, other.since)
        return all(each.until is None or since < each.until for each in (self, other))

    @property
    def rivals(self) -> list[Version]:
        """The versions that contest it and share a time with it."""
        # CHOICE: once a third statement has ended one of the two before the other begins, they agree.
        return [other for other in self.against if self.overlaps(other)]


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

    # The known entries, and which rulings count.

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

    def undone_corrections(self, known_at_ms: int) -> list[Ruling]:
        """Return the corrections that are undone, in order."""
        undos = self.rulings(known_at_ms, "undo")
        found: list[Ruling] = []
        undone_at: dict[int, int] = {}
        for each in self.entries:
            if not isinstance(each, Ruling) or each.kind != "correct" or each.known_at_ms > known_at_ms:
                continue
            last = max([one.entry for one in undos if one.target == each.entry], default=0)
            # CHOICE: a correction of a statement that exists only by an undone correction is undone with it.
            last = max(last, undone_at.get(each.target, 0))
            if last > each.entry:
                undone_at[each.other] = last
                found.append(each)
        return found

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

    # The replay of one slot.

    def relation(self, new: Assertion, old: Version, known_at_ms: int) -> str:
        """Return `same`, `refines`, `different`, `opposite` or `apart`."""
        first = old.first
        # CHOICE: a plan is not true yet. It is evidence of plans only; it retires and contests nothing.
        is_plan = new.modality == "planned"
        if is_plan != (first.modality == "planned"):
            return "apart"
        value = self.value(new, first, known_at_ms)
        # ADR 0059: in a slot with one or few values, a denial without a value denies every value.
        denial = new if new.negated else first
        if self.rules.cardinality(new.slot) != "many" and new.negated != first.negated and not denial.object:
            value = "same"
        # "Events (SAME_AS): equal (subject, slot, object, day ± 1) is `same`; nothing looser is."
        # CHOICE: it applies if both are events of a slot with many values. Two equal events of different days agree.
        are_events = self.rules.cardinality(new.slot) == "many" and new.kind == first.kind == "event"
        if are_events and abs(since(new) // DAY_MS - old.since // DAY_MS) > 1:
            return "apart"
        # CHOICE: "not Portugal" contradicts "Porto, Portugal": the negated value need not be the same.
        if value != "different" and new.negated != first.negated:
            return "apart" if is_plan else "opposite"
        # CHOICE: "not Lisbon" and "Porto" agree, and so do "not Lisbon" and "not Porto".
        if value == "different" and (is_plan or new.negated or first.negated):
            return "apart"
        return value

    def value(self, one: Assertion, other: Assertion, known_at_ms: int) -> str:
        """Compare the values of two assertions."""
        # "Reads go through union-find."
        # CHOICE: objects that are one entity are the same value, also in different words.
        if one.object_entity and other.object_entity in self.group(one.object_entity, known_at_ms):
            return "same"
        return self.rules.compare(one.object, other.object, one.slot)

    def may_end(self, one: Assertion) -> bool:
        """Return whether an assertion ends other values by its words or its slot."""
        # ADR 0053: in a slot with many values, only a denial ends one.
        return is_change(one) and (one.negated or self.rules.cardinality(one.slot) in ("one", "few"))

    def ends(self, change: Assertion, other: Assertion, relation: str, known_at_ms: int) -> bool:
        """Return whether a change ends another assertion, if both are true at a time."""
        if not self.may_end(change):
            return False
        # "Opposite `negated` with a cue counts as `different`: in `one`/`few` the later supersedes the earlier."
        if self.rules.cardinality(change.slot) in ("one", "few"):
            return relation in ("different", "opposite")
        # ADR 0053: in a topic with many values, a denial that reports a change ends the same value. A narrower or wider
        # one is contested.
        is_same = relation == "opposite" and self.value(change, other, known_at_ms) == "same"
        return is_same and change.negated

    def fills(self, new: Assertion, denial: Assertion) -> bool:
        """Return whether a value ends a denial, if it begins no earlier."""
        # ADR 0059: in a slot with one or few values, a value that is said later ends a denial without a value, also
        # without a change.
        is_denial = denial.negated and not denial.object and denial.modality != "planned"
        is_value = not new.negated and new.modality == "asserted" and new.trust >= 0.5
        is_slot = self.rules.cardinality(new.slot) != "many"
        return is_slot and is_value and is_denial and new.told_at_ms >= denial.told_at_ms

    def replay(self, versions: list[Version], new: Assertion, known_at_ms: int) -> None:
        """Apply the table of §3 to one new assertion."""
        slot = self.rules.cardinality(new.slot)
        version = Version([new], since(new), new.until_ms)
        # CHOICE: a version is open if it is true at a time at which the new one is true. So a state that arrives late
        # meets the states of its time, not only the last one ("valid time decides, not arrival").
        opened = [old for old in versions if old.overlaps(version)]
        relations = [(old, self.relation(new, old, known_at_ms)) for old in opened]
        # "N reported by A about B, or trust(N) < 0.5: retires nothing."
        # CHOICE: it is treated like a statement without a cue. So is a plan.
        may_retire = new.modality == "asserted" and new.trust >= 0.5
        # "same: no new node: N's slice becomes a source of O"
        # CHOICE: the interval of O stays as it was; N contests nothing, and retires what it replaces, in the name of O.
        for old, relation in relations:
            if relation == "same":
                old.said.append(new)
                self.settle_itself(old, new)
                if may_retire:
                    self.replace_by_known(versions, old, new)
                # CHOICE: a change that says a known value again ends what contests it, unless that was said later.
                if self.may_end(new):
                    at_ms = max(old.since, since(new))
                    for other in old.against:
                        if other.contains(at_ms) and other.first.told_at_ms <= new.told_at_ms:
                            retire(other, old, at_ms)
                return
        versions.append(version)
        later: list[Version] = []
        for old, relation in relations:
            # "The statement that the caller says this one replaces"
            # CHOICE: it is replaced in every slot and whatever its value; if it began later, it was never true.
            if may_retire and new.replaces in old.statements:
                end(old, version)
            # "A new statement has a cue if its quote reports a change …, if `replaces` is given, or if the slot is
            # `age`."
            elif self.ends(new, old.first, relation, known_at_ms):
                # "different, cue, since(N) ≥ since(O), one/few: O.until = since(N); N supersedes O"
                if version.since >= old.since:
                    retire(old, version)
                else:
                    later.append(old)
            elif self.fills(new, old.first) and version.since >= old.since:
                retire(old, version)
            # "different, no cue, `one`; or opposite `negated`: contested: both current, `contradicts` both ways"
            elif relation == "opposite" or (relation == "different" and slot == "one"):
                version.against.append(old)
                old.against.append(version)
            # "refines, or different in `many`: both current"; "different, no cue, `few`: both current"
        # "different, cue, one/few, reported late: since(N) < since(O): N.until = since(O)"
        # CHOICE: of several later ones, the first ends it.
        news = [old for old in later if is_news(new, old)]
        for old in later:
            if old not in news:
                retire(version, old)
        # ADR 0051: a statement that was said before a known change, and arrives after it, is ended by it as in order.
        known = [
            old
            for old, relation in relations
            if (self.ends(old.first, new, relation, known_at_ms) or self.fills(old.first, new))
            and not self.may_end(new)
            and old.first.told_at_ms > new.told_at_ms
        ]
        # CHOICE: of several news, the first that arrived; else the change that began first.
        before = [old for old in known if old.since < version.since and is_news(old.first, version)]
        if before:
            end(version, before[0])
        else:
            for old in known:
                if old.since >= version.since:
                    retire(version, old)
        # ADR 0051: news of a change ends what was only observed before, unless the new one ends first.
        for old in news:
            if old.overlaps(version):
                end(old, version)

    def replace_by_known(self, versions: list[Version], known: Version, new: Assertion) -> None:
        # "A tool gets the old statement back and is asked to pass `replaces`."
        # CHOICE: a pair that contests each other is settled in favour of the known value, as a ruling does. Others end
        # when N begins, but not before the known value does, and only if they share a time with it.
        for other in versions:
            if new.replaces in other.statements and other is not known and other.overlaps(known):
                if other in known.against:
                    settle(known, other)
                else:
                    retire(other, known, since(new))

    def settle_itself(self, version: Version, new: Assertion) -> None:
        # "A contested pair is settled automatically only if ≥ 2 further messages of the subject's own speaker say one
        # and none says the other."
        # CHOICE: further than the one by which the pair became contested; a message counts once.
        for other in list(version.against):
            contested_from = max(version.first.entry, other.first.entry)

            def further(side: Version, start: int = contested_from) -> set[int]:
                before = {one.source.message for one in side.said if one.entry <= start}
                own = {
                    one.source.message for one in side.said if one.entry > start and self.rules.is_own(one)
                }
                return own - before

            if self.rules.is_own(new) and len(further(version)) >= 2 and not further(other):
                settle(version, other)

    def settle(self, versions: list[Version], ruling: Ruling) -> None:
        # "settle: `target`: the statement to keep; `other`: the other statement of the conflict"
        # CHOICE: it acts only where the two contest each other when it is given.
        for kept in versions:
            for other in list(kept.against):
                if ruling.target in kept.statements and ruling.other in other.statements:
                    settle(kept, other)

    def taken_back_by(self, assertion: Assertion, known_at_ms: int) -> str:
        """Return `corrected` or `retracted` if an assertion is taken back, else nothing."""
        # "The old statement stays in history as `corrected`."
        # "`retract` means that the statement was never true."
        # CHOICE: it takes back what was said until then. A later repetition starts from scratch.
        undone = self.undone_corrections(known_at_ms)
        rulings = [
            each
            for each in self.rulings(known_at_ms, "correct", "retract")
            if each.target == assertion.statement and each.entry > assertion.entry and each not in undone
        ]
        if rulings:
            return "corrected" if rulings[-1].kind == "correct" else "retracted"
        # "Undo: as if it had never been made": what the correction itself said was never true.
        # CHOICE: that is the next entry. Further assertions of the same statement stay.
        is_unmade = any(
            each.entry + 1 == assertion.entry and each.other == assertion.statement for each in undone
        )
        return "retracted" if is_unmade else ""

    def versions(self, subject: int, slot: str, known_at_ms: int) -> list[Version]:
        """Return every version of the slot, in order of arrival, without those that were taken back."""
        group = self.group(subject, known_at_ms)
        entries: list[Assertion | Ruling] = [
            each
            for each in self.assertions(known_at_ms)
            if each.subject in group and each.slot == slot and not self.taken_back_by(each, known_at_ms)
        ]
        entries += self.rulings(known_at_ms, "settle")
        versions: list[Version] = []
        # "The statements current are computed by replaying statements and rulings in order of arrival."
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
        """Return the statements current, by slot, and after them the open plans."""
        found = {}
        for slot in self.slots(subject, known_at_ms):
            versions = self.versions(subject, slot, known_at_ms)
            shown = [each for each in versions if each.contains(as_of_ms)] + open_plans(versions, as_of_ms)
            if shown:
                found[slot] = shown
        return found

    def history(self, statement: int, known_at_ms: int) -> list[Version]:
        """Return the versions of the statement's slot, with those taken back, in order of arrival."""
        said = [each for each in self.assertions(known_at_ms) if each.statement == statement]
        if not said:
            return []
        subject, slot = said[0].subject, said[0].slot
        # CHOICE: a version that lost its whole interval is current at no time, but stays in the history.
        found = self.versions(subject, slot, known_at_ms) + self.taken_back(subject, slot, known_at_ms)
        return sorted(found, key=lambda each: each.first.entry)

    def taken_back(self, subject: int, slot: str, known_at_ms: int) -> list[Version]:
        """Return the statements of a slot that were corrected or retracted, with the interval that their words give."""
        group = self.group(subject, known_at_ms)
        found: dict[int, Version] = {}
        for each in self.assertions(known_at_ms):
            state = self.taken_back_by(each, known_at_ms)
            if each.subject in group and each.slot == slot and state:
                if each.statement in found:
                    found[each.statement].said.append(each)
                else:
                    found[each.statement] = Version([each], since(each), each.until_ms, state)
        return list(found.values())

    def conflicts(self, as_of_ms: int, known_at_ms: int) -> set[frozenset[int]]:
        """Return the pairs of statements that contest each other and are both current, by the statements shown."""
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
        # "A node is *kept* while it is a statement current in a *lasting* slot (§3), an open task, or pinned."
        # CHOICE: the nodes of all assertions of a version are kept, and a pin keeps a statement in any state.
        lasting = {
            statement
            for each in self.all_in_force(as_of_ms, known_at_ms)
            if self.rules.is_lasting(each.first.slot) or each.first.kind == "task"
            for statement in each.statements
        }
        return lasting | (self.pinned(known_at_ms) & left)

    def votes(self, statement: int, known_at_ms: int) -> tuple[int, int]:
        """Return the votes for and against a statement."""
        # CHOICE: the last vote of an author counts.
        last = {
            each.author: each.value for each in self.rulings(known_at_ms, "vote") if each.target == statement
        }
        return sum(value > 0 for value in last.values()), sum(value < 0 for value in last.values())

    def priority(self, version: Version, now_ms: int, known_at_ms: int) -> float:
        """Return the priority of a version at a time."""
        # "(n messages; s supports, c contradicts)"
        # CHOICE: votes for it support it, votes against it and what contests it contradict it; the greatest trust
        # counts; Δdays since it was last said.
        supports, contradicts = self.votes(version.statement, known_at_ms)
        return priority(
            trust=max(one.trust for one in version.said),
            days=max(0, now_ms - max(one.told_at_ms for one in version.said)) / DAY_MS,
            messages=len({one.source.message for one in version.said}),
            supports=supports,
            # CHOICE: at most 16 versions count as contradicting one.
            contradicts=contradicts + min(16, len(version.rivals)),
        )


def since(assertion: Assertion) -> int:
    """Return the time from which an assertion is true."""
    # "since = the time in the quote, else the time of the message."
    # ADR 0051: a beginning that no words state is not after the end.
    begin = assertion.told_at_ms if assertion.since_ms is None else assertion.since_ms
    is_stated = assertion.since_ms is not None or assertion.until_ms is None
    return begin if is_stated else min(begin, assertion.until_ms)


def open_plans(versions: list[Version], as_of_ms: int) -> list[Version]:
    """Return the plans whose time has not come, by time."""
    # "A profile also lists plans whose time has not come", "after the values that are true".
    # CHOICE: at an earlier time, a plan is open if it had been made by then. One that was replaced for its whole time
    # is open at no time.
    plans = [
        each
        for each in versions
        if each.first.modality == "planned"
        and min(one.told_at_ms for one in each.said) <= as_of_ms < each.since
        and (each.until is None or each.since < each.until)
    ]
    return sorted(plans, key=lambda each: (each.since, each.first.entry))


def retire(old: Version, new: Version, at_ms: int | None = None) -> None:
    """End a version when another one begins or at a later time, and not before it began itself."""
    # CHOICE: an end that the words gave, or an earlier replacement, is never moved to a later time.
    at_ms = max(old.since, new.since, new.since if at_ms is None else at_ms)
    if old.until is None or at_ms < old.until:
        old.until, old.state, old.replaced_by = at_ms, "superseded", new


def is_change(one: Assertion) -> bool:
    """Return whether an assertion may end others by its words or its slot."""
    has_cue = one.reports_change or bool(one.replaces) or one.slot == "age"
    return has_cue and one.modality == "asserted" and one.trust >= 0.5


def is_news(new: Assertion, old: Version) -> bool:
    """Return whether an assertion is news of a change to a version that begins later."""
    # ADR 0051: "An observation is a statement without a stated beginning. It ends when a change is reported that was
    # said later and began at most a year before it was said."
    # CHOICE: an observation that was said again later than the change is not ended; nor is one of which any message
    # states the beginning.
    return (
        new.reports_change
        and all(one.since_ms is None for one in old.said)
        and all(one.told_at_ms <= new.told_at_ms for one in old.said)
        and new.told_at_ms - since(new) <= YEAR_MS
    )


def end(old: Version, new: Version) -> None:
    """End a version when another one begins. A beginning that no words state moves to an earlier end."""
    # CHOICE: the version is then current at no time, and the history shows it before the one that ended it.
    begins_later = old.since > new.since and all(one.since_ms is None for one in old.said)
    retire(old, new)
    if begins_later and old.replaced_by is new:
        old.since = old.until = new.since


def settle(kept: Version, other: Version) -> None:
    """Decide a conflict, if there is still one."""
    # CHOICE: the one kept acts like one with a cue: from its start on, it replaces the other. An other that began later
    # was never true.
    if kept.overlaps(other):
        retire(other, kept)
        kept.against.remove(other)
        other.against.remove(kept)


def confidence(version: Version) -> float:
    """Return how sure the version is, after all messages that say it."""
    # "Each further *message* that says the same raises it: c ← 1 − (1−c)(1−c′) ≤ 0.99."
    # CHOICE: the surest assertion of a message counts; the bound does not lower one message that is certain.
    by_message: dict[int, float] = {}
    for one in version.said:
        by_message[one.source.message] = max(one.confidence, by_message.get(one.source.message, 0))
    certainties = list(by_message.values())
    combined = 1.0
    for each in certainties:
        combined *= 1 - each
    return max(*certainties, min(0.99, 1 - combined), 0.0)


def priority(trust: float, days: float, messages: int, supports: int, contradicts: int) -> float:
    """Return the priority of a statement: it orders, it never retires."""
    # "prio = 0.35·trust + 0.30·e^(−Δdays/90) + 0.25·(1−½ⁿ) + 0.10·(1+s−c)/(2+s+c)"
    return (
        0.35 * trust
        + 0.30 * math.exp(-days / 90)
        + 0.25 * (1 - 0.5**messages)
        + 0.10 * (1 + supports - contradicts) / (2 + supports + contradicts)
    )
