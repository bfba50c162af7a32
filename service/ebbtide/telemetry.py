"""The log: one line an event, structured, without content. And the port of traces: spans, of which nobody need know.

Lines carry ids, sizes and times, never what was said, unless `log.log_content` is set. Values are rendered
escaped in both formats, so that no text can forge a line.

`span` costs next to nothing while nobody traces. Who does, and with what, is in `tracing.py`; nothing else knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import re
import sys
import traceback
import uuid
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, TypeVar, cast

import structlog

T = TypeVar("T")


@dataclass(slots=True)
class _Content:
    """Whether the log may hold what was said, and what takes out of it what it must not."""

    is_logged: bool = False
    without_personal: Callable[[str], str] = str


_content = _Content()


def told(text: str) -> str:
    """What the log may hold of a text: its length; with `log_content` the text, without what is personal in it."""
    return _content.without_personal(text) if _content.is_logged else f"({len(text)} characters)"


def configure_log(
    level_name: str,
    form: str,
    *,
    log_content: bool = False,
    without_personal: Callable[[str], str] = str,
) -> None:
    """Set up the process's log: to standard error, as `json` or `console` lines, from a level on."""
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


class _Lenient:
    """Standard error, on which a line may get lost: a log on a full disk must not fail a request."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


class _Library(logging.Handler):
    """Lines of libraries, without what their messages were filled with."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().bind(part=record.name).log(
            record.levelno,
            "library",
            message=str(record.msg)[:200] if isinstance(record.msg, str) else type(record.msg).__name__,
            exc_info=record.exc_info[1] if record.exc_info else None,
        )


def _where_it_failed(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An exception as its type and the places it came through: its message may quote what was said."""
    error = event.pop("exc_info", None)
    if isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)
        event["error_type"] = type(error).__name__
        event["error_at"] = [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames[-12:]]
        event["error_message"] = told(str(error))
        if error.__cause__ is not None:
            event["cause_type"] = type(error.__cause__).__name__
    return event


def get_log(name: str) -> Any:
    """A logger whose lines carry the part of the daemon they come from."""
    return structlog.get_logger().bind(part=name)


def in_background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that outlives the request that happened to start it: its log lines carry no request id."""
    return asyncio.create_task(work, context=contextvars.Context())


_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id_from(given: str | None) -> str:
    """The caller's id for a request where it is fit for a log line, else a new one."""
    return given if given and _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


# --- traces ------------------------------------------------------------------------------------------------


class Span(Protocol):
    """A stretch of work that is told of."""

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Tell something more of it: an id, a number, a word; never content."""


class Tracing(Protocol):
    """Whoever keeps spans."""

    def span(self, name: str, parent: str, attributes: dict[str, Any]) -> AbstractContextManager[Span]:
        """A span for the length of a block, below the one around it, or below a `traceparent`."""

    def origin(self) -> str:
        """The `traceparent` of the span around; empty where there is none."""


class _NoSpan:
    """What a span is while nobody traces."""

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def set(self, name: str, value: str | int | float | bool) -> None:
        pass


_NOTHING = _NoSpan()
_tracing: dict[str, Tracing | None] = {"by": None}


def trace_with(tracing: Tracing | None) -> None:
    """Let spans be kept from now on, or no more."""
    _tracing["by"] = tracing


def is_traced() -> bool:
    """Whether spans are kept."""
    return _tracing["by"] is not None


def span(name: str, *, parent: str = "", **attributes: Any) -> AbstractContextManager[Span]:
    """A span for the length of a block; `agent_id` among its attributes is told only where that was asked for."""
    tracing = _tracing["by"]
    return _NOTHING if tracing is None else tracing.span(name, parent, attributes)


def origin() -> str:
    """The `traceparent` by which work in the background can be told as part of what asked for it."""
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
"""What the semantic conventions for generative models call a verb, where they have a name for it."""


def verb_span(verb: str) -> AbstractContextManager[Span]:
    """The span of a verb, over each transport alike."""
    if not is_traced():
        return _NOTHING
    named = {"gen_ai.operation.name": OPERATIONS[verb]} if verb in OPERATIONS else {}
    return span(f"verb {verb}", verb=verb, **named)
