"""News about what is known: a wrong value, a plan that fell through, a pet that died.

Rules list such words under topics of their own. They are stored only as a change of a known statement: a correction, a
retracted plan, or the end of a pet. The module finds that statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from ebbtide.han import contains_han
from ebbtide.memory.statements import DAY_MS, Ledger, Version
from ebbtide.memory.values import compare, normalised
from ebbtide.statements import Assertion

CORRECTION: Final = "correction"
CANCELLATION: Final = "cancellation"
LOSS: Final = "loss"
REPORTS: Final = frozenset({CORRECTION, CANCELLATION, LOSS})
"""The topics under which rules list news."""

MAX_BETWEEN: Final = 4
"""Most messages from a wrong value to its correction."""

MAX_PLAN_AGE_MS: Final = 31 * DAY_MS
"""From the beginning of a plan, how long it may still be cancelled."""

_INSTEAD: Final = re.compile(
    r"(?P<right>.{1,60}?),? not (?P<wrong>.{1,60})|(?P<right2>.{1,20}?)[，,]?而?不是(?P<wrong2>.{1,20})"
    r"|不是(?P<wrong3>.{1,20}?)[，,]?(?:而是|是)(?P<right3>.{1,20})"
)
_LEADS: Final = re.compile(r"(?:\bcorrection|\bi meant|更正|纠正|说错了)(?: to say)?[:：,，。.! ]{0,3}$")
_MAX_LEAD_CHARS: Final = 24
_NO_NAMES: Final = frozenset(
    [
        *("to", "in", "with", "at", "for", "from", "of", "on", "the", "a", "an", "my", "our", "this", "next"),
        *("move", "moving", "go", "going", "trip", "flight", "flying", "travel", "travelling", "traveling"),
        *("visit", "plan", "plans"),
    ]
)
"""Words of a plan that other plans have too."""
_HAN_PLAN: Final = re.compile(r"^(?:去|飞|回|搬家?[到去]?)|(?:的?(?:计划|行程|事))$")


def values_of(said: str) -> tuple[str, str]:
    """Return the right and the wrong value of "Leicester, not Leeds" and 是莱斯特，不是利兹; empty without them."""
    found = _INSTEAD.fullmatch(said.strip())
    if found is None:
        return "", ""
    right, wrong = (
        next(filter(None, (found[name], found[f"{name}2"], found[f"{name}3"])), "")
        for name in ("right", "wrong")
    )
    return right.removeprefix("是").strip(), wrong.strip()


def follows_correction(text: str) -> bool:
    """Return whether a text ends with words that announce a correction: "Correction:", 更正："""
    return _LEADS.search(text[-_MAX_LEAD_CHARS:].casefold()) is not None


def wrong_statement(ledger: Ledger, value: str, message: int) -> Assertion | None:
    """Return the last statement with a value, if one of the last messages before a message makes it."""
    said = ledger.said_in(range(max(1, message - MAX_BETWEEN), message))
    for one in reversed(said):
        version = ledger.known().version_of(one.statement)
        is_open = version is not None and not version.withdrawn and version.until_ms is None
        if is_open and not one.negated and value and compare(one.object, value) == "same":
            return one
    return None


def wrong_value(
    ledger: Ledger, subjects: Collection[int], slot: str, value: str, message: int
) -> Assertion | None:
    """Return the only statement on a topic, if it has another value and one of the last messages makes it."""
    found = [one for one in _open(ledger, subjects, slot) if not one.first.negated]
    if len(found) != 1 or compare(found[0].first.object, value) != "different":
        return None
    last = found[0].assertions[-1]
    return last if message - MAX_BETWEEN <= last.source.message < message else None


def cancelled(ledger: Ledger, subjects: Collection[int], words: str, told_ms: int) -> list[int]:
    """Return the plans that words mean, such as "move to Oslo" and 奥斯陆; none of a topic with several such plans.

    A plan whose time is long past is not meant.
    """
    found: dict[str, list[int]] = {}
    for one in _open(ledger, subjects, None):
        is_plan = one.first.modality == "planned" and one.since_ms > told_ms - MAX_PLAN_AGE_MS
        if is_plan and _is_meant(words, one.first.object):
            found.setdefault(one.first.slot, []).append(one.statement)
    return [several[0] for several in found.values() if len(several) == 1]


def lost_pets(ledger: Ledger, subjects: Collection[int], name: str, words: str) -> list[str]:
    """Return the values on pets that end with a pet, by its name or kind. "A dog called Rex" has two.

    If the name is not known, the words "my dog Rex" mean the dog of no known name.
    """
    pets = [one for one in _open(ledger, subjects, "pet") if not one.first.negated]
    meant = [one for one in pets if compare(one.first.object, name) == "same"]
    if not meant:
        said, called = normalised(words), normalised(name)
        kinds = [normalised(one.first.object) for one in pets]
        meant = [
            one
            for one, kind in zip(pets, kinds, strict=True)
            if (f"{kind} {called}" in said or f"{kind}{called}" in said) and len(_with(one, pets)) == 1
        ]
    return list(dict.fromkeys(other.first.object for one in meant for other in _with(one, pets)))


def _with(pet: Version, pets: Collection[Version]) -> list[Version]:
    """Return the statements on a pet: those whose words overlap with those of one of them."""
    return [
        one
        for one in pets
        if one is pet
        or any(
            said.source.message == place.source.message
            and said.source.offset < place.source.offset + place.source.length
            and place.source.offset < said.source.offset + said.source.length
            for said in one.assertions
            for place in pet.assertions
        )
    ]


def _open(ledger: Ledger, subjects: Collection[int], slot: str | None) -> Iterator[Version]:
    """Yield the versions about some entities that nothing has ended or withdrawn."""
    replay, seen = ledger.known(), set[int]()
    for one in ledger.said_about(subjects, lambda name: slot is None or name == slot):
        version = replay.version_of(one.statement)
        if version is None or version.first.entry in seen:
            continue
        seen.add(version.first.entry)
        if not version.withdrawn and (version.until_ms is None or version.first.modality == "planned"):
            yield version


def _is_meant(words: str, plan: str) -> bool:
    said, known = normalised(words), normalised(plan)
    if contains_han(said):
        core = _HAN_PLAN.sub("", _HAN_PLAN.sub("", said))
        return len(core) >= 2 and core in known
    every = said.split()
    names = [one for one in every if one not in _NO_NAMES]
    known_words = known.split()
    if names:
        return all(any(other.startswith(one) for other in known_words) for one in names)
    # "The move fell through": the word itself, in any form.
    return any(len(one) > 3 and any(other.startswith(one[:-1]) for other in known_words) for one in every)
