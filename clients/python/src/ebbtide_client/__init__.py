"""Client of Ebbtide, the memory daemon for AI agents: sync and async, typed, with safe retries."""

from ebbtide_client import errors, models
from ebbtide_client.async_client import AsyncClient
from ebbtide_client.calls import OpenedAgent
from ebbtide_client.client import Client
from ebbtide_client.context_window import AsyncContextWindow, ContextWindow
from ebbtide_client.errors import (
    Conflict,
    ConnectionFailed,
    Corrupted,
    Deadline,
    EbbtideError,
    Exhausted,
    FieldViolation,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    Precondition,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
)
from ebbtide_client.models import Message
from ebbtide_client.retries import Retries
from ebbtide_client.window import estimate_tokens

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncContextWindow",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "ContextWindow",
    "Corrupted",
    "Deadline",
    "EbbtideError",
    "Exhausted",
    "FieldViolation",
    "Forbidden",
    "Internal",
    "InvalidRequest",
    "Message",
    "NotFound",
    "OpenedAgent",
    "Precondition",
    "Retries",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "errors",
    "estimate_tokens",
    "models",
]
