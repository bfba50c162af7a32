"""Operations that change an agent's files, interrupted at every step: by a kill, by the clock, by the disk."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run_apart
from tests.support.operations import (
    ERRNOS,
    JUMPS,
    OPERATIONS,
    SECRET,
    Fault,
    Place,
    make_base,
    perform,
    prepare,
    verify,
)
from tests.support.tier import IS_ALL

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

EVERY_STEP = IS_ALL
"""Whether all steps of all operations are tried, as in `make test-all`."""


QUICK = [
    "encrypt",
    "rotate",
    "decrypt",
    "rotate master",
    "destroy key",
    "create, sealed",
    "delete, plain",
    "forget, sealed",
    "remember, plain",
    "back up",
    "restore new, sealed",
    "restore replace, sealed, daemon",
    "import rename, sealed",
    "import new, plain, daemon",
]
"""The operations of the short form."""

NAMES = list(OPERATIONS) if EVERY_STEP else QUICK

NO_FAULT = Fault()

REFUSED = ("", "STORE_UNAVAILABLE", "9")
"""How an operation may end on a disk that fails: done, or refused by a reason, or by an exit code."""


class Trial:
    """One operation with its reference runs: the agents before it and after it."""

    def __init__(self, bases: dict[bool, Path], folder: Path, name: str) -> None:
        self.name, self.operation = name, OPERATIONS[name]
        self._folder = folder
        folder.mkdir()
        starts_sealed = self.operation.starts_sealed
        self._base = bases[self.operation.is_sealed if starts_sealed is None else starts_sealed]
        self.log = folder / "log"
        self.old: dict[str, Any] = {}
        self.new: dict[str, Any] = {}
        self.old = self.verified(self.place("untouched"))
        done = self.place("done")
        refusal, self.steps = self.performed(done, NO_FAULT)
        assert refusal == ""
        assert done.is_acknowledged
        self.new = self.verified(done)
        self.is_told_apart = self.new != self.old
        """Whether the files show that the operation was done."""
        assert self.is_told_apart or name in ("rotate master", "back up")

    def place(self, label: str) -> Place:
        """Create the initial files."""
        shutil.rmtree(self._folder / label, ignore_errors=True)
        return prepare(self._base, self._folder / label, self.name)

    def performed(self, place: Place, fault: Fault) -> tuple[str, list[str]]:
        """Run the operation to its end."""
        code, value = run_apart(self.log, perform, place.root, self.name, fault)
        assert code == 0, self.log.read_text()
        refusal, steps = value
        return refusal, steps

    def verified(self, place: Place) -> dict[str, Any]:
        """Return the agents after a start, and assert that no temporary file is left."""
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
        """Return which of the two agents this is: old or new."""
        if not self.new:
            return "new" if place.is_acknowledged else "old"
        return "new" if {**seen, "erased": 0} == {**self.new, "erased": 0} else "old"

    def check(self, place: Place) -> str:
        """Assert that the rest is the old or the new agent, complete, without hidden texts, and that a retry works."""
        outcome = self.outcome(place)
        refusal, _ = self.performed(place, NO_FAULT)
        assert refusal == "" or (outcome == "new" and refusal in self.operation.refused), refusal
        seen = self.verified(place)
        assert {**seen, "erased": 0} == {**self.new, "erased": 0}
        shutil.rmtree(place.root)
        return outcome

    def outcome(self, place: Place) -> str:
        """Return whether this is the old agent or the new one."""
        if self.operation.key_changes:
            # Half of the keys may be under either master key until it is repeated.
            return "new" if place.is_acknowledged else "old"
        seen = self.verified(place)
        outcome = self.outcome_of(place, seen)
        if self.operation.record_first and outcome == "old":
            assert seen.pop("erased") in (self.old["erased"], self.new["erased"])
            seen["erased"] = self.old["erased"]
        assert seen == (self.new if place.is_acknowledged or outcome == "new" else self.old)
        return outcome


@pytest.fixture(scope="module")
def bases() -> Iterator[dict[bool, Path]]:
    """Data directories with plain and with encrypted agents, in memory where possible."""
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        found = {}
        for is_sealed in (False, True):
            found[is_sealed] = Path(folder) / ("sealed" if is_sealed else "plain")
            found[is_sealed].mkdir()
            code, _ = run_apart(Path(folder) / "log", make_base, found[is_sealed], is_sealed)
            assert code == 0
        yield found


@pytest.fixture(scope="module")
def trials(bases: dict[bool, Path]) -> Callable[[str], Trial]:
    """Return the operation with this name and its reference runs, which run once."""
    made: dict[str, Trial] = {}

    def trial(name: str) -> Trial:
        if name not in made:
            made[name] = Trial(bases, bases[False].parent / f"trial-{len(made)}", name)
        return made[name]

    return trial


def spread(count: int, most: int, most_in_full: int = 1_000_000, first: int = 1) -> list[int]:
    """Return steps from the first to the last, and the end after it: all, or evenly spread up to a limit."""
    most = most_in_full if EVERY_STEP else most
    left = count + 1 - first
    if left < most:
        return list(range(first, count + 2))
    if most == 1:
        return [first + left // 2]
    return sorted({first + round(number * left / (most - 1)) for number in range(most)})


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_at_any_step_leaves_the_old_agent_or_the_new_one(
    trials: Callable[[str], Trial], name: str
) -> None:
    """After a kill a start cleans up, the checker finds nothing, no hidden text is in a file, and a retry works."""
    trial = trials(name)
    met = []
    for at in spread(len(trial.steps), 2):
        place = trial.place(f"killed-{at}")
        code, _ = run_apart(trial.log, perform, place.root, name, Fault("kill", at))
        assert code == -signal.SIGKILL
        met.append(trial.check(place))
    if trial.is_told_apart:
        assert set(met) == {"old", "new"}
    print(name, len(trial.steps), len(met), met.count("old"), met.count("new"), sep=" | ")


def faults(kinds: list[str]) -> list[tuple[str, str]]:
    """Return every operation with every kind of fault; in the short form each operation with one kind."""
    if EVERY_STEP:
        return [(name, kind) for name in NAMES for kind in kinds]
    return [(name, kinds[number % len(kinds)]) for number, name in enumerate(NAMES)]


@pytest.mark.parametrize(("name", "kind"), faults([*JUMPS]))
def test_a_clock_that_is_set_at_any_step_changes_no_outcome(
    trials: Callable[[str], Trial], name: str, kind: str
) -> None:
    """The operation has the same result, the daemon continues, and a start with the right clock finds everything."""
    trial = trials(name)
    steps = spread(len(trial.steps), 1, 3)
    for at in steps:
        place = trial.place(f"set-{at}")
        refusal, _ = trial.performed(place, Fault(kind, at))
        assert refusal == ""
        assert trial.check(place) == "new"
    print(name, kind, len(steps), sep=" | ")


@pytest.mark.parametrize(("name", "kind"), faults(["vanish", *ERRNOS]))
def test_a_disk_that_fails_at_any_step_leaves_the_old_agent_or_the_new_one(
    trials: Callable[[str], Trial], name: str, kind: str
) -> None:
    """While the disk fails nothing is acknowledged; the daemon reports it and continues once the disk is back."""
    trial = trials(name)
    met = []
    # Before it has the lock a command cannot know that the directory at the path is another one.
    locked = trial.steps.index("fsync lock") + 2 if "fsync lock" in trial.steps else 1
    for at in spread(len(trial.steps), 1, 5, locked):
        place = trial.place(f"gone-{at}")
        refusal, _ = trial.performed(place, Fault(kind, at))
        assert refusal in REFUSED, refusal
        met.append(trial.check(place))
    print(name, kind, len(met), met.count("old"), met.count("new"), sep=" | ")
