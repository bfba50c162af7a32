"""The number of examples: `FUZZ_EXAMPLES` requests of a kind, or 3 in `make test` and 15 in `make test-all`.

The examples are the same every time unless the variable is set.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.support.tier import amount

IS_RANDOM = "FUZZ_EXAMPLES" in os.environ
EXAMPLES = amount("FUZZ_EXAMPLES", 3, 15)

FUZZING = settings(
    max_examples=EXAMPLES,
    derandomize=not IS_RANDOM,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""The settings of every fuzz test."""
