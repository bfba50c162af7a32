"""Conflicts: statements that contradict each other, listed for review."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.fleet.consolidation.steps import Finding, Part, View


class Conflicts:
    """Lists the statements that contradict each other. The replay has settled those that it may settle."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at the topics of some entities."""
        replay = view.ledger.known()
        roots = sorted({root for root in map(replay.root, view.ledger.subjects()) if root >= position})
        looked = 0
        findings: list[Finding] = []
        for number, root in enumerate(roots):
            if number and is_time_up():
                return Part(looked=looked, findings=findings, position=root)
            looked += len(view.ledger.slots_of(replay.merged_with(root)))
            for pair in replay.conflicts_of(root, view.now_ms, view.now_ms):
                nodes = (pair.first.statement, pair.second.statement)
                findings.append(Finding(nodes, "contradict each other"))
        return Part(looked=looked, findings=findings)
