"""The cases of clients/conformance with the Python client, against a real daemon."""

from __future__ import annotations

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
