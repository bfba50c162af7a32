"""The plan of a benchmark run: its scales, repetitions and folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Progress
from benchmarks.stores import kept_store
from benchmarks.synthetic import SCALES, Scale

AGENT = "bench"
"""The agent that is queried."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. `kept` outlives it, `work` does not."""

    kept: Path
    work: Path
    scales: tuple[str, ...]
    is_quick: bool
    seed: int
    tell: Progress

    def times(self, full: int, quick: int) -> int:
        """Return the number of repetitions."""
        return quick if self.is_quick else full

    def scale_for(self, wanted: str) -> Scale:
        """Return the requested scale, or the next one that this run measures at."""
        order = list(SCALES)
        below = [name for name in self.scales if order.index(name) <= order.index(wanted)]
        return SCALES[max(below or self.scales, key=order.index)]

    def store(self, scale: Scale) -> Path:
        """Return the kept store of a scale; create it if there is none."""
        self.tell(f"store {scale.name}")
        return kept_store(scale, self.seed, self.kept)

    def fresh(self, name: str) -> Path:
        """Create an empty directory for this run."""
        number = sum(1 for _ in self.work.iterdir())
        place = self.work / f"{number:03}-{name}"
        place.mkdir()
        return place
