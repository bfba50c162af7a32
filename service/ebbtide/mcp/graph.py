"""Calls of the set of tools `graph`: a knowledge graph of entities and relations, as records of the agent.

An entity is a record in `ENTITIES` with its name as key, a relation one in `RELATIONS` with its ends and type as key.
The record `HEAD` counts what was created, which gives the graph its order. Every change writes it on condition that it
is as it was read, in one batch with the rest. So calls of several clients happen one after the other, and none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebbtide.bounds import MAX_RECORD_KEY_CHARS
from ebbtide.errors import Conflict, InvalidRequest, NotFound
from ebbtide.mcp.calls import Answer, Session
from ebbtide.mcp.graph_declarations import GRAPH_TOOLS
from ebbtide.privacy.spans import redacted
from ebbtide.verbs.calling import ensure_agent
from ebbtide.verbs.records import MAX_OPERATIONS, MAX_RESULTS, RecordInfo, RecordResult

ENTITIES = ["mcp", "entities"]
RELATIONS = ["mcp", "relations"]
HEAD = {"namespace": ["mcp"], "key": "graph"}

MAX_ITEMS = MAX_OPERATIONS - 100
"""Most entities or relations of a call that changes the graph, and relations that one batch deletes."""

MAX_TRIES = 100
"""How often a call is tried while calls of others change the graph."""

Json = dict[str, Any]


@dataclass(slots=True)
class Graph:
    """The stored graph, with its records in the order of their creation."""

    head: RecordInfo | None = None
    entities: list[RecordInfo] = field(default_factory=list)
    relations: list[RecordInfo] = field(default_factory=list)


class _Changed(Exception):
    """Another call changed the graph between two reads."""


async def call(session: Session, name: str, arguments: Any) -> Answer:
    """Call a tool with arguments as a client sent them. Try again while other calls change the graph."""
    given = GRAPH_TOOLS[name].arguments(arguments)
    for _ in range(MAX_TRIES):
        try:
            return await CALLS[name](session, given)
        except _Changed:
            continue
        except Conflict as error:
            if error.reason != "VERSION_DIFFERS":
                raise
    raise Conflict("Other calls kept changing the graph. Call again.", reason="VERSION_DIFFERS")


async def graph_text(session: Session) -> str:
    """Return the whole graph as JSON."""
    return as_text(_shown(await _whole(session)))


def as_text(value: object) -> str:
    """Return a value as JavaScript's `JSON.stringify(value, null, 2)` writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


# --- records -------------------------------------------------------------------------------------------------


async def _run(session: Session, ops: Sequence[Json]) -> list[RecordResult]:
    """Run a batch. Without an agent, there is nothing to read and nothing to delete."""
    if any(op["op"] == "put" for op in ops):
        await ensure_agent(session.service, session.agent_id)
    try:
        results: list[RecordResult] = (await session.perform("BatchRecords", ops=list(ops))).results
    except NotFound as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
        return [RecordResult(version=None, deleted=0, record=None, records=[], namespaces=[]) for _ in ops]
    return results


async def _found(
    session: Session, namespace: list[str], keys: Sequence[str]
) -> tuple[RecordInfo | None, dict[str, RecordInfo]]:
    """Return the head, and the records that exist by the keys that name them."""
    keys = [key for key in dict.fromkeys(keys) if 0 < len(key) <= MAX_RECORD_KEY_CHARS]
    gets = [{"op": "get", "namespace": namespace, "key": key} for key in keys]
    head, *records = await _run(session, [{"op": "get", **HEAD}, *gets])
    return head.record, {
        key: one.record for key, one in zip(keys, records, strict=True) if one.record is not None
    }


async def _whole(session: Session) -> Graph:
    """Return the graph as it was at one time."""
    graph, limit, has_more, is_first = Graph(), MAX_RESULTS, True, True
    while has_more:
        kinds = ((ENTITIES, graph.entities), (RELATIONS, graph.relations))
        pages = [
            {"op": "search", "prefix": prefix, "limit": limit, "offset": len(found)}
            for prefix, found in kinds
        ]
        try:
            head, *read = await _run(session, [{"op": "get", **HEAD}, *pages])
        except InvalidRequest as error:
            if error.reason != "TOO_MANY_ITEMS" or limit == 1:
                raise
            limit //= 2
            continue
        if not is_first and _version(head.record) != _version(graph.head):
            raise _Changed
        graph.head, is_first = head.record, False
        for (_, found), page in zip(kinds, read, strict=True):
            found += page.records
        has_more = any(len(page.records) == limit for page in read)
    graph.entities = sorted((one for one in graph.entities if one.namespace == ENTITIES), key=_order)
    graph.relations = sorted((one for one in graph.relations if _parts(one.key)), key=_order)
    return graph


