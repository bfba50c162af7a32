"""Merge proposals: names in statements that may mean one entity, without those that a ruling has decided.

Proposals are not stored. They follow from the names, the statements and the rulings, so they leave with their sources,
and a rejected one is a ruling that can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ebbtide.changes import Change
from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.ids import NodeId
from ebbtide.memory.merge_proposals import Named, NameSearch, Proposal, described
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.statements import Assertion, Ruling, is_inferred

READ_AT_ONCE: Final = 512
"""Assertions that are read between two looks at the time."""

AUTHOR: Final = "merges@1"
"""The author of automatic merges; the number rises with the rules."""


class MergeSearch:
    """The search for proposals among the entities of an agent's statements, in short steps."""

    def __init__(self, network: Network, ledger: Ledger, new: Collection[NodeId] | None = None) -> None:
        """Begin a search, which must be prepared. With `new`, one entity of each pair is among them."""
        self._network = network
        self._ledger = ledger
        self._said: list[Assertion] = []
        self._read_up_to = 0
        self._described: list[Named] | None = None
        self.names: dict[NodeId, str] = {}
        self._new = new
        self._search: NameSearch | None = None

    def prepare(self, is_time_up: Callable[[], bool]) -> bool:
        """Read what statements say about names until the time is up. Return whether that is complete."""
        while self._described is None:
            part = list(islice(self._ledger.all_assertions(self._read_up_to), READ_AT_ONCE))
            if not part:
                entities = {end for one in self._said for end in _ends(one)} & self._network.entities.keys()
                self.names = {one: self._network.entities[one].name for one in sorted(entities)}
                self._described = described(self._said, self.names)
                self._said = []
                break
            self._said += [one for one in part if not is_inferred(one)]
            self._read_up_to = part[-1].entry
            if is_time_up():
                return False
        return True

    @property
    def texts(self) -> list[str]:
        """The names, whose vectors the search can use; none if no name is new."""
        return [] if self._new is not None and not self._new else list(self.names.values())

    def advance(self, vectors: NDArray[np.float32] | None, is_time_up: Callable[[], bool]) -> bool:
        """Search until the time is up. Return whether the search is complete. The first call decides on vectors."""
        if self._search is None:
            assert self._described is not None, "the search is prepared"
            self._search = NameSearch(self._described, self._new, vectors)
        return self._search.advance(is_time_up)

    def proposals(self, ledger: Ledger) -> Iterator[Proposal]:
        """Yield the proposals that no ruling in effect has decided."""
        replay = ledger.known()
        distinct = {frozenset((one.target, one.other)) for one in ledger.rulings() if one.kind == "distinct"}
        for one in () if self._search is None else self._search.found:
            pair = frozenset((one.first, one.second))
            if replay.root(one.first) != replay.root(one.second) and pair not in distinct:
                yield one


def _ends(one: Assertion) -> Sequence[NodeId]:
    return (one.subject, one.object_entity) if one.object_entity else (one.subject,)


class Staged:
    """Counts the statements that are new since the last run, and finds names among them that may mean one entity.

    It counts, lists the new names, reads all names, and compares them, each in parts of its own.

    At the end of the run, the statements are consolidated. `merge_policy=auto` merges what its rules allow, but never
    again what was merged before and undone.
    """

    def __init__(self) -> None:
        self._search: MergeSearch | None = None
        self._is_prepared = False

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Count the new statements, then search for a while."""
        if position == 0:
            count = view.ledger.begun_count(view.after, view.up_to)
            return Part(looked=count, changed=count, position=1)
        if self._search is None:
            self._search = self._begun(view)
            return Part(position=1)
        if not self._is_prepared:
            self._is_prepared = self._search.prepare(is_time_up)
            return Part(position=1, texts=self._search.texts if self._is_prepared else ())
        if not self._search.advance(view.vectors, is_time_up):
            return Part(position=1)
        return self._found(view, self._search)

    def _begun(self, view: View) -> MergeSearch:
        new = {end for one in view.staged() for end in _ends(one)}
        return MergeSearch(view.network, view.ledger, new)

    def _found(self, view: View, search: MergeSearch) -> Part:
        is_auto = view.parameters.merge_policy == "auto"
        once = {
            frozenset((one.target, one.other)) for one in view.ledger.all_rulings() if one.kind == "merge"
        }
        state, rulings, findings = view.txn.meta.ledger, list[Ruling](), list[Finding]()
        for one in search.proposals(view.ledger):
            nodes = (one.first, one.second)
            names = " and ".join(search.names[node] for node in nodes)
            if is_auto and one.is_automatic and frozenset(nodes) not in once:
                entry = state.next_entry + len(rulings)
                rulings.append(
                    Ruling(entry, "merge", one.first, view.now_ms, other=one.second, author=AUTHOR)
                )
                findings.append(Finding(nodes, f"merged: {names}"))
            else:
                findings.append(Finding(nodes, f"may be one: {names}"))
        if not rulings:
            return Part(findings=findings)
        change = Change(rulings=rulings, ledger=replace(state, next_entry=state.next_entry + len(rulings)))
        return Part(changed=len(rulings), change=change, findings=findings)
