"""forecast: what passes will shorten and forget if nothing is mentioned again and the parameters stay.

The engine itself runs, on a copy of the network: before each pass a batch of unrelated memories takes the focus. One
job of the agent copies the arrays of the network; the passes run on a thread for transfers and yield to requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field

from ebbtide.errors import Unavailable
from ebbtide.events import EventKind
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, parse_node_id
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network
from ebbtide.memory.simulation import Simulation
from ebbtide.records import PassState
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.columns import Columnar, Integers, table
from ebbtide.verbs.inspect import checked_node_id
from ebbtide.verbs.limits import Between, MaxItems
from ebbtide.verbs.node_history import no_life
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service

MAX_PASSES: Final = 1000
DEFAULT_PASSES: Final = 200
MAX_BATCH: Final = 1000
"""Memories of a batch."""
MAX_NODES: Final = 1000
"""Nodes that a request names."""
MAX_COMPUTING_S: Final = 4.0
"""No pass begins after this time. It is less than `FORECAST_WAIT_S`, so that a waiting forecast gets its turn."""

RECENT_EVENTS: Final = 5000
RECENT_BATCHES: Final = 50
RECENT_MEMORIES: Final = 250
"""The latest events in which digested batches are looked for; the batches and the memories of which a mean is taken."""

USUAL_BATCH: Final = 5
USUAL_CHARACTERS: Final = 60
"""A batch, and a memory, of an agent that has none yet."""


class ForecastRequest(AgentRequest):
    """How far to look ahead, and for which nodes."""

    passes: Annotated[int, Between(1, MAX_PASSES)] | None = Field(
        None,
        description=f"Compression passes from now on, 1-{MAX_PASSES}; default: {DEFAULT_PASSES}.",
    )
    memories_per_batch: Annotated[int, Between(0, MAX_BATCH)] | None = Field(
        None,
        description=f"Memories of the unrelated batch before each pass, 0-{MAX_BATCH}; 0 for no batches; default: the "
        f"mean of the latest batches, at most {RECENT_BATCHES}.",
    )
    nodes: Annotated[
        list[Annotated[str, AfterValidator(checked_node_id)]], MaxItems(MAX_NODES, is_counted=False)
    ] = Field(
        default_factory=list,
        description=f"Only what happens to these memories and statements, at most {MAX_NODES}; default: to all.",
        examples=[["n1"]],
    )


class ForecastShortened(Columnar):
    """Columns with one entry for each shortening, in order."""

    id: Integers = Field(description="Number of the memory: 17 is n17.")
    after: Integers = Field(description="The pass that will shorten it, counted from now: 1 is the next.")
    length: Integers = Field(description="Characters that it will have then.")


class ForecastForgotten(Columnar):
    """Columns with one entry for each memory and statement that will be forgotten, in order."""

    id: Integers = Field(description="Number of the node.")
    after: Integers = Field(description="The pass that will forget it, counted from now: 1 is the next.")


class ForecastAssumptions(Response):
    """The coming events that a forecast assumes."""

    memories_per_batch: int = Field(description="Memories of the unrelated batch before each pass.")
    characters: int = Field(description="Characters of each of these memories.")
    owed_passes: int = Field(
        description="Passes that the agent owes for earlier batches. No batch comes before these."
    )


class AgentForecast(Columnar):
    """The shortenings and ends to come, as columns."""

    pass_number: int = Field(description="Completed compression passes since creation.")
    passes: int = Field(
        description="Passes from now on that the forecast contains: those requested, or those that were computed "
        f"within {MAX_COMPUTING_S:g} seconds."
    )
    assumes: ForecastAssumptions = Field(description="Assumptions of the forecast.")
    shortened: ForecastShortened = Field(description="Shortenings of memories that live now.")
    forgotten: ForecastForgotten = Field(description="Memories and statements that will be forgotten.")


class _Start(NamedTuple):
    """An agent as it is now."""

    network: Network
    """A copy."""
    finished: int
    """Completed passes."""
    begun: PassState | None
    """The running pass."""
    next_batch: int
    assumed: ForecastAssumptions


async def forecast(service: Service, request: ForecastRequest) -> AgentForecast:
    """Return what the next passes will shorten and forget, if nothing is mentioned again and the parameters stay.

    It contains fewer passes than requested if they take too long. TOO_MANY_TRANSFERS if a forecast of the agent is
    being computed, or two of others, and do not end within some seconds.
    """
    chosen = list(map(parse_node_id, request.nodes))
    async with service.transfers.place_for_forecast(request.owner) as transfer:
        async with service.fleet.using(request.owner) as agent:
            workspace = agent.workspace
            start = await agent.run(lambda: _start(workspace, request, chosen))

        def work(is_given_up: Callable[[], bool]) -> AgentForecast:
            def pause() -> None:
                transfer.rest()
                if is_given_up():
                    raise Unavailable("The client has cancelled the forecast.", reason="AGENT_CLOSING")

            passes = DEFAULT_PASSES if request.passes is None else request.passes
            return _forecast(start, Simulation(start.network, workspace.rng, pause), passes, chosen)

        return await service.transfers.make(work)


def _start(workspace: Workspace, request: ForecastRequest, chosen: Sequence[NodeId]) -> _Start:
    network = workspace.network
    for node_id in chosen:
        if node_id not in network or node_id in network.entities:
            raise no_life(workspace, node_id, "nodes", "forecast")
    return workspace.store.read(lambda txn: _read_start(txn, network, request))


def _read_start(txn: ReadTransaction, network: Network, request: ForecastRequest) -> _Start:
    batch = _mean_batch(txn) if request.memories_per_batch is None else request.memories_per_batch
    meta = txn.meta
    assumed = ForecastAssumptions(
        memories_per_batch=batch, characters=_mean_length(network), owed_passes=meta.owed_passes
    )
    return _Start(
        network.without_texts(), meta.finished_passes, meta.pass_state, meta.next_batch_number, assumed
    )


def _mean_batch(txn: ReadTransaction) -> int:
    """Return the mean number of memories of recent batches; at least 1."""
    sizes: list[int] = []
    for _, record in txn.events.packed(txn.meta.next_event - RECENT_EVENTS):
        for run in record.runs:
            if run.kind == EventKind.BATCH_DIGESTED.value:
                sizes += run.columns[1]
    sizes = sizes[-RECENT_BATCHES:] or [USUAL_BATCH]
    return min(MAX_BATCH, max(1, round(sum(sizes) / len(sizes))))


def _mean_length(network: Network) -> int:
    """Return the mean number of characters of recent memories when they were made."""
    slots = network.slots
    memories = np.flatnonzero(slots["alive"] & ~slots["is_entity"])[-RECENT_MEMORIES:]
    return round(slots["original_length"][memories].mean()) if len(memories) else USUAL_CHARACTERS


def _forecast(start: _Start, simulation: Simulation, passes: int, chosen: Sequence[NodeId]) -> AgentForecast:
    assumed, newest = start.assumed, start.network.next_node_id
    watched = set(chosen)

    def counts(node_id: NodeId) -> bool:
        return node_id in watched if watched else node_id < newest

    shortened: list[tuple[int, int, int]] = []
    forgotten: list[tuple[int, int]] = []
    # Nothing is left to happen once all of these are forgotten.
    most = len(watched) or start.network.node_count
    until_s = time.monotonic() + MAX_COMPUTING_S
    for after in range(1, passes + 1 if most else 1):
        if after > assumed.owed_passes and assumed.memories_per_batch:
            replaced = simulation.remember(
                start.next_batch + after, assumed.memories_per_batch, assumed.characters, are_named=True
            )
            forgotten += [(node_id, after) for node_id in replaced if counts(node_id)]
        effects = simulation.compress(start.finished + after, start.begun if after == 1 else None)
        shortened += [(node_id, after, length) for node_id, length in effects.shortened if counts(node_id)]
        forgotten += [(node_id, after) for node_id in effects.forgotten if counts(node_id)]
        if len(forgotten) == most:
            break
        if time.monotonic() > until_s:
            passes = after
            break
    return AgentForecast(
        pass_number=start.finished,
        passes=passes,
        assumes=assumed,
        shortened=table(ForecastShortened, _columns(shortened, 3)),
        forgotten=table(ForecastForgotten, _columns(forgotten, 2)),
    )


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> Array:
    return np.array(rows, dtype=np.int64).reshape(-1, count).T
