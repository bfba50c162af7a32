"""Exit codes and messages of failed commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main

from ebbtide.cli import app as command_line
from ebbtide.cli.daemon_settings import settings_in_force
from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.cli.failures import OPTIONS, Failure, as_failure, sentence
from ebbtide.cli.remote import RemoteClient
from ebbtide.errors import REASONS, Precondition, no_agent, no_node


def client_that(answer: httpx.Response | Exception) -> RemoteClient:
    """Return a client whose every request gets this response or failure."""

    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return RemoteClient("http://127.0.0.1:8420", transport=httpx.MockTransport(handle))


def failure_of(answer: httpx.Response | Exception) -> Failure:
    """Return the failure for a response."""
    with client_that(answer) as remote, pytest.raises(Failure) as caught:
        remote.get_agent("ann")
    return caught.value


def error_body(reason: str, message: str, status: int, **headers: str) -> httpx.Response:
    """Return an error body as the daemon sends it."""
    error = {"code": status, "status": "X", "message": message, "reason": reason, "metadata": {}}
    return httpx.Response(status, json={"error": error}, headers=headers)


def run(*arguments: str) -> int:
    """Return the exit code of a command."""
    with pytest.raises(SystemExit) as caught:
        command_line.main(list(arguments))
    code = caught.value.code
    return code if isinstance(code, int) else 0


def test_every_code_is_documented() -> None:
    """The docstring of ExitCode lists every code with its number."""
    for code in ExitCode:
        assert any(
            line.split()[:2] == [code.name, str(code.value)] for line in (ExitCode.__doc__ or "").splitlines()
        )


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("INVALID_DEPTH", ExitCode.REFUSED),
        ("AGENT_NOT_FOUND", ExitCode.NOT_FOUND),
        ("QUEUE_FULL", ExitCode.REFUSED),
        ("STORE_FULL", ExitCode.REFUSED),
        ("SHUTTING_DOWN", ExitCode.UNAVAILABLE),
        ("DATA_DIRECTORY_LOCKED", ExitCode.LOCKED),
        ("INSECURE_BIND", ExitCode.INSECURE_BIND),
        ("STORE_CORRUPTED", ExitCode.DAMAGED),
        ("INTERNAL", ExitCode.FAILURE),
    ],
)
def test_reasons_have_exit_codes(reason: str, code: ExitCode) -> None:
    """The reason of the daemon's error decides the exit code."""
    assert of_error(reason, REASONS[reason].http) == code


def test_no_error_looks_like_success() -> None:
    """No reason of the tree ends a command with exit code 0."""
    assert all(of_error(name, reason.http) != ExitCode.OK for name, reason in REASONS.items())


def test_error_bodies_become_one_sentence() -> None:
    """The daemon's message becomes a sentence with its reason; Retry-After becomes a hint."""
    failure = failure_of(error_body("QUEUE_FULL", "the inbox is full", 429, **{"retry-after": "5"}))
    assert failure.message == "The inbox is full. [QUEUE_FULL]"
    assert failure.hint == "Try again in 5 s."
    assert failure.code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("reason", "status", "message", "expected", "hint"),
    [
        (
            "INVALID_VALUE",
            400,
            "citations: needs a query; give query, or leave this field out",
            "--sources: needs a query; give --query, or leave this option out.",
            "",
        ),
        ("TEXT_TOO_LONG", 400, "speakers[0]: 300 characters", "--speaker: 300 characters.", ""),
        ("INVALID_VALUE", 400, "messages[0].role: required", "messages[0].role: required.", ""),
        ("AGENT_NOT_FOUND", 404, no_agent().message, "No agent has this id.", "agents` lists the agents"),
        ("NODE_NOT_FOUND", 404, no_node().message, "No node has this id.", "search` finds memories"),
        (
            "AGENT_EXISTS",
            409,
            "An agent with this id already exists. Pass replace=true to overwrite it.",
            "An agent with this id already exists.",
            "Pass --replace",
        ),
    ],
)
def test_errors_name_options_and_commands(
    reason: str, status: int, message: str, expected: str, hint: str
) -> None:
    """An error names the option, not the field of the request; its next step is a command, not a route."""
    failure = failure_of(error_body(reason, message, status))
    assert failure.message == f"{expected} [{reason}]"
    assert hint in failure.hint and bool(hint) == bool(failure.hint)
    assert "GET /v1" not in failure.hint


