"""The phases of a query are measured with functions that exist."""

from __future__ import annotations

from benchmarks.query_phases import PHASES


def test_every_phase_consists_of_functions() -> None:
    """Promise: a function that is renamed or moved does not silently leave its phase."""
    assert [name for _, owner, name in PHASES if not callable(getattr(owner, name, None))] == []
