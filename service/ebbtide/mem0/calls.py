"""The calls of mem0's hosted API, performed by operations of the catalogue.

A call is read first, which names its agents, and then performed: a daemon with workers passes it on in between. A call
that is not in `CALLS` is not served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import Needs, Requirement
from ebbtide.errors import EbbtideError, InvalidRequest, NotFound, Precondition
from ebbtide.mem0.call import Call, Plan, bound_agent, planned
from ebbtide.mem0.entities import delete_all, delete_entity, users
from ebbtide.mem0.finding import get_all, search
from ebbtide.mem0.memories import Place, from_id, iso, to_id
from ebbtide.mem0.one_memory import correct_memory, delete, delete_memory, get, update
from ebbtide.mem0.reading import Addition, read_add, read_batch
from ebbtide.verbs.calling import call_with, ensure_agent, remember_once
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.service import Service

STATES = {"waiting": "PENDING", "digesting": "RUNNING", "digested": "SUCCEEDED", "parked": "FAILED"}
"""The status of an event, by the state of its batch."""

FIELDS: Mapping[str, str] = {
    "conversation_id": "run_id",
    "sources[0]": "run_id",
    "max_results": "top_k",
    "content": "text",
}
"""The names of mem0's fields for those that an error names."""


async def ping(call: Call) -> Plan:
    """Say that the key is valid. Clients ask before anything else."""

    async def answer() -> Any:
        call.service.authentication.permit(CALLER.get(), Requirement(Needs.KEY), None)
        # No operation reads these ids.
        return {"status": "ok", "org_id": "ebbtide", "project_id": "ebbtide", "user_email": None}

    return planned(answer)


async def add(call: Call) -> Plan:
    """Remember messages."""
    limits, now_ms = call.service.settings.limits, call.service.clock.now_ms()
    addition: Addition = await call.read(read_add, bound_agent(), now_ms, limits)
    agent_id = addition.owner.agent_id
    return planned(_add, call, agent_id, addition, agents=[agent_id])


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
    return planned(_event, call, place, agents=[place.agent_id])


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


async def batch_update(call: Call) -> Plan:
    """Correct many memories, one after the other."""
    given = await call.read(read_batch, ("text", "metadata"))
    return _planned_each(given, partial(correct_memory, call), "updated")


async def batch_delete(call: Call) -> Plan:
    """Delete many memories, one after the other."""
    given = await call.read(read_batch, ())
    return _planned_each(given, lambda place, _: delete_memory(call, place), "deleted")


def _planned_each(
    given: Sequence[tuple[str, Mapping[str, Any]]],
    change: Callable[[Place, Mapping[str, Any]], Awaitable[Any]],
    done: str,
) -> Plan:
    """Return the changes of a batch. An id that cannot be read fails as one that no memory has."""
    changes, agents = list[Callable[[], Awaitable[Any]]](), list[str]()
    for memory_id, fields in given:
        try:
            place = from_id(memory_id)
        except NotFound as error:
            changes.append(partial(_fail, error))
            continue
        agents.append(place.agent_id)
        changes.append(partial(change, place, fields))
    return planned(_each, changes, done, agents=agents)


async def _fail(error: EbbtideError) -> None:
    raise error


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
