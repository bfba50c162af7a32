"""How much is tried: `FUZZ_EXAMPLES` requests of a kind, 15 by default; the same ones every time unless it is set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))

FUZZING = settings(
    max_examples=EXAMPLES or 15,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""Of every test here."""
