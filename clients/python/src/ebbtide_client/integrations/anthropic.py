"""The memory tool of Claude on the records of an agent: `EbbtideMemoryTool`, and `AsyncEbbtideMemoryTool`.

The tool is a file system below `/memories`. A file is a record: its namespace are the folders, its key is the name, and
its value has the text. A folder exists while it has a file. An edit is refused by the daemon if the file has changed
meanwhile, and is then done again on the new text. The texts of answers are those of the file system of Anthropic's
package. Needs `anthropic`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)

from ebbtide_client.errors import Conflict, InvalidRequest, NotFound

if TYPE_CHECKING:
    from ebbtide_client.async_client import AsyncClient
    from ebbtide_client.client import Client
    from ebbtide_client.models import RecordInfo, RecordResult

ROOT = "memories"
MAX_LISTED = 1000
"""Most files that one listing reads."""

MAX_TRIES = 3
"""How often an edit is tried while others change the file."""

Op = dict[str, Any]
Path = tuple[str, ...]
T = TypeVar("T")
Steps = Generator[list[Op], "Sequence[RecordResult]", T]
"""The steps of a command: it yields the operations of a request and gets their results."""


def _path(text: str) -> Path:
    """Return the parts of a path, resolved. Raise ToolError for one outside of the folder."""
    if not text.startswith(f"/{ROOT}"):
        raise ToolError(f"Path must start with /{ROOT}, got: {text}")
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                raise ToolError(f"Path {text} would escape /{ROOT} directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if parts[:1] != [ROOT]:
        raise ToolError(f"Path {text} would escape /{ROOT} directory")
    return tuple(parts)


def _named(op: str, path: Path, **fields: Any) -> Op:
    return {"op": op, "namespace": list(path[:-1]), "key": path[-1], **fields}


def _below(path: Path) -> Op:
    return {"op": "search", "prefix": list(path), "limit": MAX_LISTED}


def _text(record: RecordInfo) -> str:
    return str(record.value.get("text", ""))


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{first + place:6}\t{line}" for place, line in enumerate(lines))


def _size(count: int) -> str:
    """Return a size as the file system of Anthropic's package writes it."""
    place = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**place
    return f"{int(size)}{'BKMG'[place]}" if size == int(size) else f"{size:.1f}{'BKMG'[place]}"


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _look(path: Path) -> Steps[tuple[RecordInfo | None, Sequence[RecordInfo]]]:
    """Return the file at a path, and the files of the folder there."""
    ops = [_below(path)] if len(path) == 1 else [_below(path), _named("get", path)]
    results = yield ops
    return (results[1].record if len(path) > 1 else None), results[0].records


def _check_folders(path: Path) -> Steps[None]:
    """Raise ToolError if a folder of a path is a file."""
    folders = [path[:depth] for depth in range(2, len(path))]
    if not folders:
        return
    results = yield [_named("get", folder) for folder in folders]
    for folder, found in zip(folders, results, strict=True):
        if found.record is not None:
            raise ToolError(f"/{'/'.join(folder)} is a file, so no path below it can exist")


def _view(command: Any) -> Steps[str]:
    path = _path(command.path)
    file, files = yield from _look(path)
    if file is not None:
        return _shown(command, _text(file))
    if not files and len(path) > 1:
        raise _missing(command.path)
    return _listed(command.path, path, files)


def _shown(command: Any, text: str) -> str:
    lines, first = text.split("\n"), 1
    view_range = command.view_range
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : len(lines) if view_range[1] == -1 else view_range[1]]
    return f"Here's the content of {command.path} with line numbers:\n{_numbered(lines, first)}"


def _listed(shown: str, path: Path, files: Sequence[RecordInfo]) -> str:
    sizes: dict[tuple[Path, bool], int] = {}
    total = 0
    for file in files:
        parts = (*file.namespace, file.key)[len(path) :]
        if any(part.startswith(".") for part in parts):
            continue
        size = len(_text(file).encode())
        total += size
        for depth in (1, 2):
            if len(parts) >= depth:
                entry = (parts[:depth], depth < len(parts))
                sizes[entry] = sizes.get(entry, 0) + size
    lines = [
        f"{_size(size)}\t{shown}/{'/'.join(parts)}{'/' if is_folder else ''}"
        for (parts, is_folder), size in sorted(sizes.items())
    ]
    head = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
    return "\n".join([head, f"{_size(total)}\t{shown}", *lines])


def _create(command: Any) -> Steps[str]:
    path = _path(command.path)
    exists = ToolError(f"File {command.path} already exists")
    _, files = yield from _look(path)
    if files or len(path) == 1:
        raise exists
    yield from _check_folders(path)
    try:
        yield [_named("put", path, value={"text": command.file_text}, if_version=0)]
    except Conflict:
        raise exists from None
    return f"File created successfully at: {command.path}"


def _edited(command: Any) -> Steps[tuple[Path, RecordInfo]]:
    """Return the file to edit."""
    path = _path(command.path)
    file, files = yield from _look(path)
    if file is None and (files or len(path) == 1):
        raise ToolError(f"The path {command.path} is not a file.")
    if file is None:
        raise _missing(command.path)
    return path, file


def _save(path: Path, file: RecordInfo, text: str) -> Op:
    return _named("put", path, value={**file.value, "text": text}, if_version=file.version)


