"""The tree of errors, and the one table that maps it to both transports.

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
    └── Internal           our fault

A family says what the caller should do; `reason` says what happened. A reason belongs to one family, is
listed in `REASONS` and in docs/errors.md, and is produced by a test. Details of Corrupted and Internal go to
the log only, never to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that can go wrong: its HTTP status, its gRPC code and what it means."""

    http: int
    grpc: str
    family: str
    meaning: str


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """A field that was refused, by its path, with what would have been allowed."""

    field: str
    description: str


def _invalid(meaning: str, http: int = 400) -> Reason:
    return Reason(http, "INVALID_ARGUMENT", "InvalidRequest", meaning)


REASONS: dict[str, Reason] = {
    "INVALID_AGENT_ID": _invalid("The agent id is empty, too long or holds a character ids may not hold."),
    "INVALID_JSON": _invalid("The body is not one JSON object in UTF-8."),
    "UNKNOWN_FIELD": _invalid("The request names a field, parameter or query option that does not exist."),
    "MISSING_FIELD": _invalid("A required field is absent."),
    "WRONG_TYPE": _invalid("A field has a value of the wrong JSON type."),
    "INVALID_VALUE": _invalid("A field has a value outside its range or list."),
    "EMPTY_MESSAGES": _invalid("`messages` holds no message."),
    "TOO_MANY_MESSAGES": _invalid("`messages` holds more messages than a batch may have."),
    "TEXT_TOO_LONG": _invalid("A text is longer than its limit."),
    "TOO_MANY_ITEMS": _invalid("A list holds more items than it may."),
    "TEXT_TOO_COMPLEX": _invalid(
        "Processing the text exceeds `limits.text_timeout_ms` or the memory of a worker process."
    ),
    "METADATA_TOO_LARGE": _invalid("`metadata` is larger than its limit when written as JSON."),
    "INVALID_DEPTH": _invalid("`depth` is outside 0-8."),
    "INVALID_PARAMETERS": _invalid("Agent parameters that contradict each other."),
    "INVALID_PAGE": _invalid("`page_size` or `page_token` is not usable."),
    "TOO_MANY_PASSES": _invalid("More compression passes than the agent may owe."),
    "IDEMPOTENCY_KEYS_DIFFER": _invalid("Header and body carry different idempotency keys."),
    "BACKUP_UNREADABLE": _invalid("What was sent is no whole, sound backup or export."),
    "ROUTE_NOT_FOUND": Reason(404, "UNIMPLEMENTED", "NotFound", "No such path."),
    "METHOD_NOT_ALLOWED": Reason(405, "UNIMPLEMENTED", "NotFound", "The path exists, the method does not."),
    "MALFORMED_REQUEST": _invalid(
        "What arrived is not HTTP, or its head is larger than 64 KiB or 128 headers."
    ),
    "BODY_TOO_LARGE": _invalid("The body is larger than the limit.", 413),
    "UNSUPPORTED_MEDIA_TYPE": _invalid(
        "Bodies are application/json in UTF-8, uncompressed; of a restore, application/octet-stream.", 415
    ),
    "MISDIRECTED_REQUEST": _invalid("`Host` names neither this machine nor an allowed host.", 421),
    "ORIGIN_NOT_ALLOWED": Reason(
        403, "PERMISSION_DENIED", "Forbidden", "A web page of another origin that CORS does not list."
    ),
    "MISSING_KEY": Reason(
        401, "UNAUTHENTICATED", "Unauthenticated", "No API key came with the request, and one is needed."
    ),
    "INVALID_KEY": Reason(
        401,
        "UNAUTHENTICATED",
        "Unauthenticated",
        "The API key is none that counts: unknown, revoked or expired.",
    ),
    "KEY_NOT_FOR_AGENT": Reason(
        403, "PERMISSION_DENIED", "Forbidden", "The API key is bound to other agents."
    ),
    "SCOPE_MISSING": Reason(
        403, "PERMISSION_DENIED", "Forbidden", "The API key lacks the scope that this needs."
    ),
    "AGENT_NOT_FOUND": Reason(404, "NOT_FOUND", "NotFound", "No agent of this id."),
    "NODE_NOT_FOUND": Reason(
        404,
        "NOT_FOUND",
        "NotFound",
        "No node of this id ever existed, or none lives that could be changed or deleted; "
        "or nothing is left to delete of this message.",
    ),
    "NODE_FORGOTTEN": Reason(404, "NOT_FOUND", "NotFound", "The node existed and is forgotten."),
    "BATCH_NOT_FOUND": Reason(
        404, "NOT_FOUND", "NotFound", "No batch of this id, or its status is no longer kept."
    ),
    "EVENTS_GONE": Reason(
        410,
        "NOT_FOUND",
        "NotFound",
        "Events after this number are no longer kept, or were never told; the metadata names those that are there.",
    ),
    "IDEMPOTENCY_KEY_REUSED": Reason(
        409, "ALREADY_EXISTS", "Conflict", "The idempotency key was used with another body."
    ),
    "PARAMETERS_DIFFER": Reason(
        409, "ALREADY_EXISTS", "Conflict", "The agent exists with other parameters; PATCH changes them."
    ),
    "AGENT_EXISTS": Reason(
        409, "ALREADY_EXISTS", "Conflict", "An agent of this id exists; it is restored over only if told to."
    ),
    "BATCH_NOT_PARKED": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "Only a parked batch can be retried."
    ),
    "BATCH_NOT_DIGESTED": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "Nothing of a message is deleted before its batch is digested.",
    ),
    "AGENT_BEING_ERASED": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "The agent is being erased at this moment."
    ),
    "AGENT_BEING_RESTORED": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "The agent is being restored at this moment."
    ),
    "BACKUP_OF_ANOTHER_AGENT": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "The backup or export is of an agent with another id."
    ),
    "VECTORS_UNAVAILABLE": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "The agent has no vectors of the embedding model in force.",
    ),
    "FORMAT_TOO_NEW": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "The data was written by a newer Ebbtide."
    ),
    "AGENT_ID_MISMATCH": Reason(
        500, "DATA_LOSS", "Corrupted", "The directory belongs to another agent than its name says."
    ),
    "MASTER_KEY_REFUSED": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "The agent is encrypted, and the daemon's master key is not the one its key is wrapped under, or not set.",
    ),
    "DATA_KEY_MISSING": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "The agent is encrypted, and its key is gone: destroyed, or not brought along with its files.",
    ),
    "DATA_DIRECTORY_LOCKED": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "Another process holds the data directory."
    ),
    "INSECURE_BIND": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "Listening beyond this machine without authentication was not allowed explicitly.",
    ),
    "KEY_FILE_UNUSABLE": Reason(
        409, "FAILED_PRECONDITION", "Precondition", "The file of API keys cannot be read, or is damaged."
    ),
    "TLS_UNUSABLE": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "A certificate or key file for TLS cannot be read, or they do not belong together.",
    ),
    "RATE_LIMITED": Reason(
        429, "RESOURCE_EXHAUSTED", "Exhausted", "More requests a second than the key or the agent may get."
    ),
    "RATE_LIMITED_TRIES": Reason(
        429,
        "RESOURCE_EXHAUSTED",
        "Exhausted",
        "More requests a second without a valid API key than an address may send.",
    ),
    "QUOTA_REACHED": Reason(
        507,
        "RESOURCE_EXHAUSTED",
        "Exhausted",
        "The agent, or the key, holds as much as it may; nothing was stored.",
    ),
    "MISSING_EXTRA": Reason(
        409,
        "FAILED_PRECONDITION",
        "Precondition",
        "A setting asks for an optional package that is not installed.",
    ),
    "QUEUE_FULL": Reason(
        429, "RESOURCE_EXHAUSTED", "Exhausted", "The agent's inbox holds max_queue_size batches."
    ),
    "AGENT_BUSY": Reason(
        429, "RESOURCE_EXHAUSTED", "Exhausted", "Too many requests wait for this agent at once."
    ),
    "TOO_MANY_AGENTS": Reason(
        429, "RESOURCE_EXHAUSTED", "Exhausted", "max_open_agents are open and all have work in hand."
    ),
    "TOO_MANY_STREAMS": Reason(
        429,
        "RESOURCE_EXHAUSTED",
        "Exhausted",
        "max_event_streams are open already, or half of them by the key.",
    ),
    "TOO_MANY_TRANSFERS": Reason(
        429,
        "RESOURCE_EXHAUSTED",
        "Exhausted",
        "As many agents are on their way in or out as may be, or half as many by the key.",
    ),
    "SERVER_BUSY": Reason(
        503,
        "RESOURCE_EXHAUSTED",
        "Exhausted",
        "Too many connections, or too many bytes of requests and responses in memory at once.",
    ),
    "STORE_FULL": Reason(
        507, "RESOURCE_EXHAUSTED", "Exhausted", "The disk or the agent's map is full; nothing was stored."
    ),
    "REQUEST_TIMED_OUT": Reason(
        504,
        "DEADLINE_EXCEEDED",
        "Deadline",
        "The request waited longer for its agent than allowed, or a transfer took longer than allowed.",
    ),
    "SHUTTING_DOWN": Reason(503, "UNAVAILABLE", "Unavailable", "The daemon is stopping."),
    "AGENT_CLOSING": Reason(503, "UNAVAILABLE", "Unavailable", "The agent was closed meanwhile; ask again."),
    "WORKER_KILLED": Reason(
        503,
        "UNAVAILABLE",
        "Unavailable",
        "The worker process for a long text was killed from outside, twice.",
    ),
    "STORE_UNAVAILABLE": Reason(
        503, "UNAVAILABLE", "Unavailable", "The agent's files cannot be read or written now."
    ),
    "STORE_CORRUPTED": Reason(500, "DATA_LOSS", "Corrupted", "The agent's data fails its own checks."),
    "INTERNAL": Reason(500, "INTERNAL", "Internal", "A fault of ours; the log has the details."),
}
"""Every reason with its HTTP status, gRPC code, family and meaning; docs/errors.md is checked against it."""


