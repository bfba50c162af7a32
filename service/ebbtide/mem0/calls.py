"""The calls of mem0's hosted API, performed by operations of the catalogue.

A call is read first, which names its agents, and then performed: a daemon with workers passes it on in between. A call
that is not in `CALLS` is not served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import Needs, Requirement
from ebbtide.errors import EbbtideError, InvalidRequest, NotFound, Precondition
from ebbtide.ids import message_number
from ebbtide.mem0.memories import (
    AGENT_PREFIX,
    STORED_AS,
    Place,
    entity_of,
    from_id,
    iso,
    no_memory,
    of_found,
    of_message,
    of_node,
    said_at,
    to_id,
)
from ebbtide.mem0.reading import (
    Addition,
    Filters,
    Listing,
    Owner,
    Question,
    parsed_agent,
    read_add,
    read_batch,
    read_entities,
    read_get_all,
    read_page,
    read_search,
    read_update,
)
from ebbtide.records import EPISODE
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.verbs.calling import call_operation, call_with, ensure_agent, remember_once
from ebbtide.verbs.inspect import NodeInfo
from ebbtide.verbs.messages import MessageInfo
from ebbtide.verbs.paging import to_token
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.requests import refuse
from ebbtide.verbs.service import Service

PATIENCE_MS = 500
"""How long a search waits for what was added just before."""

FLUSH_MS = 2_000
"""How long a listing, and a change of a message that is not digested, wait for the digest."""

PAGE_SIZE = 100
MAX_ENTITIES = 10_000
MAX_READ = 100_000
"""Most memories that a listing reads."""

KINDS = [EPISODE, *sorted(STATEMENT_KINDS)]
"""The kinds of memories that a listing has."""

STATES = {"waiting": "PENDING", "digesting": "RUNNING", "digested": "SUCCEEDED", "parked": "FAILED"}
"""The status of an event, by the state of its batch."""

FIELDS: Mapping[str, str] = {
    "conversation_id": "run_id",
    "sources[0]": "run_id",
    "max_results": "top_k",
    "content": "text",
}
"""The names of mem0's fields for those that an error names."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a client."""

    service: Service
    parts: Sequence[str]
    """The variable parts of the path."""
    query: Sequence[tuple[str, str]]
    body: bytes
    address: str
    """The URL without its query."""

    async def perform(self, agent_id: str | None, name: str, /, **fields: Any) -> Any:
        """Perform an operation, if the caller may. Return its response."""
        return await call_operation(self.service, agent_id, name, **fields)

    async def read(self, reader: Callable[..., Any], *arguments: Any) -> Any:
        """Read the body, in a worker process if it is large."""
        return await self.service.read_request(len(self.body), reader, self.body, *arguments)


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that was read: the agents that it is for, and how to perform it."""

    agents: frozenset[str]
    perform: Callable[[], Awaitable[Any]]


def _plan(perform: Callable[..., Awaitable[Any]], *arguments: Any, agents: Sequence[str] = ()) -> Plan:
    return Plan(frozenset(agents), partial(perform, *arguments))


def bound_agent() -> str:
    """Return the agent of a request that names none: the one that the key is bound to, or none."""
    reach = CALLER.get().grant.reach
    is_one = not reach.is_everywhere and not reach.prefixes and len(reach.agents) == 1
    return next(iter(reach.agents)) if is_one else ""


def for_client(error: EbbtideError) -> EbbtideError:
    """Return an error with the names of mem0's fields."""
    for field, name in FIELDS.items():
        if error.message.startswith(f"{field}:"):
            message = name + error.message.removeprefix(field)
            return type(error)(
                message,
                reason=error.reason,
                metadata=error.metadata,
                violations=error.violations,
                retry_after_s=error.retry_after_s,
            )
    return error


# --- adding ------------------------------------------------------------------------------------------------


async def ping(call: Call) -> Plan:
    """Say that the key is valid. Clients ask before anything else."""

    async def answer() -> Any:
        call.service.authentication.permit(CALLER.get(), Requirement(Needs.KEY), None)
        # Any ids will do: clients only compare them with nothing.
        return {"status": "ok", "org_id": "ebbtide", "project_id": "ebbtide", "user_email": None}

    return _plan(answer)


