"""Keys and certificates on a real daemon: creation on the command line, and checks on both ports."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import ssl
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
import trustme

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.v1 import daemon_pb2, memory_service_pb2_grpc
from ebbtide_client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    Exhausted,
    Forbidden,
    Retries,
    Unauthenticated,
)
from tests.support.forks import Forked, run_command
from tests.support.keys import bearer, new_key
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import wait_until

ASKS: dict[str, Any] = {"ACCESS__AUTHENTICATION": "keys", "ACCESS__FAILED_TRIES_PER_S": 0}
"""Settings of a daemon that requires keys; tests poll for their effect."""


def ebbtide(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one command in an environment with only the given variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EBBTIDE_")}
    return run_command(*arguments, env=kept | environment)


def made(data_dir: Path, *arguments: str) -> dict[str, Any]:
    """Create a key on the command line. Return its JSON."""
    done = ebbtide("keys", "create", "--data-dir", str(data_dir), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def model_over_grpc(target: str, credentials: grpc.ChannelCredentials | None, key: str | None) -> str:
    """Return the name of the model over gRPC, or the code of the refusal."""
    channel = (
        grpc.insecure_channel(target) if credentials is None else grpc.secure_channel(target, credentials)
    )
    with channel:
        try:
            stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
            request, shown = daemon_pb2.GetModelRequest(), tuple(bearer(key).items())
            return str(stub.GetModel(request, metadata=shown, timeout=20).name)
        except grpc.RpcError as error:
            return str(error.code().name)  # type: ignore[attr-defined]


def test_a_key_from_creation_to_revocation(tmp_path: Path) -> None:
    """A key is created while the daemon runs, used by command line and client, refused out of reach, and revoked."""
    data = tmp_path / "data"
    with running_daemon(data, ASKS) as daemon:
        assert "every request is refused" in daemon.log
        told = made(
            data, "--scope", "read,write", "--agent", "ann", "--agent-prefix", "team-", "--name", "shop"
        )
        key, key_id = told["key"], told["id"]
        wait_until(lambda: daemon.client.get("/v1/model", headers=bearer(key)).status_code == 200, 20)
        (tmp_path / "key").write_text(f"{key}\n")
        (tmp_path / "talk").write_text('[{"role": "user", "content": "I moved to Lisbon in May."}]')
        at = ("--url", daemon.url)
        shown = ("--api-key-file", str(tmp_path / "key"))

        bare = ebbtide("agents", *at)
        assert bare.returncode == ExitCode.REFUSED
        assert "MISSING_KEY" in bare.stderr and "--api-key-file" in bare.stderr
        remembered = ebbtide("remember", str(tmp_path / "talk"), "--agent", "ann", "--wait", *at, *shown)
        assert remembered.returncode == 0, remembered.stderr
        recalled = ebbtide("recall", "Lisbon", "--agent", "ann", *at, EBBTIDE_API_KEY=key)
        assert "Lisbon" in recalled.stdout
        listed = ebbtide("agents", "--json", *at, *shown)
        assert [agent["agent_id"] for agent in json.loads(listed.stdout)["agents"]] == ["ann"]
        beyond = ebbtide("recall", "Lisbon", "--agent", "bob", *at, *shown)
        assert beyond.returncode == ExitCode.REFUSED and "KEY_NOT_FOR_AGENT" in beyond.stderr
        assert model_over_grpc(daemon.grpc_target, None, key) == "builtin"

        with Client(daemon.url, api_key=key) as client:
            assert client.get_agent("ann").agent_id == "ann"
            with pytest.raises(Forbidden):
                client.get_agent("bob")
            with pytest.raises(Forbidden):
                client.delete_agent("ann")
        with Client(daemon.url) as client, pytest.raises(Unauthenticated):
            client.get_agent("ann")

        table = ebbtide("keys", "list", "--data-dir", str(data))
        assert key_id in table.stdout and "shop" in table.stdout and "team-" in table.stdout
        revoked = ebbtide("keys", "revoke", key_id, "--data-dir", str(data))
        assert revoked.returncode == 0, revoked.stderr
        wait_until(lambda: daemon.client.get("/v1/model", headers=bearer(key)).status_code == 401, 20)
        assert model_over_grpc(daemon.grpc_target, None, key) == "UNAUTHENTICATED"
        again = ebbtide("keys", "revoke", key_id, "--data-dir", str(data))
        assert again.returncode == ExitCode.NOT_FOUND
        (entry,) = json.loads(ebbtide("keys", "list", "--json", "--data-dir", str(data)).stdout)["keys"]
        assert entry["state"] == "revoked"
        secret = key.rpartition("_")[2]
        assert secret not in daemon.log + table.stdout + bare.stderr + beyond.stderr
        assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600
        assert secret not in (data / "keys.json").read_text()


def test_every_command_accepts_a_key(tmp_path: Path) -> None:
    """Every command accepts a key; a bound key sees its own agents."""
    data, files = tmp_path / "data", tmp_path / "files"
    key = new_key(data, "read", "write", "admin")
    bound = new_key(data, "read", "write", "admin", agents=["ann"])
    with running_daemon(data, ASKS) as daemon:
        with Client(daemon.url, api_key=key) as client:
            client.remember("ann", [{"role": "user", "content": "I moved to Lisbon in May."}])
            client.flush("ann")
            client.open_agent("bob")
            client.delete_agent("bob")
        for command in (
            ("events", "ann"),
            ("forget", "ann", "--topic", "Porto", "--dry-run"),
            ("audit", "show", "ann"),
            ("audit", "verify", "ann"),
            ("backup", "ann", "--out", str(files)),
            ("export", "ann", "--out", str(files / "ann.jsonl")),
            ("restore", str(files / "ann.ebb"), "--replace"),
            ("import", str(files / "ann.jsonl"), "--replace"),
        ):
            keyless = ebbtide(*command, "--url", daemon.url)
            assert keyless.returncode == ExitCode.REFUSED and "MISSING_KEY" in keyless.stderr, command
            done = ebbtide(*command, "--url", daemon.url, EBBTIDE_API_KEY=bound)
            assert done.returncode == 0, (command, done.stderr)
        logs = ebbtide("audit", "verify", "--json", "--url", daemon.url, EBBTIDE_API_KEY=bound)
        told = json.loads(logs.stdout)
        assert logs.returncode == 0 and list(told["logs"]) == ["ann"] and told["erased_agents"] is None
        assert "erased agents" in logs.stderr
        refused = ebbtide("audit", "show", "--url", daemon.url, EBBTIDE_API_KEY=bound)
        assert refused.returncode == ExitCode.REFUSED and "bob" not in refused.stdout + refused.stderr
        whole = ebbtide("audit", "verify", "--json", "--url", daemon.url, EBBTIDE_API_KEY=key)
        assert json.loads(whole.stdout)["erased_agents"]["records"] == 3, "ann was replaced twice, bob erased"


def test_concurrently_created_keys_all_exist(tmp_path: Path) -> None:
    """Two concurrent command lines do not lose each other's key."""
    arguments = ("keys", "create", "--scope", "read", "--all-agents", "--data-dir", str(tmp_path / "d"))
    outputs = [tmp_path / f"out{number}" for number in range(4)]
    running = [Forked("ebbtide", arguments, env=os.environ, stdout=output) for output in outputs]
    assert [process.wait(100) for process in running] == [0] * 4
    made_keys = {re.findall(r"^ebb_\S+$", output.read_text(), re.MULTILINE)[0] for output in outputs}
    listed = json.loads(ebbtide("keys", "list", "--json", "--data-dir", str(tmp_path / "d")).stdout)["keys"]
    assert {key.split("_")[1] for key in made_keys} == {entry["id"] for entry in listed}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scope", "read"),
        ("--scope", "root", "--all-agents"),
        ("--scope", "read", "--all-agents", "--agent", "ann"),
        ("--scope", "read", "--agent-prefix", ""),
        ("--scope", "read", "--agent", "a/b"),
        ("--scope", "read", "--all-agents", "--expires-days", "0"),
        ("--scope", "read", "--all-agents", "--requests-per-s", "0"),
        ("--scope", "read", "--all-agents", "--name", "a\nb"),
    ],
)
def test_an_invalid_key_is_not_created(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A sentence is on standard error and no file is written; a key for all agents needs an explicit option."""
    done = ebbtide("keys", "create", "--data-dir", str(tmp_path / "d"), *arguments)
    assert done.returncode in (ExitCode.USAGE, ExitCode.REFUSED)
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists()


def test_unusable_files_prevent_a_start(tmp_path: Path) -> None:
    """A damaged key file and an invalid certificate each give one sentence and a named exit code."""
    data = tmp_path / "data"
    new_key(data, "read")
    (data / "keys.json").write_text('{"version": 1, "keys": [{}]}')
    place = ("serve", "--data-dir", str(data), "--rest-port", "0", "--grpc-port", "0")
    damaged = ebbtide(*place, "--authentication", "keys")
    assert damaged.returncode == ExitCode.DAMAGED
    assert "keys.json" in damaged.stderr and "Traceback" not in damaged.stderr
    listed = ebbtide("keys", "list", "--data-dir", str(data))
    assert listed.returncode == ExitCode.DAMAGED
    (tmp_path / "x.pem").write_text("no certificate")
    names = {"EBBTIDE_ACCESS__TLS_CERT_FILE": str(tmp_path / "x.pem")}
    half = ebbtide(*place, **names)
    assert half.returncode == ExitCode.BAD_SETTING
    bad = ebbtide(*place, **names, EBBTIDE_ACCESS__TLS_KEY_FILE=str(tmp_path / "x.pem"))
    assert bad.returncode == ExitCode.BAD_SETTING
    assert "tls_cert_file" in bad.stderr and "Traceback" not in bad.stderr


def test_beyond_this_machine_with_keys(tmp_path: Path) -> None:
    """With keys enabled the daemon listens on any address, and warns that keys are sent unencrypted."""
    daemon = Daemon(tmp_path / "data", ASKS)
    daemon.flags = ("--log-format", "json", "--host", "0.0.0.0")
    try:
        daemon.start()
        assert "travel unencrypted" in daemon.log
        port = daemon.url.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/v1/model").status_code == 401
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        assert daemon.stop() == 0
    finally:
        daemon.close()


class Authority:
    """Certificates made for one test, as files."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self.own = trustme.CA()
        self.write()

    def write(self) -> None:
        """Write certificates of this authority, new ones each time."""
        path = self.path
        self.own.cert_pem.write_to_path(path / "ca.pem")
        server = self.own.issue_cert("127.0.0.1", "localhost")
        server.private_key_pem.write_to_path(path / "server.key")
        (path / "server.pem").write_bytes(b"".join(pem.bytes() for pem in server.cert_chain_pems))
        client = self.own.issue_cert("shop@example.org")
        client.private_key_and_cert_chain_pem.write_to_path(path / "client.pem")
        client.private_key_pem.write_to_path(path / "client.key")
        client.cert_chain_pems[0].write_to_path(path / "client.crt")

    def settings(self, *, asks_for_certificates: bool) -> dict[str, str]:
        """Return the settings of a daemon that uses TLS."""
        found = {
            "ACCESS__TLS_CERT_FILE": str(self.path / "server.pem"),
            "ACCESS__TLS_KEY_FILE": str(self.path / "server.key"),
        }
        if asks_for_certificates:
            found["ACCESS__TLS_CLIENT_CA_FILE"] = str(self.path / "ca.pem")
        return found

    def trusting(self, *, with_certificate: bool = False) -> ssl.SSLContext:
        """Return the TLS context with which a REST caller verifies the daemon."""
        context = ssl.create_default_context(cafile=str(self.path / "ca.pem"))
        if with_certificate:
            context.load_cert_chain(self.path / "client.pem")
        return context

    def credentials(self, *, with_certificate: bool = False) -> grpc.ChannelCredentials:
        """Return the credentials with which a gRPC caller verifies the daemon."""
        read: Callable[[str], bytes] = lambda name: (self.path / name).read_bytes()  # noqa: E731
        if with_certificate:
            return grpc.ssl_channel_credentials(read("ca.pem"), read("client.key"), read("client.crt"))
        return grpc.ssl_channel_credentials(read("ca.pem"))


def test_both_ports_speak_tls(tmp_path: Path) -> None:
    """With certificates both ports use TLS only. Keys, clients and the command line work as before."""
    own = Authority(tmp_path / "certs")
    key = new_key(tmp_path / "data", "read", "write", max_agents=1)
    with running_daemon(tmp_path / "data", {**ASKS, **own.settings(asks_for_certificates=False)}) as daemon:
        assert daemon.url.startswith("https://")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{daemon.url}/healthz")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{daemon.url}/healthz".replace("https", "http"))
        with httpx.Client(base_url=daemon.url, verify=own.trusting()) as http:
            assert http.get("/healthz").status_code == 200
            assert http.get("/v1/model").status_code == 401
            assert http.get("/v1/model", headers=bearer(key)).status_code == 200
        assert model_over_grpc(daemon.grpc_target, own.credentials(), key) == "builtin"
        assert model_over_grpc(daemon.grpc_target, own.credentials(), None) == "UNAUTHENTICATED"
        assert model_over_grpc(daemon.grpc_target, None, key) == "UNAVAILABLE"
        once = Retries(attempts=1)
        with Client(daemon.url, api_key=key, retries=once) as trusting_others:
            with pytest.raises(ConnectionFailed, match="ca_file") as unknown:
                trusting_others.open_agent("ann")
            assert not unknown.value.maybe_sent
        with Client(daemon.url, api_key=key, ca_file=own.path / "ca.pem") as client:
            client.open_agent("ann")
            with pytest.raises(Exhausted):
                client.open_agent("bob")

        async def asked() -> str:
            async with AsyncClient(daemon.url, api_key=key, verify=own.trusting()) as client:
                return (await client.get_agent("ann")).agent_id

        assert asyncio.run(asked()) == "ann"
        listed = ebbtide(
            "agents", "--url", daemon.url, "--ca-file", str(own.path / "ca.pem"), EBBTIDE_API_KEY=key
        )
        assert "ann" in listed.stdout, listed.stderr
        assert daemon.stop() == 0


