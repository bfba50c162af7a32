"""Hypothesis profiles: `ci` (the default, the same examples every time), `thorough`, and `unshrunk`.

`HYPOTHESIS_PROFILE=thorough` runs ten times the examples with fresh randomness. `unshrunk`
reports a failure at once, as it was found. `histories.examples(40)` at a test is
the number in `make test-all`; `make test` runs a tenth of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from ebbtide.fleet.compression import passes
from ebbtide.memory import association, columns, link_table, network, texts
from tests.support.tier import IS_ALL

COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("ci", derandomize=True, database=None, max_examples=100 if IS_ALL else 15, **COMMON)
settings.register_profile("thorough", max_examples=1000, database=None, **COMMON)
settings.register_profile(
    "unshrunk",
    derandomize=True,
    database=None,
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
    **COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SMALL_BOUNDS = (
    (link_table, "MIN_UNSORTED", 7),
    (network, "MIN_DEAD", 3),
    (columns, "MANY", 5),
    (texts, "MIN_WASTE", 8),
    (texts, "STRETCH", 12),
    (texts, "BYTES_PER_NODE", 12),
    (association, "FIRST_TRY", 1),
    (association, "SHARE_OF_BOUNDED", 0),
    (passes, "MIN_VISITS_PER_GROUP", 2),
)
"""Some code runs only in large memories; with these bounds it runs in memories of a dozen nodes."""


@pytest.fixture(autouse=True, scope="package")
def small_bounds() -> Iterator[None]:
    """Lower the bounds, so that every path through the arrays is taken."""
    shipped = [(module, name, getattr(module, name)) for module, name, _ in SMALL_BOUNDS]
    for module, name, value in SMALL_BOUNDS:
        setattr(module, name, value)
    yield
    for module, name, value in shipped:
        setattr(module, name, value)


LONGEST_TEST_S = 1800
"""Timeout of one test: a thorough run, and shrinking after a failure, take minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder a longer timeout."""
    for item in items:
        if item.nodeid.startswith("tests/property/"):
            item.add_marker(pytest.mark.timeout(LONGEST_TEST_S))
