"""Fixtures that every test may use, and where tests write.

Most of the waiting in tests is for the disk, so temporary directories are in memory where there is room. Set
PYTEST_DEBUG_TEMPROOT to put them elsewhere.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Generator, Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from ebbtide.telemetry import configure_log
from tests.support.process import DISCARDED, EMBEDDER_VARIABLE, Daemon, running_daemon

MEMORY_DISK = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""More than all tests have in use at a time."""


def pytest_configure() -> None:
    """Put temporary directories on a disk in memory if there is one with room; choose embedder and TLS context.

    The default embedder needs processes of its own and 30 ms for a short text, so tests that name none use the English
    one.
    """
    os.environ.setdefault(EMBEDDER_VARIABLE, "builtin")
    # Every client would load the public certificate authorities, which takes 30 ms; hardly any test uses TLS.
    httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)
    if MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free >= ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))


LONGEST = ("test_linear_time.py",)
"""Files that take longest. They come first, so that the workers end together."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only among what the tests make: modules and collected tests stay, and there are many of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Log errors only, and fail if a committed change could not be applied in memory. Tests run out of memory."""
    configure_log("error", "json")
    discarded: list[BaseException] = []

    def watch(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event["event"] == DISCARDED and not isinstance(event["exc_info"], MemoryError):
            discarded.append(event["exc_info"])
        return event

    structlog.configure(processors=[watch, *structlog.get_config()["processors"]])
    yield
    if discarded:
        raise discarded[0]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon with default settings; its stores are checked afterwards."""
    with running_daemon(tmp_path / "data") as running:
        yield running