def test_every_option_of_a_field_exists() -> None:
    """Each option that replaces the name of a field exists on a command."""
    commands: Any = typer.main.get_command(command_line.make_app(("recall", "search", "forget")))
    known = {name for one in commands.commands.values() for option in one.params for name in option.opts}
    assert {name for names in OPTIONS.values() for name in names.split(", ")} <= known


def test_the_command_for_a_new_key_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint of MISSING_KEY contains a command that creates a key as printed."""
    hint = failure_of(error_body("MISSING_KEY", "no key", 401)).hint
    _, _, arguments = hint.split("`")[1].partition(" keys ")
    monkeypatch.setenv("EBBTIDE_STORE__DATA_DIR", str(tmp_path))
    assert run("keys", *arguments.split()) == ExitCode.OK


def test_an_empty_selection_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """`forget` without a selection names its options, before any request."""
    assert run("forget", "ann", "--url", "http://127.0.0.1:9") == ExitCode.USAGE
    assert "--topic" in capsys.readouterr().err


def test_missing_directories_of_keys_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`keys list` reports a data directory that does not exist; without keys it prints a command that works."""
    assert run("keys", "list", "--data-dir", str(tmp_path / "none")) == ExitCode.NOT_FOUND
    assert "none" in capsys.readouterr().err
    assert run("keys", "list", "--data-dir", str(tmp_path)) == ExitCode.OK
    command = capsys.readouterr().err.split("`")[1]
    assert run("keys", *command.partition(" keys ")[2].split()) == ExitCode.OK
    assert run("keys", "list", "--data-dir", str(tmp_path)) == ExitCode.OK
    assert "active" in capsys.readouterr().out


def test_only_one_option_for_the_archive(capsys: pytest.CaptureFixture[str]) -> None:
    """`recall` has --archive alone: --no-archive could contradict it."""
    assert run("recall", "-q", "tram", "--no-archive", "--url", "http://127.0.0.1:9") == ExitCode.USAGE


def test_field_names_stay_as_they_are() -> None:
    """A sentence that begins with a field's name does not change the name."""
    assert sentence("depth: 9 is not allowed") == "depth: 9 is not allowed."
    assert sentence("there is no node n1") == "There is no node n1."


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (httpx.ConnectError("refused"), "No daemon answers at http://127.0.0.1:8420."),
        (httpx.ReadTimeout("slow"), "The daemon did not answer within 60 s"),
        (httpx.RemoteProtocolError("cut"), "The connection to http://127.0.0.1:8420 was lost."),
        (httpx.Response(200, text="<html>"), "The server at http://127.0.0.1:8420 is not an Ebbtide"),
        (httpx.Response(404, json={"detail": "Not Found"}), "The server at"),
    ],
)
def test_other_servers_are_unreachable(answer: httpx.Response | Exception, expected: str) -> None:
    """No response, a broken one, and one of another server are UNREACHABLE, with the address."""
    failure = failure_of(answer)
    assert failure.code == ExitCode.UNREACHABLE
    assert failure.message.startswith(expected)


def test_long_operations_have_a_long_timeout() -> None:
    """Operations that grow with the agent have a timeout of an hour; the hint for a slow daemon is not to start one."""
    waits_s = []

    def handle(request: httpx.Request) -> httpx.Response:
        waits_s.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("slow")

    with RemoteClient("http://h", transport=httpx.MockTransport(handle)) as remote:
        for ask in (
            lambda: remote.forget_memories("ann", {}),
            lambda: remote.verify_audit("ann", []),
            lambda: remote.get_agent("ann"),
        ):
            with pytest.raises(Failure) as caught:
                ask()
            assert f"within {waits_s[-1]:.0f} s" in caught.value.message
            assert "ebbtide serve" not in caught.value.hint
    assert waits_s == [3600.0, 3600.0, 60.0]


def test_a_reversed_interval_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """`forget` and `recall` name the options that were typed, before any request."""
    span = ("--since", "2025-05-03", "--until", "2025-05-01", "--url", "http://127.0.0.1:9")
    for command in (("forget", "ann"), ("recall", "-q", "tram")):
        assert run(*command, *span) == ExitCode.USAGE
        assert "--until is over before --since begins" in capsys.readouterr().err


