"""Connections to other workers: waiting for one that is being replaced, and the error after that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from ebbtide.errors import Unavailable
from ebbtide.forwarding import peers as peers_module
from ebbtide.forwarding.exchange import Exchange, VerbHead, VerbResult
from ebbtide.forwarding.peers import Inbox, WorkerPeers
from ebbtide.rest.app import create_app
from ebbtide.shard import Shard
from ebbtide.telemetry import configure_log
from tests.support.callers import CallerIn
from tests.support.forwarded import FORWARDED, forwarded_rest_in

HEAD = VerbHead("ListAgents", b"{}", b"")


Workers = tuple[WorkerPeers, WorkerPeers]


@pytest_asyncio.fixture
async def workers() -> AsyncIterator[Workers]:
    """Two workers of one process."""
    inboxes = [Inbox(), Inbox()]
    first, second = (WorkerPeers(Shard(index, 2), inboxes, str) for index in range(2))
    yield first, second
    await first.close()
    await second.close()
    for inbox in inboxes:
        inbox.close()


async def _answer(_: Any, exchange: Exchange) -> bool:
    await exchange.write(VerbResult(b"done"))
    return True


async def test_a_request_waits_for_a_worker_that_starts_again(workers: Workers) -> None:
    """A connection waits in the inbox until the next process with this inbox reads it."""
    first, second = workers
    asking = asyncio.create_task(first.request(1, HEAD))
    await asyncio.sleep(0.05)
    assert not asking.done()
    second.answer(VerbHead, _answer)
    second.listen()
    assert (await asking).body == b"done"


async def test_a_worker_that_does_not_start_is_reported(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the limit the error is WORKER_RESTARTING with a time to retry after."""
    monkeypatch.setattr(peers_module, "TAKEN_WITHIN_S", 0.05)
    first, _ = workers
    with pytest.raises(Unavailable) as refused:
        await first.request(1, HEAD)
    assert refused.value.reason == "WORKER_RESTARTING"
    assert refused.value.retry_after_s == 1.0


async def test_a_full_inbox_is_reported_at_once(workers: Workers) -> None:
    """A worker that reads nothing fills its inbox; further requests do not wait."""
    first, _ = workers
    waiting = [asyncio.create_task(first.request(1, HEAD)) for _ in range(400)]
    done, pending = await asyncio.wait(waiting, timeout=1.0)
    assert done
    assert all(isinstance(task.exception(), Unavailable) for task in done)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


async def test_connections_are_used_again(workers: Workers) -> None:
    """Requests one after the other share a connection."""
    first, second = workers
    served: list[Exchange] = []

    async def answer(_: Any, exchange: Exchange) -> bool:
        served.append(exchange)
        return await _answer(_, exchange)

    second.answer(VerbHead, answer)
    second.listen()
    for _ in range(5):
        await first.request(1, HEAD)
    assert len(served) == 5
    assert len(set(map(id, served))) == 1


@pytest.mark.parametrize("transport", FORWARDED)
async def test_a_request_for_a_worker_that_does_not_answer_gets_503(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both transports report WORKER_RESTARTING, with the usual body and a time to retry after."""
    caller_in: CallerIn = FORWARDED[transport]
    async with caller_in(tmp_path) as call:
        monkeypatch.setattr(peers_module, "TAKEN_WITHIN_S", 0.05)
        peers = call.service.peers
        peers.owner_of = lambda _: 0 if peers.own else 1
        inbox = peers._inboxes[1].receiving
        asyncio.get_running_loop().remove_reader(inbox)
        answer = await call("POST", "/v1/agents/ann/recall", {})
        assert answer.status_code == 503
        assert answer.json()["error"]["reason"] == "WORKER_RESTARTING"
        assert answer.headers["retry-after"] == "1"


async def test_a_response_whose_owner_ends_is_cut_off(tmp_path: Path) -> None:
    """A response that has begun ends without its last part, and the log says why."""
    configure_log("info", "json")
    async with forwarded_rest_in(tmp_path) as call:
        await call("PUT", "/v1/agents/ann", {})
        peers: Any = call.service.peers
        connect, used, sent = peers.connect, [], []

        async def connect_and_note(worker: int) -> Exchange:
            used.append(await connect(worker))
            return used[-1]

        peers.connect = connect_and_note
        requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            return next(requests, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)
            used[0].abort()

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/agents/ann/events",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
            "scheme": "http",
            "http_version": "1.1",
        }
        with capture_logs() as lines:
            await create_app(call.service)(scope, receive, send)
        assert [message["type"] for message in sent] == ["http.response.start"]
        assert [line["owner"] for line in lines if line["event"] == "response cut off"] == [1]
