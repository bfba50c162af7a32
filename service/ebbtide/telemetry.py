"""The log: one line an event, structured, without content.

Lines carry ids, sizes and times, never what was said, unless `log.log_content` is set. Values are rendered
escaped in both formats, so that no text can forge a line.
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
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar, cast

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
        logger_factory=structlog.PrintLoggerFactory(file=cast(TextIO, _Lenient())),
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
