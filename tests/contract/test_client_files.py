"""Files with the Python client: backup and restore with a path or an open file, in pieces, completely or not at all."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import os
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide_client import (
    AsyncClient,
    Client,
    Conflict,
    ConnectionFailed,
    EbbtideError,
    Exhausted,
    InvalidRequest,
    NotFound,
    Precondition,
    Retries,
    Unauthenticated,
    UnexpectedAnswer,
    models,
)
from tests.contract.test_python_client import refused
from tests.support.keys import KEYS_ON, new_key
from tests.support.process import Daemon, running_daemon

SAID = "I moved to Lisbon in May. My flat is near the river."
ONCE = Retries(attempts=1)
SWIFT = Retries(first_pause_s=0.001)
FORMS = {"backup": "application/octet-stream", "export": "application/x-ndjson"}


def told(daemon: Daemon, agent: str = "ann") -> None:
    """Create an agent with memories."""
    daemon.remember(agent, SAID)
    daemon.flush(agent)


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call one operation with each kind of client: `ask(verb, *arguments, url=…)`."""

    def blocking(verb: str, *arguments: Any, options: Any = None, **client: Any) -> Any:
        with Client(**{"retries": ONCE, **client}) as memory:
            return getattr(memory, verb)(*arguments, **(options or {}))

    def awaited(verb: str, *arguments: Any, options: Any = None, **client: Any) -> Any:
        async def once() -> Any:
            async with AsyncClient(**{"retries": ONCE, **client}) as memory:
                return await getattr(memory, verb)(*arguments, **(options or {}))

        return asyncio.run(once())

    return blocking if request.param == "sync" else awaited


# --- a real daemon -----------------------------------------------------------------------------------


def test_an_agent_is_saved_and_restored(daemon: Daemon, tmp_path: Path, ask: Callable[..., Any]) -> None:
    """With a path and an open file, by both clients, as a backup and as an export, the agent answers as before."""
    told(daemon)
    backup, export, buffer = tmp_path / "ann.ebb", tmp_path / "ann.jsonl", io.BytesIO(b"")
    assert ask("backup_agent", "ann", backup, url=daemon.url) == backup.stat().st_size > 0
    assert ask("export_agent", "ann", str(export), url=daemon.url) == export.stat().st_size
    assert ask("export_agent", "ann", buffer, url=daemon.url) == len(buffer.getvalue()) > 0
    with (tmp_path / "raw").open("wb", buffering=0) as raw:
        ask("backup_agent", "ann", raw, url=daemon.url)
    assert json.loads(export.read_text().splitlines()[0])["agent_id"] == "ann"
    assert sorted(one.name for one in tmp_path.glob("*ann*")) == ["ann.ebb", "ann.jsonl"]
    with pytest.raises(Conflict) as there:
        ask("restore_agent", "ann", backup, url=daemon.url)
    assert there.value.reason == "AGENT_EXISTS"
    again = ask("restore_agent", "ann", backup, url=daemon.url, options={"replace": True})
    assert again == models.Restored(
        agent_id="ann",
        replaced=True,
        counts=models.Counts(nodes=1, entities=3, links=6, messages=1),
        pending_batches=0,
        parked_batches=0,
        owed_passes=0,
    )
    buffer.seek(0)
    for number, (verb, source) in enumerate(
        (
            ("restore_agent", str(backup)),
            ("restore_agent", tmp_path / "raw"),
            ("import_agent", export),
            ("restore_agent", buffer),
        )
    ):
        come = ask(verb, f"eve{number}", source, url=daemon.url, options={"rename": True})
        assert (come.agent_id, come.replaced, come.counts.nodes) == (f"eve{number}", False, 1)
        assert "Lisbon" in daemon.recall(f"eve{number}", "Lisbon")


def test_errors_of_the_daemon_are_raised(daemon: Daemon, tmp_path: Path, ask: Callable[..., Any]) -> None:
    """Errors of the daemon arrive in their families, also before a large upload; no file is left behind."""
    told(daemon)
    with pytest.raises(NotFound) as nobody:
        ask("backup_agent", "nobody", tmp_path / "nobody.ebb", url=daemon.url)
    assert nobody.value.reason == "AGENT_NOT_FOUND" and nobody.value.request_id
    buffer = io.BytesIO()
    with pytest.raises(InvalidRequest):
        ask("export_agent", "..", buffer, url=daemon.url)
    assert buffer.getvalue() == b"" and list(tmp_path.glob("*nobody*")) == []
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(8 << 20)
    before = daemon.recall("ann", "Lisbon")
    for agent, reason in (("ann", "AGENT_EXISTS"), ("eve", "BACKUP_UNREADABLE"), ("..", "INVALID_AGENT_ID")):
        with pytest.raises(EbbtideError) as caught:
            ask("restore_agent", agent, large, url=daemon.url)
        assert caught.value.reason == reason
    with pytest.raises(InvalidRequest) as no_export:
        ask("import_agent", "eve", large, url=daemon.url)
    assert no_export.value.reason == "BACKUP_UNREADABLE" and no_export.value.http_status is None
    ask("backup_agent", "ann", tmp_path / "ann.ebb", url=daemon.url)
    with pytest.raises(Precondition) as of_another:
        ask("restore_agent", "eve", tmp_path / "ann.ebb", url=daemon.url)
    assert of_another.value.reason == "BACKUP_OF_ANOTHER_AGENT"
    assert daemon.recall("ann", "Lisbon") == before
    assert [one["agent_id"] for one in daemon.client.get("/v1/agents").json()["agents"]] == ["ann"]


