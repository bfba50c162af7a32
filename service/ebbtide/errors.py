"""The tree of errors, and the one table that maps it to both transports.

    EbbtideError
    ├── InvalidRequest     the request is invalid: change it
    ├── Unauthenticated    the caller is not authenticated: send a valid key
    ├── Forbidden          the caller may not do this
    ├── NotFound           the named thing does not exist
    ├── Conflict           the request conflicts with an earlier one
    ├── Precondition       the state of the agent or its data does not allow it
    ├── Exhausted          a limit is reached: wait, or free something
    ├── Deadline           it took longer than allowed
    ├── Unavailable        not possible now: try again
    ├── Corrupted          the data on disk is damaged
    └── Internal           a bug

The family says what the caller should do; `reason` says what happened. A reason belongs to one family, is listed in
`REASONS` and docs/errors.md, and a test produces it. Details of Corrupted and Internal are logged, never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for an error: its HTTP status, gRPC code, family and meaning."""

    http: int
    grpc: str
    family: str
    meaning: str


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """A refused field, by its path, and what is allowed."""

    field: str
    description: str


def _of(http: int, grpc: str, family: str) -> Callable[..., Reason]:
    """Return a function that makes the reasons of one family."""

    def reason(meaning: str, http: int = http) -> Reason:
        return Reason(http, grpc, family, meaning)

    return reason


_invalid = _of(400, "INVALID_ARGUMENT", "InvalidRequest")
_precondition = _of(409, "FAILED_PRECONDITION", "Precondition")
_exhausted = _of(429, "RESOURCE_EXHAUSTED", "Exhausted")
_unavailable = _of(503, "UNAVAILABLE", "Unavailable")
_not_found = _of(404, "NOT_FOUND", "NotFound")
_forbidden = _of(403, "PERMISSION_DENIED", "Forbidden")
_conflict = _of(409, "ALREADY_EXISTS", "Conflict")

