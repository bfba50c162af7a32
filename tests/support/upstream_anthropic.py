"""A pytest plugin that lets the tests of Anthropic's memory tool run on Ebbtide's.

It takes the place of the tools on a file system. The tests read and write files of their folder, so before a command
the files there become records, and after it the records become the files. The daemon is at EBBTIDE_URL.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import _beta_builtin_memory_tool as upstream
from anyio import Path as AsyncPath

from ebbtide_client import AsyncClient, Client, NotFound
from ebbtide_client.integrations.anthropic import AsyncEbbtideMemoryTool, EbbtideMemoryTool

NOT_OURS = ("symlink", "umask", "view_directory", "too_many_lines")
"""Parts of the names of tests about links and modes of files, the size of a folder on a disk, and files of 1 MB."""


class Folder:
    """The folder of a test, and the records of an agent of its own."""

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path
        self.root = Path(base_path) / "memories"
        self.root.mkdir(parents=True, exist_ok=True)
        self.agent_id = f"am-{uuid.uuid4().hex}"
        self._client = Client()
        self._written: dict[str, str] = {}

    def before(self) -> None:
        """Put the files that the test wrote itself."""
        for path in self.root.rglob("*"):
            name, text = str(path.relative_to(self.base_path)), ""
            if path.is_file():
                text = path.read_bytes().decode()
            if path.is_file() and self._written.get(name) != text:
                *namespace, key = name.split("/")
                put = {"op": "put", "namespace": namespace, "key": key, "value": {"text": text}}
                self._client.batch_records(self.agent_id, [put])

    def after(self) -> None:
        """Write the records as files, in place of all."""
        shutil.rmtree(self.root)
        self.root.mkdir()
        self._written.clear()
        try:
            [found] = self._client.batch_records(self.agent_id, [{"op": "search", "limit": 1000}]).results
        except NotFound:
            return
        for one in found.records:
            path = Path(self.base_path, *one.namespace, one.key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one.value["text"].encode())
            self._written[str(path.relative_to(self.base_path))] = one.value["text"]


class Tool(EbbtideMemoryTool):
    """The tool of a test."""

    def __init__(self, base_path: str) -> None:
        self.folder = Folder(base_path)
        self.base_path, self.memory_root = Path(base_path), self.folder.root
        super().__init__(Client(), self.folder.agent_id)

    def _run(self, command: Any) -> str:
        self.folder.before()
        try:
            return super()._run(command)
        finally:
            self.folder.after()

    view = create = str_replace = insert = delete = rename = _run


class AsyncTool(AsyncEbbtideMemoryTool):
    """The tool of an async test."""

    def __init__(self, base_path: str) -> None:
        self.folder = Folder(base_path)
        self.base_path, self.memory_root = AsyncPath(base_path), AsyncPath(self.folder.root)
        super().__init__(AsyncClient(), self.folder.agent_id)

    async def _run(self, command: Any) -> str:
        self.folder.before()
        try:
            return await super()._run(command)
        finally:
            self.folder.after()

    view = create = str_replace = insert = delete = rename = _run


upstream.BetaLocalFilesystemMemoryTool = Tool  # type: ignore[assignment,misc]
upstream.BetaAsyncLocalFilesystemMemoryTool = AsyncTool  # type: ignore[assignment,misc]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that do not concern records."""
    left_out = [one for one in items if any(part in one.name for part in NOT_OURS)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [one for one in items if one not in left_out]
