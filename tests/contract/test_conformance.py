"""The cases of clients/conformance with the Python client, against a real daemon and a busy one."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide_client import Client
from tests.support import conformance
from tests.support.process import Daemon


def test_the_python_client_passes_every_case(daemon: Daemon) -> None:
    """Requests, results, pages, events and errors are as the shared cases say."""
    cases = conformance.cases()
    assert len(cases) > 5
    with Client(daemon.url) as client:
        for number, (file, case) in enumerate(cases):
            conformance.run(client, case, f"{file}-{number}")


@pytest.mark.parametrize("row", conformance.request_cases(), ids=lambda row: row["call"])
def test_the_python_client_sends_the_requests_of_the_cases(row: dict[str, Any]) -> None:
    """Method, path, query and body are as the shared cases say, and only what is safe is repeated."""
    conformance.check_request(row)
