"""The output of `serve`: a banner on a terminal, else JSON lines, and hints that name existing commands."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from ebbtide.cli import failures
from ebbtide.cli.commands.serve import banner
from ebbtide.cli.daemon_settings import settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.rest import view_files
from ebbtide_client import Client, ConnectionFailed, Retries
from tests.support.process import ROOT, Daemon

PORTS = ("--rest-port", "0", "--grpc-port", "0")


def without_settings() -> dict[str, str]:
    """Return the environment without variables of Ebbtide."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EBBTIDE_")}


def test_a_terminal_gets_a_banner(tmp_path: Path) -> None:
    """On a terminal the first lines contain address, documentation, data directory, model and embedder, but no JSON."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "ebbtide", "serve", "--data-dir", str(tmp_path / "data"), *PORTS]
    daemon = subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env={**without_settings(), "COLUMNS": "200"}, cwd=ROOT
    )
    os.close(end)
    text = ""
    try:
        while "Ctrl-C" not in text:
            text += os.read(terminal, 4096).decode(errors="replace")
    finally:
        daemon.send_signal(signal.SIGTERM)
        with open(terminal, "rb", buffering=0) as rest:
            while True:
                try:
                    if not rest.read(4096):
                        break
                except OSError:
                    break
        assert daemon.wait(30) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("Ebbtide "))
    assert all(not line.startswith(("{", "timestamp=")) for line in lines[:start]), "the banner comes first"
    rows = dict(
        line.split(maxsplit=1) for line in lines[start + 1 : start + 9] if "data directory" not in line
    )
    assert (
        re.fullmatch(r"http://127\.0\.0\.1:\d+", rows["address"])
        and rows["docs"] == f"{rows['address']}/docs"
    )
    assert f"{rows['address']}/ui" in lines[start + 2]
    assert rows["model"].startswith("built in") and rows["embedder"] and rows["stop"] == "Ctrl-C"
    assert f"  data directory  {tmp_path / 'data'}" in lines


@pytest.mark.parametrize(
    ("language", "embedding", "is_installed", "model", "embedder"),
    [
        ({}, {}, False, "built in, rules for English and Chinese", "none, recall uses words and links only"),
        ({}, {}, True, "built in, rules for English and Chinese", "wordllama-256 (built in)"),
        ({}, {"model": "off"}, True, "built in", "none, recall uses words and links only"),
        (
            {"model": "openai", "model_name": "qwen3"},
            {"model": "ollama", "name": "bge-m3", "dimensions": 256},
            True,
            "qwen3 (openai)",
            "bge-m3@256 (ollama)",
        ),
    ],
)
def test_the_banner_names_the_models_in_use(
    monkeypatch: pytest.MonkeyPatch,
    language: dict[str, str],
    embedding: dict[str, str | int],
    is_installed: bool,
    model: str,
    embedder: str,
) -> None:
    """The banner shows the embedder that `auto` selects, and says what recall does without one."""
    monkeypatch.delenv("EBBTIDE_EMBEDDING__MODEL", raising=False)
    monkeypatch.setattr("ebbtide.language.embedding.has_builtin", lambda: is_installed)
    monkeypatch.setattr("ebbtide.language.embedding.has_multilingual", lambda: False)
    settings = settings_in_force({"language": language, "embedding": embedding})
    lines = banner("http://127.0.0.1:1", settings).splitlines()
    rows = {line[2:18].strip(): line[18:] for line in lines if line.startswith("  ")}
    assert rows["model"].startswith(model)
    assert rows["embedder"] == embedder


def test_the_banner_names_the_web_view(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The banner has the address of the view, says if it is not installed, and omits it if it is switched off."""
    monkeypatch.setattr(view_files, "FILES", tmp_path)
    row = "  web view        "
    shown = banner("http://127.0.0.1:1", settings_in_force({}))
    assert f"{row}not in this installation, see http://127.0.0.1:1/ui" in shown
    (tmp_path / "index.html").touch()
    assert f"{row}http://127.0.0.1:1/ui\n" in banner("http://127.0.0.1:1", settings_in_force({}))
    assert "web view" not in banner("http://127.0.0.1:1", settings_in_force({"server": {"ui": False}}))


def test_a_pipe_gets_json_only(tmp_path: Path) -> None:
    """If standard error is no terminal every line is JSON, and there is no banner."""
    command = [sys.executable, "-m", "ebbtide", "serve", "--data-dir", str(tmp_path / "data"), *PORTS]
    daemon = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=without_settings(), cwd=ROOT, text=True
    )
    assert daemon.stderr is not None
    events = []
    for line in daemon.stderr:
        events.append(json.loads(line)["event"])
        if events[-1] == "listening":
            daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(30) == 0
    daemon.stderr.close()
    assert {"settings in force", "listening", "stopped"} <= set(events)


@contextmanager
def tls_server(tmp_path: Path) -> Iterator[int]:
    """Return the port of an HTTPS server with a certificate of its own authority."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing."""

    class Server(HTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore a refused handshake, which the test expects."""

    server = Server(("127.0.0.1", 0), Quiet)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def recall(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `ebbtide recall` against an address."""
    command = [sys.executable, "-m", "ebbtide", "recall", "tea", "--url", url, *options]
    return subprocess.run(
        command, capture_output=True, text=True, env=without_settings(), cwd=ROOT, timeout=60, check=False
    )


def test_an_untrusted_certificate_is_reported_as_that(tmp_path: Path) -> None:
    """The message names the certificate and --ca-file; with the authority, the connection succeeds."""
    with tls_server(tmp_path) as port:
        url = f"https://127.0.0.1:{port}"
        done = recall(url)
        assert done.returncode == ExitCode.UNREACHABLE
        assert done.stderr.startswith(f"error: The certificate of {url} is not trusted.")
        assert "--ca-file" in done.stderr and "No daemon answers" not in done.stderr
        trusted = recall(url, "--ca-file", str(tmp_path / "ca.pem"))
        assert "is not an Ebbtide daemon" in trusted.stderr, "it is only a web server"
        plain = recall(f"http://127.0.0.1:{port}")
        assert plain.returncode == ExitCode.UNREACHABLE
        assert f"If the daemon uses TLS, pass --url {url}." in plain.stderr


def test_tls_to_a_daemon_without_it_is_reported_as_that(daemon: Daemon) -> None:
    """An https address of a daemon that speaks plain HTTP: the error says so, and names the address to use."""
    url = daemon.url.replace("http:", "https:")
    done = recall(url)
    assert done.returncode == ExitCode.UNREACHABLE
    assert done.stderr == f"error: The server at {url} does not use TLS.\nPass --url {daemon.url}.\n"
    with Client(url, retries=Retries(attempts=1)) as memory, pytest.raises(ConnectionFailed) as caught:
        memory.get_health()
    assert caught.value.message == f"the server at {url} does not use TLS; use {daemon.url}"
    assert not caught.value.maybe_sent


@pytest.mark.parametrize(
    ("path", "script", "expected"),
    [
        ("", ".venv/bin/ebbtide", ".venv/bin/ebbtide"),
        (".venv/bin", ".venv/bin/ebbtide", "ebbtide"),
        ("", "service/__main__.py", f"{sys.executable} -m ebbtide"),
    ],
    ids=["not on the path", "on the path", "run as a module"],
)
def test_hints_name_a_command_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, script: str, expected: str
) -> None:
    """A hint names the program as the user started it: by name, by the path of the script, or through Python."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "ebbtide").write_text("#!/bin/sh\n")
    (folder / "ebbtide").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / path) if path else "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / script)])
    assert failures.program() == expected
