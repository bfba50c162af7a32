"""audit: the audit log of an agent (action, actor, time, counts), and whether it is intact.

Records are listed in pages. Verification follows the chain of hashes from the first record, a few milliseconds at a
time, and checks for given texts whether they were erased here. Both only read, and leave no record.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated

from pydantic import Field

from ebbtide.store.chain import AuditRecord, Verification, line_of, proof_of
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.limits import MaxChars, MaxItems, Several
from ebbtide.verbs.paging import AgentPageRequest, number_from_token, to_token
from ebbtide.verbs.reading import ReadableAgent, ReadingService
from ebbtide.verbs.requests import AgentRequest, Request, Response

VERIFIED_AT_ONCE = 500
"""Records verified in one job, which takes a few milliseconds."""

MAX_TEXTS = 100
"""Most texts in one request."""


class AuditRecordInfo(Response):
    """One record of an audit log."""

    number: int = Field(description="Position in the chain, from 1.")
    at: int = Field(description="Time, ms since the epoch.")
    actor: str = Field(description="Id of the caller's key; - if unknown.")
    action: str = Field(
        description="created, parameters_changed, corrected, deleted, record_deleted, forgotten, passes_owed, "
        "renamed, restored, cleared, stats_released, ruled.",
        examples=["forgotten"],
    )
    details: dict[str, object] = Field(description="Ids, names and counts; never content.")
    proof_count: int = Field(description="Number of keyed hashes of erased texts in this record.")
    previous_hash: str = Field(description="Hash of the previous record, in hexadecimal.")
    record_hash: str = Field(description="SHA-256 of `line`, in hexadecimal.")
    line: str = Field(description="The hashed text of the record.")


class AuditPage(Response):
    """A page of an audit log."""

    records: list[AuditRecordInfo] = Field(description="The records of this page.")
    next_page_token: str = Field(description="Empty on the last page.")


class TextsRequest(Request):
    """Texts to look for in an audit log, besides checking that the log is intact."""

    texts: Annotated[list[Annotated[str, MaxChars("max_message_chars")]], Several, MaxItems(MAX_TEXTS)] = (
        Field(default_factory=list, description="Texts to look for among what was erased; at most 100.")
    )


class ListAuditRecordsRequest(AgentPageRequest):
    """Which page of an audit log to list."""

    newest_first: bool = Field(False, description="Whether the newest are listed first.")


class VerifyAuditRequest(TextsRequest, AgentRequest):
    """Which audit log to verify, and texts to look for in it."""


class TextVerdict(Response):
    """Whether a text was erased."""

    erased: bool = Field(description="Whether a record proves that the text was erased.")
    record: int = Field(description="Number of the record that proves it; 0 for none.")


class AuditVerified(Response):
    """Whether an audit log is intact."""

    intact: bool = Field(description="Whether every record is valid and follows the one before it.")
    records: int = Field(description="Number of consecutive valid records from the first.")
    record_hash: str = Field(description="Hash of the last of them, in hexadecimal; empty without any.")
    broken_record: int = Field(description="Number of the first invalid record; 0 for none.")
    problem: str = Field(description="The fault of that record.")
    texts: list[TextVerdict] = Field(description="One result per text, in the order of the request.")


async def list_audit_records(service: ReadingService, request: ListAuditRecordsRequest) -> AuditPage:
    """List the records of an agent's audit log: actor, action, time and counts."""
    listing, size = "newest-audit" if request.newest_first else "audit", request.size
    last = number_from_token(request.page_token, listing)

    def oldest(txn: ReadTransaction) -> tuple[list[AuditRecord], bool]:
        found = list(islice(txn.audit.records(last + 1), size + 1))
        return found[:size], len(found) > size

    def newest(txn: ReadTransaction) -> tuple[list[AuditRecord], bool]:
        # Numbers have no gaps, and no record is dropped.
        following = txn.meta.audit_head.number + 1
        end = min(last or following, following)
        begin = max(1, end - size)
        return list(islice(txn.audit.records(begin), end - begin))[::-1], begin > 1

    read = newest if request.newest_first else oldest

    async with service.fleet.using(request.owner) as agent:
        store = agent.workspace.store
        records, has_more = await agent.run(lambda: store.read(read))
    token = to_token(str(records[-1].number), listing) if has_more else ""
    return AuditPage(records=list(map(record_info, records)), next_page_token=token)


def record_info(record: AuditRecord) -> AuditRecordInfo:
    """Return a record for a response; of an unreadable one, what is known."""
    line = line_of(record)
    return AuditRecordInfo(
        number=record.number,
        at=0 if line is None else line.at,
        actor="" if line is None else line.actor,
        action="" if line is None else line.action,
        details={} if line is None else line.details,
        proof_count=len(record.proofs),
        previous_hash="" if line is None else line.previous,
        record_hash=record.hash.hex(),
        line=record.text,
    )


async def verify_audit(service: ReadingService, request: VerifyAuditRequest) -> AuditVerified:
    """Check that an agent's audit log is intact, and whether texts were erased."""
    async with service.fleet.using(request.owner) as agent:
        return await _verified(agent, request.texts)


async def _verified(agent: ReadableAgent, texts: list[str]) -> AuditVerified:
    store = agent.workspace.store
    chain, found, head = Verification(agent.id), dict[bytes, int](), None
    key = await agent.run(lambda: store.read(lambda txn: txn.meta.proof_key))
    sought = [] if key is None else [proof_of(key, text) for text in texts]

    def follow(txn: ReadTransaction, end: int) -> None:
        for record in islice(txn.audit.records(chain.count + 1), VERIFIED_AT_ONCE):
            if record.number > end:
                return
            chain.follow([record])
            for proof in set(sought).intersection(record.proofs):
                found.setdefault(proof, record.number)
            if chain.broken_at is not None:
                return

    head = await agent.run(lambda: store.read(lambda txn: txn.meta.audit_head))
    while True:
        before = chain.count
        await agent.run(lambda: store.read(partial(follow, end=head.number)))
        if chain.broken_at is not None or chain.count == before:
            break
    chain.end(head)
    return verdict(chain, [found.get(proof, 0) for proof in sought] or [0] * len(texts))


def verdict(chain: Verification, records: list[int]) -> AuditVerified:
    """Return the result of a verification; `records` are those that prove the texts of the request."""
    return AuditVerified(
        intact=chain.broken_at is None,
        records=chain.count,
        record_hash=chain.hash.hex() if chain.count else "",
        broken_record=chain.broken_at or 0,
        problem=chain.problem,
        texts=[TextVerdict(erased=record > 0, record=record) for record in records],
    )
