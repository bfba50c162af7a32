"""The log of erased agents, read and verified whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ebbtide.store.audit.erased_agents import ErasedAgents, LogVerification
from ebbtide.store.chain import AuditRecord, Verification


def records_of(log: ErasedAgents) -> Iterator[AuditRecord]:
    """Yield every record with its proofs, in order."""
    for record, _ in log.logged():
        yield log.with_proofs(record)


def verified_log(log: ErasedAgents) -> Verification:
    """Verify the whole log."""
    following = LogVerification(log.state())
    for record in islice(records_of(log), following.state.head.number):
        following.follow(record)
    return following.end()
