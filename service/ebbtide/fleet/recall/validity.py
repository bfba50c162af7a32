"""Validity: which hits of a query state something that is no longer true, and the statement that is true now.

A memory of which a statement was made is shown with the times of that statement: since when it is true, until when it
was, and the value that followed. The value that followed is placed before it. A query about the user that names a topic
prefers the messages of statements that are true and on this topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.entity_names import entity_key
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import DATES, slot_of
from ebbtide.memory.statements import Ledger, Version
from ebbtide.memory.subjects import USER
from ebbtide.memory.topic_words import asked, asks_for_everything
from ebbtide.records import Node, local_date
from ebbtide.retrieval.times import Offset
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


def validity_of(ledger: Ledger, nodes: Sequence[Node], now_ms: int, locale: str, offset: Offset) -> Validity:
    """Return the validity of a hit with these living nodes."""
    statements = [node.id for node in nodes if node.kind in STATEMENT_KINDS]
    replay = ledger.known()
    versions = [one for number in statements if (one := replay.version_of(number)) is not None]
    if not versions:
        return NO_STATEMENT
    current = [one for one in versions if one.holds_at(now_ms)]
    is_chinese = contains_han(versions[0].first.object) if locale == "auto" else locale == "zh"
    if current:
        rivals = [other for one in current for other in one.rivals_at(now_ms)]
        return Validity(_note_of_current(current[0], rivals, is_chinese, offset))
    followers = [_follower(ledger, one, now_ms) for one in versions]
    found = [one for one in followers if one is not None]
    return Validity(
        _note_of_past(versions[0], followers[0], is_chinese, offset), tuple(one.statement for one in found)
    )


def messages_on_record(ledger: Ledger, network: Network, query: str, now_ms: int) -> list[int]:
    """Return the messages of statements that are true, in the topics that a query names.

    They are about the user, or about the relative of the user whom the query names. A topic with many values says too
    little about which of them is meant. A query for everything about the user names all topics.
    """
    question = asked(query)
    relatives = [one.replace("_", " ") for one in sorted(question.relatives - {"partner"})]
    subject = network.entity_of_key.get(entity_key(f"{USER}'s {relatives[0]}" if relatives else USER))
    if subject is None:
        return []
    replay = ledger.known()
    if asks_for_everything(query):
        named = sorted(ledger.slots_of(replay.merged_with(subject)))
    else:
        named = [slot for slot in sorted(question.topics) if slot_of(slot).is_lasting]
    return sorted(
        message
        for slot in named
        for one in replay.versions(subject, slot)
        if one.holds_at(now_ms) and one.first.modality != "planned"
        for message in one.messages
    )


def _follower(ledger: Ledger, past: Version, now_ms: int) -> Version | None:
    """Return the version that is true now in place of a past one."""
    replay, one = ledger.known(), past
    for _ in range(MAX_STEPS):
        number = one.retired_by
        if one.withdrawn == "corrected":
            number = replay.correction_of(one.statement)
        following = replay.version_of(number) if number else None
        if following is None or following is one:
            return None
        if following.holds_at(now_ms):
            return following
        one = following
    return None


def _note_of_current(one: Version, rivals: Sequence[Version], is_chinese: bool, offset: Offset) -> str:
    since = local_date(one.since_ms, offset)
    if one.first.modality == "planned":
        return _note_of_plan(one, since, is_chinese)
    if rivals:
        other = rivals[0].first.object
        return f"（自 {since}；与“{other}”矛盾）" if is_chinese else f" (since {since}; contradicts: {other})"
    if one.first.slot in DATES:
        return ""
    return f"（自 {since}）" if is_chinese else f" (since {since})"


def _note_of_plan(one: Version, since: str, is_chinese: bool) -> str:
    if one.is_observation:
        return "（计划中）" if is_chinese else " (planned)"
    return f"（计划于 {since}）" if is_chinese else f" (planned for {since})"


def _note_of_past(past: Version, follower: Version | None, is_chinese: bool, offset: Offset) -> str:
    then = "" if follower is None or follower.first.negated else follower.first.object
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
        return f"（至 {until}；之后：{then}）" if then else f"（至 {until}）"
    return f" (until {until}; then {then})" if then else f" (until {until})"
