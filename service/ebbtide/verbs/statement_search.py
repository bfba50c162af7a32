"""Search over statements: hybrid search finds messages, and their statements are scored and followed along links.

`fleet/recall/statement_matches.py` finds statements and their similarity, and `statement_scores.py` orders them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from pydantic import Field

from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.fleet.recall.statement_matches import StatementMatches
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId
from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.memory.causal_paths import MAX_DEPTH, CausalPath, causal_paths
from ebbtide.memory.topic_words import asks_for_everything, asks_only_for_the_past, asks_why
from ebbtide.records import local_date
from ebbtide.retrieval.question_topics import question_topics
from ebbtide.retrieval.times import Offset
from ebbtide.statements import KINDS
from ebbtide.verbs.causes import CausePath, shown_path
from ebbtide.verbs.limits import EPOCH, MILLISECOND, Between, MaxChars, NotBlank, OneOf, Several, Time
from ebbtide.verbs.recall import UNEMBEDDED, QueryRequest, TimeRange, query_of, with_meaning
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service
from ebbtide.verbs.statement_scores import Limits, StatementScores
from ebbtide.verbs.statements import StatementInfo, View

MAX_HITS = 60
"""Messages whose statements are looked at."""

MAX_EXPLAINED = 3
"""Statements whose causes a question that asks why looks for, the most similar ones."""

MAX_PATHS = 5
"""Most paths to causes in a response."""

MAX_REACHED = 64
"""Most nodes that are reached along links."""


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
    include_past: bool = Field(
        False,
        description="Also statements that are no longer true. A question such as 'Where did I live before?' finds them "
        "in any case.",
    )


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
        self._request = request
        self._plan = plan
        self._workspace = workspace
        ledger, network = workspace.ledger, workspace.network
        named = workspace.subject_names.of(workspace.epoch, network, ledger, view.replay)
        floor = workspace.search.min_relevance
        self._matches = StatementMatches(
            view.txn, network, ledger, view.replay, named, request.query, topics, floor, plan.topics
        )
        includes_past = request.include_past or (past_ms is None and asks_only_for_the_past(request.query))
        limits = Limits(request.kinds, request.time_range, request.max_results or 10, includes_past)
        self._scores = StatementScores(view, self._matches, limits, past_ms)
        self._asks_why = request.mode != "fast" and asks_why(request.query)

    def answer(self, hits: Recollected) -> FoundStatements:
        """Return the statements of the hits and those near them, best first."""
        similar = self._matches.find(hits)
        reached = dict.fromkeys(similar, 0)
        if self._expands(len(similar)):
            reached = self._reached(similar)
        causes = self._causes(similar) if self._asks_why else []
        for path in causes:
            self._follow(path, similar, reached)
        linked = {cause.node_id for path in causes for cause in path.causes}
        best = self._scores.best(similar, reached, linked)
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
