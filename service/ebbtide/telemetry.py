"""The log: one line an event, structured, without content.

Lines carry ids, sizes and times, never what was said, unless `log.log_content` is set. Values are rendered
escaped in both formats, so that no text can forge a line.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure_log(level_name: str, form: str) -> None:
    """Set up the process's log: to standard error, as `json` or `console` lines, from a level on."""
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
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_log(name: str) -> Any:
    """A logger whose lines carry the part of the daemon they come from."""
    return structlog.get_logger().bind(part=name)
