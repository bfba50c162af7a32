"""Write the models of the Python client from the OpenAPI document: `python -m tests.tidy.generate_client_models`.

The models are the schemas of all successful responses, and the message of `remember`. A test compares the outcome with
the committed file.
"""

from __future__ import annotations

import json
from typing import Any

from datamodel_code_generator import DataModelType, InputFileType, LiteralType, generate

from ebbtide.rest.openapi import operations, references
from tests.support.openapi import openapi_document
from tests.tidy.formatting import formatted
from tests.tidy.pages import ROOT

FILE = ROOT / "clients" / "python" / "src" / "ebbtide_client" / "models.py"

HEADER = '''"""Models of the daemon's responses, and the message of `remember`.

Generated from the OpenAPI document by `python -m tests.tidy.generate_client_models`. Do not edit.
Times are milliseconds since 1970-01-01 UTC; ids are opaque. `ebbtide_client.decoding` reads them from JSON.
"""
'''


def render() -> str:
    """Return the content of the file."""
    schemas = selected(openapi_document())
    made = generate(
        json.dumps({"openapi": "3.1.0", "info": {}, "paths": {}, "components": {"schemas": schemas}}),
        input_file_type=InputFileType.OpenAPI,
        output_model_type=DataModelType.DataclassesDataclass,
        dataclass_arguments={"frozen": True, "slots": True, "kw_only": True},
        enum_field_as_literal=LiteralType.All,
        use_generic_container_types=True,
        use_standard_collections=True,
        use_union_operator=True,
        use_schema_description=True,
        use_field_description=True,
        use_inline_field_description=True,
        use_attribute_docstrings=True,
        use_single_line_docstring=True,
        strict_nullable=True,
        custom_file_header=HEADER,
        disable_timestamp=True,
        formatters=[],
    )
    return formatted(str(made), FILE)


def selected(document: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that the client needs. Fields that every response has are without a default there."""
    schemas = document["components"]["schemas"]
    by_id = {one["operationId"]: one for _, one in operations(document)}
    body = next(references(by_id["remember"]["requestBody"]))
    message = next(references(schemas[body]["properties"]["messages"]))
    sent = _reached(schemas, [schemas[message]]) | {message}
    answers = [
        response for one in by_id.values() for code, response in one["responses"].items() if code[0] == "2"
    ]
    found = {name: _without_defaults(schemas[name]) for name in sorted(_reached(schemas, answers) - sent)}
    return {**{name: schemas[name] for name in sorted(sent)}, **found}


def _reached(schemas: dict[str, Any], waiting: list[Any]) -> set[str]:
    """Return the names of the schemas to which parts of a document refer, directly or not."""
    names: set[str] = set()
    while waiting:
        for name in references(waiting.pop()):
            if name in schemas and name not in names:
                names.add(name)
                waiting.append(schemas[name])
    return names


def _without_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    fields = {
        name: {key: value for key, value in field.items() if key != "default" or name not in required}
        for name, field in schema["properties"].items()
    }
    for name, field in fields.items():
        if name not in required and field.get("type") == "array":
            field["default"] = []
    return {**schema, "properties": fields}


if __name__ == "__main__":
    FILE.write_text(render())
