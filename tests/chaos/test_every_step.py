"""Operations that change an agent's files, cut off at every step that exists: by a kill, by the clock, by the disk."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run_apart
from tests.support.operations import (
    OPERATIONS,
    SECRET,
    Fault,
    Place,
    make_base,
    perform,
    prepare,
    verify,
)

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

EVERY_STEP = bool(os.environ.get("EBBTIDE_EVERY_STEP"))
"""Whether all steps of all operations are tried, as in `make chaos`."""


NO_FAULT = Fault()


class Trial:
    """One operation with its reference runs: what the agents are before it and after it."""

    def __init__(self, bases: dict[bool, Path], folder: Path, name: str) -> None:
        self.name, self.operation = name, OPERATIONS[name]
        self._folder = folder
        starts_sealed = self.operation.starts_sealed
        self._base = bases[self.operation.is_sealed if starts_sealed is None else starts_sealed]
        self.log = folder / "log"
        untouched = self.place("untouched")
        self.old: dict[str, Any] = {}
        self.new: dict[str, Any] = {}
        self.old = self.verified(untouched)
        done = self.place("done")
        refusal, self.steps = self.performed(done)
        assert refusal == ""
        assert done.is_acknowledged
        self.new = self.verified(done)
        assert self.new != self.old or self.name in ("rotate", "rotate master", "back up")

    def place(self, label: str) -> Place:
        """Files to begin with."""
        return prepare(self._base, self._folder / label, self.name)

    def performed(self, place: Place, fault: Fault = NO_FAULT) -> tuple[str, list[str]]:
        """Run the operation to its end."""
        code, value = run_apart(self.log, perform, place.root, self.name, fault)
        assert code == 0, self.log.read_text()
        refusal, steps = value
        return refusal, steps

    def verified(self, place: Place) -> dict[str, Any]:
        """What the agents are after a start; nothing is left over."""
        code, seen = run_apart(self.log, verify, place.root, self.name)
        assert code == 0, self.log.read_text()
        assert seen.pop("strays") == []
        texts, is_secret_there = seen.pop("texts"), seen.pop("secret")
        if self.outcome_of(place, seen) in self.operation.hidden:
            assert texts == []
        if self.name.startswith("forget") and SECRET not in seen["ann"][1]:
            assert not is_secret_there
        return seen

    def outcome_of(self, place: Place, seen: dict[str, Any]) -> str:
        """Which of the two agents was seen."""
        if not self.new:
            return "new" if place.is_acknowledged else "old"
        return "new" if {**seen, "erased": 0} == {**self.new, "erased": 0} else "old"

    def check(self, place: Place) -> str:
        """What is left is the old agent or the new one, whole, and hides what is hidden; it can be repeated."""
        outcome = self.outcome(place)
        refusal, _ = self.performed(place)
        assert refusal == "" or (outcome == "new" and refusal in self.operation.refused), refusal
        seen = self.verified(place)
        assert {**seen, "erased": 0} == {**self.new, "erased": 0}
        shutil.rmtree(place.root)
        return outcome

    def outcome(self, place: Place) -> str:
        """Whether it is the old agent or the new one."""
        if self.operation.key_changes:
            # Half of the keys may be under either master key until it is repeated.
            return "new" if place.is_acknowledged else "old"
        seen = self.verified(place)
        outcome = self.outcome_of(place, seen)
        assert seen == (self.new if place.is_acknowledged or outcome == "new" else self.old)
        return outcome


@pytest.fixture(scope="module")
def bases() -> Iterator[dict[bool, Path]]:
    """Data directories with agents in them, in plain and sealed; on a fast disk where there is one."""
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        found = {}
        for is_sealed in (False, True):
            found[is_sealed] = Path(folder) / ("sealed" if is_sealed else "plain")
            found[is_sealed].mkdir()
            code, _ = run_apart(Path(folder) / "log", make_base, found[is_sealed], is_sealed)
            assert code == 0
        yield found


@pytest.fixture
def folder(bases: dict[bool, Path]) -> Iterator[Path]:
    """A directory beside them."""
    with tempfile.TemporaryDirectory(dir=bases[False].parent) as made:
        yield Path(made)


def spread(count: int, most: int) -> list[int]:
    """Steps from the first to the last and one behind it: all of them, or a few, evenly."""
    if EVERY_STEP or count < most:
        return list(range(1, count + 2))
    return sorted({1 + round(number * count / (most - 1)) for number in range(most)})


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_any_step_leaves_the_old_agent_or_the_new_one_whole(
    bases: dict[bool, Path], folder: Path, name: str
) -> None:
    """A start leaves nothing over, the checker finds nothing, nothing hidden is in a file, and a repetition works."""
    trial = Trial(bases, folder, name)
    met = []
    for at in spread(len(trial.steps), 3):
        place = trial.place(f"killed-{at}")
        code, _ = run_apart(trial.log, perform, place.root, name, Fault("kill", at))
        assert code == -signal.SIGKILL
        met.append(trial.check(place))
    print(name, len(trial.steps), len(met), met.count("old"), met.count("new"), sep=" | ")
