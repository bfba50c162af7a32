"""Structured logging without content, and the interface for traces.

Log lines contain ids, sizes and times, but no texts unless `log.log_content` is set. Values are escaped in both
formats, so that no text can forge a line.

`span` costs almost nothing without a tracer. `tracing.py` implements traces; no other module knows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import random
import re
import sys
import traceback
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, TypeVar, cast

import structlog

T = TypeVar("T")


@dataclass(slots=True)
class _Content:
    """Whether the log may contain texts, and the function that redacts them."""

    is_logged: bool = False
    without_personal: Callable[[str], str] = str


_content = _Content()


def loggable(text: str) -> str:
    """Return what the log may contain of a text: its length, or with `log_content` the redacted text."""
    return _content.without_personal(text) if _content.is_logged else f"({len(text)} characters)"


def configure_log(
    level_name: str,
    form: str,
    *,
    log_content: bool = False,
    without_personal: Callable[[str], str] = str,
) -> None:
    """Configure the log of the process: to standard error, as `json` or `console` lines, from a level on."""
    _content.is_logged, _content.without_personal = log_content, without_personal
    level = logging.getLevelNamesMapping()[level_name.upper()]
    renderer: Any = structlog.processors.JSONRenderer(ensure_ascii=True)
    if form == "console":
        renderer = structlog.processors.KeyValueRenderer(
            key_order=["timestamp", "level", "event"], repr_native_str=True
        )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _name_of_worker,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _where_it_failed,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, _Lenient())),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Library()], level=max(level, logging.WARNING), force=True)


_worker: dict[str, int] = {}


def name_worker(index: int) -> None:
    """Name this worker in each of its log lines."""
    _worker["worker"] = index


def _name_of_worker(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, index in _worker.items():
        event.setdefault(name, index)
    return event


class _Lenient:
    """Standard error without failures: a log on a full disk must not fail a request."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


class _Library(logging.Handler):
    """Log lines of libraries, without the arguments of their messages."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().bind(part=record.name).log(
            record.levelno,
            "library",
            message=str(record.msg)[:200] if isinstance(record.msg, str) else type(record.msg).__name__,
            exc_info=record.exc_info[1] if record.exc_info else None,
        )


def _where_it_failed(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace an exception by its type and stack: its message may quote content."""
    error = event.pop("exc_info", None)
    if isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)
        event["error_type"] = type(error).__name__
        event["error_at"] = [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames[-12:]]
        event["error_message"] = loggable(str(error))
        if error.__cause__ is not None:
            event["cause_type"] = type(error.__cause__).__name__
    return event


def get_log(name: str) -> Any:
    """Return a logger whose lines name a part of the daemon."""
    return structlog.get_logger().bind(part=name)


def in_background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that outlives the request that started it. Its log lines carry no request id."""
    return asyncio.create_task(work, context=contextvars.Context())


_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


_REQUEST_IDS = random.Random()
"""The operating system's random numbers would cost more: reading them lets other threads run first."""

os.register_at_fork(after_in_child=_REQUEST_IDS.seed)


def request_id_from(given: str | None) -> str:
    """Return the caller's request id if it is fit for a log line, else a new one."""
    return given if given and _REQUEST_ID.fullmatch(given) else f"{_REQUEST_IDS.getrandbits(128):032x}"


# --- traces ------------------------------------------------------------------------------------------------


class Span(Protocol):
    """One traced piece of work."""

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute: an id, a number, a word; never content."""


class Tracing(Protocol):
    """A tracer."""

    def span(self, name: str, parent: str, attributes: dict[str, Any]) -> AbstractContextManager[Span]:
        """Return a span for a block, as a child of the current span or of a `traceparent`."""

    def origin(self) -> str:
        """Return the `traceparent` of the current span; empty without one."""


class _NoSpan:
    """The span without a tracer."""

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def set(self, name: str, value: str | int | float | bool) -> None:
        pass


_NOTHING = _NoSpan()
_tracing: dict[str, Tracing | None] = {"by": None}


def trace_with(tracing: Tracing | None) -> None:
    """Set or remove the tracer."""
    _tracing["by"] = tracing


def is_traced() -> bool:
    """Whether there is a tracer."""
    return _tracing["by"] is not None


def span(name: str, *, parent: str = "", **attributes: Any) -> AbstractContextManager[Span]:
    """Return a span for a block. An `agent_id` attribute is exported only if the settings allow it."""
    tracing = _tracing["by"]
    return _NOTHING if tracing is None else tracing.span(name, parent, attributes)


def origin() -> str:
    """Return the `traceparent` by which background work can be linked to the current request."""
    tracing = _tracing["by"]
    return "" if tracing is None else tracing.origin()


OPERATIONS = {
    "open_agent": "create_memory_store",
    "recall": "search_memory",
    "search": "search_memory",
    "update_node": "update_memory",
    "delete_node": "delete_memory",
    "delete_nodes": "delete_memory",
    "delete_agent": "delete_memory_store",
}
"""Names of verbs in the semantic conventions for generative models."""


def verb_span(verb: str) -> AbstractContextManager[Span]:
    """Return the span of a verb, the same for each transport."""
    if not is_traced():
        return _NOTHING
    named = {"gen_ai.operation.name": OPERATIONS[verb]} if verb in OPERATIONS else {}
    return span(f"verb {verb}", verb=verb, **named)
