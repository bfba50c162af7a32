"""Writes the Python stubs, `service/ebbtide/v1`, from the schema; `make proto`, or `python proto/generate.py [INTO]`.

Made by the protoc of grpcio-tools: messages (`_pb2.py`), service (`_pb2_grpc.py`), and types of both (`.pyi`,
mypy-protobuf, with the comments of the schema). Packages follow the folders of `proto/`, so imports are right
as they come out. A test runs this into an empty folder and compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
SERVICE = HERE.parent / "service"
PLUGINS = ("mypy", "mypy_grpc")


def generate(into: Path = SERVICE) -> None:
    """Write the stubs of every file of the schema below a folder."""
    schema = sorted(HERE.glob("ebbtide/**/*.proto"))
    _run(into, schema, "python", "mypy")
    _run(into, [path for path in schema if path.stem.endswith("_service")], "grpc_python", "mypy_grpc")


def _run(into: Path, schema: list[Path], *outputs: str) -> None:
    bin_dir = Path(sys.executable).parent
    command = [
        "protoc",
        f"--proto_path={HERE}",
        f"--proto_path={Path(grpc_tools.__file__).parent / '_proto'}",
        *(f"--plugin=protoc-gen-{name}={bin_dir / f'protoc-gen-{name}'}" for name in PLUGINS),
        *(f"--{output}_out={'quiet:' if output in PLUGINS else ''}{into}" for output in outputs),
        *(str(path) for path in schema),
    ]
    if protoc.main(command) != 0:
        raise SystemExit("protoc failed; see above")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SERVICE)
