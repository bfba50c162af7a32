"""Search over statements: hybrid search finds messages, and their statements are scored and followed along links.

score = 0.4 similarity + 0.2 importance + 0.2 / (1 + distance) + 0.1 e^(-rate days) + 0.1 ln(1 + n) / ln(1 + n_max)

The similarity is the score of the message, as a share of the best one, times the share of the query's words that occur
in the statement. The distance counts links from a statement that was found by its words. Days count since it was said
last, and n is how often a search has returned it since the agent was opened.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Annotated

from pydantic import Field

from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, node_text_id
from ebbtide.memory.causal_paths import MAX_DEPTH, CausalPath, causal_paths
from ebbtide.memory.network import Network
from ebbtide.memory.statements import DAY_MS, Version
from ebbtide.memory.subjects import USER
from ebbtide.memory.topic_words import TASKS, asks_for_the_past, topics_of
from ebbtide.records import Link
from ebbtide.retrieval.analysis import words_of
from ebbtide.verbs.causes import CausePath, shown_path
from ebbtide.verbs.limits import Between, MaxChars, NotBlank, OneOf, Several, Time
from ebbtide.verbs.recall import QueryRequest, TimeRange, query_of, with_meaning
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import CURRENT, KINDS, StatementInfo, View, shown_statement

MAX_HITS = 60
"""Messages whose statements are looked at."""

MAX_EXPLAINED = 3
"""Statements whose causes a question that asks why looks for, the most similar ones."""

MAX_PATHS = 5
"""Most paths to causes in a response."""

MAX_REACHED = 64
"""Most nodes that are reached along links."""

RATES = {
    "event": 0.05,
    "opinion": 0.03,
    "fact": 0.01,
    "preference": 0.01,
    "reflection": 0.01,
    "relation": 0.005,
    "task": 0.05,
}
"""Decay of recency per day, by kind. An open task does not decay before it is due."""

TOPIC_SHARE = 0.5
"""Share of the similarity that a topic has which the question names."""

PAST_PENALTY = 0.3
"""Subtracted from the score of a current statement if a question is about an earlier time."""

WHY_WORDS = (
    "why",
    "because",
    "reason",
    "related",
    "connect",
    "cause",
    "为什么",
    "为何",
    "原因",
    "相关",
    "有关",
    "导致",
)


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
    as_of: Time | None = Field(None, description="The time for which to answer; default: now.")
    known_at: Time | None = Field(None, description="Answer with what was known at this time.")
    include_past: bool = Field(False, description="Also statements that are no longer true.")


class FoundStatement(StatementInfo):
    """A found statement."""

    score: float = Field(description="Its score; comparable within one response only.")
    distance: int = Field(description="Links from a statement that was found by its words; 0 for such a one.")


class FoundStatements(Response):
    """The found statements."""

    statements: list[FoundStatement] = Field(description="The statements, best first.")
    paths: list[CausePath] = Field(
        description="The paths to causes that the search followed, if the question asks why; at most 5."
    )


async def search_statements(service: Service, request: SearchStatementsRequest) -> FoundStatements:
    """Find statements that answer a question, best first."""
    now_ms = service.clock.now_ms()
    async with service.fleet.using(request.owner) as agent:
        fields = {"agent_id": request.agent_id, "query": request.query, "max_results": MAX_HITS}
        plain = QueryRequest.model_validate({**fields, "time_range": request.time_range})
        query = await with_meaning(service, await query_of(agent, plain))
        return await agent.query(partial(_found, agent.workspace, query, request, now_ms))


def _found(
    workspace: Workspace, query: Query, request: SearchStatementsRequest, now_ms: int
) -> FoundStatements:
    hits, _ = workspace.recollect(query, now_ms, len)
    as_of_ms = now_ms if request.as_of is None else request.as_of
    assert workspace.ledger is not None  # read before the transaction, which cannot be nested
    return workspace.store.read(
        lambda txn: _Search(
            View(txn, workspace, as_of_ms, request.known_at, now_ms), request, workspace
        ).answer(hits)
    )


class _Search:
    """One search over statements within one read transaction."""

    def __init__(self, view: View, request: SearchStatementsRequest, workspace: Workspace) -> None:
        self._view = view
        self._request = request
        self._workspace = workspace
        self._words = {word.casefold() for word in words_of(request.query)}
        self._topics, self._relative = topics_of(request.query)
        self._asks_why = request.mode != "fast" and any(
            word in request.query.casefold() for word in WHY_WORDS
        )
        self._asks_for_past = request.include_past and asks_for_the_past(request.query)

    def answer(self, hits: Recollected) -> FoundStatements:
        """Return the statements of the hits and those near them, best first."""
        similar = self._with_topics(self._similar(hits))
        reached = dict.fromkeys(similar, 0)
        if self._expands(len(similar)):
            reached = self._reached(similar)
        causes = self._causes(similar) if self._asks_why else []
        for path in causes:
            self._follow(path, similar, reached)
        uses, found = self._workspace.statement_uses, list[FoundStatement]()
        most_used = max([uses.get(one, 0) for one in reached], default=0)
        for statement, distance in reached.items():
            version = self._view.replay.version_of(statement)
            if version is None or shown_statement(version, self._workspace) != statement:
                continue
            info = self._view.info(version)
            if not self._is_wanted(info):
                continue
            used = math.log1p(uses.get(statement, 0)) / math.log1p(most_used) if most_used else 0.0
            score = (
                0.4 * similar.get(statement, 0.0)
                + 0.2 * info.importance
                + 0.2 / (1 + distance)
                + 0.1 * math.exp(-self._age(version))
                + 0.1 * used
            )
            if self._asks_for_past and info.state in CURRENT:
                score -= PAST_PENALTY
            found.append(FoundStatement(**dict(info), score=round(score, 4), distance=distance))
        found.sort(key=lambda one: (-one.score, int(one.id[1:])))
        best = found[: self._request.max_results or 10]
        for one in best:
            number = int(one.id[1:])
            uses[number] = uses.get(number, 0) + 1
        shown = {one.id for one in best}
        followed = [path for path in causes if node_text_id(path.start) in shown]
        return FoundStatements(
            statements=best, paths=[shown_path(self._view, path) for path in followed[:MAX_PATHS]]
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

    def _is_wanted(self, info: StatementInfo) -> bool:
        if self._request.kinds and info.kind not in self._request.kinds:
            return False
        return info.state in CURRENT or (
            self._request.include_past and info.state in ("superseded", "ended", "forgotten")
        )

    def _age(self, version: Version) -> float:
        kind, now_ms = version.first.kind, self._view.now_ms
        last_ms = max(one.told_at_ms for one in version.assertions)
        if kind == "task":
            last_ms = max(last_ms, version.since_ms)
        return RATES[kind] * max(0, now_ms - last_ms) / DAY_MS

    def _similar(self, hits: Recollected) -> dict[NodeId, float]:
        """Return the similarity of the statements of the found messages, and of those that followed them."""
        by_message: dict[int, list[NodeId]] = {}
        ledger = self._workspace.ledger
        for statement in ledger.statements:
            for one in ledger.assertions_of(statement):
                by_message.setdefault(one.source.message, []).append(statement)
        best = max((one.score for one in hits.memories), default=0.0)
        found: dict[NodeId, float] = {}
        for hit in hits.memories:
            statements = by_message.get(hit.message, [])
            for statement in statements:
                share = self._share(statement) if len(statements) > 1 else 1.0
                similarity = share * hit.score / best if best > 0 else 0.0
                found[statement] = max(found.get(statement, 0.0), similarity)
        return found

    def _with_topics(self, similar: dict[NodeId, float]) -> dict[NodeId, float]:
        """Return the similarities where half counts for the topic that the question names, if it names one."""
        if not self._topics:
            return similar
        network, ledger = self._workspace.network, self._workspace.ledger
        found = {statement: (1 - TOPIC_SHARE) * share for statement, share in similar.items()}
        for statement in ledger.statements:
            one = ledger.assertions_of(statement)[0]
            entity = network.entities.get(one.subject)
            is_asked = one.slot in self._topics or (one.kind == "task" and TASKS in self._topics)
            is_asked = is_asked or (TASKS in self._topics and one.modality == "planned")
            if is_asked:
                named = entity is not None and entity.name == (self._relative or USER)
                found[statement] = found.get(statement, 0.0) + TOPIC_SHARE * (1.0 if named else 0.5)
            elif self._relative is not None and entity is not None and entity.name == self._relative:
                found[statement] = found.get(statement, 0.0) + TOPIC_SHARE / 2
        return found

    def _share(self, statement: NodeId) -> float:
        """Return the share of the query's words that occur in a statement."""
        said = self._workspace.ledger.assertions_of(statement)[0]
        node = self._view.txn.nodes.get(statement)
        text = f"{said.slot} {said.object} {'' if node is None else node.content}"
        words = {word.casefold() for word in words_of(text)}
        return len(self._words & words) / len(self._words) if self._words else 1.0

    def _expands(self, found_count: int) -> bool:
        depth = 1 if self._request.expand_depth is None else self._request.expand_depth
        if self._request.mode == "fast" or depth == 0:
            return False
        return self._request.mode == "deep" or self._asks_why or found_count < 3

    def _reached(self, starts: Iterable[NodeId]) -> dict[NodeId, int]:
        """Return the statements within reach of the found ones along live links, with their distance."""
        depth = 1 if self._request.expand_depth is None else self._request.expand_depth
        network, statements = self._workspace.network, set(self._workspace.ledger.statements)
        found = dict.fromkeys(starts, 0)
        # An entity between two statements is no step of its own.
        waiting = deque((one, 0) for one in found if one in network)
        seen = set(found)
        while waiting and len(seen) < MAX_REACHED:
            node_id, distance = waiting.popleft()
            for link in live_links_from(network, node_id):
                other = link.target
                if other in seen or len(seen) >= MAX_REACHED:
                    continue
                is_entity = other in network.entities
                steps = distance if is_entity else distance + 1
                if steps > depth or (not is_entity and other not in statements):
                    continue
                seen.add(other)
                if not is_entity:
                    found[other] = steps
                waiting.append((other, steps))
        return found


def live_links_from(network: Network, node_id: NodeId) -> list[Link]:
    """Return the live links of a node to living nodes, the strongest first."""
    rows = network.rows_from(network.slot_of(node_id))
    links = network.as_links(rows[network.is_live(rows)])
    return sorted((one for one in links if one.target in network), key=lambda one: -one.strength)
