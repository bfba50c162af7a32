"""Requests generated from the OpenAPI document: none causes a server error, and responses are as documented.

Tries each operation with values that its schema allows and with values that it forbids, and sequences of requests
that follow the document's links. One thing is not checked: that every request which matches a schema is accepted.
Limits are settings, and the rules on combinations of fields are described in prose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.fuzz.conftest import EXAMPLES, FUZZING
from tests.support.process import Daemon, running_daemon
from tests.support.tier import IS_ALL

QUIET = {"EMBEDDING__MODEL": "off"}
EVENTS = "/v1/agents/{agent_id}/events"
NOT_JUDGED = [positive_data_acceptance]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for all requests of this file; afterwards its stores and its log are checked."""
    with running_daemon(tmp_path_factory.mktemp("fuzz") / "data", QUIET) as daemon:
        yield daemon
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


@pytest.fixture(scope="module")
def api(fuzzed: Daemon) -> Any:
    """The document as the daemon serves it."""
    return schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_any_request_is_answered_as_documented(api: Any, mode: GenerationMode) -> None:
    """Statuses, headers and bodies match the document; a request that breaks its rules is refused, never a 5xx."""
    # An event stream ends only when the client closes it.
    operations = [one for one in (found.ok() for found in api.get_all_operations()) if one.path != EVENTS]
    assert len(operations) >= 25
    if mode is GenerationMode.NEGATIVE and not IS_ALL:
        operations = operations[::2]
    for operation in operations:
        try:
            strategy = operation.as_strategy(generation_mode=mode)

            @FUZZING
            @given(case=strategy)
            def judge(case: schemathesis.Case) -> None:
                case.call_and_validate(excluded_checks=NOT_JUDGED)

            judge()
        except Unsatisfiable:
            # A request without parameters and body cannot be invalid.
            assert mode is GenerationMode.NEGATIVE, operation.label


def delete_all_agents(daemon: Daemon) -> None:
    """Delete all agents of the daemon."""
    while agents := daemon.client.get("/v1/agents").json()["agents"]:
        for agent in agents:
            assert daemon.client.delete(f"/v1/agents/{quote(agent['agent_id'], safe='')}").is_success


@pytest.mark.timeout(600)
def test_sequences_of_requests_cause_no_server_error(api: Any, fuzzed: Daemon) -> None:
    """Requests built from earlier responses cause no server error, with creation, change and deletion in between."""
    machine = api.exclude(path=EVENTS).as_state_machine()

    class Sequence(machine):  # type: ignore[misc,valid-type]
        def setup(self) -> None:
            # Hypothesis expects that the same requests have the same responses in every example.
            super().setup()
            delete_all_agents(fuzzed)

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=[not_a_server_error])

    for tries_left in (2, 1, 0):
        try:
            Sequence.run(settings=settings(FUZZING, max_examples=EXAMPLES, stateful_step_count=12))
            return
        except FlakyStrategyDefinition:
            # A response depended on work in the background. That is allowed, but ends the run early.
            if not tries_left:
                raise
