"""What can go wrong, by what the caller should do; the families are those of the daemon.

    EbbtideError
    ├── InvalidRequest     the request is wrong as it stands: change it
    ├── Unauthenticated    say who you are
    ├── Forbidden          not for you
    ├── NotFound           nothing there
    ├── Conflict           another request got there first
    ├── Precondition       the state of the agent or its data does not allow it
    ├── Exhausted          a bound is reached: wait, or make room
    ├── Deadline           it took longer than allowed
    ├── Unavailable        not now: try again
    ├── Corrupted          the data on disk is not what was written
    ├── Internal           a fault of the daemon
    ├── ConnectionFailed   no answer came: no daemon, a broken connection, or too slow
    └── UnexpectedAnswer   something answers there, but not as an Ebbtide daemon does

A family is read from the answer's `status`, and from its HTTP code where a newer daemon has a status this client
does not know; so a new `reason` always arrives in a family that can be caught.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """A field that was refused, by its path, with what would have been allowed."""

    field: str
    description: str


class EbbtideError(Exception):
    """An error with a reason that a caller can act on."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        violations: Sequence[FieldViolation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
        http_status: int | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        """What happened, as the daemon's docs/errors.md lists it."""
        self.violations = tuple(violations)
        """Every field that was refused."""
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s
        """Seconds after which the daemon says that another try makes sense."""
        self.http_status = http_status
        """The status of the answer; none when no answer came."""
        self.request_id = request_id
        """Under this id the daemon's log tells of the request."""

    def __str__(self) -> str:
        return f"{self.message} [{self.reason}]" if self.reason else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments only; all of ours but one are keywords.
        return (_again, (type(self), self.message, self.__dict__.copy()))


def _again(kind: type[EbbtideError], message: str, state: dict[str, Any]) -> EbbtideError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class InvalidRequest(EbbtideError):
    """The request is wrong as it stands."""


class Unauthenticated(EbbtideError):
    """The daemon wants to know who asks."""


class Forbidden(EbbtideError):
    """The caller may not do this."""


class NotFound(EbbtideError):
    """There is nothing of that name."""


class Conflict(EbbtideError):
    """Another request got there first, with something else."""


class Precondition(EbbtideError):
    """The state of the agent or its data does not allow it."""


class Exhausted(EbbtideError):
    """A bound is reached."""


class Deadline(EbbtideError):
    """It took longer than the daemon allows."""


class Unavailable(EbbtideError):
    """Not now."""


class Corrupted(EbbtideError):
    """The data on disk is not what was written."""


class Internal(EbbtideError):
    """A fault of the daemon."""


class ConnectionFailed(EbbtideError):
    """No answer came."""

    maybe_sent: bool = True
    """Whether the daemon may have got the request, and done it."""


class UnexpectedAnswer(EbbtideError):
    """What answers is not an Ebbtide daemon, or much newer than this client."""


FAMILY_OF_STATUS: dict[str, type[EbbtideError]] = {
    "INVALID_ARGUMENT": InvalidRequest,
    "UNAUTHENTICATED": Unauthenticated,
    "PERMISSION_DENIED": Forbidden,
    "NOT_FOUND": NotFound,
    "UNIMPLEMENTED": NotFound,
    "ALREADY_EXISTS": Conflict,
    "ABORTED": Conflict,
    "FAILED_PRECONDITION": Precondition,
    "RESOURCE_EXHAUSTED": Exhausted,
    "DEADLINE_EXCEEDED": Deadline,
    "UNAVAILABLE": Unavailable,
    "DATA_LOSS": Corrupted,
    "INTERNAL": Internal,
}
"""The family of each status in an error's body."""

FAMILY_OF_CODE: dict[int, type[EbbtideError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: NotFound,
    409: Conflict,
    429: Exhausted,
    502: Unavailable,
    503: Unavailable,
    504: Deadline,
    507: Exhausted,
}
"""The family of an HTTP status whose body names none: a newer daemon's, or a proxy's."""

PROXY_CODES = frozenset({429, 502, 503, 504})
"""What stands between us and the daemon may answer these in words of its own."""

NOTHING_SENT: tuple[type[httpx.RequestError], ...] = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
"""Failures before the first byte of a request: the daemon cannot have done anything."""


def refusal(
    error: Mapping[str, Any], status: int, retry_after_s: float | None, request_id: str
) -> EbbtideError:
    """The exception for the `error` object of an answer."""
    found = error.get("field_violations")
    given = [v for v in found if isinstance(v, dict)] if isinstance(found, list) else []
    metadata = error.get("metadata")
    family = FAMILY_OF_STATUS.get(str(error.get("status", ""))) or family_of_code(status)
    return family(
        str(error.get("message", "")),
        reason=str(error.get("reason", "")),
        violations=[FieldViolation(str(v.get("field", "")), str(v.get("description", ""))) for v in given],
        metadata={str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
        retry_after_s=retry_after_s,
        http_status=status,
        request_id=request_id,
    )


def family_of_code(status: int) -> type[EbbtideError]:
    """The family of an HTTP status alone."""
    return FAMILY_OF_CODE.get(status) or (InvalidRequest if 400 <= status < 500 else Internal)


def from_httpx(error: httpx.RequestError, place: str) -> EbbtideError:
    """What a failure of the connection means to a caller."""
    if isinstance(error, (httpx.DecodingError, httpx.TooManyRedirects)):
        return UnexpectedAnswer(f"the answer from {place} cannot be read", reason="UNREADABLE_ANSWER")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        failed = ConnectionFailed(
            f"the certificate of {place} is not trusted; ca_file names the authority of one of your own",
            reason="CERTIFICATE_NOT_TRUSTED",
        )
        failed.maybe_sent = False
        return failed
    if isinstance(error, NOTHING_SENT):
        failed = ConnectionFailed(f"no daemon can be reached at {place}", reason="NOT_CONNECTED")
        failed.maybe_sent = False
        return failed
    if isinstance(error, httpx.TimeoutException):
        return ConnectionFailed(f"no answer from {place} in time", reason="NO_ANSWER_IN_TIME")
    return ConnectionFailed(f"the connection to {place} broke off", reason="CONNECTION_LOST")
