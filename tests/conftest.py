"""Fixtures every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.telemetry import configure_log
from tests.support.process import Daemon, running_daemon


@pytest.fixture(autouse=True)
def _quiet_log() -> None:
    configure_log("error", "json")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon with default settings; its stores are checked afterwards."""
    with running_daemon(tmp_path / "data") as running:
        yield running
