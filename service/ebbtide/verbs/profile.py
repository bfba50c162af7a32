"""profile: what an agent knows about a person or a thing, by topic, and what contradicts itself in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

from pydantic import Field

from ebbtide.entity_names import entity_key
from ebbtide.errors import InvalidRequest, no_ruling
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.han import contains_han
from ebbtide.ids import NodeId, node_number, node_text_id, parse_node_id, parse_ruling_id, ruling_text_id
from ebbtide.memory.slot_names import DATES, label, slot_of
from ebbtide.memory.subjects import USER
from ebbtide.memory.values import reports_change
from ebbtide.memory.wording import word_value
from ebbtide.normalisation import on_one_line
from ebbtide.records import local_date
from ebbtide.retrieval.tokenizers import count_tokens
from ebbtide.statements import Ruling, RulingKind
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.limits import Between, MaxChars, OneOf, Several, Time
from ebbtide.verbs.paging import AgentPageRequest, number_from_token, to_token
from ebbtide.verbs.requests import AgentRequest, Response, refuse
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import (
    AN_ENTITY,
    CURRENT,
    MAX_SUBJECT_CHARS,
    Reason,
    StatementInfo,
    StoredRuling,
    View,
    entity_meant,
    last_ruling,
    newest_statement,
    read_at,
    store_ruling,
)

ACTIONS = ("pin", "unpin", "upvote", "downvote")
RULING_KINDS = ("merge", "settle", "correct", "retract", "pin", "unpin", "vote", "distinct", "cause")

MAX_SHOWN = 256
"""Most statements of a slot in a profile, the best first."""


class GetProfileRequest(AgentRequest):
    """About whom, and at which time."""

    entity: Annotated[str, MaxChars(MAX_SUBJECT_CHARS)] = Field(
        "", description="A name, I, or the id of an entity; default: the user.", examples=["user"]
    )
    as_of: Time | None = Field(None, description="The time for which to answer; default: now.")
    known_at: Time | None = Field(
        None, description="Answer with what was known at this time; default: everything."
    )
    token_budget: Annotated[int, Between(1, 100_000)] | None = Field(
        None, description="Most tokens of the text; default: no limit."
    )


class ProfileSlot(Response):
    """A topic, with what is true of it."""

    slot: str = Field(description="The topic.", examples=["residence"])
    cardinality: str = Field(description="How many values it has at a time: one, few or many.")
    lasting: bool = Field(description="Whether statements on it are never forgotten while they are true.")
    statements: list[StatementInfo] = Field(
        description="The true statements, the best first; then open plans."
    )


class Profile(Response):
    """The knowledge about an entity."""

    entity_id: str = Field(description="Id of the entity; empty if nothing is known about it.")
    name: str = Field(description="Its name.", examples=["user"])
    names: list[str] = Field(
        description="The names of the entities that are merged with it, its own included."
    )
    slots: list[ProfileSlot] = Field(description="The topics, lasting ones first.")
    text: str = Field(
        description="The profile for a language model, a line for each statement, within the token budget.",
        examples=["residence: Porto (since 2026-05-01) [n1]"],
    )
    is_cut: bool = Field(
        description="Whether statements were left out: of the text for the token budget, or of a topic that has more "
        "than 256 of them."
    )


async def get_profile(service: Service, request: GetProfileRequest) -> Profile:
    """Return the knowledge about a person or a thing, by topic, with the words that support it.

    Raise NODE_FORGOTTEN if an id existed once, NODE_NOT_FOUND if it did not. A name may be unknown.
    """
    return await read_at(service, request.owner, request.as_of, request.known_at, partial(_profile, request))


def _profile(request: GetProfileRequest, view: View) -> Profile:
    words = request.entity or USER
    entity = view.entity(words, "entity")
    if entity is None:
        return Profile(entity_id="", name=words, names=[], slots=[], text="", is_cut=False)
    slots, has_more = [], False
    for name, versions in view.replay.profile(entity, view.as_of_ms, view.now_ms):
        has_more |= len(versions) > MAX_SHOWN
        found = [view.info(version) for version in versions[:MAX_SHOWN]]
        known = [one for one in found if one.state in CURRENT]
        if known:
            slot = slot_of(name)
            slots.append(
                ProfileSlot(
                    slot=name, cardinality=slot.cardinality, lasting=slot.is_lasting, statements=known
                )
            )
    entities = view.workspace.network.entities
    merged = sorted(view.replay.merged_with(entity))
    text, is_cut = _text(slots, request.token_budget, partial(line_of, view.workspace))
    return Profile(
        entity_id=node_text_id(entity),
        name=entities[entity].name,
        names=[entities[one].name for one in merged if one in entities],
        slots=slots,
        text=text,
        is_cut=is_cut or has_more,
    )


def _text(
    slots: list[ProfileSlot], budget: int | None, line_of: Callable[[StatementInfo], str]
) -> tuple[str, bool]:
    """Return the lines of a profile that fit the budget, and whether some do not."""
    lines: list[str] = []
    used = 0
    for slot in slots:
        for one in slot.statements:
            line = line_of(one)
            cost = count_tokens(line, "estimate") if budget is not None else 0
            if budget is not None and used + cost > budget:
                return "\n".join(lines), True
            used += cost
            lines.append(line)
    return "\n".join(lines), False


def line_of(workspace: Workspace, one: StatementInfo) -> str:
    """Return a statement in a line: `residence: Porto (since 2026-05-01) [n12]`, 住在：上海（自 2026-05-01）[n12]."""
    locale, offset = workspace.parameters.locale, workspace.offset
    is_chinese = contains_han(f"{one.object} {one.content}") if locale == "auto" else locale == "zh"
    since = local_date(one.since, offset)
    until = "" if one.until is None else local_date(one.until, offset)
    others = ", ".join(one.conflicts_with)
    # It is not known since when an observation was true that news end before it was said (ADR 0051).
    is_begin_shown = one.slot not in DATES and one.since != one.until
    notes = [f"自 {since}" if is_chinese else f"since {since}"] if is_begin_shown else []
    is_plan = one.state == "planned" and one.modality == "planned"
    if is_plan:
        said_at = one.quotes[0].said_at if one.quotes else one.told_at
        at = "" if said_at == one.since else f"于 {since}" if is_chinese else f" for {since}"
        notes = [f"计划{at or '中'}" if is_chinese else f"planned{at}"]
    if until:
        notes.append(f"至 {until}" if is_chinese else f"until {until}")
    if one.state != "current" and others:
        notes.append(f"与 {others} 矛盾" if is_chinese else f"contradicts {others}")
    elif one.state != "current" and not is_plan:
        notes.append(_CHINESE_STATES[one.state] if is_chinese else one.state)
    # A denial that reports a change says what was true until then: "pet: Rex (until 2026-05-01)".
    is_end = one.negated and one.object and is_begin_shown and not is_plan and not until
    if is_end and reports_change(one.content, negated=True):
        notes[0] = f"至 {since}" if is_chinese else f"until {since}"
        value = one.object
    else:
        value = word_value(one.slot, one.object, negated=one.negated, is_chinese=is_chinese)
    if is_chinese:
        note = f"（{'；'.join(notes)}）" if notes else ""
        return on_one_line(f"{label(one.slot, 'zh')}：{value or one.content}{note}[{one.id}]")
    note = f" ({'; '.join(notes)})" if notes else ""
    return on_one_line(f"{label(one.slot, 'en')}: {value or one.content}{note} [{one.id}]")


_CHINESE_STATES: Final = {
    "contested": "有矛盾",
    "superseded": "已被取代",
    "ended": "已结束",
    "planned": "计划中",
    "corrected": "已更正",
    "retracted": "已撤回",
}


# --- conflicts -------------------------------------------------------------------------------------------


class ListConflictsRequest(AgentPageRequest):
    """Which page of conflicts."""

    as_of: Time | None = Field(None, description="The time for which to answer; default: now.")


class ConflictInfo(Response):
    """Two statements that contradict each other; the one with the higher priority first."""

    first: StatementInfo = Field(description="The statement with the higher priority.")
    second: StatementInfo = Field(description="The other one.")


class ConflictPage(Response):
    """A page of conflicts."""

    conflicts: list[ConflictInfo] = Field(description="The conflicts of this page.")
    next_page_token: str = Field(description="Empty on the last page.")


class ResolveConflictRequest(AgentRequest):
    """Which statement of a conflict is true."""

    keep: str = Field(description="Id of the statement that is true.", examples=["n1"])
    drop: str = Field(description="Id of the statement that it ends.", examples=["n2"])
    reason: Reason = Field("", description="Why, for the audit of the agent's knowledge.")


async def list_conflicts(service: Service, request: ListConflictsRequest) -> ConflictPage:
    """List the statements that contradict each other, for review."""
    start, size = number_from_token(request.page_token, "conflicts"), request.size

    def read(view: View) -> ConflictPage:
        found = view.replay.conflicts(view.as_of_ms, view.now_ms, start + size + 1)
        pairs = [
            ConflictInfo(first=view.info(one.first), second=view.info(one.second))
            for one in found[start : start + size]
        ]
        token = to_token(str(start + size), "conflicts") if len(found) > start + size else ""
        return ConflictPage(conflicts=pairs, next_page_token=token)

    return await read_at(service, request.owner, request.as_of, None, read)


async def resolve_conflict(service: Service, request: ResolveConflictRequest) -> StoredRuling:
    """Settle a conflict in favour of one statement. The other one ends and stays in the history.

    The id of a corrected statement means its last correction.
    """
    ids = parse_node_id(request.keep), parse_node_id(request.drop)
    async with service.fleet.using(request.owner) as agent:
        workspace, now_ms = agent.workspace, service.clock.now_ms()

        def rivals() -> tuple[NodeId, NodeId] | None:
            """Return the two statements if they contradict each other."""
            keep, drop = (newest_statement(workspace, one) for one in ids)
            replay = workspace.ledger.known()
            kept, other = replay.version_of(keep), replay.version_of(drop)
            assert kept is not None, "a statement supports a version"
            assert other is not None, "a statement supports a version"
            return (keep, drop) if kept.replay.contradict(kept, other) else None

        found = await agent.run(rivals)
        if found is None:
            raise InvalidRequest(
                f"drop: {request.drop} does not contradict {request.keep}; allowed: a pair of "
                "GET /v1/agents/{agent_id}/conflicts (ListConflicts)",
                reason="INVALID_VALUE",
            )
        keep, drop = found
        ruling = Ruling(1, "settle", keep, now_ms, other=drop)
        details: dict[str, object] = {"keep": node_text_id(keep), "drop": node_text_id(drop)}
        return await store_ruling(service, agent, ruling, request.reason, details)


# --- merges ----------------------------------------------------------------------------------------------


class MergeEntitiesRequest(AgentRequest):
    """Two entities that are one."""

    entity: Annotated[str, MaxChars(MAX_SUBJECT_CHARS)] = Field(
        description="A name, or the id of an entity.", examples=["Bob"]
    )
    other: Annotated[str, MaxChars(MAX_SUBJECT_CHARS)] = Field(
        description="Another name, or its id.", examples=["Robert"]
    )
    reason: Reason = Field("", description="Why, for the audit of the agent's knowledge.")


async def merge_entities(service: Service, request: MergeEntitiesRequest) -> StoredRuling:
    """Treat two entities as one in every answer. UndoRuling separates them again, exactly.

    To merge them again changes nothing and returns the ruling in effect.
    """
    return await _rule_on(service, request, "merge")


async def _rule_on(service: Service, request: MergeEntitiesRequest, kind: RulingKind) -> StoredRuling:
    async with service.fleet.using(request.owner) as agent:
        workspace, numbers = agent.workspace, []
        for name, words in (("entity", request.entity), ("other", request.other)):
            number = await agent.run(partial(_entity, workspace, name, words))
            numbers.append(number)
        if numbers[0] == numbers[1]:
            raise InvalidRequest("other: the same entity; allowed: another entity", reason="INVALID_VALUE")
        last = await agent.run(partial(last_ruling, workspace, numbers, ("merge", "distinct")))
        if last is not None and last.kind == kind:
            return StoredRuling(ruling_id=ruling_text_id(last.entry))
        if last is not None and last.kind == "merge":
            undo = f"undo {ruling_text_id(last.entry)} first (DELETE rulings/{{ruling_id}}, UndoRuling)"
            refuse("other", request.other, f"an entity that is not merged with the first; {undo}")
        ruling = Ruling(1, kind, numbers[0], service.clock.now_ms(), other=numbers[1])
        details: dict[str, object] = {"entities": [node_text_id(number) for number in numbers]}
        return await store_ruling(service, agent, ruling, request.reason, details)


class RulingInfo(Response):
    """A ruling in effect."""

    id: str = Field(description="Id of the ruling.", examples=["r1"])
    kind: str = Field(
        description="merge, settle, correct, retract, pin, unpin, vote, distinct (a rejected proposal) or "
        "cause (an inferred link)."
    )
    target: str = Field(description="Id of the statement or entity that it is about.", examples=["n1"])
    other: str = Field(description="Id of the other statement or entity; empty if there is none.")
    value: float = Field(description="1 or -1 for a vote; the confidence of a cause.")
    author: str = Field(description="The name of the key that stored it, or the rule, such as causes@1.")
    reason: str = Field(description="Why; without a reason, the words that it rests on.")
    known_at: int = Field(description="When it was stored, ms since the epoch.")


class ListMergesRequest(AgentPageRequest):
    """Which page of proposals."""


class MergeProposal(Response):
    """Two names that may mean one person or thing."""

    first: str = Field(description="A name.", examples=["Bob"])
    first_id: str = Field(description="Id of its entity.", examples=["n5"])
    second: str = Field(description="The other name.", examples=["Bob Smith"])
    second_id: str = Field(description="Id of its entity.", examples=["n8"])
    why: str = Field(
        description="spelling, contains (one name contains the other), or similar.", examples=["contains"]
    )
    similarity: float = Field(description="Similarity of the names, 0-1; 0 if unknown.")


class MergePage(Response):
    """A page of proposals."""

    proposals: list[MergeProposal] = Field(description="The proposals of this page, the most similar first.")
    decided: list[RulingInfo] = Field(
        description="The latest merges and rejected proposals in effect, on the first page."
    )
    next_page_token: str = Field(description="Empty on the last page.")


async def list_merges(service: Service, request: ListMergesRequest) -> MergePage:
    """List names that may mean one person or thing, and what was decided. A proposal changes nothing by itself."""
    start, size = number_from_token(request.page_token, "merges"), request.size
    async with service.fleet.using(request.owner) as agent:
        found = await agent.propose_merges()
        workspace = agent.workspace
        rulings = [] if start else await agent.run(workspace.ledger.rulings)
        latest = [one for one in rulings if one.kind in ("merge", "distinct")][-size:]
        decided = await agent.run(
            lambda: workspace.store.read(lambda txn: [_ruling_info(txn, one) for one in latest])
        )
    proposals = [
        MergeProposal(
            first=first,
            first_id=node_text_id(one.first),
            second=second,
            second_id=node_text_id(one.second),
            why=one.why,
            similarity=round(one.similarity, 4),
        )
        for one, first, second in found[start : start + size]
    ]
    token = to_token(str(start + size), "merges") if len(found) > start + size else ""
    return MergePage(proposals=proposals, decided=decided, next_page_token=token)


async def reject_merge(service: Service, request: MergeEntitiesRequest) -> StoredRuling:
    """Reject a proposal: the two names are not proposed again. UndoRuling takes the rejection back.

    INVALID_VALUE for entities that are merged: undo that ruling first.
    """
    return await _rule_on(service, request, "distinct")


# --- feedback and rulings --------------------------------------------------------------------------------


class GiveFeedbackRequest(AgentRequest):
    """A judgement about a statement."""

    node_id: str = Field(description="Id of the statement.", examples=["n1"])
    action: Annotated[str, OneOf(ACTIONS)] = Field(
        description="pin (never forgotten), unpin, upvote or downvote."
    )
    reason: Reason = Field("", description="Why, for the audit of the agent's knowledge.")


async def give_feedback(service: Service, request: GiveFeedbackRequest) -> StoredRuling:
    """Pin a statement, or vote on it. A vote orders statements that contradict each other, and ends none.

    To pin a pinned statement, or to unpin one that was unpinned, changes nothing and returns the ruling in effect. The
    id of a corrected statement means its last correction.
    """
    number = parse_node_id(request.node_id)
    async with service.fleet.using(request.owner) as agent:
        number = await agent.run(partial(newest_statement, agent.workspace, number))
        if request.action in PINS:
            return await pin_statement(service, agent, number, request.action, request.reason)
        value = {"upvote": 1.0, "downvote": -1.0}[request.action]
        ruling = Ruling(1, "vote", number, service.clock.now_ms(), value=value)
        return await store_ruling(service, agent, ruling, request.reason, {"node": node_text_id(number)})


PINS: Final = ("pin", "unpin")
"""Of the rulings of these kinds about a statement, the last one is in effect."""


async def pin_statement(
    service: Service, agent: Agent, number: NodeId, action: str, reason: str = ""
) -> StoredRuling:
    """Pin or unpin a statement. Return the ruling in effect if that is what it says."""
    last = await agent.run(partial(last_ruling, agent.workspace, [number], PINS))
    if last is not None and last.kind == action:
        return StoredRuling(ruling_id=ruling_text_id(last.entry))
    kind: RulingKind = "pin" if action == "pin" else "unpin"
    ruling = Ruling(1, kind, number, service.clock.now_ms())
    return await store_ruling(service, agent, ruling, reason, {"node": node_text_id(number)})


class RulingPage(Response):
    """A page of rulings."""

    rulings: list[RulingInfo] = Field(description="The rulings of this page, in order of arrival.")
    next_page_token: str = Field(description="Empty on the last page.")


class ListRulingsRequest(AgentPageRequest):
    """Which rulings to list."""

    kinds: Annotated[list[Annotated[str, OneOf(RULING_KINDS)]], Several] = Field(
        default_factory=list, description="Only rulings of these kinds. Over REST separated by commas."
    )


class RulingRequest(AgentRequest):
    """A request that names a ruling."""

    ruling_id: str = Field(description="Id of the ruling.", examples=["r1"])


async def list_rulings(service: Service, request: ListRulingsRequest) -> RulingPage:
    """List the rulings in effect: merges, settled conflicts, corrections, retractions, pins, votes, inferred links."""
    start, size = number_from_token(request.page_token, "rulings"), request.size

    def read(view: View) -> RulingPage:
        ledger = view.workspace.ledger
        undone = {one.entry for one in ledger.undone_corrections(None)}
        rulings = [one for one in ledger.rulings() if one.entry not in undone]
        pins = {one.target: one for one in rulings if one.kind in PINS}
        found = [
            one
            for one in rulings
            if one.entry >= start
            and (not request.kinds or one.kind in request.kinds)
            and (one.kind not in PINS or pins[one.target] is one)
        ]
        token = to_token(str(found[size].entry), "rulings") if len(found) > size else ""
        infos = [_ruling_info(view.txn, one) for one in found[:size]]
        return RulingPage(rulings=infos, next_page_token=token)

    return await read_at(service, request.owner, None, None, read)


def _ruling_info(txn: ReadTransaction, one: Ruling) -> RulingInfo:
    return RulingInfo(
        id=ruling_text_id(one.entry),
        kind=one.kind,
        target=node_text_id(one.target),
        other=node_text_id(one.other) if one.other else "",
        value=one.value,
        author=one.author,
        reason=one.reason or next(filter(None, map(txn.messages.quote, one.sources)), ""),
        known_at=one.known_at_ms,
    )


async def undo_ruling(service: Service, request: RulingRequest) -> StoredRuling:
    """Undo a ruling: answers are then as if it had never been made. Rulings can be undone in any order."""
    number = parse_ruling_id(request.ruling_id)
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace
        if not await agent.run(lambda: any(one.entry == number for one in workspace.ledger.rulings())):
            raise no_ruling()
        ruling = Ruling(1, "undo", number, service.clock.now_ms())
        return await store_ruling(service, agent, ruling, "", {"ruling": request.ruling_id})


def _entity(workspace: Workspace, field: str, words: str) -> NodeId:
    # The names of two entities to merge are exact: "Anna" is not "Anna (colleague)".
    number = None if node_number(words.strip()) else workspace.network.entity_of_key.get(entity_key(words))
    number = number or entity_meant(workspace, words, field)
    if number is None:
        refuse(field, words, AN_ENTITY)
    return number