async def add(call: Call) -> Plan:
    """Remember messages."""
    limits, now_ms = call.service.settings.limits, call.service.clock.now_ms()
    addition: Addition = await call.read(read_add, bound_agent(), now_ms, limits)
    agent_id = addition.owner.agent_id
    return _plan(_add, call, agent_id, addition, agents=[agent_id])


async def _add(call: Call, agent_id: str, addition: Addition) -> Any:
    await ensure_agent(call.service, agent_id)

    async def send(earlier: str) -> Remembered:
        key = f"{addition.key}-{earlier}" if earlier else addition.key
        request = addition.request.model_copy(update={"idempotency_key": key})
        done: Remembered = await call_with(call.service, agent_id, "Remember", lambda: request)
        return done

    done = await remember_once(call.service, agent_id, send)
    return {
        "message": "Stored. Its memories are made in the background.",
        "status": "PENDING",
        "event_id": to_id(agent_id, done.batch_id),
    }


async def event(call: Call) -> Plan:
    """Return what became of messages."""
    place = from_id(call.parts[0])
    return _plan(_event, call, place, agents=[place.agent_id])


async def _event(call: Call, place: Place) -> Any:
    batch = await call.perform(place.agent_id, "GetBatch", batch_id=place.own_id)
    return {
        "id": call.parts[0],
        "event_type": "ADD",
        "status": STATES[batch.state],
        "results": [{"id": to_id(place.agent_id, one), "event": "ADD"} for one in batch.node_ids],
        "created_at": iso(batch.accepted_at),
        "completed_at": iso(batch.digested_at) if batch.digested_at else None,
    }


# --- finding -----------------------------------------------------------------------------------------------


async def search(call: Call) -> Plan:
    """Return the memories that answer a question, best first."""
    question: Question = await call.read(read_search, bound_agent())
    agent_id = question.listing.filters.owner.agent_id
    return _plan(_search, call, agent_id, question, agents=[agent_id])


async def _search(call: Call, agent_id: str, question: Question) -> Any:
    listing = question.listing
    if listing.filters.is_empty:
        return {"results": []}
    fields = {"patience_ms": PATIENCE_MS, **question.fields}
    found = await call.perform(agent_id, "Search", **fields)
    if found.unembedded_messages and len(found.memories) < question.top_k:
        # New messages without vectors are found by their words only.
        await call.perform(agent_id, "Flush", vectors=True, timeout_ms=PATIENCE_MS)
        found = await call.perform(agent_id, "Search", **fields)
    best = max((one.score for one in found.memories), default=0.0)
    results = []
    for one in found.memories:
        score = one.score / best if best > 0 else 0.0
        memory = {**of_found(agent_id, one), "score": round(score, 6)}
        if score >= question.threshold and _is_listed(listing.filters, memory["id"]):
            results.append(_shown(memory, listing))
    return {"results": results[: question.top_k]}


def _is_listed(filters: Filters, memory_id: str) -> bool:
    return filters.memory_ids is None or memory_id in filters.memory_ids


def _shown(memory: dict[str, Any], listing: Listing) -> dict[str, Any]:
    if not listing.fields:
        return memory
    return {name: value for name, value in memory.items() if name == "id" or name in listing.fields}


async def get_all(call: Call) -> Plan:
    """List living memories, the newest first."""
    page, size = read_page(call.query, PAGE_SIZE, call.service.settings.limits.max_page_size)
    listing: Listing = await call.read(read_get_all, bound_agent())
    agent_id = listing.filters.owner.agent_id
    return _plan(_get_all, call, agent_id, listing, page, size, agents=[agent_id])


async def _get_all(call: Call, agent_id: str, listing: Listing, page: int, size: int) -> Any:
    try:
        await call.perform(agent_id, "Flush", timeout_ms=FLUSH_MS)
        found, count = await _listed(call, agent_id, listing.filters, (page - 1) * size, size)
    except NotFound as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
        found, count = [], 0

    def address(number: int) -> str:
        return f"{call.address}?page={number}&page_size={size}"

    return {
        "count": count,
        "next": address(page + 1) if page * size < count else None,
        "previous": address(page - 1) if page > 1 else None,
        "results": [_shown(of_node(agent_id, one), listing) for one in found],
    }