def _version(record: RecordInfo | None) -> int:
    return 0 if record is None else record.version


def _order(record: RecordInfo) -> tuple[int, str]:
    seq = record.value.get("seq")
    return seq if isinstance(seq, int) else 0, record.key


async def _change(
    session: Session, head: RecordInfo | None, changes: Sequence[Json], created: int = 0
) -> None:
    """Write changes in one batch, unless the head has changed."""
    if changes:
        head_put = {
            "op": "put",
            **HEAD,
            "value": {"next": _next(head) + created},
            "if_version": _version(head),
        }
        await _run(session, [head_put, *changes])


def _next(head: RecordInfo | None) -> int:
    found = head.value.get("next") if head is not None else 0
    return found if isinstance(found, int) else 0


def _put(namespace: list[str], key: str, value: Json, seq: int, version: int = 0) -> Json:
    value = {**value, "seq": seq}
    return {"op": "put", "namespace": namespace, "key": key, "value": value, "if_version": version}


def _refuse_many(name: str, items: Sequence[object]) -> None:
    if len(items) > MAX_ITEMS:
        raise InvalidRequest(
            f"{name}: {len(items)} items; allowed: at most {MAX_ITEMS} in one call", reason="TOO_MANY_ITEMS"
        )


def _refuse_long(path: str, key: str) -> None:
    if not 0 < len(key) <= MAX_RECORD_KEY_CHARS:
        raise InvalidRequest(
            f"{path}: {len(key)} characters; allowed: 1-{MAX_RECORD_KEY_CHARS}", reason="TEXT_TOO_LONG"
        )


# --- entities and relations ----------------------------------------------------------------------------------


def _entity(record: RecordInfo) -> Json:
    return {
        "name": record.key,
        "entityType": str(record.value.get("entityType", "")),
        "observations": _observations(record),
    }


def _observations(record: RecordInfo) -> list[str]:
    found = record.value.get("observations")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _relation_key(relation: Mapping[str, str]) -> str:
    parts = [relation["from"], relation["to"], relation["relationType"]]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def _parts(key: str) -> list[str]:
    """Return the two names and the type in the key of a relation; nothing for the key of another record."""
    try:
        found = json.loads(key)
    except (ValueError, RecursionError):
        return []
    is_relation = isinstance(found, list) and len(found) == 3 and all(isinstance(one, str) for one in found)
    return found if is_relation else []


def _relation(record: RecordInfo) -> Json:
    """Return a relation. Its names are those in its key, which are stored as the names of entities are."""
    return dict(zip(("from", "to", "relationType"), _parts(record.key), strict=True))


def _shown(graph: Graph) -> Json:
    return {
        "entities": [_entity(one) for one in graph.entities],
        "relations": [_relation(one) for one in graph.relations],
    }


def _around(graph: Json, is_hit: Callable[[Json], bool]) -> Json:
    """Return the entities that are hits, and the relations that touch one."""
    entities = [one for one in graph["entities"] if is_hit(one)]
    names = {one["name"] for one in entities}
    relations = [one for one in graph["relations"] if one["from"] in names or one["to"] in names]
    return {"entities": entities, "relations": relations}


# --- calls ---------------------------------------------------------------------------------------------------


async def _create_entities(session: Session, given: Json) -> Answer:
    entities: list[Json] = given["entities"]
    _refuse_many("entities", entities)
    for place, one in enumerate(entities):
        _refuse_long(f"entities[{place}].name", one["name"])
    head, known = await _found(session, ENTITIES, [one["name"] for one in entities])
    new = _new(entities, known, lambda one: one["name"])
    puts = [
        _put(ENTITIES, one["name"], {name: one[name] for name in ("entityType", "observations")}, seq)
        for seq, one in enumerate(new, start=_next(head))
    ]
    await _change(session, head, puts, len(puts))
    return Answer(as_text(new), {"entities": new})


async def _create_relations(session: Session, given: Json) -> Answer:
    relations: list[Json] = given["relations"]
    _refuse_many("relations", relations)
    for place, one in enumerate(relations):
        _refuse_long(f"relations[{place}]", _relation_key(one))
    head, known = await _found(session, RELATIONS, [_relation_key(one) for one in relations])
    new = _new(relations, known, _relation_key)
    puts = [_put(RELATIONS, _relation_key(one), {}, seq) for seq, one in enumerate(new, start=_next(head))]
    await _change(session, head, puts, len(puts))
    return Answer(as_text(new), {"relations": new})


def _new(items: Iterable[Json], known: Mapping[str, RecordInfo], key_of: Callable[[Json], str]) -> list[Json]:
    """Return the items that do not exist, each once."""
    new: dict[str, Json] = {}
    for one in items:
        if key_of(one) not in known:
            new.setdefault(key_of(one), one)
    return list(new.values())