def test_client_certificates_can_be_required(tmp_path: Path) -> None:
    """With a client authority, both ports refuse connections without a certificate of it."""
    own, foreign = Authority(tmp_path / "own"), Authority(tmp_path / "foreign")
    with running_daemon(tmp_path / "data", own.settings(asks_for_certificates=True)) as daemon:
        stranger = own.trusting()
        stranger.load_cert_chain(foreign.path / "client.pem")
        for context in (own.trusting(), stranger):
            with httpx.Client(verify=context) as http, pytest.raises(httpx.TransportError):
                http.get(f"{daemon.url}/healthz")
        with Client(daemon.url, verify=own.trusting()) as client, pytest.raises(ConnectionFailed):
            client.get_model()
        files = {"ca_file": own.path / "ca.pem", "client_cert": own.path / "client.pem"}
        with Client(daemon.url, **files) as client:
            assert client.get_model().kind == "builtin"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EBBTIDE_CA_FILE", str(files["ca_file"]))
            patch.setenv("EBBTIDE_CLIENT_CERT", str(files["client_cert"]))
            with Client(daemon.url) as client:
                assert client.get_model().kind == "builtin"
            with Client(daemon.url, verify=own.trusting()) as client, pytest.raises(ConnectionFailed):
                client.get_model()
        with pytest.raises(ValueError, match="not both"):
            Client(daemon.url, verify=own.trusting(), ca_file=own.path / "ca.pem")
        with httpx.Client(verify=own.trusting(with_certificate=True)) as http:
            assert http.get(f"{daemon.url}/v1/model").status_code == 200
        assert model_over_grpc(daemon.grpc_target, own.credentials(), None) == "UNAVAILABLE"
        assert model_over_grpc(daemon.grpc_target, own.credentials(with_certificate=True), None) == "builtin"
        trusted = ("--ca-file", str(own.path / "ca.pem"), "--client-cert", str(own.path / "client.pem"))
        assert ebbtide("agents", "--url", daemon.url, *trusted[:2]).returncode == ExitCode.UNREACHABLE
        assert ebbtide("agents", "--url", daemon.url, *trusted).returncode == 0
        assert daemon.stop() == 0


