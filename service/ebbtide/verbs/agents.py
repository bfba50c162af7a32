"""agents: opening (creating), changing, inspecting, closing, clearing, deleting and listing agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field, ValidationError

from ebbtide.access.grants import CALLER
from ebbtide.actor import actor
from ebbtide.errors import Conflict, no_agent
from ebbtide.ids import AgentId, node_text_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts
from ebbtide.store.chain import CLEARED, AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.paging import PageRequest, from_token, to_token
from ebbtide.verbs.reading import ReadableAgent, ReadingService
from ebbtide.verbs.requests import (
    AgentRequest,
    Response,
    echo,
    refusal,
    refuse,
    unknown_field,
    unnamed,
    without_surplus,
)
from ebbtide.verbs.service import Service


class Counts(Response):
    """The size of an agent."""

    nodes: int = Field(description="Living memories.")
    entities: int = Field(description="Entities: names that memories are linked with.")
    links: int = Field(description="Links, dangling ones included.")
    messages: int = Field(description="Stored messages.")


class AgentInfo(Response):
    """The current state of an agent."""

    agent_id: str = Field(description="The agent's id.", examples=["ann"])
    created_at: int = Field(description="Creation time, ms since the epoch.")
    parameters: AgentParameters = Field(description="The current parameters.")
    counts: Counts = Field(description="Number of living memories, entities, links and stored messages.")
    focus: list[str] = Field(description="Memories in focus, newest first.", examples=[["n3", "n2"]])
    pending_batches: int = Field(description="Accepted batches not yet digested.")
    parked_batches: int = Field(description="Batches parked after repeated failures.")
    owed_passes: int = Field(description="Compression passes owed, including the running one.")
    finished_passes: int = Field(description="Completed compression passes since creation.")
    unembedded_messages: int = Field(
        description="Messages without vectors of the current embedding model; 0 without a model."
    )


class AgentListing(Response):
    """An agent in a listing, which does not open it."""

    agent_id: str = Field(description="The agent's id.")
    created_at: int = Field(description="Creation time, ms since the epoch.")
    open: bool = Field(description="Whether the agent is open.")
    counts: Counts = Field(description="If the agent is not open: as of its last close.")


class AgentPage(Response):
    """A page of agents."""

    agents: list[AgentListing] = Field(description="The agents of this page.")
    next_page_token: str = Field(description="Empty on the last page.")


class Erased(Response):
    """The agent is deleted."""

    agent_id: str = Field(description="The id of the deleted agent.")
    erased: bool = Field(True, description="True: the agent and its data are deleted.")
    record_number: int = Field(description="Number of the deletion's record in the log of erased agents.")
    record_hash: str = Field(
        description="Hash of that record in hexadecimal; it covers all records before it."
    )


class _ParametersRequest(AgentRequest):
    """A request whose JSON body has the parameters at its top level."""

    body_model: ClassVar[type[BaseModel] | None] = AgentParameters

    @classmethod
    def fields_in(cls, body: Any) -> Any:
        """Return the parameters as the field that the RPC has."""
        if not isinstance(body, dict):
            return body
        if "parameters" in body:
            raise unknown_field("parameters", "send the parameters at the top level of the body")
        known: dict[str, object] = without_surplus(body, AgentParameters)
        # No parameter is a list or an object. Of a refused one only the part that the error shows stays.
        return {
            "parameters": {
                name: unnamed(value) if isinstance(value, dict | list) else value
                for name, value in known.items()
            }
        }


class OpenAgentRequest(_ParametersRequest):
    """Which agent to open, and its own parameters."""

    parameters: dict[str, Any] = Field(
        default_factory=dict, description="Parameters to override; the others follow the daemon's defaults."
    )


class UpdateAgentRequest(_ParametersRequest):
    """Which parameters to change."""

    parameters: dict[str, Any] = Field(
        default_factory=dict, description="Parameters to change; null restores the daemon's default."
    )
    reset: list[str] = Field(
        default_factory=list, description="Names of parameters to restore to the daemon's default."
    )


class OpenedAgent(AgentInfo):
    """The agent, and whether it is new."""

    created: bool = Field(description="Whether the request created it.")

    def as_json(self) -> str:
        """Return the agent; REST reports `created` as 201 or 200."""
        return self.model_dump_json(exclude={"created"})


def _checked(base: AgentParameters, given: Mapping[str, object]) -> AgentParameters:
    try:
        return AgentParameters.model_validate({**base.model_dump(), **given})
    except ValidationError as error:
        raise refusal(error, AgentParameters) from None


async def open_agent(service: Service, request: OpenAgentRequest) -> OpenedAgent:
    """Create the agent, or return it if it exists with the same parameters.

    Raise PARAMETERS_DIFFER if it exists and a given parameter has another value.
    """
    given = request.parameters
    _checked(service.fleet.defaults, given)
    async with service.fleet.ensuring(request.owner, given, agent_quota=service.agent_quota) as (
        agent,
        is_new,
    ):
        if not is_new:
            _refuse_differences(agent.workspace.parameters, given)
        info = await _info(agent)
        return OpenedAgent(**dict(info), created=is_new)


def _refuse_differences(parameters: AgentParameters, given: Mapping[str, object]) -> None:
    present = parameters.model_dump()
    for name, value in given.items():
        if present[name] != value:
            raise Conflict(
                f"{name}: {echo(value)}, but it is {echo(present[name])} for this agent; PATCH changes it",
                reason="PARAMETERS_DIFFER",
                metadata={"parameter": name},
            )


async def update_agent(service: Service, request: UpdateAgentRequest) -> AgentInfo:
    """Change parameters of an agent; null restores the daemon's default."""
    for name in request.reset:
        if name in request.parameters:
            refuse("reset", name, "names that are not among the parameters to change")
    given = {**request.parameters, **dict.fromkeys(request.reset)}
    asker = actor()
    async with service.fleet.using(request.owner) as agent:

        def change() -> None:
            known = {k: v for k, v in {**agent.workspace.overrides, **given}.items() if v is not None}
            unset = {k: None for k, v in given.items() if v is None and k not in _NAMES}
            _checked(service.fleet.defaults, {**known, **unset})
            entry = AuditEntry(service.clock.now_ms(), asker, "parameters_changed", dict(given))
            agent.workspace.change_parameters(given, entry)

        await agent.change_parameters(change)
        return await _info(agent)


