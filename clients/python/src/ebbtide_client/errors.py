"""Errors, by what the caller should do. The families are those of the daemon.

    EbbtideError
    ├── InvalidRequest     the request is invalid: change it
    ├── Unauthenticated    no valid API key
    ├── Forbidden          the key does not allow it
    ├── NotFound           the resource does not exist
    ├── Conflict           it conflicts with the current state: read it first
    ├── Precondition       the state of the agent or its data does not allow it
    ├── Exhausted          a limit is reached: wait, or free some space
    ├── Deadline           the operation took too long
    ├── Unavailable        temporarily unavailable: try again
    ├── Corrupted          the data on disk is damaged
    ├── Internal           a bug in the daemon
    ├── ConnectionFailed   no response: no daemon, a lost connection, or a timeout
    ├── ClientClosed       this client was closed: create another one
    └── UnexpectedAnswer   the response is not that of an Ebbtide daemon

The `status` of a response selects the family. If this client does not know the status, the HTTP code does, so a new
`reason` of a newer daemon always belongs to a family that can be caught.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """An invalid field: its path and what is allowed."""

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
        """The reason code; docs/errors.md lists all of them."""
        self.violations = tuple(violations)
        """Every invalid field."""
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s
        """Seconds after which another attempt makes sense, if the daemon sent them."""
        self.http_status = http_status
        """The HTTP status; None without a response."""
        self.request_id = request_id
        """Id of the request in the daemon's log."""

    def __str__(self) -> str:
        return f"{self.message} [{self.reason}]" if self.reason else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle their positional arguments only; ours has keyword arguments.
        return (_again, (type(self), self.message, self.__dict__.copy()))


def _again(kind: type[EbbtideError], message: str, state: dict[str, Any]) -> EbbtideError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class InvalidRequest(EbbtideError):
    """The request is invalid."""


class Unauthenticated(EbbtideError):
    """The request has no valid API key."""


class Forbidden(EbbtideError):
    """The API key does not allow this."""


class NotFound(EbbtideError):
    """The resource does not exist."""


class Conflict(EbbtideError):
    """The request conflicts with the current state."""


class Precondition(EbbtideError):
    """The state of the agent or its data does not allow it."""


class Exhausted(EbbtideError):
    """A limit is reached."""


class Deadline(EbbtideError):
    """The operation took longer than the daemon allows."""


class Unavailable(EbbtideError):
    """The daemon is temporarily unavailable."""


class Corrupted(EbbtideError):
    """The data on disk is damaged."""


class Internal(EbbtideError):
    """A bug in the daemon."""


class ConnectionFailed(EbbtideError):
    """There was no response."""

    maybe_sent: bool = True
    """Whether the daemon may have received and executed the request."""


class ClientClosed(EbbtideError):
    """The client was closed before the call. Nothing was sent."""


class UnexpectedAnswer(EbbtideError):
    """The response is not that of an Ebbtide daemon, or of a much newer one."""


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
"""The family for each status in an error body."""

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
"""The family for each HTTP status, for error bodies of newer daemons and of proxies."""

PROXY_CODES = frozenset({429, 502, 503, 504})
"""Statuses that a proxy may send with a body of its own."""

NOTHING_SENT: tuple[type[httpx.RequestError], ...] = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
"""Failures before the first byte of a request was sent: the daemon cannot have executed it."""

NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""Reasons of OpenSSL for the first bytes of a server that does not speak TLS."""


def refusal(
    error: Mapping[str, Any], status: int, retry_after_s: float | None, request_id: str
) -> EbbtideError:
    """Return the exception for the `error` object of a response."""
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
    """Return the family for an HTTP status."""
    return FAMILY_OF_CODE.get(status) or (InvalidRequest if 400 <= status < 500 else Internal)


def from_httpx(error: httpx.RequestError, place: str) -> EbbtideError:
    """Return the exception for a failure of httpx."""
    if isinstance(error, (httpx.DecodingError, httpx.TooManyRedirects)):
        return UnexpectedAnswer(f"the response from {place} cannot be read", reason="UNREADABLE_ANSWER")
    if isinstance(error, NOTHING_SENT):
        return _not_connected(str(error), place)
    if isinstance(error, httpx.TimeoutException):
        return ConnectionFailed(f"no response from {place} in time", reason="NO_ANSWER_IN_TIME")
    hint = ""
    if place.startswith("http://") and "without sending a response" in str(error):
        # A server with TLS closes a connection without it, without a response.
        hint = f"; if the daemon uses TLS, use {place.replace('http://', 'https://', 1)}"
    return ConnectionFailed(f"the connection to {place} was lost{hint}", reason="CONNECTION_LOST")


def _not_connected(cause: str, place: str) -> ConnectionFailed:
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        failed = ConnectionFailed(
            f"the certificate of {place} is not trusted; pass its certificate authority as ca_file",
            reason="CERTIFICATE_NOT_TRUSTED",
        )
    elif any(sign in cause for sign in NOT_TLS):
        failed = ConnectionFailed(
            f"the server at {place} does not use TLS; use {without_tls(place)}", reason="TLS_NOT_SPOKEN"
        )
    else:
        failed = ConnectionFailed(f"no daemon answers at {place}", reason="NOT_CONNECTED")
    failed.maybe_sent = False
    return failed


def without_tls(place: str) -> str:
    """Return the address with `http` instead of `https`."""
    return place.replace("https://", "http://", 1)
