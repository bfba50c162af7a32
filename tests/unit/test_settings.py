"""Settings and parameters: precedence, bounds, and what is refused at start-up."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from pydantic import ValidationError

from ebbtide.cli.daemon_settings import describe
from ebbtide.daemon import connection_limit, open_agent_limit, refuse_insecure_bind
from ebbtide.errors import FAMILIES, REASONS, EbbtideError, Precondition
from ebbtide.parameters import AgentParameters
from ebbtide.settings import load_settings


def test_flags_beat_environment_beats_file_beats_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each source overrides the next, field by field."""
    config = tmp_path / "ebbtide.toml"
    config.write_text(
        "[server]\nrest_port = 1\nhost = '127.0.0.2'\nrequest_timeout_ms = 500\n[memory]\nlocale = 'zh'\n"
    )
    monkeypatch.setenv("EBBTIDE_SERVER__REST_PORT", "2")
    monkeypatch.setenv("EBBTIDE_SERVER__HOST", "127.0.0.3")
    monkeypatch.setenv("EBBTIDE_MEMORY__DECAY_RATE", "0.5")
    settings = load_settings({"server": {"rest_port": 3}}, config)
    assert settings.server.rest_port == 3
    assert settings.server.host == "127.0.0.3"
    assert settings.server.request_timeout_ms == 500
    assert (settings.memory.locale, settings.memory.decay_rate) == ("zh", 0.5)
    assert settings.limits.max_depth == 8


def test_bad_settings_name_the_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value out of range, an unknown name and a missing file are refused with their path."""
    with pytest.raises(ValidationError, match=r"server\.rest_port"):
        load_settings({"server": {"rest_port": 70000}})
    monkeypatch.setenv("EBBTIDE_FLEET__TIME_SLICE_MS", "5")
    with pytest.raises(ValidationError, match=r"fleet\.time_slice_ms"):
        load_settings()
    monkeypatch.delenv("EBBTIDE_FLEET__TIME_SLICE_MS")
    (tmp_path / "x.toml").write_text("[server]\nprt = 1\n")
    with pytest.raises(ValidationError, match=r"server\.prt"):
        load_settings(config=tmp_path / "x.toml")
    with pytest.raises(FileNotFoundError):
        load_settings(config=tmp_path / "none.toml")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_permission(host: str) -> None:
    """Loopback addresses are always allowed."""
    refuse_insecure_bind(load_settings({"server": {"host": host}}))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_listening_beyond_this_machine_must_be_allowed(host: str) -> None:
    """Without authentication any other address is INSECURE_BIND unless it is allowed explicitly."""
    with pytest.raises(Precondition) as caught:
        refuse_insecure_bind(load_settings({"server": {"host": host}}))
    assert caught.value.reason == "INSECURE_BIND"
    refuse_insecure_bind(load_settings({"server": {"host": host, "allow_insecure": True}}))


@pytest.mark.parametrize(
    ("descriptors", "connections", "agents"),
    [
        (16, 2, 2),
        (120, 15, 15),
        (1024, 128, 176),
        (4096, 512, 752),
        (8192, 1000, 1000),
        (1 << 20, 1000, 1000),
    ],
)
def test_connections_and_agents_share_the_descriptors(
    descriptors: int, connections: int, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections of both ports and the open agents together stay within the descriptor limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert connection_limit(1000) == connections
    assert open_agent_limit(0, connections) == agents
    assert 2 * connections + 4 * agents < descriptors
    assert open_agent_limit(7, connections) == 7, "as configured"
    assert connection_limit(5) == min(5, connections)


def test_the_descriptor_limit_is_raised() -> None:
    """The soft limit is raised to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        connection_limit(1000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_every_reason_belongs_to_a_family() -> None:
    """The table names existing families; an error cannot carry a reason of another family."""
    for name, reason in REASONS.items():
        error = FAMILIES[reason.family]("text", reason=name)
        assert isinstance(error, EbbtideError)
        assert error.http == reason.http
        assert error.grpc == reason.grpc
    with pytest.raises(AssertionError):
        Precondition("text", reason="QUEUE_FULL")


def test_slots_need_room_besides_the_focus() -> None:
    """Under slots, max_nodes is at least focus_limit + 100; under scan it is not restricted."""
    AgentParameters(max_nodes=5)
    AgentParameters(strategy="slots", max_nodes=105)
    with pytest.raises(ValidationError, match="focus_limit"):
        AgentParameters(strategy="slots", max_nodes=104)


def test_zero_results_means_the_ceiling() -> None:
    """0 means 10000, as a parameter and in a request."""
    assert AgentParameters(max_search_results=0).limit_results(None) == 10_000
    assert AgentParameters().limit_results(None) == 100
    assert AgentParameters().limit_results(0) == 10_000
    assert AgentParameters().limit_results(7) == 7


def test_the_master_key_is_given_once_and_never_shown() -> None:
    """A file and a key together are refused; neither the refusal nor the printed settings quote the key."""
    key = "6d" * 32
    with pytest.raises(ValidationError, match="not both") as caught:
        load_settings({"encryption": {"master_key": key, "master_key_file": "k"}})
    assert key not in describe(caught.value)
    assert key not in repr(load_settings({"encryption": {"master_key": key}}))
    assert key not in load_settings({"encryption": {"master_key": key}}).model_dump_json()