async def _listed(
    call: Call, agent_id: str, filters: Filters, skipped: int, size: int
) -> tuple[list[NodeInfo], int]:
    """Return a page of the memories that pass the filters, and how many pass.

    With filters all memories are read; without, those up to the page.
    """
    if filters.is_empty:
        return [], 0
    if filters.memory_ids is not None and not filters.metadata:
        nodes = [
            one
            for memory_id in filters.memory_ids
            for one in await _named(call, agent_id, memory_id)
            if _passes(filters, one)
        ]
        nodes.sort(key=lambda one: int(one.id[1:]), reverse=True)
        return nodes[skipped : skipped + size], len(nodes)
    count, page, token = 0, list[NodeInfo](), ""
    most = call.service.settings.limits.max_page_size
    options: dict[str, Any] = {"kinds": KINDS, "newest_first": True, "page_size": most}
    options |= {"metadata": filters.metadata} if filters.metadata else {}
    for read in range(0, MAX_READ, most):
        listed = await call.perform(agent_id, "ListNodes", page_token=token, **options)
        passed = [
            one
            for one in listed.nodes
            if _passes(filters, one) and _is_listed(filters, to_id(agent_id, one.id))
        ]
        page += passed[max(0, skipped - count) : max(0, skipped + size - count)]
        count += len(passed)
        token = listed.next_page_token
        if not token:
            return page, count
        if not filters.is_counted_by_reading and count >= skipped + size:
            counts = (await call.perform(agent_id, "GetAgent")).counts
            return page, max(counts.nodes, count)
        assert read < MAX_READ
    text = f"get_all reads at most {MAX_READ} memories; search for them, or use GET /v1/agents/{{agent_id}}/nodes"
    raise InvalidRequest(text, reason="TOO_MANY_ITEMS")


async def _named(call: Call, agent_id: str, memory_id: str) -> list[NodeInfo]:
    """Return the living memory with an id; none if there is none, or it is another agent's."""
    try:
        place = from_id(memory_id)
        if place.agent_id != agent_id:
            return []
        return [await call.perform(agent_id, "GetNode", node_id=place.own_id)]
    except NotFound as error:
        if error.reason == "AGENT_NOT_FOUND":
            raise
        return []


def _passes(filters: Filters, node: NodeInfo) -> bool:
    """Whether a memory passes the filters but that of metadata, which the listing applies as it was stored."""
    time_ms = said_at(node)
    return (
        (filters.begin_ms is None or time_ms >= filters.begin_ms)
        and (filters.end_ms is None or time_ms < filters.end_ms)
        and (not filters.owner.run_id or any(filters.owner.run_id == s.conversation_id for s in node.sources))
        and (not filters.keywords or filters.keywords.casefold() in node.content.casefold())
    )


# --- one memory --------------------------------------------------------------------------------------------


async def get(call: Call) -> Plan:
    """Return a memory."""
    place = from_id(call.parts[0])
    return _plan(_get, call, place, agents=[place.agent_id])


async def _get(call: Call, place: Place) -> Any:
    if message_number(place.own_id) is None:
        return of_node(place.agent_id, await call.perform(place.agent_id, "GetNode", node_id=place.own_id))
    return of_message(place.agent_id, await _message(call, place))


async def update(call: Call) -> Plan:
    """Correct a memory."""
    place = from_id(call.parts[0])
    correction = await call.read(read_update)
    return _plan(_update, call, place, correction, agents=[place.agent_id])


async def _update(call: Call, place: Place, correction: Mapping[str, Any]) -> Any:
    if message_number(place.own_id) is not None:
        nodes = await _made_of(call, place)
        if len(nodes) != 1:
            raise no_memory("This text has not become exactly one memory. Search again for current ids.")
        place = Place(place.agent_id, nodes[0])
    if not correction:
        return await _get(call, place)
    fields = dict(correction)
    if "metadata" in fields:
        # The ids are stored with the metadata; the client has not seen them there.
        node = await call.perform(place.agent_id, "GetNode", node_id=place.own_id)
        held: Mapping[str, Any] = next((one.metadata for one in node.sources if one.metadata), {})
        fields["metadata"] |= {name: held[name] for name in STORED_AS.values() if name in held}
    done = await call.perform(place.agent_id, "UpdateNode", node_id=place.own_id, **fields)
    return of_node(place.agent_id, done)


