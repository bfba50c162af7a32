"""The TypeScript client has the types of this daemon's OpenAPI document, and its lock file names no registry."""

from __future__ import annotations

import json

import pytest

import ebbtide_client
from tests.support.node import PACKAGE, require_tools
from tests.tidy import generate_typescript_schema


@pytest.mark.full
def test_the_types_are_those_of_the_document() -> None:
    """`src/schema.ts` is what the generator writes now."""
    require_tools()
    made = generate_typescript_schema.render()
    assert made == generate_typescript_schema.FILE.read_text(), (
        "run `make openapi-tools` and `python -m tests.tidy.generate_typescript_schema`"
    )


def test_the_package_has_no_dependency_and_the_version_of_the_python_client() -> None:
    """Installing it installs nothing else; both clients have one version."""
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert package["version"] == ebbtide_client.__version__


def test_the_lock_file_names_no_registry() -> None:
    """No address of a registry is committed: each installation uses its own."""
    lock = json.loads((PACKAGE / "package-lock.json").read_text())
    assert len(lock["packages"]) > 10
    assert not [name for name, one in lock["packages"].items() if "resolved" in one]