_NAMES = frozenset(AgentParameters.model_fields)


async def get_agent(service: ReadingService, request: AgentRequest) -> AgentInfo:
    """Return the agent: parameters, counts, owed passes and waiting batches."""
    async with service.fleet.using(request.owner) as agent:
        return await _info(agent)


async def _info(agent: ReadableAgent) -> AgentInfo:
    workspace = agent.workspace

    def read(txn: ReadTransaction) -> tuple[AgentCounts, int, int]:
        return txn.counts(), txn.meta.finished_passes, agent.unembedded_count(txn)

    counts, finished, behind = await agent.run(lambda: workspace.store.read(read))
    return AgentInfo(
        agent_id=agent.id,
        created_at=workspace.identity.created_at_ms,
        parameters=workspace.parameters,
        counts=counts_info(counts),
        focus=[node_text_id(node_id) for node_id in workspace.network.focus],
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        owed_passes=counts.owed_passes,
        finished_passes=finished,
        unembedded_messages=behind,
    )


def counts_info(counts: AgentCounts) -> Counts:
    """Return the size of an agent for a response."""
    return Counts(
        nodes=counts.node_count,
        entities=counts.entity_count,
        links=counts.link_count,
        messages=counts.message_count,
    )


async def list_agents(service: Service, request: PageRequest) -> AgentPage:
    """List the agents within the caller's reach, open or not. No agent is opened."""
    if service.cluster is not None and not service.cluster.has_lease:
        # This node does not know which agents it has: an empty page would say that there are none.
        raise service.fleet.refusal()
    after = from_token(request.page_token, "agents")
    found, last = await service.fleet.summaries(after, request.size, CALLER.get().grant.reach.covers)
    listed = [
        AgentListing(
            agent_id=summary.agent_id,
            created_at=summary.created_at_ms,
            open=summary.open,
            counts=counts_info(summary.counts),
        )
        for summary in found
    ]
    return AgentPage(agents=listed, next_page_token=to_token(last, "agents") if last else "")


async def delete_agent(service: Service, request: AgentRequest) -> Erased:
    """Delete an agent with all its data. Irreversible."""
    record = await service.fleet.delete_agent(request.owner)
    return Erased(agent_id=request.agent_id, record_number=record.number, record_hash=record.hash.hex())


class Closed(Response):
    """The agent is closed."""

    agent_id: str = Field(description="The agent's id.")
    closed: bool = Field(description="Whether it was open.")


async def close_agent(service: Service, request: AgentRequest) -> Closed:
    """Finish the running job, write everything to disk and close the agent until the next request opens it.

    A model call in flight is cancelled; its batch stays at the head of the inbox.
    """
    owner = request.owner
    was_open = await service.fleet.close(owner)
    if not was_open and not await service.fleet.on_pool(lambda: service.fleet.data.has_files(owner)):
        raise no_agent()
    return Closed(agent_id=owner, closed=was_open)


class Cleared(Response):
    """The data that was removed."""

    agent_id: str = Field(description="The agent's id.")
    messages: int = Field(description="Messages that were removed.")
    memories: int = Field(description="Living memories that were removed.")


async def clear_agent(service: Service, request: AgentRequest) -> Cleared:
    """Remove everything that an agent has stored, and keep its id and its parameters. Irreversible.

    An empty agent replaces it: after an interruption at any moment the agent is either unchanged or empty. Ids of
    memories, messages and batches are not used again.
    """
    return await service.transfers.to_its_end(_cleared(service, request.owner, actor()))


async def _cleared(service: Service, owner: AgentId, asker: str) -> Cleared:
    from ebbtide.store.transfer.receiving import stage_empty

    fleet = service.fleet
    async with fleet.using(owner) as agent:
        workspace = agent.workspace

        def read() -> tuple[AgentCounts, dict[str, object]]:
            return workspace.counts(), workspace.store.read(_kept)

        counts, kept = await agent.run(read)
        identity = workspace.identity
    entry = AuditEntry(service.clock.now_ms(), asker, CLEARED, {})
    folder = await fleet.on_pool(fleet.data.make_transfer)
    try:
        staged = await fleet.on_pool(lambda: stage_empty(fleet.data, folder, identity, kept, entry))
        await fleet.install(staged, replace=True)
    finally:
        await fleet.on_pool(lambda: fleet.data.end_transfer(folder))
    return Cleared(agent_id=owner, messages=counts.message_count, memories=counts.node_count)


def _kept(txn: ReadTransaction) -> dict[str, object]:
    """Return what a cleared agent keeps: its parameters, and the next numbers of its ids."""
    names = (
        *("overrides", "decay_rate", "entity_memories"),
        *("next_node_id", "next_message_number", "next_batch_number", "next_record_version"),
    )
    found = {name: getattr(txn.meta, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
