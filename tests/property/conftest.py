"""Hypothesis profiles: `ci` (the default, the same examples every time) and `thorough`.

`HYPOTHESIS_PROFILE=thorough` runs ten times the examples with fresh randomness. `histories.examples(40)` at a test is
the number in `make test-all`; `make test` runs a quarter of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ebbtide.fleet.compression import visits
from ebbtide.memory import association, link_table, network, slots, texts
from tests.support.tier import IS_ALL

COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("ci", derandomize=True, database=None, max_examples=100 if IS_ALL else 25, **COMMON)
settings.register_profile("thorough", max_examples=1000, database=None, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SMALL_BOUNDS = (
    (link_table, "FEWEST_UNSORTED", 7),
    (network, "LEAST_DEAD", 3),
    (slots, "MANY", 5),
    (texts, "LEAST_WASTE", 8),
    (texts, "STRETCH", 12),
    (texts, "BYTES_A_NODE", 12),
    (association, "FIRST_TRY", 1),
    (visits, "FEWEST_VISITS", 2),
)
"""The engine does some things only when there is much; here they happen in memories of a dozen nodes."""


@pytest.fixture(autouse=True, scope="package")
def small_bounds() -> Iterator[None]:
    """Merging, tidying and looking through begin early, so that every way through the arrays is taken."""
    shipped = [(module, name, getattr(module, name)) for module, name, _ in SMALL_BOUNDS]
    for module, name, value in SMALL_BOUNDS:
        setattr(module, name, value)
    yield
    for module, name, value in shipped:
        setattr(module, name, value)


LONGEST_TEST_S = 1800
"""Time-out of one test here: a thorough run, and shrinking after a failure, take minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder the time that they need."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(LONGEST_TEST_S))
