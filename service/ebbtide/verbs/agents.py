"""agents: bringing one into being, changing its parameters, looking at it, erasing it; listing all."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, ValidationError

from ebbtide.access.grants import CALLER
from ebbtide.actor import actor
from ebbtide.errors import Conflict, InvalidRequest, NotFound
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.ids import node_text_id, parse_agent_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.forms import Answer, read_json, refusal, unnamed, without_surplus
from ebbtide.verbs.paging import check_page_size, from_token, to_token
from ebbtide.verbs.service import Service


class Counts(Answer):
    """How much an agent holds."""

    nodes: int = Field(description="Living memories.")
    links: int = Field(description="Links, dangling ones included.")
    messages: int = Field(description="Messages kept.")


class AgentInfo(Answer):
    """An agent at this moment."""

    agent_id: str = Field(description="Whose memory it is.", examples=["ann"])
    created_at: int = Field(description="When it came into being, ms since the epoch.")
    parameters: AgentParameters = Field(description="The parameters in force.")
    counts: Counts
    focus: list[str] = Field(description="Nodes in focus, newest first.", examples=[["n3", "n2"]])
    pending_batches: int = Field(description="Accepted batches not yet digested.")
    parked_batches: int = Field(description="Batches parked after failures.")
    owed_passes: int = Field(description="Compression passes owed, the one under way included.")
    finished_passes: int = Field(description="Compression passes done since it came into being.")
    unembedded_messages: int = Field(
        description="Messages that have no vectors yet of the embedding model in force; 0 without one."
    )


class AgentListing(Answer):
    """An agent as a listing tells of it, without opening it."""

    agent_id: str
    created_at: int = Field(description="ms since the epoch.")
    open: bool = Field(description="Whether it is open now.")
    counts: Counts = Field(description="As of its last close when it is not open.")


class AgentPage(Answer):
    """A page of agents."""

    agents: list[AgentListing]
    next_page_token: str = Field(description="Empty on the last page.")


class Erased(Answer):
    """An agent is gone for good."""

    agent_id: str
    erased: bool = True
    record_number: int = Field(description="The record of it in the log of erased agents.")
    record_hash: str = Field(
        description="The hash of that record, hexadecimal: it vouches for all before it."
    )


def read_parameters(body: bytes) -> dict[str, object]:
    """Parameters in a JSON body: as they are, or under `parameters`, as agent info gives them."""
    if not body.strip():
        return {}
    given = read_json(body)
    if isinstance(given, dict) and given.keys() == {"parameters"}:
        given = given["parameters"]
    if not isinstance(given, dict):
        raise InvalidRequest("the body: not a JSON object", reason="INVALID_JSON")
    known: dict[str, object] = without_surplus(given, AgentParameters)
    # No parameter is a list or an object: of one that is refused, only as much is kept as the error shows.
    return {
        name: unnamed(value) if isinstance(value, dict | list) else value for name, value in known.items()
    }


def _checked(base: AgentParameters, given: Mapping[str, object]) -> AgentParameters:
    try:
        return AgentParameters.model_validate({**base.model_dump(), **given})
    except ValidationError as error:
        raise refusal(error, AgentParameters) from None


async def initialise(service: Service, agent_id: str, given: Mapping[str, object]) -> tuple[AgentInfo, bool]:
    """Bring an agent into being, or find that it is as asked; whether it is new.

    PARAMETERS_DIFFER when it exists and a given parameter has another value there.
    """
    owner = parse_agent_id(agent_id)
    _checked(service.fleet.defaults, given)
    async with service.fleet.ensuring(owner, given, agent_quota=service.agent_quota) as (agent, is_new):
        if not is_new:
            _refuse_differences(agent.workspace.parameters, given)
        return await _info(agent), is_new


def _refuse_differences(parameters: AgentParameters, given: Mapping[str, object]) -> None:
    present = parameters.model_dump()
    for name, value in given.items():
        if present[name] != value:
            raise Conflict(
                f"{name} is {present[name]!r} for this agent, not {value!r}; PATCH changes it",
                reason="PARAMETERS_DIFFER",
                metadata={"parameter": name},
            )


async def update(service: Service, agent_id: str, given: Mapping[str, object]) -> AgentInfo:
    """Change parameters of an agent; null goes back to the daemon's default."""
    owner, asker = parse_agent_id(agent_id), actor()
    async with service.fleet.using(owner) as agent:

        def change() -> None:
            known = {k: v for k, v in {**agent.workspace.overrides, **given}.items() if v is not None}
            unset = {k: None for k, v in given.items() if v is None and k not in _NAMES}
            _checked(service.fleet.defaults, {**known, **unset})
            entry = AuditEntry(service.clock.now_ms(), asker, "parameters_changed", dict(given))
            agent.workspace.change_parameters(given, entry)

        await agent.run(change)
        agent.retention_task.notice()
        return await _info(agent)


_NAMES = frozenset(AgentParameters.model_fields)


async def get_agent(service: Service, agent_id: str) -> AgentInfo:
    """Tell of an agent: parameters, counts, what it owes and what waits."""
    async with service.fleet.using(parse_agent_id(agent_id)) as agent:
        return await _info(agent)


async def _info(agent: Agent) -> AgentInfo:
    workspace = agent.workspace

    def read(txn: ReadTransaction) -> tuple[AgentCounts, int, int]:
        return txn.counts(), txn.meta.finished_passes, agent.unembedded_count(txn)

    counts, finished, behind = await agent.run(lambda: workspace.store.read(read))
    return AgentInfo(
        agent_id=agent.id,
        created_at=workspace.identity.created_at_ms,
        parameters=workspace.parameters,
        counts=_counts(counts),
        focus=[node_text_id(node_id) for node_id in workspace.network.focus],
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        owed_passes=counts.owed_passes,
        finished_passes=finished,
        unembedded_messages=behind,
    )


def _counts(counts: AgentCounts) -> Counts:
    return Counts(nodes=counts.node_count, links=counts.link_count, messages=counts.message_count)


async def list_agents(service: Service, page_size: int | None, page_token: str) -> AgentPage:
    """List agents within the caller's reach, open or not, without opening any."""
    size = check_page_size(page_size, service.settings.limits)
    after = from_token(page_token, "agents")
    found, last = await service.fleet.summaries(after, size, CALLER.get().grant.reach.covers)
    listed = [
        AgentListing(
            agent_id=summary.agent_id,
            created_at=summary.created_at_ms,
            open=summary.open,
            counts=_counts(summary.counts),
        )
        for summary in found
    ]
    return AgentPage(agents=listed, next_page_token=to_token(last, "agents") if last else "")


async def erase(service: Service, agent_id: str) -> Erased:
    """Erase an agent with everything it holds. Irreversible."""
    record = await service.fleet.delete_agent(parse_agent_id(agent_id))
    return Erased(agent_id=agent_id, record_number=record.number, record_hash=record.hash.hex())


class Closed(Answer):
    """The agent rests."""

    agent_id: str
    closed: bool = Field(description="Whether it was open.")


async def close(service: Service, agent_id: str) -> Closed:
    """End the job in hand, put everything on disk and close the agent, until the next verb opens it.

    A model call in flight is cancelled; its batch stays at the head of the inbox.
    """
    owner = parse_agent_id(agent_id)
    was_open = await service.fleet.close(owner)
    if not was_open and not await service.fleet.on_pool(lambda: service.fleet.data.has_files(owner)):
        raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
    return Closed(agent_id=agent_id, closed=was_open)
