"""The interface of a memory for commands: a running daemon, or a data directory that no daemon uses.

`remote.py` and `offline.py` implement `MemoryClient`. Methods have the names of the operations and return their JSON.
They return no models of `ebbtide_client`: `--json` prints a response with the fields that only a newer daemon knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Literal, Protocol

Json = dict[str, Any]
FileFormat = Literal["backup", "export"]

Progress = Callable[[int], None]
"""Called with the number of bytes that were transferred since the last call."""


class MemoryClient(Protocol):
    """Operations that work on a running daemon and on a data directory."""

    def list_agents(self) -> list[Json]: ...
    def get_agent(self, agent_id: str) -> Json: ...
    def list_batches(self, agent_id: str) -> list[Json]: ...
    def get_node(self, agent_id: str, node_id: str) -> Json: ...
    def get_focus(self, agent_id: str) -> Json: ...
    def list_entities(self, agent_id: str) -> list[Json]: ...
    def list_messages(self, agent_id: str, metadata: Json) -> list[Json]: ...
    def get_attachment(self, agent_id: str, message: str, index: int) -> bytes: ...
    def list_nodes(
        self, agent_id: str, kinds: Sequence[str], metadata: Json, ids: Sequence[str]
    ) -> list[Json]: ...
    def list_audit_records(self, agent_id: str) -> list[Json]: ...
    def verify_audit(self, agent_id: str, texts: list[str]) -> Json: ...
    def list_erased_agents(self) -> list[Json]: ...
    def verify_erased_agents(self, texts: list[str]) -> Json: ...
    def download(self, agent_id: str, form: FileFormat, file: BinaryIO, progress: Progress) -> None: ...
    def upload(
        self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, progress: Progress
    ) -> Json: ...


class CountedWriter:
    """A file open for writing that reports its progress."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file = file
        self._progress = progress

    def write(self, piece: bytes) -> int:
        """Write a piece and report its size."""
        count = self._file.write(piece)
        self._progress(count)
        return count


class CountedReader:
    """A file open for reading that reports its progress."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file = file
        self._progress = progress

    def read(self, size: int) -> bytes:
        """Read a piece and report its size."""
        piece = self._file.read(size)
        self._progress(len(piece))
        return piece
