"""A real daemon in a process of its own, on a free port, with a data directory of its own.

This module ends only processes that it started. `running_daemon` runs the consistency checker over every store that the
daemon leaves.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.encryption.seal import MasterKey, parse_master_key
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.forks import Forked

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 40.0
EMBEDDER_VARIABLE = "EBBTIDE_EMBEDDING__MODEL"
DISCARDED = "network discarded because it could not be updated"
"""The event in the log after a committed change that could not be applied in memory."""


class Daemon:
    """`ebbtide serve` in a process of its own, and a client for it."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, Any] | None = None,
        prefix: tuple[str, ...] = (),
        module: str = "ebbtide",
        *,
        executed: bool = False,
    ) -> None:
        """Describe a daemon that is not started yet.

        Without `executed` and a prefix it is forked, with its imports done. A test about memory, the command line or
        the start itself executes one.
        """
        self.data_dir = data_dir
        self._module = module
        self._executed = executed or bool(prefix)
        self._settings = dict(settings or {})
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self.flags: tuple[str, ...] = ("--log-format", "json")
        self.log_path = data_dir.parent / f"{data_dir.name}.log"
        self.client = httpx.Client()
        self.url = ""
        self.grpc_target = ""

    @property
    def process(self) -> subprocess.Popen[bytes] | Forked:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        """The whole log of the daemon, over all its starts."""
        return self.log_path.read_text(errors="replace")

    @property
    def workers(self) -> dict[int, int]:
        """The process ids of the workers by index, as last logged."""
        found = re.findall(r'"worker": (\d+), "pid": (\d+), "event": "worker started"', self.log)
        return {int(index): int(pid) for index, pid in found}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process: this one, with the settings instead of Ebbtide's own variables.

        Only the embedder is that of this process, unless the settings name one.
        """
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith("EBBTIDE_") or k == EMBEDDER_VARIABLE
        }
        return environment | {f"EBBTIDE_{name}": _text(value) for name, value in self._settings.items()}

    @property
    def command(self) -> list[str]:
        """The command that executes the daemon."""
        return [*self._prefix, sys.executable, "-m", self._module, *self.arguments]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the command, after the module."""
        place = ["--data-dir", str(self.data_dir), "--rest-port", "0", "--grpc-port", "0"]
        return ["serve", *place, *self.flags]

    def start(self) -> Daemon:
        """Start the daemon and wait until it listens."""
        before = self.launch()
        self.url, self.grpc_target = self._await_places(before)
        self.client.close()
        self.client = httpx.Client(base_url=self.url, timeout=60.0)
        return self

    def launch(self) -> int:
        """Start the daemon without waiting. Return the length of the log before the start."""
        self.log_path.touch()
        before = self.log_path.stat().st_size
        if not self._executed:
            self._process = Forked(self._module, self.arguments, env=self.environment, stdout=self.log_path)
            return before
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=ROOT,
            )
        return before

    def _await_places(self, before: int) -> tuple[str, str]:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            text = self.log_path.read_bytes()[before:].decode(errors="replace")
            found = re.search(
                r"""["']?url["']?[:=] ?["'](https?://[^"']+)["'].{1,40}?grpc["']?[:=] ?["']([^"']+)["']""",
                text,
            )
            if found:
                return found[1], found[2]
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{text}")
            time.sleep(0.02)
        raise AssertionError(f"the daemon did not start:\n{self.log[-4000:]}")

    def kill(self) -> None:
        """Send SIGKILL, which leaves the daemon no time to clean up."""
        self.process.kill()
        self.process.wait()
        self._await_workers()

    def _await_workers(self) -> None:
        """Wait until the workers of a killed daemon have ended and the data directory is unlocked."""
        path = self.data_dir / "lock"
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while "SERVER__WORKERS" in self._settings and path.exists() and time.monotonic() < deadline:
            with path.open("rb") as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.02)

    def stop(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)

    def close(self) -> None:
        """Close the client and kill the process if it still runs. Idempotent."""
        self.client.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            self._await_workers()

    # --- the verbs, in short -----------------------------------------------------------------------

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """POST a JSON body to a path below /v1/agents."""
        return self.client.post(f"/v1/agents/{path}", json=body if body is not None else {}, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """GET a path below /v1/agents."""
        return self.client.get(f"/v1/agents/{path}", **options)

    def remember(self, agent: str, *texts: str, **fields: Any) -> str:
        """Remember user messages. Return the batch id."""
        messages = [{"role": "user", "content": text} for text in texts]
        response = self.post(f"{agent}/remember", {"messages": messages, **fields})
        assert response.status_code == 202, response.text
        batch_id: str = response.json()["batch_id"]
        return batch_id

    def flush(
        self, agent: str, *, passes: bool = True, vectors: bool = False, timeout_ms: int = 60_000
    ) -> dict[str, Any]:
        """Wait until every batch is digested and, on request, until passes are done and vectors exist."""
        body = {"timeout_ms": timeout_ms, "passes": passes, "vectors": vectors}
        response = self.post(f"{agent}/flush", body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def recall(self, agent: str, *keywords: str, **fields: Any) -> str:
        """Recall by keywords. Return the text."""
        response = self.post(f"{agent}/recall", {"keywords": list(keywords), **fields})
        assert response.status_code == 200, response.text
        text: str = response.json()["text"]
        return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def check_log(text: str) -> None:
    """Assert that every committed change could be applied in memory, unless memory ran out."""
    lines = [line for line in text.splitlines() if DISCARDED in line and "MemoryError" not in line]
    assert lines == []


def check_data_directory(data_dir: Path, master_key: MasterKey | None = None) -> None:
    """Assert that every store of a directory is consistent. No daemon may run on the directory.

    A blank store is the rest of a creation that was killed before it was acknowledged.
    """
    keys = DataKeys(data_dir / "keys", master_key)
    for path in sorted((data_dir / "agents").glob("*/data.mdb")):
        if LmdbStore.is_blank(path.parent):
            assert not (path.parent / "meta.json").exists(), path.parent.name
            continue
        seal_of = partial(keys.seal_of, path.parent.name)
        store = LmdbStore.open(path.parent, map_bytes=1 << 20, max_map_bytes=1 << 34, seal_of=seal_of)
        try:
            found = check_store(store)
            assert found == [], (path.parent.name, found)
        finally:
            store.close()


@contextlib.contextmanager
def running_daemon(
    data_dir: Path,
    settings: Mapping[str, Any] | None = None,
    prefix: tuple[str, ...] = (),
    module: str = "ebbtide",
    *,
    executed: bool = False,
) -> Iterator[Daemon]:
    """Run a daemon for the length of a block, then kill it and check every store that it left."""
    daemon = Daemon(data_dir, settings, prefix, module, executed=executed)
    try:
        yield daemon.start()
    finally:
        daemon.close()
    check_log(daemon.log)
    master_key = daemon.environment.get("EBBTIDE_ENCRYPTION__MASTER_KEY")
    check_data_directory(data_dir, parse_master_key(master_key) if master_key else None)