def readiness(daemon: Daemon, verify: ssl.SSLContext) -> dict[str, Any]:
    """Return the response of `/readyz` over a new connection."""
    told: dict[str, Any] = httpx.get(f"{daemon.url}/readyz", verify=verify).json()
    return told


def connects(daemon: Daemon, own: Authority, *, with_certificate: bool = False) -> tuple[bool, bool]:
    """Return whether new connections over REST and gRPC succeed with the certificates in the files."""
    try:
        context = own.trusting(with_certificate=with_certificate)
        over_rest = httpx.get(f"{daemon.url}/v1/model", verify=context).status_code == 200
    except httpx.TransportError:
        over_rest = False
    credentials = own.credentials(with_certificate=with_certificate)
    return over_rest, model_over_grpc(daemon.grpc_target, credentials, None) == "builtin"


def test_renewed_certificates_count_without_a_restart(tmp_path: Path) -> None:
    """New connections on both ports use renewed certificates soon, and existing connections continue.

    An invalid pair changes nothing. The log and `/readyz` report it until it is corrected.
    """
    own = Authority(tmp_path / "certs")
    with running_daemon(tmp_path / "data", own.settings(asks_for_certificates=False)) as daemon:
        before, credentials = own.trusting(), own.credentials()
        with httpx.Client(base_url=daemon.url, verify=before) as standing:
            assert standing.get("/v1/model").status_code == 200
            (own.path / "server.key").write_text("no key")
            wait_until(lambda: "certificates stay as they were" in daemon.log, 30)
            told = readiness(daemon, before)
            assert told["status"] == "degraded"
            assert "tls_key_file" in told["reasons"][0] and "certificates" in told["reasons"][0]
            assert model_over_grpc(daemon.grpc_target, credentials, None) == "builtin"

            own.own = trustme.CA()
            own.write()
            wait_until(lambda: connects(daemon, own) == (True, True), 30)
            with pytest.raises(httpx.TransportError):
                readiness(daemon, before)
            assert model_over_grpc(daemon.grpc_target, credentials, None) == "UNAVAILABLE"
            assert readiness(daemon, own.trusting()) == {"status": "ready", "reasons": []}
            assert standing.get("/v1/model").status_code == 200
        assert daemon.log.count("certificates stay as they were") == 1
        assert "PRIVATE" not in daemon.log
        assert daemon.stop() == 0


