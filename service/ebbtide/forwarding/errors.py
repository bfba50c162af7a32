"""Errors between processes, as MessagePack: unlike a pickle, it cannot choose what is called."""

from __future__ import annotations

import msgspec

from ebbtide.errors import FAMILIES, REASONS, EbbtideError, FieldViolation, Internal


class _Error(msgspec.Struct, frozen=True, array_like=True):
    message: str
    reason: str
    metadata: dict[str, str]
    violations: list[FieldViolation]
    retry_after_s: float | None


_DECODER = msgspec.msgpack.Decoder(_Error)


def error_to(error: EbbtideError) -> bytes:
    """Return an error as bytes."""
    packed = _Error(error.message, error.reason, error.metadata, list(error.violations), error.retry_after_s)
    return msgspec.msgpack.encode(packed)


def error_from(data: bytes) -> EbbtideError:
    """Return the error of `error_to`; INTERNAL for a reason that this version does not know."""
    found = _DECODER.decode(data)
    reason = REASONS.get(found.reason)
    if reason is None:
        return Internal(found.message)
    return FAMILIES[reason.family](
        found.message,
        reason=found.reason,
        metadata=found.metadata,
        violations=found.violations,
        retry_after_s=found.retry_after_s,
    )