class EbbtideError(Exception):
    """An error with a reason that a caller can act on."""

    default_reason: ClassVar[str] = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[FieldViolation] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)
        self.retry_after_s = retry_after_s
        assert REASONS[self.reason].family == type(self).__name__, (self.reason, type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle every field, so that an error raised in a worker process arrives whole."""
        fields: dict[str, Any] = {
            "reason": self.reason,
            "metadata": self.metadata,
            "violations": self.violations,
            "retry_after_s": self.retry_after_s,
        }
        return partial(type(self), **fields), (self.message,)

    @property
    def http(self) -> int:
        """The HTTP status this error answers with."""
        return REASONS[self.reason].http

    @property
    def grpc(self) -> str:
        """The gRPC code this error answers with."""
        return REASONS[self.reason].grpc


class InvalidRequest(EbbtideError):
    """The request is wrong as it stands."""

    default_reason = "INVALID_VALUE"


class Unauthenticated(EbbtideError):
    """Nobody the daemon knows asks."""

    default_reason = "MISSING_KEY"


class Forbidden(EbbtideError):
    """The caller may not do this."""

    default_reason = "ORIGIN_NOT_ALLOWED"


class NotFound(EbbtideError):
    """There is nothing of that name."""

    default_reason = "ROUTE_NOT_FOUND"


class Conflict(EbbtideError):
    """Another request got there first, with something else."""

    default_reason = "IDEMPOTENCY_KEY_REUSED"


class Precondition(EbbtideError):
    """The state of the agent or its data does not allow it."""

    default_reason = "AGENT_BEING_ERASED"


class Exhausted(EbbtideError):
    """A bound is reached."""

    default_reason = "QUEUE_FULL"


class Deadline(EbbtideError):
    """It took longer than allowed."""

    default_reason = "REQUEST_TIMED_OUT"


class Unavailable(EbbtideError):
    """Not now."""

    default_reason = "SHUTTING_DOWN"


class Corrupted(EbbtideError):
    """The data on disk is not what was written."""

    default_reason = "STORE_CORRUPTED"


class Internal(EbbtideError):
    """A fault of ours."""

    default_reason = "INTERNAL"


FAMILIES: dict[str, type[EbbtideError]] = {
    family.__name__: family
    for family in (
        InvalidRequest,
        Unauthenticated,
        Forbidden,
        NotFound,
        Conflict,
        Precondition,
        Exhausted,
        Deadline,
        Unavailable,
        Corrupted,
        Internal,
    )
}
"""The families by name."""

QUIET_MESSAGE = "internal error; the daemon's log has the details under this request id"
"""What a caller is told of Corrupted and Internal."""
