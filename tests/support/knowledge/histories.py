"""Random histories of statements and rulings, in English and Chinese words.

A history is a list of steps. A step is one commit: it adds entries that one batch brought, or erases entries. One
seeded generator makes them, so a deep run needs only a range of seeds; `histories()` lets Hypothesis choose and shrink
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st
from msgspec.structs import replace

from ebbtide.records import Source
from ebbtide.statements import Assertion, Ruling
from tests.support.knowledge.oracle import DAY_MS

SLOTS: dict[str, list[str]] = {
    "residence": ["Lisbon", "Porto", "lisbon", "Porto, Portugal", "里斯本", "波尔图", "上海", "上海浦东"],
    "employer": ["Acme", "Acme Research", "Beta", "华为"],
    "age": ["31", "32", "三十二"],
    "birthday": ["1990", "1990-05", "7 May 1990"],
    "likes": ["tea", "green tea", "coffee", "绿茶", "茶"],
    "allergy": ["peanuts", "花生"],
    "did": ["ran a marathon", "跑了马拉松"],
    "todo": ["call Clara", "给小明打电话"],
}
"""Of each cardinality, values that are the same, refine each other, or differ."""
KINDS = {"did": "event", "todo": "task", "likes": "preference"}
ENTITIES = (1, 2, 3, 4)
FIRST_STATEMENT = 100
FIRST_DAY_MS = 19_000 * DAY_MS


@dataclass(frozen=True)
class Step:
    """One commit."""

    added: tuple[Assertion | Ruling, ...] = ()
    erased: tuple[int, ...] = ()


class Author:
    """Write one random history, step by step."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.entry = 0
        self.day = 10
        self.left: dict[int, Assertion | Ruling] = {}
        # A few slots and entities, so that the statements meet.
        self.slots = random.sample(sorted(SLOTS), random.choice((1, 1, 2, 3)))
        self.entities = random.sample(ENTITIES, random.choice((1, 2, 3)))

    def is_now(self, share: float) -> bool:
        return self.random.random() < share

    def at(self, day: int) -> int:
        return FIRST_DAY_MS + day * DAY_MS

    def next_entry(self) -> int:
        self.entry += 1
        return self.entry

    def assertions(self) -> list[Assertion]:
        return [each for each in self.left.values() if isinstance(each, Assertion)]

    def rulings(self) -> list[Ruling]:
        return [each for each in self.left.values() if isinstance(each, Ruling)]

    def statements(self) -> list[int]:
        return sorted({each.statement for each in self.assertions()})

    def some_day(self) -> int:
        return self.at(self.random.randint(0, self.day + 3))

    def assertion(self) -> Assertion:
        """Return a state, or evidence of one that was already said."""
        random, earlier = self.random, self.assertions()
        entry = self.next_entry()
        replaceable, share = self.statements(), 0.07
        if earlier and self.is_now(0.2):
            # A value that is known may replace another one of its slot.
            model = random.choice(earlier)
            statement, subject, slot, value = model.statement, model.subject, model.slot, model.object
            kind, negated, object_entity = model.kind, model.negated, model.object_entity
            others = [one.statement for one in earlier if one.slot == slot and one.statement != statement]
            replaceable, share = others or replaceable, 0.6
        else:
            statement, subject = FIRST_STATEMENT + entry, random.choice(self.entities)
            slot = random.choice(self.slots)
            value, kind = random.choice(SLOTS[slot]), KINDS.get(slot, "fact")
            negated = self.is_now(0.2)
            if negated and slot in ("residence", "employer", "birthday") and self.is_now(0.3):
                value = ""
            object_entity = random.choice(self.entities) if self.is_now(0.1) else 0
        told_at = self.at(self.day if self.is_now(0.7) else random.randint(0, self.day))
        since = self.some_day() if self.is_now(0.4) else None
        if since is not None and self.is_now(0.1):
            since -= 400 * DAY_MS
        until = None
        if self.is_now(0.1):
            until = (told_at if since is None else since) + random.randint(-1, 6) * DAY_MS
        return Assertion(
            entry=entry,
            statement=statement,
            subject=subject,
            slot=slot,
            object=value,
            source=Source(random.choice((entry, entry, max(1, entry - 1))), 0, 10),
            told_at_ms=told_at,
            known_at_ms=self.at(self.day),
            kind=kind,  # type: ignore[arg-type]
            object_entity=object_entity,
            negated=negated,
            modality=random.choice(("asserted",) * 8 + ("reported", "planned")),  # type: ignore[arg-type]
            reports_change=self.is_now(0.4),
            replaces=random.choice(replaceable) if earlier and self.is_now(share) else 0,
            since_ms=since,
            until_ms=until,
            confidence=random.choice((0.6, 0.8, 0.9, 1.0)),
            trust=random.choice((1.0, 1.0, 1.0, 0.8, 0.4)),
            author=random.choice(("user", "user", "tool:calendar", "rules@1")),
        )

    def ruling(self) -> Ruling:
        random, statements = self.random, self.statements()
        entry, known_at = self.next_entry(), self.at(self.day)
        kinds = ["merge", "merge"]
        kinds += ["settle", "settle", "correct", "retract", "pin", "unpin", "vote"] if statements else []
        kinds += ["undo"] * 4 if self.rulings() else []
        kind = random.choice(kinds)
        if kind == "undo":
            return Ruling(entry, "undo", random.choice(self.rulings()).entry, known_at)
        if kind == "merge":
            return Ruling(entry, "merge", random.choice(ENTITIES), known_at, other=random.choice(ENTITIES))
        target, other = random.choice(statements), random.choice(statements)
        if kind in ("settle", "correct"):
            return Ruling(entry, kind, target, known_at, other=other)  # type: ignore[arg-type]
        value = random.choice((1.0, -1.0)) if kind == "vote" else 0.0
        return Ruling(entry, kind, target, known_at, value=value)  # type: ignore[arg-type]

    def correction(self) -> list[Assertion | Ruling]:
        """Return the correction of a statement, and the statement that it makes."""
        old = self.random.choice(self.assertions())
        entry, known_at = self.next_entry(), self.at(self.day)
        made = replace(
            old,
            entry=self.next_entry(),
            statement=FIRST_STATEMENT + self.entry,
            object=self.random.choice(SLOTS[old.slot]),
            source=Source(entry, 0, 10),
            known_at_ms=known_at,
        )
        return [Ruling(entry, "correct", old.statement, known_at, other=made.statement), made]

    def step(self) -> Step:
        if self.left and self.is_now(0.12):
            entries = self.random.sample(
                sorted(self.left), min(len(self.left), self.random.choice((1, 1, 2)))
            )
            for entry in entries:
                del self.left[entry]
            return Step(erased=tuple(sorted(entries)))
        # Some commits share a time.
        self.day += self.random.choice((0, 1, 1, 2))
        added: list[Assertion | Ruling] = []
        if self.assertions() and self.is_now(0.1):
            added += self.correction()
            self.left |= {each.entry: each for each in added}
        for _ in range(self.random.choice((1, 1, 1, 2))):
            each = self.ruling() if self.is_now(0.35) else self.assertion()
            added.append(each)
            self.left[each.entry] = each
        return Step(added=tuple(added))


def history(random: Random, most_steps: int = 14) -> list[Step]:
    """Return one history of at most so many commits."""
    author = Author(random)
    return [author.step() for _ in range(random.randint(1, most_steps))]


def histories(most_steps: int = 14) -> st.SearchStrategy[list[Step]]:
    """Return the strategy of histories."""
    return st.builds(history, st.randoms(use_true_random=False), st.just(most_steps))


def times(entries: list[Assertion | Ruling]) -> tuple[list[int], list[int]]:
    """Return the times at which an answer may change: of what was true, and of what was known."""
    true_at = {FIRST_DAY_MS - 1}
    for each in entries:
        if isinstance(each, Assertion):
            for at in (each.told_at_ms, each.since_ms, each.until_ms):
                true_at |= {at - 1, at} if at is not None else set()
    known_at = {FIRST_DAY_MS - 1} | {each.known_at_ms for each in entries}
    return sorted(true_at), sorted(known_at)