def test_a_source_that_fails_changes_nothing(daemon: Daemon, tmp_path: Path, ask: Callable[..., Any]) -> None:
    """An error of the source file is raised unchanged, also in the middle of it; the agent to be replaced stays."""
    told(daemon)
    buffer = io.BytesIO()
    ask("backup_agent", "ann", buffer, url=daemon.url)

    class Failing(io.RawIOBase):
        def __init__(self, error: BaseException) -> None:
            self._left = [buffer.getvalue()[:1000], error]

        def read(self, size: int = -1) -> bytes:
            told = self._left.pop(0)
            if isinstance(told, BaseException):
                raise told
            return told

    with pytest.raises(OSError, match="worn out"):
        ask("restore_agent", "ann", Failing(OSError("worn out")), url=daemon.url, options={"replace": True})
    with pytest.raises(TypeError, match="bytes"):
        ask("restore_agent", "ann", io.StringIO("text"), url=daemon.url, options={"replace": True})
    with pytest.raises(FileNotFoundError):
        ask("restore_agent", "ann", tmp_path / "none", url=daemon.url, options={"replace": True})
    assert "Lisbon" in daemon.recall("ann", "Lisbon")


def test_the_client_reads_the_key_from_the_environment(
    tmp_path: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address, and the key from a file or a variable, are read as on the command line; an empty key means none."""
    path = tmp_path / "data"
    key, other = new_key(path, "admin", "read"), new_key(path, "read")
    (tmp_path / "key").write_text(f"{key}\n")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(8 << 20)
    with running_daemon(path, {"ACCESS__AUTHENTICATION": KEYS_ON["authentication"]}) as daemon:
        monkeypatch.setenv("EBBTIDE_URL", daemon.url)
        with pytest.raises(Unauthenticated) as keyless:
            ask("restore_agent", "ann", large)
        assert keyless.value.reason == "MISSING_KEY"
        monkeypatch.setenv("EBBTIDE_API_KEY", other)
        assert ask("get_model").kind == "builtin"
        with pytest.raises(EbbtideError, match="SCOPE_MISSING"):
            ask("list_erased_agents")
        monkeypatch.setenv("EBBTIDE_API_KEY_FILE", str(tmp_path / "key"))
        assert ask("list_erased_agents").records == ()
        with pytest.raises(EbbtideError, match="SCOPE_MISSING"):
            ask("list_erased_agents", api_key=other)
        with pytest.raises(Unauthenticated):
            ask("get_model", api_key="")
        assert "ebbtide_open_agents" in ask("get_metrics")


# --- connections that break --------------------------------------------------------------------------


class Torn(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Pieces of a response, then optionally the end of the connection."""

    def __init__(self, pieces: int, *, breaks: bool) -> None:
        self._pieces, self._breaks = pieces, breaks

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._pieces):
            yield b"x" * (64 << 10)
        if self._breaks:
            raise httpx.ReadError("torn")

    async def __aiter__(self) -> Any:
        for piece in self:
            yield piece


