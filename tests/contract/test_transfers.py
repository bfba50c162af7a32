"""Transfers end at their deadline and when the daemon stops. An interrupted transfer leaves no files."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import Deadline, EbbtideError, Unavailable
from ebbtide.ids import AgentId
from ebbtide.store.transfer import receiving
from ebbtide.store.yielding import Pause
from ebbtide.verbs import moving, transfers
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service
from tests.support.callers import CALLERS, CallerIn, reason_of
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import service_in, settle, tell
from tests.support.waiting import eventually

ANN = "/v1/agents/ann"

AS_BEA = moving.RestoreAgentRequest(agent_id="bea", rename=True)


@pytest.fixture(params=[*CALLERS, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


class Endless:
    """A check that never ends by itself, and yields like all long work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_running = False
        monkeypatch.setattr(receiving, "check_store", self)

    def __call__(self, store: Any, pause: Pause) -> list[Any]:
        self.is_running = True
        while True:
            pause()
            time.sleep(0.001)


async def exported(service: Service, agent: str) -> bytes:
    """Return the export of an agent."""
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    with await moving.export_agent(service, AgentRequest(agent_id=agent)) as leaving:
        await leaving.hand_over(take)
    return b"".join(pieces)


async def in_pieces(content: bytes, *, then_hang: bool = False) -> AsyncIterator[bytes]:
    """Yield a file in pieces, as a client sends it; the client may stop sending."""
    yield content[:100]
    yield content[100:]
    if then_hang:
        await asyncio.Event().wait()


async def is_clean(service: Service) -> bool:
    """Whether nothing of a transfer is left: no file, and no place in use."""
    await eventually(lambda: not list(service.fleet.data.transfers.iterdir()))
    with contextlib.ExitStack() as held:
        for _ in range(transfers.MAX_TRANSFERS):
            held.enter_context(service.transfers.place())
    return True


async def test_a_restore_ends_at_its_deadline(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQUEST_TIMED_OUT names the setting; the old agent stays, and no file and no used place is left."""
    limits = {"transfer_timeout_s": 1.0}
    async with caller_in(tmp_path, limits=limits) as call:
        await tell(call.service, "ann", "I moved to Lisbon in May.")
        await settle(call.service, "ann")
        content = await call.download(f"{ANN}/export")
        endless = Endless(monkeypatch)
        async with asyncio.timeout(20):
            answer = await call.upload(f"{ANN}/restore", content, replace=True)
        assert endless.is_running
        assert (answer.status_code, reason_of(answer)) == (504, "REQUEST_TIMED_OUT")
        assert "limits.transfer_timeout_s = 1" in answer.json()["error"]["message"]
        assert (await call("POST", f"{ANN}/recall", {})).json()["text"]
        assert await is_clean(call.service)


async def test_a_silent_upload_ends_at_the_deadline(tmp_path: Path) -> None:
    """The deadline counts from the first piece, and covers more than the processing of received data."""
    async with service_in(tmp_path, limits={"transfer_timeout_s": 0.5}) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        content = await exported(service, "ann")
        with pytest.raises(Deadline) as refused:
            async with asyncio.timeout(20):
                await moving.restore_agent(service, AS_BEA, in_pieces(content, then_hang=True))
        assert refused.value.reason == "REQUEST_TIMED_OUT"
        assert await is_clean(service)


async def test_an_upload_that_disappears_is_an_unavailable_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore fails with STORE_UNAVAILABLE if the uploaded file disappears before it is read."""
    async with service_in(tmp_path / "data") as service:
        await tell(service, "ann", "The kettle is blue.")
        content = await exported(service, "ann")
        take_in = moving._take_in

        async def take_in_and_lose(*arguments: Any) -> None:
            await take_in(*arguments)
            arguments[1].unlink()

        monkeypatch.setattr(moving, "_take_in", take_in_and_lose)
        with pytest.raises(Unavailable) as caught:
            await moving.restore_agent(service, AS_BEA, in_pieces(content))
        assert caught.value.reason == "STORE_UNAVAILABLE"


async def test_an_unread_download_ends_at_the_deadline(tmp_path: Path) -> None:
    """A client that stops reading is disconnected at the deadline and frees its slot."""
    async with service_in(tmp_path, limits={"transfer_timeout_s": 0.5}) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")

        async def take(_: bytes) -> None:
            await asyncio.Event().wait()

        with (
            pytest.raises(Deadline),
            await moving.backup_agent(service, AgentRequest(agent_id="ann")) as leaving,
        ):
            async with asyncio.timeout(20):
                await leaving.hand_over(take)
        assert await is_clean(service)


@pytest.mark.parametrize("is_sent", [True, False])
async def test_a_stop_cancels_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sent: bool
) -> None:
    """During processing and during the upload, it ends at once with SHUTTING_DOWN and leaves nothing behind."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        content = await exported(service, "ann")
        endless = Endless(monkeypatch)
        pieces = in_pieces(content, then_hang=not is_sent)
        restoring = asyncio.create_task(moving.restore_agent(service, AS_BEA, pieces))
        folder = service.fleet.data.transfers
        await eventually(lambda: endless.is_running if is_sent else any(folder.glob("*/arrived")))
        begun = time.monotonic()
        service.transfers.stop()
        with pytest.raises(Unavailable) as refused:
            await restoring
        assert refused.value.reason == "SHUTTING_DOWN"
        assert time.monotonic() - begun < 5
        monkeypatch.undo()
        assert not service.fleet.data.exists(AgentId("bea"))
        await eventually(lambda: not list(folder.iterdir()))


async def test_a_restore_of_a_disconnected_client_does_not_delay_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the daemon cancels restores whose clients have disconnected, and removes their files."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        content = await exported(service, "ann")
        endless = Endless(monkeypatch)
        restoring = asyncio.create_task(moving.restore_agent(service, AS_BEA, in_pieces(content)))
        await eventually(lambda: endless.is_running)
        restoring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await restoring
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
    assert list((tmp_path / "transfers").iterdir()) == []
    assert [path.name for path in (tmp_path / "agents").iterdir()] == ["ann"]


async def test_a_stop_waits_for_the_rename_of_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the work is done and the rename has started, a stop waits for it, and the agent exists."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        content = await exported(service, "ann")
        data, begun = service.fleet.data, asyncio.Event()
        install, loop = data.install, asyncio.get_running_loop()

        def slowly(*args: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(0.3)
            install(*args)

        monkeypatch.setattr(data, "install", slowly)
        restoring = asyncio.create_task(moving.restore_agent(service, AS_BEA, in_pieces(content)))
        await begun.wait()
        service.transfers.stop()
        await service.transfers.finish()
        assert (await restoring).agent_id == "bea"
        assert data.exists(AgentId("bea"))


async def test_a_stop_cancels_a_file_in_preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup or export that is not sent yet ends at once; its caller retries after the restart."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        is_running = asyncio.Event()
        loop = asyncio.get_running_loop()

        def endless(into: Any, store: Any, version: str, now_ms: int, pause: Pause) -> int:
            loop.call_soon_threadsafe(is_running.set)
            while True:
                pause()
                time.sleep(0.001)

        monkeypatch.setattr("ebbtide.store.transfer.sending.write_export", endless)
        making = asyncio.create_task(moving.export_agent(service, AgentRequest(agent_id="ann")))
        await is_running.wait()
        service.transfers.stop()
        with pytest.raises(EbbtideError) as refused:
            await making
        assert refused.value.reason == "SHUTTING_DOWN"
        await eventually(lambda: not list(service.fleet.data.transfers.iterdir()))
