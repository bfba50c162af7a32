"""One agent that lives through a conversation in this process.

The service is the daemon's, without its servers: the same digest, passes and recall. Every batch is followed by its
compression pass before the next one arrives, as when a person talks slowly. All parameters have their defaults and the
model is the built-in one. There are no vectors, which recall by keywords does not use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from ebbtide.daemon import opened
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, node_text_id, parse_node_id
from ebbtide.memory.association import Answer
from ebbtide.records import Cue, Node
from ebbtide.settings import load_settings
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.batches import BatchRequest, FlushRequest, flush, get_batch
from ebbtide.verbs.focus import pin_node
from ebbtide.verbs.inspect import NodeRequest
from ebbtide.verbs.remember import Message, RememberRequest, remember
from ebbtide.verbs.service import Service

T = TypeVar("T")

AGENT = "a"
FLUSH_MS = 600_000


class Life:
    """One agent. `age` is its number of batches, since a batch is its unit of time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.age = 0
        self.made: list[list[NodeId]] = []
        """The memories made from each batch."""

    async def remember(self, messages: Sequence[Message]) -> None:
        """Remember one batch, and wait for its digest and its compression pass."""
        accepted = await remember(self._service, RememberRequest(agent_id=AGENT, messages=list(messages)))
        waiting = FlushRequest(agent_id=AGENT, timeout_ms=FLUSH_MS, passes=True)
        flushed = await flush(self._service, waiting)
        if not (flushed.digested and flushed.passes_done) or flushed.parked_batches:
            raise RuntimeError(f"the batch was not digested: {flushed}")
        batch = await get_batch(self._service, BatchRequest(agent_id=AGENT, batch_id=accepted.batch_id))
        self.made.append([parse_node_id(node_id) for node_id in batch.node_ids])
        self.age += 1

    async def living(self, node_ids: Sequence[NodeId]) -> dict[NodeId, Node]:
        """Return those of these memories that live."""

        def read(txn: ReadTransaction) -> dict[NodeId, Node]:
            nodes = ((node_id, txn.nodes.get(node_id)) for node_id in node_ids)
            return {node_id: node for node_id, node in nodes if node is not None}

        return await self._run(lambda workspace: workspace.store.read(read))

    async def living_count(self) -> int:
        """Return how many memories live."""
        return await self._run(lambda workspace: workspace.store.read(lambda txn: txn.counts().node_count))

    async def recall(self, *keywords: str) -> Answer:
        """Recall by keywords, with the default depth and number of results."""

        def answer(workspace: Workspace) -> Answer:
            parameters = workspace.parameters
            cue = Cue(
                keywords=keywords,
                depth=parameters.default_search_depth,
                max_results=parameters.max_search_results,
            )
            return workspace.recall(cue)[0]

        return await self._run(answer)

    async def pin(self, node_id: NodeId) -> None:
        """Pin a memory by hand."""
        await pin_node(self._service, NodeRequest(agent_id=AGENT, node_id=node_text_id(node_id)))

    async def _run(self, job: Callable[[Workspace], T]) -> T:
        async with self._service.fleet.using(AGENT) as agent:
            return await agent.run(partial(job, agent.workspace))


class Observer(Protocol):
    """A measurement during a life."""

    def extra(self, number: int) -> list[Message]:
        """Return messages to add to a batch."""

    async def after(self, life: Life) -> None:
        """Query the agent after a batch and its pass."""


async def live(life: Life, batches: Sequence[Sequence[Message]], observers: Sequence[Observer]) -> None:
    """Let an agent live through batches."""
    for number, batch in enumerate(batches):
        extra = [message for observer in observers for message in observer.extra(number)]
        await life.remember([*batch, *extra])
        for observer in observers:
            await observer.after(life)


@asynccontextmanager
async def one_life(data_dir: Path) -> AsyncIterator[Life]:
    """Open a service with one agent for the length of a block."""
    settings = load_settings({"store": {"data_dir": data_dir}, "embedding": {"model": "off"}})
    async with opened(settings) as service:
        yield Life(service)
