"""The privacy budget of an agent: how much of it is spent, as its audit log records.

Each release of noisy counts is a record of the audit log with its epsilon. By sequential composition, the releases
together are differentially private with the sum of their epsilons (Dwork and Roth, 2014, theorem 3.16).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from ebbtide.errors import Precondition
from ebbtide.store.chain import AuditEntry, line_of
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

RELEASED = "stats_released"
"""The action of an audit record of a release; `epsilon` is what it spent."""

RECORDS_AT_ONCE = 500
"""Audit records read in one job, which takes a few milliseconds."""


def exact(epsilon: float) -> Fraction:
    """Return a number with at most six decimals as a fraction."""
    return Fraction(round(epsilon * 1_000_000), 1_000_000)


class PrivacyBudget:
    """The sum of an agent's releases. It is read from the audit log on first use, and follows it from then on."""

    def __init__(self) -> None:
        self.spent = Fraction(0)
        self._read_up_to = 0

    def follow(self, txn: ReadTransaction) -> bool:
        """Read the next records of the audit log. Return whether all were read."""
        records = list(islice(txn.audit.records(self._read_up_to + 1), RECORDS_AT_ONCE))
        for record in records:
            line = line_of(record)
            if line is not None and line.action == RELEASED:
                epsilon = line.details.get("epsilon")
                self.spent += exact(epsilon) if isinstance(epsilon, int | float) else 0
            self._read_up_to = record.number
        return len(records) < RECORDS_AT_ONCE

    def spend(
        self, txn: WriteTransaction, epsilon: float, budget: float, entry: AuditEntry, agent_id: str
    ) -> None:
        """Record a release. Raise PRIVACY_BUDGET_SPENT if less than `epsilon` of the budget is left.

        The audit log must have been read up to here; the release counts from the next `follow`, after the commit.
        """
        left = exact(budget) - self.spent
        if exact(epsilon) > left:
            shown = max(float(left), 0.0)
            raise Precondition(
                f"epsilon is {epsilon:g}, but {shown:g} of the agent's privacy budget of {budget:g} is left. Ask for"
                " less, use counts that were released before, or raise privacy_budget.",
                reason="PRIVACY_BUDGET_SPENT",
                metadata={"privacy_budget": f"{budget:g}", "privacy_spent": f"{float(self.spent):g}"},
            )
        txn.audit.append(entry, agent_id)
