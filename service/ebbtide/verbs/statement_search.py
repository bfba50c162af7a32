"""Search over statements: hybrid search finds messages, and their statements are scored and followed along links.

score = 0.4 similarity + 0.2 importance + 0.2 / (1 + distance) + 0.1 e^(-rate days) + 0.1 ln(1 + n) / ln(1 + n_max)

The weights and rates are settings. `fleet/recall/statement_matches.py` has the similarity. The distance counts links
from a statement that was found by its words or topic. Days count since it was said last, and n is how often a search
has returned it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Field

from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.fleet.recall.statement_matches import StatementMatches
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.memory.causal_paths import MAX_DEPTH, CausalPath, causal_paths
from ebbtide.memory.slot_names import SLOTS, slot_of
from ebbtide.memory.statements import Version
from ebbtide.memory.topic_words import asks_for_everything, asks_for_the_past, asks_why
from ebbtide.memory.versions import SlotReplay
from ebbtide.records import local_date
from ebbtide.retrieval.question_topics import question_topics
from ebbtide.retrieval.times import Offset
from ebbtide.verbs.causes import CausePath, shown_path
from ebbtide.verbs.limits import EPOCH, MILLISECOND, Between, MaxChars, NotBlank, OneOf, Several, Time
from ebbtide.verbs.recall import UNEMBEDDED, QueryRequest, TimeRange, query_of, with_meaning
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import CURRENT, KINDS, StatementInfo, View, recency

MAX_HITS = 60
"""Messages whose statements are looked at."""

MAX_EXPLAINED = 3
"""Statements whose causes a question that asks why looks for, the most similar ones."""

MAX_PATHS = 5
"""Most paths to causes in a response."""

MAX_REACHED = 64
"""Most nodes that are reached along links."""

PAST_PENALTY = 0.3
"""Subtracted from the score of a current statement if a question is about an earlier time."""


MAX_VALUES = 64
"""Most values of a topic of which the latest one is preferred."""

LATEST_SHARE = 1.2
"""Similarity of the latest of several values of a topic that seldom has more than one, relative to the best of them.
It answers a question about the present, and the others one about an earlier time.
"""


class SearchStatementsRequest(AgentRequest):
    """The question, and limits of the answer."""

    query: Annotated[str, MaxChars("max_query_chars"), NotBlank("a question")] = Field(
        description="The question, in plain words.", examples=["Where do I live?"]
    )
    kinds: Annotated[list[Annotated[str, OneOf(KINDS)]], Several] = Field(
        default_factory=list, description="Only statements of these kinds."
    )
    time_range: TimeRange | None = Field(None, description="Only statements of messages of this time.")
    max_results: Annotated[int, Between(1, 100)] | None = Field(
        None, description="Most statements, 1-100; default: 10."
    )
    mode: Annotated[str, OneOf(("fast", "deep", "auto"))] = Field(
        "auto",
        description="fast: by words and meaning only; deep: also along links; auto: along links for a question that "
        "asks why, or if few statements are found.",
    )
    expand_depth: Annotated[int, Between(0, 3)] | None = Field(
        None, description="Links to follow from a found statement, 0-3; default: 1."
    )
    as_of: Time | None = Field(
        None,
        description="The time for which to answer; default: the end of a past time that the query names, else now.",
    )
    known_at: Time | None = Field(None, description="Answer with what was known at this time.")
    include_past: bool = Field(False, description="Also statements that are no longer true.")


class FoundStatement(StatementInfo):
    """A found statement."""

    score: float = Field(description="Its score; comparable within one response only.")
    distance: int = Field(description="Links from a statement that was found by its words; 0 for such a one.")


class PlannedSearch(Response):
    """The plan of the language model for a search."""

    outcome: str = Field(
        description="off: no plan was requested; used; failed: the search ran without a plan."
    )
    why: str = Field(description="Why it failed; empty otherwise.")
    kinds: list[str] = Field(description="The kinds that it selects; empty for all.")
    topics: list[str] = Field(description="The topics that it adds to those of the question.")
    since: int | None = Field(
        description="From when on messages count, ms since the epoch; null for no limit."
    )
    until: int | None = Field(description="Until when messages count, exclusive; null for no limit.")
    expand: bool = Field(description="Whether it follows links.")


NO_PLAN = PlannedSearch(outcome="off", why="", kinds=[], topics=[], since=None, until=None, expand=False)


class FoundStatements(Response):
    """The found statements."""

    statements: list[FoundStatement] = Field(description="The statements, best first.")
    paths: list[CausePath] = Field(
        description="The paths to causes that the search followed, if the question asks why; at most 5."
    )
    plan: PlannedSearch = Field(description="The plan of the search, if the daemon has a planner.")
    unembedded_messages: int = UNEMBEDDED


async def search_statements(service: Service, request: SearchStatementsRequest) -> FoundStatements:
    """Find statements that answer a question, best first."""
    now_ms = service.clock.now_ms()
    plan = await _planned(service, request, now_ms)
    if plan.outcome == "used":
        request = _following(request, plan)
    async with service.fleet.using(request.owner) as agent:
        query = await with_meaning(service, await _query(agent, request))
        return await agent.query(partial(_found, agent.workspace, query, request, plan, now_ms))


async def _query(agent: Agent, request: SearchStatementsRequest) -> Query:
    fields = {"agent_id": request.agent_id, "query": request.query, "max_results": MAX_HITS}
    plain = QueryRequest.model_validate({**fields, "time_range": request.time_range})
    return await query_of(agent, plain, ranks_only=True)


async def _planned(service: Service, request: SearchStatementsRequest, now_ms: int) -> PlannedSearch:
    """Return the plan of the language model. Nothing is held while it is awaited."""
    settings = service.settings.search
    if settings.planner == "off" or request.mode == "fast":
        return NO_PLAN
    async with service.fleet.using(request.owner) as agent:
        # The model reads the question as the agent would store it: redacted.
        question, offset = (await _query(agent, request)).text, agent.workspace.offset
    today, limit_s = local_date(now_ms, offset), settings.planner_timeout_ms / 1000
    try:
        plan = await service.model_client.plan_search(question, today, limit_s)
    except (ModelUnavailable, BadReply) as error:
        return NO_PLAN.model_copy(update={"outcome": "failed", "why": str(error)})
    return PlannedSearch(
        outcome="used",
        why="",
        kinds=list(plan.kinds),
        topics=list(plan.topics),
        since=_day_ms(plan.since, offset),
        until=_day_ms(plan.until, offset),
        expand=plan.expands,
    )


def _following(request: SearchStatementsRequest, plan: PlannedSearch) -> SearchStatementsRequest:
    """Return the request with what the plan adds. The caller's own fields stay."""
    more: dict[str, object] = {}
    if plan.kinds and not request.kinds:
        more["kinds"] = plan.kinds
    if (plan.since, plan.until) != (None, None) and request.time_range is None:
        more["time_range"] = TimeRange(begin=plan.since, end=plan.until)
    if plan.expand and request.mode == "auto":
        more["mode"] = "deep"
    return request.model_copy(update=more)