async def _add_observations(session: Session, given: Json) -> Answer:
    additions: list[Json] = given["observations"]
    _refuse_many("observations", additions)
    head, known = await _found(session, ENTITIES, [one["entityName"] for one in additions])
    contents = {name: _observations(record) for name, record in known.items()}
    results = []
    for one in additions:
        name = one["entityName"]
        if name not in contents:
            raise InvalidRequest(f"Entity with name {redacted(name[:MAX_RECORD_KEY_CHARS])} not found")
        added = [content for content in one["contents"] if content not in contents[name]]
        contents[name] += added
        results.append({"entityName": name, "addedObservations": added})
    await _change(session, head, _rewritten(known, contents))
    return Answer(as_text(results), {"results": results})


async def _delete_observations(session: Session, given: Json) -> Answer:
    deletions: list[Json] = given["deletions"]
    _refuse_many("deletions", deletions)
    head, known = await _found(session, ENTITIES, [one["entityName"] for one in deletions])
    contents = {name: _observations(record) for name, record in known.items()}
    for one in deletions:
        gone, name = set(one["observations"]), one["entityName"]
        if name in contents:
            contents[name] = [content for content in contents[name] if content not in gone]
    await _change(session, head, _rewritten(known, contents))
    return _deleted("Observations deleted successfully")


def _rewritten(known: Mapping[str, RecordInfo], contents: Mapping[str, list[str]]) -> list[Json]:
    """Return a put for each entity whose observations have changed."""
    return [
        _put(
            *(ENTITIES, record.key),
            {"entityType": _entity(record)["entityType"], "observations": contents[name]},
            _order(record)[0],
            record.version,
        )
        for name, record in known.items()
        if contents[name] != _observations(record)
    ]


async def _delete_entities(session: Session, given: Json) -> Answer:
    names: list[str] = given["entityNames"]
    _refuse_many("entityNames", names)
    head, known = await _found(session, ENTITIES, names)
    graph = await _whole(session)
    if _version(graph.head) != _version(head):
        raise _Changed
    gone = {*names, *(record.key for record in known.values())}
    touching = [
        record for record in graph.relations if gone & {_relation(record)["from"], _relation(record)["to"]}
    ]
    if len(touching) + len(known) > MAX_ITEMS:
        # One batch is too small. The entities are deleted last, so a call that is repeated continues.
        await _change(session, head, [_deletion(RELATIONS, one.key) for one in touching[:MAX_ITEMS]])
        raise _Changed
    deletions = [_deletion(RELATIONS, one.key) for one in touching]
    await _change(session, head, [*deletions, *(_deletion(ENTITIES, one.key) for one in known.values())])
    return _deleted("Entities deleted successfully")


async def _delete_relations(session: Session, given: Json) -> Answer:
    relations: list[Json] = given["relations"]
    _refuse_many("relations", relations)
    head, known = await _found(session, RELATIONS, [_relation_key(one) for one in relations])
    await _change(session, head, [_deletion(RELATIONS, one.key) for one in known.values()])
    return _deleted("Relations deleted successfully")


def _deletion(namespace: list[str], key: str) -> Json:
    return {"op": "delete", "namespace": namespace, "key": key}


def _deleted(message: str) -> Answer:
    return Answer(message, {"success": True, "message": message})


async def _read_graph(session: Session, _: Json) -> Answer:
    return _of_graph(_shown(await _whole(session)))


async def _search_nodes(session: Session, given: Json) -> Answer:
    query = given["query"].lower()

    def is_hit(entity: Json) -> bool:
        texts = (entity["name"], entity["entityType"], *entity["observations"])
        return any(query in text.lower() for text in texts)

    return _of_graph(_around(_shown(await _whole(session)), is_hit))


async def _open_nodes(session: Session, given: Json) -> Answer:
    names: list[str] = given["names"]
    _refuse_many("names", names)
    _, known = await _found(session, ENTITIES, names)
    stored = {record.key for record in known.values()}
    return _of_graph(_around(_shown(await _whole(session)), lambda entity: entity["name"] in stored))


def _of_graph(graph: Json) -> Answer:
    return Answer(as_text(graph), graph)


CALLS: Mapping[str, Callable[[Session, Json], Awaitable[Answer]]] = {
    "create_entities": _create_entities,
    "create_relations": _create_relations,
    "add_observations": _add_observations,
    "delete_entities": _delete_entities,
    "delete_observations": _delete_observations,
    "delete_relations": _delete_relations,
    "read_graph": _read_graph,
    "search_nodes": _search_nodes,
    "open_nodes": _open_nodes,
}
"""How each tool is performed, by its name."""

assert CALLS.keys() == GRAPH_TOOLS.keys()