def test_another_authority_for_callers_counts_without_a_restart(tmp_path: Path) -> None:
    """After a change of the client authority, both ports refuse certificates of the former one."""
    own = Authority(tmp_path / "certs")
    with running_daemon(tmp_path / "data", own.settings(asks_for_certificates=True)) as daemon:
        assert connects(daemon, own, with_certificate=True) == (True, True)
        former = Authority(tmp_path / "former")
        former.own = own.own
        former.write()
        own.own = trustme.CA()
        own.write()
        wait_until(lambda: connects(daemon, own, with_certificate=True) == (True, True), 30)
        # They trust the daemon's current certificate, and are refused for their own.
        (former.path / "ca.pem").write_bytes((own.path / "ca.pem").read_bytes())
        assert connects(daemon, former, with_certificate=True) == (False, False)
        assert connects(daemon, own) == (False, False)
        assert daemon.stop() == 0


def test_idle_connections_do_not_delay_a_stop(tmp_path: Path) -> None:
    """A client that keeps its connection open without a TLS close does not delay a stop."""
    own = Authority(tmp_path / "certs")
    settings = {**own.settings(asks_for_certificates=False), "SERVER__SHUTDOWN_GRACE_S": 600}
    with running_daemon(tmp_path / "data", settings) as daemon:
        place = urlsplit(daemon.url)
        idle = http.client.HTTPSConnection(place.hostname or "", place.port, context=own.trusting())
        idle.request("GET", "/healthz")
        assert idle.getresponse().read()
        # A grace of ten minutes would exceed the timeout of this test.
        assert daemon.stop() == 0
        idle.close()
