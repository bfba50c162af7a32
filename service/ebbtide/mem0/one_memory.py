"""One memory: read, corrected, deleted, by the id of its node or of its message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbtide.errors import InvalidRequest, NotFound, Precondition
from ebbtide.ids import message_number
from ebbtide.mem0.call import FLUSH_MS, Call, Plan, planned
from ebbtide.mem0.memories import STORED_AS, UPDATED_AT, Place, from_id, iso, no_memory, of_message, of_node
from ebbtide.mem0.reading import read_update
from ebbtide.verbs.inspect import NodeDetail, NodeInfo
from ebbtide.verbs.messages import MessageInfo
from ebbtide.verbs.paging import to_token


async def get(call: Call) -> Plan:
    """Return a memory."""
    place = from_id(call.parts[0])
    return planned(get_memory, call, place, agents=[place.agent_id])


async def get_memory(call: Call, place: Place) -> Any:
    """Return a memory, or a message with an id."""
    if message_number(place.own_id) is None:
        return of_node(place.agent_id, await call.perform(place.agent_id, "GetNode", node_id=place.own_id))
    return of_message(place.agent_id, await _message(call, place))


async def update(call: Call) -> Plan:
    """Correct a memory."""
    place = from_id(call.parts[0])
    correction = await call.read(read_update)
    return planned(correct_memory, call, place, correction, agents=[place.agent_id])


async def correct_memory(call: Call, place: Place, correction: Mapping[str, Any]) -> Any:
    """Correct a memory, and return it."""
    if message_number(place.own_id) is not None:
        nodes = await _made_of(call, place)
        if len(nodes) != 1:
            raise no_memory("This text has not become exactly one memory. Search again for current ids.")
        place = Place(place.agent_id, nodes[0])
    if not correction:
        return await get_memory(call, place)
    node = await call.perform(place.agent_id, "GetNode", node_id=place.own_id)
    held: Mapping[str, Any] = next((one.metadata for one in node.sources if one.metadata), {})
    metadata = correction.get("metadata")
    if metadata is not None:
        # The ids are stored with the metadata; the client has not seen them there.
        metadata = {**metadata, **{name: held[name] for name in STORED_AS.values() if name in held}}
    dated = {**(held if metadata is None else metadata), UPDATED_AT: iso(call.service.clock.now_ms())}
    content = correction.get("content")
    try:
        done = await _updated(call, place, content, dated)
    except InvalidRequest as error:
        if not any(one.field.startswith("metadata") for one in error.violations):
            raise
        # Large metadata has no room for the time, and nested metadata cannot be stored again.
        done = await _updated(call, place, content, metadata)
    return of_node(place.agent_id, done)


async def _updated(
    call: Call, place: Place, content: str | None, metadata: Mapping[str, Any] | None
) -> NodeDetail:
    given = {"content": content, "metadata": metadata}
    fields = {name: value for name, value in given.items() if value is not None}
    done: NodeDetail = await call.perform(place.agent_id, "UpdateNode", node_id=place.own_id, **fields)
    return done


async def delete(call: Call) -> Plan:
    """Delete a memory."""
    place = from_id(call.parts[0])
    return planned(delete_memory, call, place, agents=[place.agent_id])


async def delete_memory(call: Call, place: Place) -> Any:
    """Delete a memory, or a message with the memories that were made of it."""
    if message_number(place.own_id) is None:
        await call.perform(place.agent_id, "DeleteNode", node_id=place.own_id)
    else:
        ids = [*await _made_of(call, place), place.own_id]
        done = await call.perform(place.agent_id, "DeleteNodes", node_ids=ids)
        if not done.deleted_count:
            if done.results[-1].reason == "BATCH_NOT_DIGESTED":
                raise Precondition(
                    "The text is not digested yet. Retry in some seconds.", reason="BATCH_NOT_DIGESTED"
                )
            raise no_memory()
    return {"message": "Memory deleted successfully!"}


async def _message(call: Call, place: Place) -> MessageInfo:
    """Return the message that an id names. NODE_NOT_FOUND if there is none, or its text is deleted."""
    token = to_token(place.own_id[1:], "messages")
    page = await call.perform(place.agent_id, "ListMessages", page_size=1, page_token=token)
    for message in page.messages:
        if message.id == place.own_id and message.content is not None:
            found: MessageInfo = message
            return found
    raise no_memory()


async def _made_of(call: Call, place: Place) -> list[str]:
    """Return the living memories that were made of a message, once it is digested or FLUSH_MS are over."""
    message = await _message(call, place)
    await call.perform(place.agent_id, "Flush", timeout_ms=FLUSH_MS)
    try:
        batch = await call.perform(place.agent_id, "GetBatch", batch_id=message.batch_id)
    except NotFound:
        return []
    made = [one for node_id in batch.node_ids for one in await _living(call, place.agent_id, node_id)]
    origin = (message.batch_id, message.message_index)
    return [one.id for one in made if any((s.batch_id, s.message_index) == origin for s in one.sources)]


async def _living(call: Call, agent_id: str, node_id: str) -> list[NodeInfo]:
    try:
        return [await call.perform(agent_id, "GetNode", node_id=node_id)]
    except NotFound:
        return []
