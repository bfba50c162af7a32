"""The set of tools `graph`, for clients of the reference MCP memory server (`@modelcontextprotocol/server-memory`).

Names, arguments and results are those of its release 2026.8.31, so a client changes nothing but the address. Arguments
are checked by the schema that is declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.mcp.declarations import Hints

GRAPH_URI = "memory://knowledge-graph"
"""The resource with the whole graph."""

ADDS = Hints(repeats=False)
DELETES = Hints(destroys=True)
READS = Hints(reads_only=True)


@dataclass(frozen=True, slots=True)
class GraphTool:
    """A tool of the set, with the schemas of its arguments and of its structured result."""

    name: str
    en: str
    zh: str
    hints: Hints
    input: Mapping[str, Any]
    output: Mapping[str, Any]

    def arguments(self, sent: Any) -> dict[str, Any]:
        """Return the arguments that a client sent. Raise InvalidRequest if they do not fit the schema."""
        found: dict[str, Any] = _read(self.input, sent, "")
        return found


def _text(description: str = "") -> dict[str, Any]:
    return {"type": "string", "description": description} if description else {"type": "string"}


def _array(items: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    array = {"type": "array", "items": dict(items)}
    return array | {"description": description} if description else array


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


TEXTS = _array(_text())
ENTITY = _object(
    name=_text("Unique name of the entity."),
    entityType=_text("Type of the entity, such as person."),
    observations=_array(_text(), "Facts about the entity, one in each text."),
)
RELATION = _object(
    **{
        "from": _text("Name of the entity at its start."),
        "to": _text("Name of the entity at its end."),
        "relationType": _text("The relation, a verb in the active voice."),
    }
)
GRAPH = _object(entities=_array(ENTITY), relations=_array(RELATION))
DELETED = _object(success={"type": "boolean"}, message=_text())

GRAPH_TOOLS: Mapping[str, GraphTool] = {
    one.name: one
    for one in (
        GraphTool(
            "create_entities",
            "Add entities to the knowledge graph; a name that exists already is skipped.",
            "在知识图谱中新建实体；已有的名称会跳过。",
            ADDS,
            _object(entities=_array(ENTITY)),
            _object(entities=_array(ENTITY)),
        ),
        GraphTool(
            "create_relations",
            "Add relations between entities, in the active voice; one that exists already is skipped.",
            "在实体之间新建关系，用主动语态；已有的关系会跳过。",
            ADDS,
            _object(relations=_array(RELATION)),
            _object(relations=_array(RELATION)),
        ),
        GraphTool(
            "add_observations",
            "Add facts to entities that exist.",
            "给已有的实体添加事实。",
            ADDS,
            _object(
                observations=_array(
                    _object(entityName=_text("Name of the entity."), contents=_array(_text(), "The facts."))
                )
            ),
            _object(results=_array(_object(entityName=_text(), addedObservations=TEXTS))),
        ),
        GraphTool(
            "delete_entities",
            "Delete entities with their relations.",
            "删除实体及其关系。",
            DELETES,
            _object(entityNames=_array(_text(), "Names of the entities.")),
            DELETED,
        ),
        GraphTool(
            "delete_observations",
            "Delete facts from entities.",
            "从实体中删除事实。",
            DELETES,
            _object(
                deletions=_array(
                    _object(
                        entityName=_text("Name of the entity."),
                        observations=_array(_text(), "The facts, word for word."),
                    )
                )
            ),
            DELETED,
        ),
        GraphTool(
            "delete_relations",
            "Delete relations.",
            "删除关系。",
            DELETES,
            _object(relations=_array(RELATION, "The relations.")),
            DELETED,
        ),
        GraphTool(
            "read_graph", "Return the whole knowledge graph.", "返回整个知识图谱。", READS, _object(), GRAPH
        ),
        GraphTool(
            "search_nodes",
            "Find the entities whose name, type or facts contain a text, with their relations.",
            "查找名称、类型或事实中含有某段文字的实体，以及它们的关系。",
            READS,
            _object(query=_text("Text to find, in any case.")),
            GRAPH,
        ),
        GraphTool(
            "open_nodes",
            "Return entities by name, with their relations.",
            "按名称返回实体，以及它们的关系。",
            READS,
            _object(names=_array(_text(), "Names of the entities.")),
            GRAPH,
        ),
    )
}


TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}


def _read(schema: Mapping[str, Any], value: Any, path: str) -> Any:
    """Return a value with the fields of its schema, in their order; others are dropped, as the reference does."""
    kind, name = TYPES[schema["type"]]
    if not isinstance(value, kind):
        raise _invalid(path, f"not {name}; allowed: {name}", "WRONG_TYPE")
    if isinstance(value, list):
        return [_read(schema["items"], one, f"{path}[{place}]") for place, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    read = {}
    for field, wanted in schema["properties"].items():
        inner = f"{path}.{field}" if path else field
        if field not in value:
            raise _invalid(inner, f"required; give {TYPES[wanted['type']][1]}", "MISSING_FIELD")
        read[field] = _read(wanted, value[field], inner)
    return read


def _invalid(path: str, description: str, reason: str) -> InvalidRequest:
    field = path or "arguments"
    return InvalidRequest(
        f"{field}: {description}", reason=reason, violations=[FieldViolation(field, description)]
    )