REASONS: dict[str, Reason] = {
    "INVALID_AGENT_ID": _invalid("The agent id is empty, too long or contains a forbidden character."),
    "INVALID_JSON": _invalid("The body is not one JSON object in UTF-8."),
    "UNKNOWN_FIELD": _invalid("The request names a field, parameter or query option that does not exist."),
    "MISSING_FIELD": _invalid("A required field is missing."),
    "WRONG_TYPE": _invalid("The value of a field has the wrong JSON type."),
    "INVALID_VALUE": _invalid(
        "The value of a field is outside its range or list, or a field or a query option is given twice."
    ),
    "EMPTY_MESSAGES": _invalid("`messages` is missing or empty."),
    "TOO_MANY_MESSAGES": _invalid("`messages` has more messages than a batch may have."),
    "TEXT_TOO_LONG": _invalid("A text exceeds its limit."),
    "TOO_MANY_ITEMS": _invalid("A list has more items than its limit."),
    "TEXT_TOO_COMPLEX": _invalid(
        "Processing the text exceeds `limits.text_timeout_ms` or the memory of a worker process."
    ),
    "METADATA_TOO_LARGE": _invalid("`metadata` exceeds its limit when written as JSON."),
    "ATTACHMENT_TOO_LARGE": _invalid("An attachment has more than 1 MiB."),
    "INVALID_DEPTH": _invalid("`depth` is outside 0-8."),
    "INVALID_PARAMETERS": _invalid("The agent parameters contradict each other."),
    "INVALID_PAGE": _invalid("`page_size` is out of range, or `page_token` is not a token of this listing."),
    "TOO_MANY_PASSES": _invalid("More compression passes than the agent may owe."),
    "TOO_MANY_PINNED": _invalid("The agent has as many pinned memories as `max_pinned` allows."),
    "NOT_A_STATEMENT": _invalid("The node is a memory or an entity, not a statement."),
    "IDEMPOTENCY_KEYS_DIFFER": _invalid("The header and the body have different idempotency keys."),
    "BACKUP_UNREADABLE": _invalid("The uploaded file is not a complete, valid backup or export."),
    "ROUTE_NOT_FOUND": Reason(404, "UNIMPLEMENTED", "NotFound", "The path does not exist."),
    "METHOD_NOT_ALLOWED": Reason(
        405, "UNIMPLEMENTED", "NotFound", "The path exists but does not support the method."
    ),
    "MALFORMED_REQUEST": _invalid("The data is not HTTP, or the request head exceeds 64 KiB or 128 headers."),
    "BODY_TOO_LARGE": _invalid("The body exceeds its limit.", 413),
    "UNSUPPORTED_MEDIA_TYPE": _invalid(
        "The body is not application/json in UTF-8, uncompressed; for a restore, application/octet-stream.",
        415,
    ),
    "MISDIRECTED_REQUEST": _invalid("`Host` is neither this machine nor an allowed host.", 421),
    "ORIGIN_NOT_ALLOWED": _forbidden(
        "The request comes from a web page of an origin that CORS does not list."
    ),
    "MISSING_KEY": Reason(
        401, "UNAUTHENTICATED", "Unauthenticated", "The request needs an API key and has none."
    ),
    "INVALID_KEY": Reason(
        401, "UNAUTHENTICATED", "Unauthenticated", "Invalid API key (unknown, revoked or expired)."
    ),
    "KEY_NOT_FOR_AGENT": _forbidden("The API key is bound to other agents."),
    "SCOPE_MISSING": _forbidden("The API key lacks the required scope."),
    "AGENT_NOT_FOUND": _not_found("No agent has this id."),
    "NODE_NOT_FOUND": _not_found(
        "No node with this id exists, or it is no longer alive; or nothing of the message is left to delete."
    ),
    "NODE_FORGOTTEN": _not_found("The node existed and is forgotten."),
    "AMBIGUOUS_MEMORY": _not_found(
        "No memory, or more than one, fits the description; the metadata has some."
    ),
    "RULING_NOT_FOUND": _not_found("No ruling has this id, or it was undone before."),
    "BATCH_NOT_FOUND": _not_found("No batch has this id, or its status is no longer kept."),
    "ATTACHMENT_NOT_FOUND": _not_found(
        "The message has no attachment at this index, or it was deleted or has expired."
    ),
    "EVENTS_GONE": _not_found(
        "The events are no longer kept, or do not exist yet; the metadata gives those available.", 410
    ),
    "IDEMPOTENCY_KEY_REUSED": _conflict("The idempotency key was used with a different body."),
    "PARAMETERS_DIFFER": _conflict("The agent exists with different parameters; PATCH changes them."),
    "VERSION_DIFFERS": _conflict("A record has another version than `if_version`; nothing was changed."),
    "AGENT_EXISTS": _conflict(
        "An agent with this id already exists, and the request does not allow replacing it."
    ),
    "BATCH_NOT_PARKED": _precondition("The batch is not parked; only parked batches can be retried."),
    "BATCH_NOT_DIGESTED": _precondition(
        "The batch of the message is not digested yet, so nothing of the message can be deleted."
    ),
    "AGENT_BEING_ERASED": _precondition("The agent is being deleted."),
    "AGENT_BEING_RESTORED": _precondition("The agent is being restored."),
    "BACKUP_OF_ANOTHER_AGENT": _precondition("The backup or export is of an agent with another id."),
    "PRIVACY_BUDGET_SPENT": _precondition("Less than `epsilon` of the agent's privacy budget is left."),
    "VECTORS_UNAVAILABLE": _precondition("The agent has no vectors for the current embedding model."),
    "FORMAT_TOO_NEW": _precondition("The data was written by a newer version of Ebbtide."),
    "FORMAT_TOO_OLD": _precondition("The data was written by an older version of Ebbtide."),
    "AGENT_ID_MISMATCH": Reason(
        500, "DATA_LOSS", "Corrupted", "The directory contains the data of an agent with another id."
    ),
    "MASTER_KEY_REFUSED": _precondition(
        "The agent is encrypted, and the master key is missing or does not decrypt its key."
    ),
    "DATA_KEY_MISSING": _precondition(
        "The agent is encrypted, and its key is missing: destroyed, or not copied with its files."
    ),
    "DATA_DIRECTORY_LOCKED": _precondition("Another process has locked the data directory."),
    "INSECURE_BIND": _precondition(
        "The daemon would listen beyond this machine without authentication, and no setting allows that."
    ),
    "KEY_FILE_UNUSABLE": _precondition("The file of API keys is unreadable or damaged."),
    "TLS_UNUSABLE": _precondition("A TLS certificate or key file is unreadable, or the two do not match."),
    "CLUSTER_UNUSABLE": _precondition("The log servers or a setting of the cluster cannot be used."),
    "RATE_LIMITED": _exhausted("The key or the agent exceeds its requests per second."),
    "RATE_LIMITED_TRIES": _exhausted("The address exceeds its requests per second without a valid API key."),
    "QUOTA_REACHED": _exhausted("The agent or the key has reached its quota; nothing was stored.", 507),
    "MISSING_EXTRA": _precondition("A setting needs an optional package that is not installed."),
    "QUEUE_FULL": _exhausted("The agent's inbox is full (`max_queue_size` batches)."),
    "TOO_MANY_STATEMENTS": _exhausted(
        "The agent keeps as many statements as `max_statements` allows; nothing was stored."
    ),
    "AGENT_BUSY": _exhausted("Too many requests are waiting for this agent."),
    "TOO_MANY_AGENTS": _exhausted("`max_open_agents` agents are open, and all of them are busy."),
    "TOO_MANY_STREAMS": _exhausted(
        "Too many event streams are open (limit `max_event_streams`, or half of it for one key)."
    ),
    "TOO_MANY_TRANSFERS": _exhausted(
        "Too many concurrent transfers (limit 4, or 2 for one key) or forecasts (limit 2, or 1 of one agent)."
    ),
    "SERVER_BUSY": _exhausted(
        "Too many connections are open, or too many bytes of requests and responses are in memory.", 503
    ),
    "STORE_FULL": _exhausted("The disk or the agent's memory map is full; nothing was stored.", 507),
    "REQUEST_TIMED_OUT": Reason(
        504,
        "DEADLINE_EXCEEDED",
        "Deadline",
        "The request waited too long for its agent, or a transfer took too long.",
    ),
    "MCP_NOT_INSTALLED": Reason(
        501, "UNIMPLEMENTED", "NotFound", "The daemon was installed without the extra `mcp`."
    ),
    "SHUTTING_DOWN": _unavailable("The daemon is stopping."),
    "WORKER_RESTARTING": _unavailable("The process that serves the agent is being restarted."),
    "AGENT_CLOSING": _unavailable("The agent was closed during the request."),
    "WORKER_KILLED": _unavailable("The worker process for a long text was killed twice from outside."),
    "STORE_UNAVAILABLE": _unavailable("The agent's files cannot be read or written at the moment."),
    "STORE_BEHIND": _unavailable("The agent's file on this node lacks a commit that the log has."),
    "AGENT_MOVING": _unavailable("The agent is moving to another node of the cluster."),
    "NOT_ENOUGH_LOG_SERVERS": _unavailable("Too few servers of the log answer; nothing can be stored."),
    "SNAPSHOTS_UNAVAILABLE": _unavailable("S3, which has contents of agents of the cluster, cannot be used."),
    "LOG_BEHIND": Reason(
        500, "DATA_LOSS", "Corrupted", "The log lacks commits that the agent's file on this node has."
    ),
    "STORE_CORRUPTED": Reason(500, "DATA_LOSS", "Corrupted", "The agent's data fails its integrity checks."),
    "INTERNAL": Reason(500, "INTERNAL", "Internal", "An internal error; the log has the details."),
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
        """The HTTP status of this error."""
        return REASONS[self.reason].http

    @property
    def grpc(self) -> str:
        """The gRPC code of this error."""
        return REASONS[self.reason].grpc


class InvalidRequest(EbbtideError):
    """The request is invalid."""

    default_reason = "INVALID_VALUE"


class Unauthenticated(EbbtideError):
    """The caller is not authenticated."""

    default_reason = "MISSING_KEY"


class Forbidden(EbbtideError):
    """The caller may not do this."""

    default_reason = "ORIGIN_NOT_ALLOWED"


class NotFound(EbbtideError):
    """The named thing does not exist."""

    default_reason = "ROUTE_NOT_FOUND"


class Conflict(EbbtideError):
    """The request conflicts with an earlier one."""

    default_reason = "IDEMPOTENCY_KEY_REUSED"


class Precondition(EbbtideError):
    """The state of the agent or its data does not allow it."""

    default_reason = "AGENT_BEING_ERASED"


class Exhausted(EbbtideError):
    """A limit is reached."""

    default_reason = "QUEUE_FULL"


class Deadline(EbbtideError):
    """It took longer than allowed."""

    default_reason = "REQUEST_TIMED_OUT"


class Unavailable(EbbtideError):
    """Not possible at the moment."""

    default_reason = "SHUTTING_DOWN"


def stopping() -> Unavailable:
    """Return the error for a request that a stop of the daemon refuses or interrupts."""
    return Unavailable("The daemon is stopping. Retry when it is running again.", reason="SHUTTING_DOWN")


def agent_moving() -> Unavailable:
    """Return the error for a request to a node of a cluster that does not own the agent."""
    return Unavailable(
        "The agent is moving to another node of the cluster. Retry.", reason="AGENT_MOVING", retry_after_s=1.0
    )


class Corrupted(EbbtideError):
    """The data on disk is damaged."""

    default_reason = "STORE_CORRUPTED"


class Internal(EbbtideError):
    """A bug."""

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


def no_agent() -> NotFound:
    """Return the error for an id that no agent has."""
    message = (
        "No agent has this id. Check it with GET /v1/agents (ListAgents); remember and PUT create an agent."
    )
    return NotFound(message, reason="AGENT_NOT_FOUND")


def no_node() -> NotFound:
    """Return the error for an id that no node has. It does not repeat the id, which may be personal data."""
    message = (
        "No node has this id. Ids have the form n1; "
        "check it with GET /v1/agents/{agent_id}/nodes (ListNodes) or search."
    )
    return NotFound(message, reason="NODE_NOT_FOUND")


def no_attachment() -> NotFound:
    """Return the error for an attachment that does not exist, or not any more."""
    return NotFound(
        "There is no such attachment: the message has none at this index, or it was deleted or has expired. "
        "Check it with GET /v1/agents/{agent_id}/messages (ListMessages).",
        reason="ATTACHMENT_NOT_FOUND",
    )


def no_batch() -> NotFound:
    """Return the error for an id that no batch has, or whose status is no longer kept."""
    message = (
        "No batch has this id, or its status is no longer kept. Ids have the form b1; "
        "check it with GET /v1/agents/{agent_id}/batches (ListBatches)."
    )
    return NotFound(message, reason="BATCH_NOT_FOUND")


QUIET_MESSAGE = "internal error; the daemon's log has the details under this request id"
"""The message of Corrupted and Internal."""


def no_ruling() -> NotFound:
    """Return the error for an id that no ruling in effect has."""
    message = (
        "No ruling has this id, or it was undone before. Ids have the form r1; "
        "check it with GET /v1/agents/{agent_id}/rulings (ListRulings)."
    )
    return NotFound(message, reason="RULING_NOT_FOUND")