class Scripted(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Return scripted responses in order, and read the request without keeping it."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.taken = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        for piece in request.stream:
            self.taken += len(piece)
        return self._next(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for piece in request.stream:
            self.taken += len(piece)
        return self._next(request)

    def _next(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._answers.pop(0)


def file_of(pieces: int, *, breaks: bool = False, form: str = "backup") -> httpx.Response:
    """Return a response with a file."""
    return httpx.Response(200, headers={"content-type": FORMS[form]}, stream=Torn(pieces, breaks=breaks))


def test_a_broken_transfer_leaves_no_half_file(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """After a broken transfer the existing file is unchanged, and the folder contains no other file."""
    path = tmp_path / "ann.ebb"
    for before in (None, b"the backup of yesterday"):
        if before is not None:
            path.write_bytes(before)
        for answer in (file_of(3, breaks=True), refused("STORE_FULL"), httpx.Response(200, text="<html>")):
            with pytest.raises(EbbtideError) as caught:
                ask("backup_agent", "ann", path, transport=Scripted(answer))
            assert type(caught.value) in (ConnectionFailed, Exhausted, UnexpectedAnswer)
            assert [one.read_bytes() for one in tmp_path.iterdir()] == ([before] if before else [])


def test_an_answer_that_ends_too_soon_is_no_file(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """Over a real socket, a response with fewer bytes than announced is a broken connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                head = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 1000\r\n\r\n"
                connection.sendall(head.encode() + b"x" * 999)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConnectionFailed):
            ask("backup_agent", "ann", tmp_path / "ann.ebb", url=url)
        thread.join()
    assert list(tmp_path.iterdir()) == []


def test_a_broken_download_is_retried_only_if_nothing_was_written(
    tmp_path: Path, ask: Callable[..., Any]
) -> None:
    """A path receives the complete second attempt. An open file that already received bytes is not written again."""
    path, busy = tmp_path / "ann.jsonl", refused("TOO_MANY_TRANSFERS", 0)
    transport = Scripted(busy, file_of(3, breaks=True, form="export"), file_of(2, form="export"))
    assert ask("export_agent", "ann", path, transport=transport, retries=SWIFT) == 2 * (64 << 10)
    assert path.stat().st_size == 2 * (64 << 10) and len(list(tmp_path.iterdir())) == 1
    buffer = io.BytesIO()
    transport = Scripted(busy, file_of(3, breaks=True), file_of(2))
    with pytest.raises(ConnectionFailed):
        ask("backup_agent", "ann", buffer, transport=transport, retries=SWIFT)
    assert len(transport.requests) == 2 and len(buffer.getvalue()) == 3 * (64 << 10)


def test_a_restore_is_sent_once(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """A restore is sent once, because it changes data. Its parameters are in the query string."""
    (tmp_path / "a").write_bytes(b"{}")
    transport = Scripted(refused("TOO_MANY_TRANSFERS", 0))
    with pytest.raises(Exhausted):
        ask("import_agent", "ann", tmp_path / "a", transport=transport, retries=SWIFT)
    (request,) = transport.requests
    assert (request.url.path, dict(request.url.params)) == ("/v1/agents/ann/restore", {})
    assert request.headers["content-type"] == "application/x-ndjson"
    transport = Scripted(refused("AGENT_BUSY"))
    with pytest.raises(EbbtideError):
        ask(
            "restore_agent",
            "ann",
            tmp_path / "a",
            transport=transport,
            options={"replace": True, "rename": True},
        )
    assert dict(transport.requests[0].url.params) == {"replace": "true", "rename": "true"}


def test_files_are_transferred_in_pieces(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """A transfer of 64 MiB in each direction has only a few pieces in memory."""
    large = tmp_path / "large"
    tracemalloc.start()
    try:
        ask("backup_agent", "ann", large, transport=Scripted(file_of(1024)))
        assert large.stat().st_size == 64 << 20
        transport = Scripted(refused("BACKUP_UNREADABLE"))
        with pytest.raises(InvalidRequest):
            ask("restore_agent", "ann", large, transport=transport)
        assert transport.taken == 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_an_unusable_target_is_refused_before_the_request(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """A folder, a pipe and a missing folder are refused; a link is followed to its file."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none" / "ann.ebb"):
        transport = Scripted()
        with pytest.raises(OSError, match=r"folder|regular|No such"):
            ask("backup_agent", "ann", path, transport=transport)
        assert transport.requests == []
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ask("backup_agent", "ann", tmp_path / "link", transport=Scripted(file_of(1)))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").stat().st_size == 64 << 10
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600


async def test_a_cancelled_backup_leaves_no_file(tmp_path: Path) -> None:
    """A task that is cancelled during a backup leaves no file under any name."""
    begun = asyncio.Event()

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            while True:
                yield b"x" * 1000
                begun.set()

    answer = httpx.Response(200, headers={"content-type": FORMS["backup"]}, stream=Endless())
    async with AsyncClient(transport=Scripted(answer)) as memory:
        saving = asyncio.create_task(memory.backup_agent("ann", tmp_path / "ann.ebb"))
        await begun.wait()
        assert [Path(name).suffix for name in os.listdir(tmp_path)] == [".part"]
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    assert os.listdir(tmp_path) == []


def test_both_clients_take_the_same_credentials() -> None:
    """Both constructors have the same arguments, except those with which tests replace the network."""
    kinds = [list(inspect.signature(kind).parameters) for kind in (Client, AsyncClient)]
    assert kinds[0] == kinds[1]
    for name in ("url", "api_key", "ca_file", "client_cert", "verify"):
        assert name in kinds[0]
