"""Validity: which hits of a query state something that is no longer true, and the statement that is true now.

A memory of which a statement was made is shown with the times of that statement: since when it is true, until when it
was, the value that followed, and the value that is true now if that is another one. The true value is placed before it.
If a memory states several facts, the one that the query asks for counts, and among those a past one before a current
one. A query about the user that names a topic prefers the messages of statements that are true and on this topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ebbtide.entity_names import entity_key
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import DATES, slot_of
from ebbtide.memory.statements import Ledger, Version
from ebbtide.memory.subjects import USER
from ebbtide.memory.topic_words import asked, asks_for_everything
from ebbtide.memory.values import normalised
from ebbtide.memory.wording import word_value
from ebbtide.records import Node, local_date
from ebbtide.retrieval.times import Offset, stated_time
from ebbtide.statements import STATEMENT_KINDS

MAX_STEPS = 16
"""Most statements that follow one another before the current one is looked up."""


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether the statements of a hit are true, in words, and the statements that followed them."""

    note: str = ""
    """Shown after the content; empty for a hit without statements."""
    successors: tuple[NodeId, ...] = ()
    """The statements that are true instead; empty if one of the hit's own is."""


NO_STATEMENT = Validity()


class OnRecord(NamedTuple):
    """The messages of the statements on a topic, or their passages, each in the first of these arrays that fits."""

    true: Array
    """Of those that are true at a time."""
    untrue: Array
    """Of those that are not: past values and plans."""
    withdrawn: Array
    """Of those that were corrected or retracted."""


NO_RECORD = OnRecord(*(np.zeros(0, dtype=np.int64),) * 3)


RELATIVE_WEIGHT = 0.1
"""Weight of the statement that names a relative, for a query that names the relative: other topics matter more."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which statements a query asks for: those on its topics, about the user or about others."""

    topics: Mapping[str, float]
    """The weight of each slot."""
    relatives: frozenset[str]
    """The slots of the relatives whom it names. Their statements are about the user in any case."""
    user: frozenset[NodeId]
    """The entities that are the user."""
    is_about_user: bool | None
    """Whether it is about the user, or else about another person; None if its words do not say."""

    def among(self, versions: Sequence[Version]) -> list[Version]:
        """Return the versions on the topic that weighs most; empty if none is on any."""
        weights = [self._weight(one) for one in versions]
        most = max(weights)
        return [one for one, weight in zip(versions, weights, strict=True) if most and weight == most]

    def _weight(self, one: Version) -> float:
        said = one.first
        if said.slot in self.relatives:
            return RELATIVE_WEIGHT
        if self.is_about_user is not None and self.is_about_user != (said.subject in self.user):
            return 0.0
        return self.topics.get(said.slot, 0.0)


def asked_time(query: str, now_ms: int, offset: Offset) -> int | None:
    """Return the last moment of the past time that a query names, if it names a lasting topic; otherwise None."""
    if not any(slot_of(slot).is_lasting for slot in asked(query).topics):
        return None
    found = stated_time(query, now_ms, "question", offset)
    if found is None or found.until_ms is None or found.until_ms > now_ms:
        return None
    return found.until_ms - 1


def wanted_by(ledger: Ledger, network: Network, query: str) -> Wanted:
    """Return which statements a query asks for, by its words."""
    question = asked(query)
    user = network.entity_of_key.get(entity_key(USER))
    merged = frozenset[NodeId]() if user is None else ledger.known().merged_with(user)
    names_relatives = bool(question.relatives)
    is_about_user = None if question.is_in_first_person == names_relatives else not names_relatives
    return Wanted(question.topics, question.relatives, merged, is_about_user)


def validity_of(
    ledger: Ledger, nodes: Sequence[Node], now_ms: int, offset: Offset, *, is_chinese: bool, wanted: Wanted
) -> Validity:
    """Return the validity of a hit with these living nodes, for a query that asks for some statements."""
    statements = [node.id for node in nodes if node.kind in STATEMENT_KINDS]
    replay = ledger.known()
    stated = [one for number in statements if (one := replay.version_of(number)) is not None]
    if not stated:
        return NO_STATEMENT
    versions = wanted.among(stated) or stated
    current = [one for one in versions if one.holds_at(now_ms)]
    followers = {one.statement: _follower(ledger, one, now_ms) for one in versions if one not in current}
    if current:
        # A past value that the same words replace is not shown as current by them.
        replaced = [
            one
            for one in versions
            if one not in current
            and (one.withdrawn or one.retired_by)
            and followers[one.statement] not in current
        ]
        if not replaced:
            rivals = [other for one in current for other in one.rivals_at(now_ms)]
            return Validity(_note_of_current(current[0], rivals, is_chinese, offset))
        versions, is_asked = replaced, versions is not stated
    else:
        is_asked = True
    found = [one for each in versions if (one := followers[each.statement]) is not None]
    past = versions[0]
    # Of several facts in one memory, the note names the value that is over.
    value = past.first.object if len(stated) > 1 and not past.first.negated else ""
    values = _next_value(ledger, past), _value(followers[past.statement])
    return Validity(
        _note_of_past(past, values, is_chinese, offset, value),
        tuple(one.statement for one in found) if is_asked else (),
    )


