"""Every error as one `google.rpc.Status`, from the same table as over REST.

A status has an ErrorInfo (domain `ebbtide`, reason, metadata), a BadRequest if fields are invalid, and a RetryInfo if a
retry may succeed. The details of Corrupted and Internal are not returned.
"""

from __future__ import annotations

import math
from typing import Any

import grpc

from ebbtide.errors import QUIET_MESSAGE, Corrupted, EbbtideError, Internal
from ebbtide.rpc.status_messages import BadRequest, ErrorInfo, RetryInfo, Status, add_detail

DOMAIN = "ebbtide"

DETAILS_KEY = "grpc-status-details-bin"
"""The metadata key of a google.rpc.Status."""

MAX_STATUS_BYTES = 4096
"""Details are sent as metadata in base64, and clients refuse more than 8 KiB of metadata."""


def status_of(error: EbbtideError) -> Any:
    """Return the status of an error, with as many violations as MAX_STATUS_BYTES allows."""
    is_quiet = isinstance(error, (Corrupted, Internal))
    status = Status(
        code=grpc.StatusCode[error.grpc].value[0], message=QUIET_MESSAGE if is_quiet else error.message
    )
    metadata = [{"key": key, "value": value} for key, value in error.metadata.items()]
    add_detail(status, ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata))
    if error.retry_after_s is not None:
        seconds = max(1, math.ceil(error.retry_after_s))
        add_detail(status, RetryInfo(retry_delay={"seconds": seconds}))
    bad = BadRequest()
    for violation in error.violations:
        bad.field_violations.add(field=violation.field, description=violation.description)
    while bad.field_violations and status.ByteSize() + bad.ByteSize() > MAX_STATUS_BYTES:
        del bad.field_violations[-1]
    if bad.field_violations:
        add_detail(status, bad)
    return status
