"""Requests made up from the OpenAPI document: whatever is asked, no fault of ours, and answers as documented.

Each operation with values that its schema allows and with values that it does not, and sequences of requests that
follow the document's links. What is left out of the judgement: that everything which fits a schema is accepted. Limits
are settings, and which fields go together is told in words.
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

QUIET = {"EMBEDDING__MODEL": "off"}
EVENTS = "/v1/agents/{agent_id}/events"
NOT_JUDGED = [positive_data_acceptance]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for all requests of this file; its stores are checked afterwards, and its log."""
    with running_daemon(tmp_path_factory.mktemp("fuzz") / "data", QUIET) as daemon:
        yield daemon
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


@pytest.fixture(scope="module")
def api(fuzzed: Daemon) -> Any:
    """The document, as it is served."""
    return schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_any_request_is_answered_as_documented(api: Any, mode: GenerationMode) -> None:
    """Statuses, headers and bodies are those of the document; what breaks its rules is refused, never a 5xx."""
    # A stream of events ends only when it is asked to.
    operations = [one for one in (found.ok() for found in api.get_all_operations()) if one.path != EVENTS]
    assert len(operations) >= 25
    for operation in operations:
        try:
            strategy = operation.as_strategy(generation_mode=mode)

            @FUZZING
            @given(case=strategy)
            def judge(case: schemathesis.Case) -> None:
                case.call_and_validate(excluded_checks=NOT_JUDGED)

            judge()
        except Unsatisfiable:
            # Nothing of a request without parameters and body can be wrong.
            assert mode is GenerationMode.NEGATIVE, operation.label


def delete_all_agents(daemon: Daemon) -> None:
    """Leave the daemon without agents."""
    while agents := daemon.client.get("/v1/agents").json()["agents"]:
        for agent in agents:
            assert daemon.client.delete(f"/v1/agents/{quote(agent['agent_id'], safe='')}").is_success


@pytest.mark.timeout(600)
def test_sequences_of_requests_end_in_no_fault_of_ours(api: Any, fuzzed: Daemon) -> None:
    """Requests that follow each other's responses: creation, change and deletion in between break none of them."""
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