def _day_ms(day: str, offset: Offset) -> int | None:
    """Return when a day begins in a time zone."""
    if not day:
        return None
    time_ms: int = (datetime.fromisoformat(day).replace(tzinfo=UTC) - EPOCH) // MILLISECOND
    return time_ms - offset(time_ms)


def _found(
    workspace: Workspace, query: Query, request: SearchStatementsRequest, plan: PlannedSearch, now_ms: int
) -> FoundStatements:
    hits, _ = workspace.recollect(query, now_ms, len)
    as_of_ms = now_ms if request.as_of is None else request.as_of
    past_ms = hits.past_ms if request.as_of is None else None
    topics = question_topics(query.vector, query.embedding_model)
    assert workspace.ledger is not None  # read before the transaction, which cannot be nested
    return workspace.store.read(
        lambda txn: _Search(
            View(txn, workspace, as_of_ms, request.known_at, now_ms),
            request,
            plan,
            workspace,
            topics,
            past_ms,
        ).answer(hits)
    )


class _Scored(NamedTuple):
    """A statement that a search has found."""

    score: float
    statement: NodeId
    version: Version
    distance: int
    similarity: float


class _TrueValues(NamedTuple):
    """The values of a topic that are true, if one may have followed the other."""

    versions: Sequence[Version] = ()
    last_since_ms: int = 0
    """When the last one of them began."""
    similarity: float = 0.0
    """That of the most similar one."""

    def has_other(self, version: Version) -> bool:
        """Return whether one of them is not a version."""
        return len(self.versions) > 1 or any(one is not version for one in self.versions)


NO_VALUES = _TrueValues()


