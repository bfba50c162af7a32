"""Clients that connect, send something, and then neither read nor finish; and their cost for a daemon."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.settings
import httpx

from tests.support.onlooker import cpu_s_of
from tests.support.process import Daemon

MIB = 1 << 20
PAGE_BYTES = resource.getpagesize()


def place_of(target: str) -> tuple[str, int]:
    """Return host and port of a URL, or of a gRPC target."""
    found = urlsplit(target if "//" in target else f"//{target}")
    assert found.hostname is not None and found.port is not None
    return found.hostname, found.port


def connected(target: str) -> socket.socket:
    """Connect with the smallest receive buffer that the kernel allows."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(30)
    made.connect(place_of(target))
    return made


def is_closed(client: socket.socket) -> bool:
    """Whether the other side has closed a connection; reads nothing, which would free buffer space."""
    poller = select.poll()
    poller.register(client, select.POLLIN | select.POLLRDHUP)
    events = dict(poller.poll(0)).get(client.fileno(), 0)
    return bool(events & (select.POLLRDHUP | select.POLLHUP | select.POLLERR))


class HalfCaller:
    """A gRPC client written by hand: it makes a call and grants no window for the response."""

    def __init__(self, target: str, *, window: int = 0) -> None:
        self.socket = connected(target)
        config = h2.config.H2Configuration(client_side=True)
        self._http = h2.connection.H2Connection(config)
        codes = h2.settings.SettingCodes
        self._http.local_settings = h2.settings.Settings(
            client=True, initial_values={codes.INITIAL_WINDOW_SIZE: window}
        )
        self._http.initiate_connection()
        if window:
            self._http.increment_flow_control_window((1 << 31) - 1 - 65535)

    def call(self, method: str, message: bytes, *, of: int | None = None) -> None:
        """Send a call, or only the first bytes of its message: `of` is the announced length."""
        stream = self._http.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        self._http.send_headers(stream, headers)
        head = b"\0" + struct.pack(">I", len(message) if of is None else of)
        self._http.send_data(stream, (head + message)[:16000], end_stream=of is None)
        self.socket.sendall(self._http.data_to_send())

    def answer_pings(self) -> None:
        """Read the received frames, and answer pings."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            received = self.socket.recv(65536)
            if received:
                self._http.receive_data(received)
                self.socket.sendall(self._http.data_to_send())
        self.socket.setblocking(True)


def resident_bytes(daemon: Daemon) -> int:
    """Return the resident memory of a daemon; 0 after its end."""
    try:
        with open(f"/proc/{daemon.process.pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except FileNotFoundError:
        return 0


class Cost:
    """The effect of an attack on a daemon and on its other clients."""

    def __init__(self, before_bytes: int) -> None:
        self._before_bytes = before_bytes
        self.peak_bytes = before_bytes
        self.recalls = 0
        self.most_cpu_s = 0.0
        """The most CPU time of the daemon during one recall: on a busy machine the same as on an idle one."""
        self.longest_s = 0.0
        self.failures: list[str] = []

    @property
    def growth_bytes(self) -> int:
        """The largest growth of memory that was observed."""
        return self.peak_bytes - self._before_bytes


@contextlib.contextmanager
def watched(daemon: Daemon, agent: str) -> Iterator[Cost]:
    """Recall from an agent repeatedly and observe the memory of the daemon, for the length of a block."""
    cost = Cost(resident_bytes(daemon))
    is_over = threading.Event()

    def look() -> None:
        with httpx.Client(base_url=daemon.url, timeout=30) as client:
            while not is_over.wait(0.05):
                begun_s, cpu_s = time.monotonic(), cpu_s_of(daemon.process.pid)
                try:
                    answer = client.post(f"/v1/agents/{agent}/recall", json={"patience_ms": 0})
                    if answer.status_code != 200:
                        cost.failures.append(answer.text)
                except httpx.TransportError as error:
                    cost.failures.append(repr(error))
                cost.most_cpu_s = max(cost.most_cpu_s, cpu_s_of(daemon.process.pid) - cpu_s)
                cost.longest_s = max(cost.longest_s, time.monotonic() - begun_s)
                cost.recalls += 1
                cost.peak_bytes = max(cost.peak_bytes, resident_bytes(daemon))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield cost
    finally:
        is_over.set()
        looking.join()


@contextlib.contextmanager
def many(number: int, make: Callable[[], socket.socket]) -> Iterator[Sequence[socket.socket]]:
    """Open this many connections for the length of a block, and raise the limit of descriptors if needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + 512
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    with contextlib.ExitStack() as held:
        yield [held.enter_context(contextlib.closing(make())) for _ in range(number)]
