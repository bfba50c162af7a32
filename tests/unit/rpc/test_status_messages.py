"""Errors over gRPC, compared with the messages of googleapis-common-protos that clients use."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from ebbtide.errors import EbbtideError, Exhausted, FieldViolation, InvalidRequest
from ebbtide.rpc.problems import DOMAIN, status_of

ERRORS = [
    Exhausted("太忙了。Retry later.", reason="STORE_FULL", retry_after_s=2.5),
    InvalidRequest("two fields", violations=[FieldViolation("a.b", "too long"), FieldViolation("名", "")]),
    InvalidRequest("", metadata={"oldest": "1", "newest": "", "名": "值"}),
]


@pytest.mark.parametrize("error", ERRORS, ids=["retry", "violations", "metadata"])
def test_a_client_reads_what_was_sent(error: EbbtideError) -> None:
    """A client that uses the messages of google.rpc reads the same code, message and details."""
    status = Status.FromString(status_of(error).SerializeToString())
    assert status.message == error.message
    info, retry, bad = ErrorInfo(), RetryInfo(), BadRequest()
    kinds = []
    for detail in status.details:
        for one in (info, retry, bad):
            if detail.Unpack(one):
                kinds.append(one.DESCRIPTOR.name)
    assert len(kinds) == len(status.details)
    assert (info.reason, info.domain, dict(info.metadata)) == (error.reason, DOMAIN, error.metadata)
    if error.retry_after_s is not None:
        assert retry.retry_delay == Duration(seconds=3)
    assert [(one.field, one.description) for one in bad.field_violations] == [
        (one.field, one.description) for one in error.violations
    ]
    assert kinds == ["ErrorInfo"] + ["RetryInfo"] * (error.retry_after_s is not None) + ["BadRequest"] * bool(
        error.violations
    )
