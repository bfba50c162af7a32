"""How much the tests try.

`make test` tries a little of everything; `make test-all` sets EBBTIDE_TEST_TIER=all and tries much more, and runs the
tests marked `full`. A number that has a variable of its own can be set alone, as `make chaos` does.
"""

from __future__ import annotations

import os

IS_ALL = os.environ.get("EBBTIDE_TEST_TIER") == "all"
"""Whether everything is tried."""


def amount(variable: str, little: int, much: int) -> int:
    """Return the number in an environment variable, or else the one of the tier."""
    return int(os.environ.get(variable) or (much if IS_ALL else little))
