"""Users and agents: listed, and cleared or deleted with their memories."""

from __future__ import annotations

from typing import Any

from ebbtide.errors import NotFound
from ebbtide.mem0.call import Call, Plan, bound_agent, planned
from ebbtide.mem0.memories import AGENT_PREFIX, entity_of, iso
from ebbtide.mem0.reading import Owner, parsed_agent, read_entities, read_page
from ebbtide.verbs.requests import refuse

MAX_ENTITIES = 10_000


async def delete_all(call: Call) -> Plan:
    """Delete all memories of a user or an agent, or those of a run or an app of it."""
    owner = read_entities(call.query, bound_agent())
    agent_id = owner.agent_id
    return planned(_delete_all, call, agent_id, owner, agents=[agent_id])


async def _delete_all(call: Call, agent_id: str, owner: Owner) -> Any:
    try:
        if owner.metadata:
            await _forget_some(call, agent_id, owner)
        elif owner.run_id:
            await call.perform(agent_id, "ForgetMemories", conversations=[owner.run_id])
        else:
            await call.perform(agent_id, "ClearAgent")
    except NotFound as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
    return {"message": "Memories deleted successfully!"}


async def _forget_some(call: Call, agent_id: str, owner: Owner) -> None:
    """Forget the messages that were stored with these ids, and what was made of them."""
    found, token = list[str](), ""
    most = call.service.settings.limits.max_page_size
    while True:
        page = await call.perform(
            agent_id, "ListMessages", metadata=owner.metadata, page_size=most, page_token=token
        )
        found += [one.id for one in page.messages if owner.run_id in ("", one.conversation_id)]
        token = page.next_page_token
        if not token:
            break
    for start in range(0, len(found), 1000):
        await call.perform(agent_id, "ForgetMemories", messages=found[start : start + 1000])


async def users(call: Call) -> Plan:
    """List the users and agents that the key reaches."""
    page, size = read_page(call.query, MAX_ENTITIES, MAX_ENTITIES)
    return planned(_users, call, page, size)


async def _users(call: Call, page: int, size: int) -> Any:
    agents, token = list[Any](), ""
    most = call.service.settings.limits.max_page_size
    while True:
        listed = await call.perform(None, "ListAgents", page_size=most, page_token=token)
        agents += listed.agents
        token = listed.next_page_token
        if not token:
            break
    results = []
    for one in agents[(page - 1) * size : page * size]:
        kind, name = entity_of(one.agent_id)
        time = iso(one.created_at)
        counted = {"total_memories": one.counts.nodes, "created_at": time, "updated_at": time}
        results.append({"id": one.agent_id, "name": name, "type": kind, **counted})
    return {"count": len(agents), "next": None, "previous": None, "results": results}


async def delete_entity(call: Call) -> Plan:
    """Delete a user or an agent with everything of it."""
    kind, name = call.parts
    if kind not in ("user", "agent"):
        refuse("the type in the path", kind, "user, agent")
    field = f"{kind}_id"
    owner = read_entities([(field, name)], "")
    agent_id = parsed_agent(field, AGENT_PREFIX + name if kind == "agent" else owner.agent_id)
    return planned(_delete_entity, call, agent_id, agents=[agent_id])


async def _delete_entity(call: Call, agent_id: str) -> Any:
    await call.perform(agent_id, "DeleteAgent")
    return {"message": "Entity deleted successfully!"}
