"""Merge proposals: names in statements that may mean one entity, without those that a ruling has decided.

Proposals are not stored. They follow from the names, the statements and the rulings, so they leave with their sources,
and a rejected one is a ruling that can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ebbtide.changes import Change
from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.ids import NodeId
from ebbtide.memory.merge_proposals import NameSearch, Proposal, described
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.statements import Assertion, Ruling, is_inferred

AUTHOR: Final = "merges@1"
"""The author of automatic merges; the number rises with the rules."""


class MergeSearch:
    """The search for proposals among the entities of an agent's statements, in short steps."""

    def __init__(self, network: Network, ledger: Ledger, new: Collection[NodeId] | None = None) -> None:
        """Prepare the search. With `new`, one entity of each pair is among them."""
        said = [one for one in ledger.all_assertions() if not is_inferred(one)]
        entities = {end for one in said for end in _ends(one)}
        self.names = {one: network.entities[one].name for one in sorted(entities) if one in network.entities}
        self._described = described(said, self.names)
        self._new = new
        self._search: NameSearch | None = None

    @property
    def texts(self) -> list[str]:
        """The names, whose vectors the search can use."""
        return list(self.names.values())

    def advance(self, vectors: NDArray[np.float32] | None, is_time_up: Callable[[], bool]) -> bool:
        """Search until the time is up. Return whether the search is complete. The first call decides on vectors."""
        if self._search is None:
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

    At the end of the run, the statements are consolidated. `merge_policy=auto` merges what its rules allow, but never
    again what was merged before and undone.
    """

    def __init__(self) -> None:
        self._search: MergeSearch | None = None

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Count the new statements, then search for a while."""
        if position == 0:
            count = len({one.statement for one in view.staged() if is_first(view.ledger, one)})
            self._search = self._begun(view)
            texts = self._search.texts if count else ()
            return Part(looked=count, changed=count, position=1, texts=texts)
        if self._search is None:
            self._search = self._begun(view)
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


def is_first(ledger: Ledger, assertion: Assertion) -> bool:
    """Return whether an assertion is the first of its statement."""
    return ledger.assertions_of(assertion.statement)[0].entry == assertion.entry
