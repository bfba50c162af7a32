"""Problems: every error as one `google.rpc.Status`, from the same table as over REST.

One ErrorInfo (domain `ebbtide`, the reason, metadata), a BadRequest when fields are to blame, a RetryInfo when
waiting helps. Of Corrupted and Internal the caller is told no details.
"""

from __future__ import annotations

import math

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from ebbtide.errors import QUIET_MESSAGE, Corrupted, EbbtideError, Internal

DOMAIN = "ebbtide"

DETAILS_KEY = "grpc-status-details-bin"
"""Where gRPC clients look for a google.rpc.Status."""

MOST_STATUS_BYTES = 4096
"""Details travel as metadata, base64, beside the message; clients refuse more than 8 KiB of it altogether."""


def status_of(error: EbbtideError) -> Status:
    """The status that tells of an error; violations that would make it too large for a client are left out."""
    is_quiet = isinstance(error, (Corrupted, Internal))
    status = Status(
        code=grpc.StatusCode[error.grpc].value[0], message=QUIET_MESSAGE if is_quiet else error.message
    )
    _add(status, ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata))
    if error.retry_after_s is not None:
        seconds = max(1, math.ceil(error.retry_after_s))
        _add(status, RetryInfo(retry_delay=Duration(seconds=seconds)))
    bad = BadRequest()
    for violation in error.violations:
        bad.field_violations.add(field=violation.field, description=violation.description)
    while bad.field_violations and status.ByteSize() + bad.ByteSize() > MOST_STATUS_BYTES:
        del bad.field_violations[-1]
    if bad.field_violations:
        _add(status, bad)
    return status


def _add(status: Status, detail: Message) -> None:
    status.details.add().Pack(detail)
