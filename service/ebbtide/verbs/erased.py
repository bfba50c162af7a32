"""erased agents: the log of agents that were deleted as a whole, listed in pages and verified.

One chain covers all agents, so it reveals how many were deleted, and which. A key that is bound to agents may therefore
not read it, not even the records of its own agents: their numbers and hashes reveal the others, and an id may have
belonged to another tenant before. Files are read on a pool thread, a bounded piece at a time. Both operations only
read, and leave no record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import Field

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.store.audit.erased_agents import LOG_START, ErasedAgents, LogPosition, LogVerification
from ebbtide.store.chain import AuditRecord, line_of
from ebbtide.store.translation import translated
from ebbtide.verbs.audit import AuditRecordInfo, AuditVerified, TextsRequest, record_info, verdict
from ebbtide.verbs.paging import PageRequest, from_token, to_token
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import AgentName, Request, Response

T = TypeVar("T")

READ_AT_ONCE = 1000
"""Records read at once for a page, which takes ten to twenty milliseconds."""

HASHED_AT_ONCE = 1 << 20
"""Bytes read and hashed at once for verification, besides one record: ten to twenty milliseconds."""

RECORD_BYTES = 4 << 10
"""The cost of a record besides its proofs, in bytes to hash."""

_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,18})")


class ErasedAgentRecord(AuditRecordInfo):
    """One record of the log of erased agents."""

    action: str = Field(
        description="agent_erased; replaced if another agent took its place; key_destroyed if its key was.",
        examples=["agent_erased"],
    )
    agent_id: str = Field(
        description="The deleted agent; empty if the record is unreadable.", examples=["ann"]
    )


class ErasedAgentPage(Response):
    """A page of the log of erased agents."""

    records: list[ErasedAgentRecord] = Field(description="The records of this page, oldest first.")
    next_page_token: str = Field(description="Empty on the last page.")


class _OneAgentRequest(Request):
    """A request that may be narrowed to the records of one agent."""

    agent_id: AgentName | None = Field(None, description="Only records of this agent.")


class ListErasedAgentsRequest(PageRequest, _OneAgentRequest):
    """Which records to list."""


class VerifyErasedAgentsRequest(TextsRequest, _OneAgentRequest):
    """Texts to look for, and whether among the records of one agent only."""


async def list_erased_agents(service: ReadingService, request: ListErasedAgentsRequest) -> ErasedAgentPage:
    """List the records of erased agents by number. One id may have several: it can be erased more than once."""
    log = service.fleet.data.erased
    look = _Page(log, request.agent_id, request.size, _place(request.page_token))
    await _read(service, log, log.follow)
    while await _read(service, log, look.step):
        pass
    token = to_token(f"{look.place.number}-{look.place.offset}", "erased") if look.has_more else ""
    return ErasedAgentPage(records=look.found, next_page_token=token)


@dataclass(slots=True)
class _Page:
    """Reads records from a position until a page is full and it is known whether more follow."""

    log: ErasedAgents
    agent_id: str | None
    size: int
    place: LogPosition
    found: list[ErasedAgentRecord] = field(default_factory=list)
    has_more: bool = False

    def step(self) -> bool:
        """Read the next records. Return whether to continue."""
        for seen, (record, behind) in enumerate(self.log.logged(self.place)):
            if seen == READ_AT_ONCE:
                return True
            found_record = _record_info(record)
            if self.agent_id in (None, found_record.agent_id):
                if len(self.found) == self.size:
                    self.has_more = True
                    return False
                self.found.append(found_record)
            self.place = behind
        return False


def _record_info(record: AuditRecord) -> ErasedAgentRecord:
    line = line_of(record)
    found_record = record_info(record).model_dump()
    if line is not None:
        # There may be very many proofs; a page does not read them.
        found_record |= {"number": line.number, "proof_count": line.proof_count}
    return ErasedAgentRecord(**found_record, agent_id="" if line is None else line.agent_id)


def _place(token: str) -> LogPosition:
    position = from_token(token, "erased")
    if not position:
        return LOG_START
    numbers = _PLACE.fullmatch(position)
    if numbers is None:
        description = "not a token of this listing"
        raise InvalidRequest(
            f"page_token: {description}",
            reason="INVALID_PAGE",
            violations=[FieldViolation("page_token", description)],
        )
    return LogPosition(int(numbers[1]), int(numbers[2]))


async def verify_erased_agents(service: ReadingService, request: VerifyErasedAgentsRequest) -> AuditVerified:
    """Check that the log of erased agents is intact, and whether texts were among the erased data."""
    log = service.fleet.data.erased
    await _read(service, log, log.follow)
    following = LogVerification(await _read(service, log, log.state))
    look = _Verifying(log, following, request.agent_id, request.texts)
    while await _read(service, log, look.step):
        pass
    return verdict(look.following.end(), look.vouching)


@dataclass(slots=True)
class _Verifying:
    """Follows the chain up to its end at the time of the request; more records may be added meanwhile."""

    log: ErasedAgents
    following: LogVerification
    agent_id: str | None
    texts: list[str]
    place: LogPosition = LOG_START
    vouching: list[int] = field(default_factory=list)
    """For each text the first record that contains it; 0 for none."""

    def __post_init__(self) -> None:
        self.vouching = [0] * len(self.texts)

    def step(self) -> bool:
        """Follow a bounded piece of the chain. Return whether there is more."""
        work = 0
        text_bytes = sum(len(text.encode()) for text in self.texts)
        for record, behind in self.log.logged(self.place):
            if behind.number > self.following.state.head.number:
                return False
            whole = self.log.with_proofs(record)
            if not self.following.follow(whole):
                return False
            self.place = behind
            work += RECORD_BYTES + len(whole.text) + sum(map(len, whole.proofs))
            if whole.proofs and self._is_meant(whole):
                self._look_for_texts(whole)
                work += text_bytes
            if work >= HASHED_AT_ONCE:
                return True
        return False

    def _is_meant(self, record: AuditRecord) -> bool:
        line = line_of(record)
        return self.agent_id is None or (line is not None and line.agent_id == self.agent_id)

    def _look_for_texts(self, record: AuditRecord) -> None:
        left = [index for index, number in enumerate(self.vouching) if not number]
        held = self.log.held(record.number, [self.texts[index] for index in left])
        for index, is_held in zip(left, held, strict=True):
            if is_held:
                self.vouching[index] = record.number


async def _read(service: ReadingService, log: ErasedAgents, work: Callable[[], T]) -> T:
    try:
        return await service.fleet.on_pool(work)
    except OSError as error:
        raise translated(error, log.path) from error
