"""The verbs as calls: what a request gives is handed to the verb, its answer becomes the response.

No default, limit or check of its own stands here. `CALLS` and `STREAMS` are the whole service; a test compares them
with the schema, whose request and response types it takes from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel

from ebbtide.rpc.convert import read_form
from ebbtide.verbs import (
    agents,
    audit,
    batches,
    erased,
    events,
    forget,
    inspect,
    memories,
    recall,
    remember,
    search,
    service,
)
from ebbtide.verbs.forms import refuse
from ebbtide.verbs.service import Service

Fields = dict[str, Any]
Answered = tuple[BaseModel, Mapping[str, Any]]
"""An answer, and fields that REST says otherwise than in its body."""
Call = Callable[[Service, Fields], Awaitable[Answered]]
Stream = Callable[[Service, Fields], Awaitable[events.EventStream]]

NOTHING: Mapping[str, Any] = {}


# --- agents ------------------------------------------------------------------------------------------------


async def initialise(on: Service, fields: Fields) -> Answered:
    """Bring an agent into being, or find that it is as asked."""
    info, is_new = await agents.initialise(on, fields["agent_id"], fields.get("parameters", {}))
    return info, {"created": is_new}


async def update(on: Service, fields: Fields) -> Answered:
    """Change parameters of an agent, or let them go back to the daemon's defaults."""
    changed = fields.get("parameters", {})
    for name in fields["reset"]:
        if name in changed:
            refuse("reset", name, "names that are not among the parameters to change")
    return await agents.update(on, fields["agent_id"], {**changed, **dict.fromkeys(fields["reset"])}), NOTHING


async def get_agent(on: Service, fields: Fields) -> Answered:
    """Tell of an agent."""
    return await agents.get_agent(on, fields["agent_id"]), NOTHING


async def list_agents(on: Service, fields: Fields) -> Answered:
    """List agents."""
    return await agents.list_agents(on, fields.get("page_size"), fields["page_token"]), NOTHING


async def close(on: Service, fields: Fields) -> Answered:
    """Put everything on disk and let the agent rest."""
    return await agents.close(on, fields["agent_id"]), NOTHING


async def erase(on: Service, fields: Fields) -> Answered:
    """Erase an agent."""
    return await agents.erase(on, fields["agent_id"]), NOTHING


# --- remember and recall -----------------------------------------------------------------------------------


async def remember_batch(on: Service, fields: Fields) -> Answered:
    """Store a batch durably."""
    agent_id = fields.pop("agent_id")
    return await remember.remember(on, agent_id, read_form(remember.RememberCommand, fields)), NOTHING


async def recall_memories(on: Service, fields: Fields) -> Answered:
    """Recall what is near the focus and matches."""
    agent_id = fields.pop("agent_id")
    return await recall.recall(on, agent_id, read_form(recall.RecallCommand, fields)), NOTHING


async def search_memories(on: Service, fields: Fields) -> Answered:
    """Find memories, best first."""
    agent_id = fields.pop("agent_id")
    return await search.search(on, agent_id, read_form(search.SearchCommand, fields)), NOTHING


# --- batches -----------------------------------------------------------------------------------------------


async def list_batches(on: Service, fields: Fields) -> Answered:
    """List batches."""
    page = fields.get("page_size"), fields["page_token"]
    return await batches.list_batches(on, fields["agent_id"], fields.get("state"), *page), NOTHING


async def get_batch(on: Service, fields: Fields) -> Answered:
    """Tell what became of a batch."""
    return await batches.get_batch(on, fields["agent_id"], fields["batch_id"]), NOTHING


async def retry_batch(on: Service, fields: Fields) -> Answered:
    """Put a parked batch back into the inbox."""
    return await batches.retry_batch(on, fields["agent_id"], fields["batch_id"]), NOTHING


async def flush(on: Service, fields: Fields) -> Answered:
    """Wait until what was accepted is digested."""
    agent_id = fields.pop("agent_id")
    return await batches.flush(on, agent_id, read_form(batches.FlushCommand, fields)), NOTHING


async def compress(on: Service, fields: Fields) -> Answered:
    """Owe the agent compression passes."""
    agent_id = fields.pop("agent_id")
    return await batches.compress(on, agent_id, read_form(batches.CompressCommand, fields)), NOTHING


# --- inspect -----------------------------------------------------------------------------------------------


async def get_focus(on: Service, fields: Fields) -> Answered:
    """Tell what is in focus."""
    return await inspect.get_focus(on, fields["agent_id"]), NOTHING