def test_invalid_addresses_are_usage_errors() -> None:
    """A --url that is no address is refused before any request."""
    for url in ("nonsense", "ftp://host", "http://"):
        with pytest.raises(Failure) as caught:
            RemoteClient(url)
        assert caught.value.code == ExitCode.USAGE


def test_agent_ids_stay_in_their_place() -> None:
    """Every id is quoted, so that it cannot become another path; an empty one and `..` are refused."""
    asked = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path)
        return httpx.Response(200, json={})

    with RemoteClient("http://h", transport=httpx.MockTransport(handle)) as remote:
        for agent_id in ("林月?x=1#..%2fy", "a/b"):
            remote.get_agent(agent_id)
        for agent_id in ("", ".."):
            with pytest.raises(Failure):
                remote.get_agent(agent_id)
    assert asked == [
        b"/v1/agents/%E6%9E%97%E6%9C%88%3Fx%3D1%23..%252fy",
        b"/v1/agents/a%2Fb",
    ]


def test_our_errors_become_failures() -> None:
    """An error of the tree raised in this process becomes a sentence with its code."""
    failure = as_failure(Precondition("held by process 7", reason="DATA_DIRECTORY_LOCKED"))
    assert (failure.message, failure.code) == ("Held by process 7.", ExitCode.LOCKED)


def test_settings_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bad setting is named with its value and what is allowed."""
    monkeypatch.setenv("EBBTIDE_MEMORY__DECAY_RATE", "7")
    with pytest.raises(Failure) as caught:
        settings_in_force({"server": {"rest_port": 99999}, "log": {"level": "loud"}})
    assert caught.value.code == ExitCode.BAD_SETTING
    message = caught.value.message
    assert "server.rest_port = 99999: allowed: 0-65535." in message
    assert "log.level = 'loud': allowed: debug, info, warning, error." in message
    assert "memory.decay_rate = '7': allowed: above 0, at most 1." in message


def test_a_missing_settings_file_has_its_own_code(tmp_path: Path) -> None:
    """A missing --config file is NO_CONFIG; one that is no TOML is BAD_SETTING."""
    with pytest.raises(Failure) as caught:
        settings_in_force({}, tmp_path / "none.toml")
    assert caught.value.code == ExitCode.NO_CONFIG
    bad = tmp_path / "bad.toml"
    bad.write_text("= 1")
    with pytest.raises(Failure) as caught:
        settings_in_force({}, bad)
    assert caught.value.code == ExitCode.BAD_SETTING


def test_commands_end_with_their_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure is one line on standard error, nothing on standard output, and its exit code."""
    assert run("recall", "x", "--url", "http://127.0.0.1:9") == ExitCode.UNREACHABLE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: No daemon answers at http://127.0.0.1:9.")
    assert run("recall", "--nope") == ExitCode.USAGE
    assert run("remember", "/no/such/file") == ExitCode.BAD_INPUT
    assert run("agents", "--data-dir", "/no/such/directory") == ExitCode.NOT_FOUND


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`ebbtide --version` prints name and version."""
    assert run("--version") == ExitCode.OK
    assert capsys.readouterr().out.startswith("ebbtide ")


def test_an_error_names_the_argument_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a command takes a field as an argument, an error names the argument and no option."""

    def refuse(*_: Any, **__: Any) -> Any:
        return error_body(
            "INVALID_VALUE", "topic: '?' is not allowed; allowed: a topic such as residence", 400
        )

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", refuse)
    assert run("statements", "add", "I", "?", "x") == ExitCode.REFUSED
    assert "TOPIC: '?' is not allowed" in (said := capsys.readouterr().err)
    assert "--topic" not in said
    assert run("statements", "list", "--topic", "?") == ExitCode.REFUSED
    assert "--topic: '?' is not allowed" in capsys.readouterr().err


def test_an_error_about_a_statement_names_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next step is a command, and no route of REST."""
    message = "The node n7 is not a statement; list them with GET /v1/agents/{agent_id}/statements (ListStatements)."

    def refuse(*_: Any, **__: Any) -> Any:
        return error_body("NOT_A_STATEMENT", message, 400)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", refuse)
    assert run("statements", "retract", "n7") == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert "The node n7 is not a statement. [NOT_A_STATEMENT]" in said
    assert "statements list" in said
    assert "GET " not in said
