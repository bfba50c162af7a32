"""stats: how much an agent has stored, exactly or with noise that hides any single record.

With `epsilon` the counts are differentially private (docs/statistics.md): each of four kinds of records is counted
with discrete Laplace noise. One record more or less changes one of these counts by 1, so the four together spend
`epsilon` once. The release is durable in the audit log before the response is sent.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ebbtide.actor import actor
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.privacy_budget import RELEASED, exact
from ebbtide.privacy.laplace import discrete_laplace
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.verbs.requests import AgentRequest, Response, invalid
from ebbtide.verbs.service import Service

MIN_EPSILON = 0.001
MAX_EPSILON = 100.0


def _checked_epsilon(epsilon: float) -> float:
    # A comparison with NaN is false.
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise invalid(epsilon, f"{MIN_EPSILON:g}-{MAX_EPSILON:g}")
    return round(epsilon, 6)


class GetStatsRequest(AgentRequest):
    """Which agent to count, and how private the counts must be."""

    epsilon: Annotated[float, AfterValidator(_checked_epsilon)] | None = Field(
        None,
        description="Differential privacy: less is more private; 0.001-100, six decimals. Exact counts without it.",
        examples=[0.5],
    )


class AgentStats(Response):
    """How much an agent has stored."""

    messages: int = Field(description="Stored messages.")
    memories: int = Field(description="Living memories.")
    pinned: int = Field(description="Pinned ones among them.")
    entities: int = Field(description="Entities: names that memories are linked with.")
    links: int | None = Field(
        description="Links, dangling ones included; null with `epsilon`: one record may have thousands."
    )
    epsilon: float | None = Field(description="The privacy of these counts; null if they are exact.")
    privacy_budget: float = Field(description="The agent's parameter: the highest sum of epsilons.")
    privacy_spent: float = Field(description="The sum of the epsilons of all releases so far.")


async def get_stats(service: Service, request: GetStatsRequest) -> AgentStats:
    """Return how much the agent has stored, exactly or with differential privacy.

    PRIVACY_BUDGET_SPENT if less than `epsilon` of the agent's privacy budget is left; then nothing is released.
    """
    asker = actor()
    async with service.fleet.using(request.owner) as agent:
        workspace = agent.workspace
        while not await agent.run(lambda: workspace.store.read(workspace.privacy_budget.follow)):
            pass
        if request.epsilon is None:
            return await agent.run(lambda: _exact(workspace))
        details: dict[str, object] = {"epsilon": request.epsilon}
        entry = AuditEntry(service.clock.now_ms(), asker, RELEASED, details)
        return await agent.run(lambda: _released(workspace, entry, request.epsilon or 0.0))


def _exact(workspace: Workspace) -> AgentStats:
    counts = workspace.counts()
    # The pin of a statement is a ruling.
    statements = workspace.store.read(lambda txn: workspace.ledger_in(txn).known().pinned())
    return AgentStats(
        messages=counts.message_count,
        memories=counts.node_count,
        pinned=len(workspace.network.pinned()) + len(statements),
        entities=counts.entity_count,
        links=counts.link_count,
        epsilon=None,
        privacy_budget=workspace.parameters.privacy_budget,
        privacy_spent=float(workspace.privacy_budget.spent),
    )


def _released(workspace: Workspace, entry: AuditEntry, epsilon: float) -> AgentStats:
    """The job: spend the budget in a commit of its own, then return the counts with noise."""
    budget = workspace.privacy_budget

    def spend(txn: WriteTransaction) -> None:
        while not budget.follow(txn):
            pass
        budget.spend(txn, epsilon, workspace.parameters.privacy_budget, entry, workspace.identity.agent_id)

    workspace.store.write(spend)
    workspace.store.read(budget.follow)
    exactly = _exact(workspace)

    def noisy(count: int) -> int:
        return max(0, count + discrete_laplace(exact(epsilon)))

    pinned = noisy(exactly.pinned)
    return exactly.model_copy(
        update={
            "messages": noisy(exactly.messages),
            # Pinned and other memories are counted apart, so that one memory changes one count.
            "memories": pinned + noisy(exactly.memories - exactly.pinned),
            "pinned": pinned,
            "entities": noisy(exactly.entities),
            "links": None,
            "epsilon": epsilon,
        }
    )
