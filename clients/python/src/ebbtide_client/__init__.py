"""Client of Ebbtide, the memory daemon for AI agents: sync and async, typed, with safe retries.

Names are imported on first use, so that a program that needs one of the clients does not load the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebbtide_client import errors, models
    from ebbtide_client.async_client import AsyncClient
    from ebbtide_client.calls import OpenedAgent
    from ebbtide_client.client import Client
    from ebbtide_client.context_window import AsyncContextWindow, ContextWindow
    from ebbtide_client.errors import (
        ClientClosed,
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

_NAMES = {
    "async_client": ("AsyncClient",),
    "calls": ("OpenedAgent",),
    "client": ("Client",),
    "context_window": (
        "AsyncContextWindow",
        "ContextWindow",
    ),
    "errors": (
        "ClientClosed",
        "Conflict",
        "ConnectionFailed",
        "Corrupted",
        "Deadline",
        "EbbtideError",
        "Exhausted",
        "FieldViolation",
        "Forbidden",
        "Internal",
        "InvalidRequest",
        "NotFound",
        "Precondition",
        "Unauthenticated",
        "Unavailable",
        "UnexpectedAnswer",
    ),
    "models": ("Message",),
    "retries": ("Retries",),
    "window": ("estimate_tokens",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("errors", "models"):
        return import_module(f"ebbtide_client.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"ebbtide_client.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "AsyncClient",
    "AsyncContextWindow",
    "Client",
    "ClientClosed",
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