async def list_nodes(on: Service, fields: Fields) -> Answered:
    """List living memories."""
    page = fields.get("page_size"), fields["page_token"]
    return await inspect.list_nodes(on, fields["agent_id"], *page), NOTHING


async def get_node(on: Service, fields: Fields) -> Answered:
    """Tell of one memory with its links."""
    return await inspect.get_node(on, fields["agent_id"], fields["node_id"]), NOTHING


async def list_links(on: Service, fields: Fields) -> Answered:
    """List live links."""
    page = fields.get("page_size"), fields["page_token"]
    return await inspect.list_links(on, fields["agent_id"], *page), NOTHING


# --- memories that are there -------------------------------------------------------------------------------


async def update_node(on: Service, fields: Fields) -> Answered:
    """Correct a memory."""
    place = fields.pop("agent_id"), fields.pop("node_id")
    return await memories.update_node(on, *place, read_form(memories.UpdateNodeCommand, fields)), NOTHING


async def delete_nodes(on: Service, fields: Fields) -> Answered:
    """Delete many memories."""
    agent_id = fields.pop("agent_id")
    return await memories.delete_nodes(on, agent_id, read_form(memories.DeleteNodesCommand, fields)), NOTHING


async def delete_node(on: Service, fields: Fields) -> Answered:
    """Delete one memory."""
    return await memories.delete_node(on, fields["agent_id"], fields["node_id"]), NOTHING


async def forget_memories(on: Service, fields: Fields) -> Answered:
    """Forget a selection for good."""
    agent_id = fields.pop("agent_id")
    return await forget.forget(on, agent_id, read_form(forget.ForgetCommand, fields)), NOTHING


async def list_audit(on: Service, fields: Fields) -> Answered:
    """List the records of an audit log."""
    page = fields.get("page_size"), fields["page_token"]
    return await audit.list_audit(on, fields["agent_id"], *page), NOTHING


async def verify_audit(on: Service, fields: Fields) -> Answered:
    """Follow the chain of an audit log."""
    agent_id = fields.pop("agent_id")
    return await audit.verify_audit(on, agent_id, read_form(audit.VerifyAuditCommand, fields)), NOTHING


# --- erased agents -----------------------------------------------------------------------------------------


async def list_erased_agents(on: Service, fields: Fields) -> Answered:
    """List the records of erased agents."""
    page = fields.get("page_size"), fields["page_token"]
    return await erased.list_erased_agents(on, fields.get("agent_id"), *page), NOTHING


async def verify_erased_agents(on: Service, fields: Fields) -> Answered:
    """Follow the chain of erased agents."""
    command = read_form(erased.VerifyErasedAgentsCommand, fields)
    return await erased.verify_erased_agents(on, command), NOTHING


# --- events ------------------------------------------------------------------------------------------------


async def watch_events(on: Service, fields: Fields) -> events.EventStream:
    """Watch what happens to an agent's memory."""
    return await events.watch_events(on, fields["agent_id"], fields.get("after"), fields.get("follow"))


# --- the daemon --------------------------------------------------------------------------------------------


async def get_model(on: Service, _: Fields) -> Answered:
    """Tell which language model is in force."""
    return await service.get_model(on), NOTHING


async def get_scheduler(on: Service, _: Fields) -> Answered:
    """Tell who compresses now."""
    return await service.get_scheduler(on), NOTHING


CALLS: Mapping[str, Call] = {
    "OpenAgent": initialise,
    "UpdateAgent": update,
    "GetAgent": get_agent,
    "ListAgents": list_agents,
    "CloseAgent": close,
    "DeleteAgent": erase,
    "Remember": remember_batch,
    "Recall": recall_memories,
    "Search": search_memories,
    "ListBatches": list_batches,
    "GetBatch": get_batch,
    "RetryBatch": retry_batch,
    "Flush": flush,
    "Compress": compress,
    "GetFocus": get_focus,
    "ListNodes": list_nodes,
    "GetNode": get_node,
    "ListLinks": list_links,
    "UpdateNode": update_node,
    "DeleteNode": delete_node,
    "DeleteNodes": delete_nodes,
    "ForgetMemories": forget_memories,
    "ListAuditRecords": list_audit,
    "VerifyAudit": verify_audit,
    "ListErasedAgents": list_erased_agents,
    "VerifyErasedAgents": verify_erased_agents,
    "GetModel": get_model,
    "GetScheduler": get_scheduler,
}
"""Every call of the service that has one answer, by its name in the schema."""

STREAMS: Mapping[str, Stream] = {"WatchEvents": watch_events}
"""Those that are answered again and again."""
