"""Many concurrent clients, in a process of their own: `python -m benchmarks.load http URL PATH BODY ...`.

Each connection sends its next request when it has received its response. Prints one JSON line: responses counted
after the warm-up, seconds, and latencies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

from benchmarks.clients import HEAD_END, answer_size, request_bytes
from benchmarks.measuring import Spread

WARM_UP_S = 0.3
CONNECTIONS = 16
STUCK_S = 30.0
"""A response that is missing this long after the end is lost."""


@dataclass(slots=True)
class Tally:
    """Answers within the time that counts."""

    begins_s: float
    ends_s: float
    took_ms: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, seconds: float) -> Tally:
        """Counting for so long after a warm-up that begins now."""
        begins_s = time.perf_counter() + WARM_UP_S
        return cls(begins_s, begins_s + seconds)

    def count(self, asked_s: float) -> bool:
        """Count the response to a request sent at this time. Return whether there is time for more."""
        now_s = time.perf_counter()
        if self.begins_s <= now_s <= self.ends_s:
            self.took_ms.append((now_s - asked_s) * 1000)
        return now_s < self.ends_s


class _Connection(asyncio.Protocol):
    """Asks the same again and again."""

    def __init__(self, request: bytes, tally: Tally) -> None:
        self._request, self._tally = request, tally
        self._received = b""
        self._asked_s = 0.0
        self._transport: Any = None  # uvloop's is no asyncio.Transport
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._received, self._asked_s = b"", time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(HEAD_END)
        if not end:
            return
        status, length = answer_size(head)
        if status != 200:
            self._end(RuntimeError(f"{status}: {body[:300]!r}"))
        elif len(body) >= length:
            if self._tally.count(self._asked_s):
                self._ask()
            else:
                self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(RuntimeError("the connection was closed"))

    def _end(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error) if error else self.done.set_result(None)
            self._transport.close()


async def load_http(url: str, path: str, body: bytes, seconds: float, key: str) -> Tally:
    """POST the same body over many connections, to each of the paths (separated by commas) in turn."""
    place = urlsplit(url)
    assert place.hostname is not None and place.port is not None, "a URL of a server names a port"
    requests = [request_bytes("POST", place.netloc, one, body, key) for one in path.split(",")]
    loop, tally = asyncio.get_running_loop(), Tally.of(seconds)
    connections = [
        (await loop.create_connection(partial(_Connection, request, tally), place.hostname, place.port))[1]
        for request, _ in zip(cycle(requests), range(CONNECTIONS), strict=False)
    ]
    async with asyncio.timeout(seconds + STUCK_S):
        await asyncio.gather(*(connection.done for connection in connections))
    return tally


async def load_grpc(target: str, method: str, message: bytes, seconds: float, key: str) -> Tally:
    """Make the same call from many tasks."""
    import grpc.aio

    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = channel.unary_unary(method)  # type: ignore[call-arg]  # bytes as they are
        tally = Tally.of(seconds)
        shown = [("authorization", f"Bearer {key}")] if key else None

        async def one() -> None:
            asked_s = time.perf_counter()
            await call(message, metadata=shown)
            while tally.count(asked_s):
                asked_s = time.perf_counter()
                await call(message, metadata=shown)

        await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return tally


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load."""

    per_second: float
    took_ms: Spread


def run_load(kind: str, place: str, what: str, body: bytes, seconds: float, key: str = "") -> Loaded:
    """Run a load from a process of its own; `what` is a path or a method."""
    command = [sys.executable, "-m", "benchmarks.load", kind, place, what, body.hex(), str(seconds), key]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 60)
    if done.returncode:
        raise RuntimeError(f"the clients failed: {done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    return Loaded(told["per_second"], Spread(**told["took_ms"]))


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=("http", "grpc"))
    parser.add_argument("place")
    parser.add_argument("what")
    parser.add_argument("body", type=bytes.fromhex)
    parser.add_argument("seconds", type=float)
    parser.add_argument("key", nargs="?", default="", help="an API key, where one is asked for")
    asked = parser.parse_args()
    load = load_http if asked.kind == "http" else load_grpc
    with asyncio.Runner(loop_factory=_loop_factory(asked.kind)) as runner:
        tally = runner.run(load(asked.place, asked.what, asked.body, asked.seconds, asked.key))
    loaded = Loaded(len(tally.took_ms) / asked.seconds, Spread.of(tally.took_ms))
    print(json.dumps(asdict(loaded)))


def _loop_factory(kind: str) -> Any:
    if kind == "grpc":
        return None
    import uvloop

    return uvloop.new_event_loop


if __name__ == "__main__":
    _main()
