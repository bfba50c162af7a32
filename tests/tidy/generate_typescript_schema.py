"""Write the types of the TypeScript client: `python -m tests.tidy.generate_typescript_schema`.

The generator needs the tools of `make openapi-tools`. A test compares the outcome with the committed file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.support.node import PACKAGE, run_node
from tests.support.openapi import openapi_document

FILE = PACKAGE / "src" / "schema.ts"
HEADER = "// Generated from the OpenAPI document by `python -m tests.tidy.generate_typescript_schema`. Do not edit.\n"


def render() -> str:
    """Return the content of the file."""
    with tempfile.TemporaryDirectory() as folder:
        document, types = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        document.write_text(json.dumps(openapi_document()))
        run_node(PACKAGE, "generate.mjs", str(document), str(types))
        return HEADER + types.read_text()


if __name__ == "__main__":
    FILE.write_text(render())