def _str_replace(command: Any) -> Steps[str]:
    path, file = yield from _edited(command)
    text, old = _text(file), command.old_str
    if old not in text:
        raise ToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
        )
    if text.count(old) > 1:
        places = [place for place in range(len(text)) if text.startswith(old, place)]
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    changed = text.replace(old, command.new_str)
    yield [_save(path, file, changed)]
    line = text.count("\n", 0, text.find(old))
    begin = max(0, line - 2)
    snippet = _numbered(changed.split("\n")[begin : line + 3], begin + 1)
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"


def _insert(command: Any) -> Steps[str]:
    path, file = yield from _edited(command)
    lines = _text(file).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. "
            f"It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    text = "\n".join(lines)
    yield [_save(path, file, text if text.endswith("\n") else f"{text}\n")]
    return f"The file {command.path} has been edited."


def _delete(command: Any) -> Steps[str]:
    path = _path(command.path)
    if len(path) == 1:
        raise ToolError(f"Cannot delete the /{ROOT} directory itself")
    results = yield [_named("delete", path), {"op": "delete", "prefix": list(path)}]
    if not any(one.deleted for one in results):
        raise ToolError(f"The path {command.path} does not exist")
    return f"Successfully deleted {command.path}"


def _rename(command: Any) -> Steps[str]:
    old, new = _path(command.old_path), _path(command.new_path)
    if len(old) == 1:
        raise ToolError(f"Cannot rename the /{ROOT} directory itself")
    exists = ToolError(f"The destination {command.new_path} already exists")
    there, inside = yield from _look(new)
    if there is not None or inside or len(new) == 1:
        raise exists
    file, files = yield from _look(old)
    if file is None and not files:
        raise ToolError(f"The path {command.old_path} does not exist")
    if new[: len(old)] == old:
        raise ToolError(f"Cannot rename {command.old_path} to a path inside itself")
    yield from _check_folders(new)
    if len(files) == MAX_LISTED:
        raise ToolError(f"{command.old_path} has too many files; rename the folders in it one by one")
    ops: list[Op] = []
    for one in [file] if file is not None else files:
        before = (*one.namespace, one.key)
        ops.append(_named("put", (*new, *before[len(old) :]), value=one.value, if_version=0))
        ops.append(_named("delete", before, if_version=one.version))
    yield ops
    return f"Successfully renamed {command.old_path} to {command.new_path}"


def _clear() -> Steps[str]:
    yield [{"op": "delete", "prefix": [ROOT]}]
    return "All memory cleared"


def _of_unknown_agent(ops: Sequence[Op], error: NotFound) -> Sequence[RecordResult]:
    """Return the results of reads and deletions of an agent that does not exist yet."""
    if error.reason != "AGENT_NOT_FOUND":
        raise error
    from ebbtide_client.models import RecordResult

    return [RecordResult(version=None, deleted=0, record=None, records=(), namespaces=()) for _ in ops]


_MOVES = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


def _steps(command: Any) -> Steps[str]:
    return _clear() if command is None else _MOVES[command.command](command)


_CONTESTED = "The file is being changed by others. Nothing was changed; try again."


class EbbtideMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of Claude, in the records of an agent. The first file creates the agent."""

    def __init__(self, client: Client, agent_id: str, **options: Any) -> None:
        """Use the records of an agent; `options` are those of Anthropic's class."""
        super().__init__(**options)
        self._client = client
        self._agent_id = agent_id

    def _batch(self, ops: list[Op]) -> Sequence[RecordResult]:
        try:
            return self._client.batch_records(self._agent_id, ops).results
        except NotFound as error:
            return _of_unknown_agent(ops, error)

    def _run(self, command: Any) -> str:
        for _ in range(MAX_TRIES):
            steps = _steps(command)
            try:
                ops = next(steps)
                while True:
                    try:
                        results = self._batch(ops)
                    except Conflict as conflict:
                        ops = steps.throw(conflict)
                    else:
                        ops = steps.send(results)
            except StopIteration as done:
                return str(done.value)
            except Conflict:
                continue
            except InvalidRequest as error:
                raise ToolError(error.message) from error
        raise ToolError(_CONTESTED)

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return self._run(None)


class AsyncEbbtideMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool of Claude, in the records of an agent, for async code."""

    def __init__(self, client: AsyncClient, agent_id: str, **options: Any) -> None:
        """Use the records of an agent; `options` are those of Anthropic's class."""
        super().__init__(**options)
        self._client = client
        self._agent_id = agent_id

    async def _batch(self, ops: list[Op]) -> Sequence[RecordResult]:
        try:
            return (await self._client.batch_records(self._agent_id, ops)).results
        except NotFound as error:
            return _of_unknown_agent(ops, error)

    async def _run(self, command: Any) -> str:
        for _ in range(MAX_TRIES):
            steps = _steps(command)
            try:
                ops = next(steps)
                while True:
                    try:
                        results = await self._batch(ops)
                    except Conflict as conflict:
                        ops = steps.throw(conflict)
                    else:
                        ops = steps.send(results)
            except StopIteration as done:
                return str(done.value)
            except Conflict:
                continue
            except InvalidRequest as error:
                raise ToolError(error.message) from error
        raise ToolError(_CONTESTED)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await self._run(None)