async def delete(call: Call) -> Plan:
    """Delete a memory."""
    place = from_id(call.parts[0])
    return _plan(_delete, call, place, agents=[place.agent_id])


async def _delete(call: Call, place: Place) -> Any:
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


# --- many memories -----------------------------------------------------------------------------------------


async def delete_all(call: Call) -> Plan:
    """Delete all memories of a user or an agent, or those of a run or an app of it."""
    owner = read_entities(call.query, bound_agent())
    agent_id = owner.agent_id
    return _plan(_delete_all, call, agent_id, owner, agents=[agent_id])


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
    return _plan(_users, call, page, size)


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
    return _plan(_delete_entity, call, agent_id, agents=[agent_id])


async def _delete_entity(call: Call, agent_id: str) -> Any:
    await call.perform(agent_id, "DeleteAgent")
    return {"message": "Entity deleted successfully!"}


async def batch_update(call: Call) -> Plan:
    """Correct many memories, one after the other."""
    given = await call.read(read_batch, ("text", "metadata"))
    places = [from_id(memory_id) for memory_id, _ in given]
    changes = [
        partial(_update, call, place, fields) for place, (_, fields) in zip(places, given, strict=True)
    ]
    return _plan(_each, changes, "updated", agents=[one.agent_id for one in places])


async def batch_delete(call: Call) -> Plan:
    """Delete many memories, one after the other."""
    places = [from_id(memory_id) for memory_id, _ in await call.read(read_batch, ())]
    changes = [partial(_delete, call, place) for place in places]
    return _plan(_each, changes, "deleted", agents=[one.agent_id for one in places])


async def _each(changes: Sequence[Callable[[], Awaitable[Any]]], done: str) -> Any:
    """Make all changes that can be made. Raise the first error afterwards, with its place."""
    failed: tuple[int, EbbtideError] | None = None
    for at, change in enumerate(changes):
        try:
            await change()
        except (NotFound, InvalidRequest, Precondition) as error:
            failed = failed or (at, error)
    if failed is not None:
        at, first = failed
        message = f"memories[{at}]: {first.message} The others that could be {done} were."
        raise type(first)(message, reason=first.reason, violations=first.violations)
    return {"message": f"Successfully {done} {len(changes)} memories"}


# --- the table ---------------------------------------------------------------------------------------------

CALLS: Mapping[tuple[str, str], Callable[[Call], Awaitable[Plan]]] = {
    ("GET", "v1/ping"): ping,
    ("POST", "v3/memories/add"): add,
    ("GET", "v1/event/*"): event,
    ("POST", "v3/memories/search"): search,
    ("POST", "v3/memories"): get_all,
    ("GET", "v1/memories/*"): get,
    ("PUT", "v1/memories/*"): update,
    ("DELETE", "v1/memories/*"): delete,
    ("DELETE", "v1/memories"): delete_all,
    ("GET", "v1/entities"): users,
    ("DELETE", "v1/entities/*/*"): delete_entity,
    ("DELETE", "v2/entities/*/*"): delete_entity,
    ("PUT", "v1/batch"): batch_update,
    ("DELETE", "v1/batch"): batch_delete,
}
"""Every call by its method and path; `*` is any part."""

VARIABLE = {"v1/event": 1, "v1/memories": 1, "v1/entities": 2, "v2/entities": 2}
"""How many variable parts follow the beginning of a path at most."""


async def plan(
    service: Service,
    method: str,
    segments: Sequence[str],
    query: Sequence[tuple[str, str]],
    body: bytes,
    address: str,
) -> Plan | None:
    """Return the call of a request, read; None if it is not served. The segments are those after the prefix."""
    begin, parts = "/".join(segments[:2]), segments[2:]
    pattern = (
        "/".join((begin, *("*" * len(parts)))) if len(parts) <= VARIABLE.get(begin, 0) else "/".join(segments)
    )
    read = CALLS.get((method, pattern))
    return None if read is None else await read(Call(service, parts, query, body, address))