def messages_on_record(ledger: Ledger, network: Network, query: str, time_ms: int) -> OnRecord:
    """Return the messages of the statements in the topics that a query names.

    They are about the user, or about the relative of the user whom the query names. A topic with many values says too
    little about which of them is meant. A query for everything about the user names all topics.
    """
    question = asked(query)
    relatives = [one.replace("_", " ") for one in sorted(question.relatives - {"partner"})]
    subject = network.entity_of_key.get(entity_key(f"{USER}'s {relatives[0]}" if relatives else USER))
    if subject is None:
        return NO_RECORD
    replay = ledger.known()
    if asks_for_everything(query):
        named = sorted(ledger.slots_of(replay.merged_with(subject)))
    else:
        named = [slot for slot in sorted(question.topics) if slot_of(slot).is_lasting]
    true, untrue, withdrawn = set[int](), set[int](), set[int]()
    for slot in named:
        for one in replay.versions(subject, slot):
            is_true = one.holds_at(time_ms) and one.first.modality != "planned"
            (true if is_true else withdrawn if one.withdrawn else untrue).update(one.messages)
    found = sorted(true), sorted(untrue - true), sorted(withdrawn - untrue - true)
    return OnRecord(*(np.array(some, dtype=np.int64) for some in found))


def _followers(ledger: Ledger, past: Version) -> Iterator[Version]:
    """Yield the versions that followed a past one, one after the other."""
    replay, one = ledger.known(), past
    for _ in range(MAX_STEPS):
        number = one.retired_by
        if one.withdrawn == "corrected":
            number = replay.correction_of(one.statement)
        following = replay.version_of(number) if number else None
        if following is None or following is one:
            return
        yield following
        one = following


def _follower(ledger: Ledger, past: Version, now_ms: int) -> Version | None:
    """Return the version that is true now in place of a past one."""
    return next((one for one in _followers(ledger, past) if one.holds_at(now_ms)), None)


def _next_value(ledger: Ledger, past: Version) -> str:
    """Return the value that came after a past one; empty if none did. A corrected one was never true."""
    return next(
        (value for one in _followers(ledger, past) if not one.withdrawn and (value := _value(one))), ""
    )


def _value(one: Version | None) -> str:
    return "" if one is None or one.first.negated else one.first.object


def _note_of_current(one: Version, rivals: Sequence[Version], is_chinese: bool, offset: Offset) -> str:
    since = local_date(one.since_ms, offset)
    if one.first.modality == "planned":
        return _note_of_plan(one, since, is_chinese)
    notes = []
    if one.first.slot not in DATES:
        notes.append(f"自 {since}" if is_chinese else f"since {since}")
    if rivals:
        rival = rivals[0].first
        other = word_value(rival.slot, rival.object, negated=rival.negated, is_chinese=is_chinese)
        notes.append(f"与“{other}”矛盾" if is_chinese else f"contradicts: {other}")
    if not notes:
        return ""
    return f"（{'；'.join(notes)}）" if is_chinese else f" ({'; '.join(notes)})"


def _note_of_plan(one: Version, since: str, is_chinese: bool) -> str:
    if one.is_observation:
        return "（计划中）" if is_chinese else " (planned)"
    return f"（计划于 {since}）" if is_chinese else f" (planned for {since})"


def _note_of_past(
    past: Version, values: tuple[str, str], is_chinese: bool, offset: Offset, value: str
) -> str:
    """Return the note of a past version, with the value after it and the one that is true now."""
    then, now = values
    if past.withdrawn == "corrected":
        return (
            (f"（已更正：{then}）" if then else "（已更正）")
            if is_chinese
            else (f" (corrected: {then})" if then else " (corrected)")
        )
    if past.withdrawn:
        return "（已撤回）" if is_chinese else " (retracted)"
    if past.until_ms is None:
        since = local_date(past.since_ms, offset)
        if past.first.modality == "planned":
            return _note_of_plan(past, since, is_chinese)
        return f"（从 {since} 起）" if is_chinese else f" (from {since} on)"
    until = local_date(past.until_ms, offset)
    if is_chinese:
        notes = [f"{value}：至 {until}" if value else f"至 {until}", *([f"之后：{then}"] if then else [])]
        notes += [f"现在：{now}"] if now and normalised(now) != normalised(then) else []
        return f"（{'；'.join(notes)}）"
    notes = [f"{value} until {until}" if value else f"until {until}", *([f"then {then}"] if then else [])]
    notes += [f"now {now}"] if now and normalised(now) != normalised(then) else []
    return f" ({'; '.join(notes)})"
