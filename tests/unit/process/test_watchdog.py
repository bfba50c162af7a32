"""The definition of a stall of the event loop, with clocks controlled by the test."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from ebbtide.process import watchdog
from ebbtide.process.watchdog import BEAT_S, QUIET_S, Watchdog
from ebbtide.telemetry import configure_log


class Scene:
    """A watchdog whose clocks, timer and dumps the test controls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.cpu_s = 100.0, 5.0
        self.dump: dict[str, list[str]] = {}
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "process_time", lambda: self.cpu_s)
        monkeypatch.setattr(signal, "setitimer", lambda *_: None)
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(watchdog.faulthandler, "register", lambda *_, **__: None)
        self.dog = Watchdog()
        monkeypatch.setattr(self.dog, "_read_dump", lambda: self.dump)
        self.dog.begin()

    def later(self, after_s: float, *, share: float = 0.0, late_s: float | None = None) -> None:
        """Advance the clocks and check; with `late_s` the loop has beaten before."""
        self.now_s += after_s
        self.cpu_s += after_s * share
        if late_s is not None:
            self.dog.beat(late_s)
        self.dog.look()


@pytest.fixture
def scene() -> Iterator[Scene]:
    configure_log("info", "json")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Scene(monkeypatch)


def looks_without_beat(scene: Scene, count: int) -> list[Any]:
    """Return the lines logged while the thread runs and the loop does not."""
    with capture_logs() as lines:
        for _ in range(count):
            scene.later(BEAT_S)
    return lines


def test_late_loop_is_logged_once(scene: Scene) -> None:
    """A loop that is late by more than a second is logged once."""
    assert looks_without_beat(scene, 5) == []
    (line,) = looks_without_beat(scene, 100)
    assert line["late_s"] > 1 and not line["interpreter_held"] and line["not_logged"] == 0


def test_beating_loop_is_not_logged(scene: Scene) -> None:
    """A loop that beats slightly late is not logged."""
    with capture_logs() as lines:
        for _ in range(100):
            scene.later(BEAT_S, share=1, late_s=0.9)
    assert lines == []


def test_held_interpreter_is_logged_from_the_dump(scene: Scene) -> None:
    """When a C call held the interpreter lock, the stack of the main thread from the dump is logged once."""
    scene.dump = {"MainThread": ["culprit.py:1 culprit"]}
    with capture_logs() as lines:
        scene.later(3, share=1)
        scene.dump = {}
        scene.later(BEAT_S, late_s=2.9)
        scene.later(BEAT_S, late_s=0)
    (line,) = lines
    assert line["interpreter_held"] and line["stacks"]["MainThread"] == ["culprit.py:1 culprit"]
    assert 2 < line["late_s"] <= 3


def test_stopped_process_is_not_a_stall(scene: Scene) -> None:
    """A process that used no processor time was stopped or suspended: nothing is logged, though the timer fired."""
    scene.dump = {"MainThread": ["idle.py:1 idle"]}
    with capture_logs() as lines:
        scene.later(3600, share=0)
        scene.dump = {}
        scene.later(BEAT_S)
        scene.later(BEAT_S, late_s=3600)
        scene.later(BEAT_S, late_s=0)
    assert lines == []


def test_lines_are_few(scene: Scene) -> None:
    """Consecutive stalls make one line in ten seconds, which counts the stalls without a line."""
    with capture_logs() as lines:
        for _ in range(4):
            scene.later(BEAT_S, late_s=0)
            for _ in range(8):
                scene.later(BEAT_S)
        for _ in range(int(QUIET_S / BEAT_S)):
            scene.later(BEAT_S, late_s=0)
        for _ in range(8):
            scene.later(BEAT_S)
    assert len(lines) == 2
    assert lines[1]["not_logged"] == 3


def test_nothing_is_logged_after_the_end(scene: Scene) -> None:
    """The loop does not beat during a stop, and that is no stall."""
    scene.dog.end()
    assert looks_without_beat(scene, 50) == []