class _Search:
    """One search over statements within one read transaction."""

    def __init__(
        self,
        view: View,
        request: SearchStatementsRequest,
        plan: PlannedSearch,
        workspace: Workspace,
        topics: Mapping[str, float],
        past_ms: int | None,
    ) -> None:
        self._view = view
        self._is_dated = past_ms is not None
        self._as_of_ms = view.as_of_ms if past_ms is None else past_ms
        """The time for which to answer: the one that the question names, or that of the request."""
        self._request = request
        self._plan = plan
        self._workspace = workspace
        ledger, network = workspace.ledger, workspace.network
        named = workspace.subject_names.of(workspace.epoch, network, ledger, view.replay)
        floor = workspace.search.min_relevance
        self._matches = StatementMatches(
            view.txn, network, ledger, view.replay, named, request.query, topics, floor, plan.topics
        )
        self._states: dict[Version, str] = {}
        """The state of each version that was scored. Contested ones count as current."""
        self._true_values: dict[SlotReplay, _TrueValues] = {}
        """The values of a slot that are true, of those that were compared."""
        self._asks_why = request.mode != "fast" and asks_why(request.query)
        self._asks_for_past = request.include_past and not self._is_dated and asks_for_the_past(request.query)

    def answer(self, hits: Recollected) -> FoundStatements:
        """Return the statements of the hits and those near them, best first."""
        similar = self._matches.find(hits)
        reached = dict.fromkeys(similar, 0)
        if self._expands(len(similar)):
            reached = self._reached(similar)
        causes = self._causes(similar) if self._asks_why else []
        for path in causes:
            self._follow(path, similar, reached)
        best = self._true_first(self._near_best(self._scored(similar, reached), causes), similar)
        best = best[: self._request.max_results or 10]
        self._workspace.statement_uses.note(one.statement for one in best)
        shown = {one.statement for one in best}
        followed = [path for path in causes if path.start in shown]
        return FoundStatements(
            statements=[
                FoundStatement(
                    **self._view.fields(one.version), score=round(one.score, 4), distance=one.distance
                )
                for one in best
            ],
            paths=[shown_path(self._view, path) for path in followed[:MAX_PATHS]],
            plan=self._plan,
            unembedded_messages=hits.unembedded_count,
        )

    def _scored(self, similar: dict[NodeId, float], reached: dict[NodeId, int]) -> Iterator[_Scored]:
        """Yield the statements that the request lets through, with their scores."""
        uses, weights, now_ms = self._workspace.statement_uses, self._workspace.search, self._view.now_ms
        most_used = max(map(uses.of, reached), default=0)
        most = math.log1p(most_used)
        for statement, distance, version, state in self._wanted(reached):
            near = similar.get(statement, 0.0)
            used = math.log1p(uses.of(statement)) / most if most_used else 0.0
            score = (
                weights.similarity_weight * near
                + weights.importance_weight * version.first.importance
                + weights.distance_weight / (1 + distance)
                + weights.recency_weight * recency(version, weights, now_ms)
                + weights.use_weight * used
            )
            true = self._true_values_of(version, similar) if state in CURRENT else NO_VALUES
            has_rival = true.has_other(version)
            is_latest = state != "planned" and (not has_rival or true.last_since_ms <= version.since_ms)
            if self._asks_for_past and state in CURRENT and is_latest:
                score -= PAST_PENALTY
            elif has_rival and is_latest:
                best = max(similar.get(version.statement, 0.0), true.similarity) * LATEST_SHARE
                score += weights.similarity_weight * (best - near)
                near = best
            yield _Scored(score, statement, version, distance, near)

    def _wanted(self, reached: dict[NodeId, int]) -> Iterator[tuple[NodeId, int, Version, str]]:
        """Yield the statements that the request lets through, each with its distance, its version and its state."""
        alive = self._workspace.network.are_alive(list(reached)).tolist()
        for (statement, distance), is_alive in zip(reached.items(), alive, strict=True):
            version = self._matches.version_of(statement)
            if version is None or self._view.shown(version) != statement:
                continue
            state = self._state_of(version)
            if not is_alive and state in CURRENT:
                state = "forgotten"
            if self._is_wanted(version, state):
                yield statement, distance, version, state

    def _near_best(self, scored: Iterable[_Scored], causes: Sequence[CausalPath]) -> list[_Scored]:
        """Return the statements that are not much less similar than the best one, and those reached along links.

        With past ones, the values of a topic belong together.
        """
        found = list(scored)
        linked = {cause.node_id for path in causes for cause in path.causes}
        least = self._matches.weights.least_share * max((one.similarity for one in found), default=0.0)
        with_past = self._request.include_past
        near = {one.version.replay for one in found if with_past and one.similarity >= least}
        return [
            one
            for one in found
            if one.similarity >= least
            or one.distance
            or one.statement in linked
            or one.version.replay in near
        ]

    def _true_first(self, scored: list[_Scored], similar: dict[NodeId, float]) -> list[_Scored]:
        """Return statements, best first, a planned value of a topic after the values that are true.

        To a question for a past time, a value of any other time comes after them.
        """
        last = {one.statement for one in scored if self._comes_last(one.version)}
        slots = {one.version.replay for one in scored if one.statement in last}
        true: dict[SlotReplay, float] = {}
        for one in scored:
            if one.version.replay in slots and one.statement not in last:
                true[one.version.replay] = min(one.score, true.get(one.version.replay, one.score))

        def order(one: _Scored) -> tuple[float, bool, NodeId]:
            version = one.version
            is_last = one.statement in last and self._true_values_of(version, similar).has_other(version)
            score = min(one.score, true.get(version.replay, one.score)) if is_last else one.score
            return -score, is_last, one.statement

        return sorted(scored, key=order)

    def _comes_last(self, version: Version) -> bool:
        state = self._state_of(version)
        return state == "planned" or (self._is_dated and state not in CURRENT)

    def _true_values_of(self, version: Version, similar: dict[NodeId, float]) -> _TrueValues:
        """Return the values of the topic of a version that are true, if one may have followed the other.

        They may not if the topic has any number of values at a time. Of a topic that no slot knows, that is unknown.
        """
        said, slot = version.first, version.replay
        if said.negated or said.kind not in ("fact", "relation") or len(slot.versions) > MAX_VALUES:
            return NO_VALUES
        if said.slot in SLOTS and slot_of(said.slot).cardinality == "many":
            return NO_VALUES
        if slot not in self._true_values:
            true = [
                one
                for one in slot.versions
                if not one.first.negated and one.first.modality != "planned" and one.holds_at(self._as_of_ms)
            ]
            self._true_values[slot] = _TrueValues(
                true,
                max((one.since_ms for one in true), default=0),
                max((similar.get(one.statement, 0.0) for one in true), default=0.0),
            )
        return self._true_values[slot]

    def _state_of(self, version: Version) -> str:
        if version not in self._states:
            self._states[version] = self._view.replay.state_alone(version, self._as_of_ms)
        return self._states[version]

    def _causes(self, similar: dict[NodeId, float]) -> list[CausalPath]:
        """Return the paths to the causes of the most similar statements, by statement and strength."""
        starts = sorted(similar, key=lambda one: (-similar[one], one))[:MAX_EXPLAINED]
        network = self._workspace.network
        return [path for one in starts for path in causal_paths(network, one, MAX_DEPTH)[0]]

    def _follow(self, path: CausalPath, similar: dict[NodeId, float], reached: dict[NodeId, int]) -> None:
        """Add the causes of a statement to what is reached. They are as similar as their effect, times the path."""
        share = similar[path.start]
        for steps, cause in enumerate(path.causes, 1):
            share *= cause.strength
            reached[cause.node_id] = min(steps, reached.get(cause.node_id, steps))
            similar[cause.node_id] = max(share, similar.get(cause.node_id, 0.0))

    def _is_wanted(self, version: Version, state: str) -> bool:
        request = self._request
        if request.kinds and version.first.kind not in request.kinds:
            return False
        if request.time_range is not None and not _is_within(version, request.time_range):
            return False
        return state in CURRENT or (request.include_past and state in ("superseded", "ended", "forgotten"))

    def _expands(self, found_count: int) -> bool:
        depth = 1 if self._request.expand_depth is None else self._request.expand_depth
        if self._request.mode == "fast" or depth == 0 or asks_for_everything(self._request.query):
            return False
        return self._request.mode == "deep" or self._asks_why or found_count < 3

    def _reached(self, starts: Iterable[NodeId]) -> dict[NodeId, int]:
        """Return the statements within reach of the found ones along live links, with their distance."""
        depth = 1 if self._request.expand_depth is None else self._request.expand_depth
        network, ledger = self._workspace.network, self._workspace.ledger
        found = dict.fromkeys(starts, 0)
        # Everything is about the user: only a deep search follows the links of that entity.
        hubs = set() if self._request.mode == "deep" else self._matches.user()
        # An entity between two statements is no step of its own.
        waiting = deque((one, 0) for one in found if one in network)
        seen = set(found)
        while waiting and len(seen) < MAX_REACHED:
            node_id, distance = waiting.popleft()
            others = network.linked_from(node_id)
            for other, is_statement in zip(
                others.tolist(), ledger.are_statements(others).tolist(), strict=True
            ):
                if len(seen) >= MAX_REACHED:
                    break
                is_entity = other in network.entities
                steps = distance if is_entity else distance + 1
                if other in seen or steps > depth or not (is_entity or is_statement):
                    continue
                if other in hubs or (is_statement and self._is_of_another(other)):
                    continue
                seen.add(other)
                if not is_entity:
                    found[other] = steps
                waiting.append((other, steps))
        return found

    def _is_of_another(self, statement: NodeId) -> bool:
        version = self._matches.version_of(statement)
        return version is not None and self._matches.is_of_another(version.first)


def _is_within(version: Version, period: TimeRange) -> bool:
    """Return whether a message of a period states a version."""
    return any(
        (period.begin is None or period.begin <= one.told_at_ms)
        and (period.end is None or one.told_at_ms < period.end)
        for one in version.assertions
    )
