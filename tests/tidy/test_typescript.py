"""The TypeScript client has the types of this daemon's OpenAPI document."""

from __future__ import annotations

import json

import pytest

import ebbtide_client
from ebbtide.rest.openapi import operations
from tests.support.conformance import request_cases
from tests.support.node import PACKAGE, require_tools
from tests.support.openapi import openapi_document
from tests.tidy import generate_typescript_schema


@pytest.mark.full
def test_the_types_are_those_of_the_document() -> None:
    """`src/schema.ts` is what the generator writes now."""
    require_tools()
    made = generate_typescript_schema.render()
    assert made == generate_typescript_schema.FILE.read_text(), (
        "run `make openapi-tools` and `python -m tests.tidy.generate_typescript_schema`"
    )


@pytest.mark.full
def test_every_operation_is_in_the_shared_cases() -> None:
    """`requests.json` has each operation, except files and the stream of events, and readiness, which may be 503."""
    names = {one["operationId"] for _, one in operations(openapi_document())}
    others = {"backupAgent", "exportAgent", "restoreAgent", "watchEvents", "getReadiness"}
    assert names - others == {row["call"] for row in request_cases()}


def test_the_package_has_no_dependency_and_the_version_of_the_python_client() -> None:
    """Installing it installs nothing else; both clients have one version."""
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert package["version"] == ebbtide_client.__version__
