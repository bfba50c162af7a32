"""Limits on fields of requests, as annotations: `Annotated[str, MaxChars("max_query_chars")]`.

A name is that of a setting in `limits`. Its value comes from the validation context, which is the current
`LimitSettings`. Without a context (a caller in this process that builds a request itself) configured limits do not
apply. The errors are those of `verbs/requests.py`, so each transport reports the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    FailFast,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.normalisation import is_hidden, is_invisible
from ebbtide.privacy.spans import redacted
from ebbtide.settings import LimitSettings
from ebbtide.verbs.requests import invalid, shown, violation

SETTING = "x-setting"
"""The key of a JSON schema for the setting that changes a limit. `rest/openapi.py` writes it as a description."""


@dataclass(frozen=True, slots=True, eq=False)
class _Limited:
    """The annotation of a limited field: its check, and how the JSON schema declares it."""

    check: Callable[[Any, ValidationInfo], Any]
    bounds: Mapping[str, str | int | None]
    """Bounds by their names in JSON schemas: a number, the name of a setting in `limits`, or None for none."""
    is_first: bool = False
    """Whether to check the value before its own parts."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if self.is_first:
            return core_schema.with_info_before_validator_function(self.check, handler(source))
        return core_schema.with_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        declared = handler(schema)
        for name, bound in self.bounds.items():
            if isinstance(bound, str):
                declared[SETTING] = bound
                declared[name] = LimitSettings.model_fields[bound].default
            elif bound is not None:
                declared[name] = bound
        return declared


def _limit(info: ValidationInfo, limit: str | int | None) -> int | None:
    """The value of a limit: a number, or the setting of this name in the context; None for no limit."""
    if not isinstance(limit, str):
        return limit
    return None if info.context is None else int(getattr(info.context, limit))


def MaxChars(limit: str | int) -> _Limited:  # noqa: N802 - an annotation, like those below
    """Limit the characters of a text."""

    def check(text: str, info: ValidationInfo) -> str:
        most = _limit(info, limit)
        if most is not None and len(text) > most:
            raise violation("TEXT_TOO_LONG", f"{len(text)} characters; allowed: at most {most}")
        return text

    return _Limited(check, {"maxLength": limit})


def MaxItems(  # noqa: N802
    limit: str | int, reason: str = "TOO_MANY_ITEMS", *, is_counted: bool = True
) -> _Limited:
    """Limit the items of a list. It is checked before the items, of which there may be a million.

    The error names their number, but not with `is_counted=False`: REST splits a list in a query only so often.
    """

    def check(items: Any, info: ValidationInfo) -> Any:
        most = _limit(info, limit)
        if most is not None and isinstance(items, list) and len(items) > most:
            count = len(items) if is_counted else "too many"
            raise violation(reason, f"{count} items; allowed: at most {most}")
        return items

    return _Limited(check, {"maxItems": limit}, is_first=True)


def Between(least: int, limit: str | int | None, reason: str = "INVALID_VALUE") -> _Limited:  # noqa: N802
    """Limit a number to a range, both ends included."""

    def check(number: float, info: ValidationInfo) -> float:
        most = _limit(info, limit)
        if number < least or (most is not None and number > most):
            span = f"{least} to {most}" if least < 0 else f"{least}-{most}"
            raise invalid(number, f"at least {least}" if most is None else span, reason)
        return number

    return _Limited(check, {"minimum": least, "maximum": limit})


def NotEmpty(allowed: str) -> _Limited:  # noqa: N802
    """Refuse an empty text; `allowed` says what to send instead."""

    def check(text: str, _: ValidationInfo) -> str:
        if not text:
            raise invalid(text, allowed)
        return text

    return _Limited(check, {"minLength": 1})


def NotBlank(allowed: str) -> _Limited:  # noqa: N802
    """Refuse a text of only white space; `allowed` says what to send instead."""

    def check(text: str, _: ValidationInfo) -> str:
        if not text.strip():
            raise invalid(text, allowed)
        return text

    return _Limited(check, {"minLength": 1})


def OneLine() -> _Limited:  # noqa: N802
    """Refuse a text with control characters, line breaks, or characters that are invisible or change the direction."""

    def check(text: str, _: ValidationInfo) -> str:
        if not text.isprintable() and any(map(is_invisible, text)):
            raise invalid(text, "characters that are visible on one line")
        return text

    return _Limited(check, {})


def PlainText() -> _Limited:  # noqa: N802
    """Refuse control characters other than tabs and line breaks, and those that change the direction of text."""

    def check(text: str, _: ValidationInfo) -> str:
        if not text.isprintable() and any(one not in _LAYOUT and is_hidden(one) for one in text):
            raise invalid(text, "text without control characters other than tabs and line breaks")
        return text

    return _Limited(check, {})


_LAYOUT = "\t\n\r\u2028\u2029"
"""Tabs and line breaks."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that a text may be."""

    words: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "enum": list(self.words)}

    def _check(self, word: Any) -> Any:
        if isinstance(word, str | int) and word not in self.words:
            raise invalid(word, ", ".join(self.words))
        return word


_KIND = re.compile(r"[^\W\d_][\w-]{0,31}")


def Kind(reserved: Collection[str] = (), known: Collection[str] = ()) -> _Limited:  # noqa: N802
    """Refuse a text that cannot be a kind of memories, or that is one of the reserved kinds. Name the known ones."""

    def check(kind: str, _: ValidationInfo) -> str:
        if not _KIND.fullmatch(kind):
            own = "a letter, then at most 31 letters, digits, - or _"
            raise invalid(kind, f"{', '.join(known)}, or a kind of your own: {own}" if known else own)
        if kind in reserved:
            raise invalid(kind, f"a kind of your own, other than {', '.join(reserved)}")
        return kind

    return _Limited(check, {"maxLength": 32})


Several = FailFast()
"""Validate a list up to its first bad item: there may be a million of them, and one is reported."""

Name = Annotated[str, MaxChars("max_name_chars")]
"""A speaker, a conversation, or an id of the caller's."""


# --- times -----------------------------------------------------------------------------------------------

SECONDS = range(100_000_000, 10_000_000_000)
"""Numbers that are seconds since 1973 or later; in milliseconds they would be the first months of 1970."""


class Milliseconds(int):
    """Milliseconds since the epoch from a source that states its unit: such a number is never taken for seconds."""


def _milliseconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            raise invalid(value, TIMES, "WRONG_TYPE") from None
        if time.tzinfo is None:
            raise invalid(value, f"{TIMES}; add Z or an offset")
        return (time - EPOCH) // MILLISECOND
    if type(value) is int and value in SECONDS:
        raise invalid(value, "milliseconds since the epoch; this looks like seconds: multiply it by 1000")
    return value


def _checked_time(time_ms: int) -> int:
    if not EARLIEST_MS <= time_ms <= LATEST_MS:
        raise invalid(time_ms, "milliseconds since the epoch, of the years 1-9999")
    return time_ms


TIMES = "milliseconds since the epoch, or ISO 8601 with a time zone such as 2026-05-01T12:00:00Z"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC) - EPOCH

Time = Annotated[
    int,
    BeforeValidator(_milliseconds),
    AfterValidator(_checked_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": EARLIEST_MS, "maximum": LATEST_MS},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]
"""A time in milliseconds since the epoch; a caller may also send ISO 8601."""


# --- metadata --------------------------------------------------------------------------------------------

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _refuse_large(metadata: Mapping[str, Any], info: ValidationInfo) -> None:
    """Refuse metadata that is too large as JSON; write it no further than that."""
    most, size = _limit(info, "max_metadata_bytes"), 0
    parts = _JSON.iterencode(metadata)
    while True:
        try:
            part = next(parts, None)
        except ValueError:
            raise violation("INVALID_VALUE", "contains an infinite number; allowed: finite numbers") from None
        if part is None:
            return
        size += len(part.encode())
        if most is not None and size > most:
            raise violation("METADATA_TOO_LARGE", f"more than {most} bytes as JSON; allowed: at most {most}")


def _checked_metadata(metadata: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    _refuse_large(metadata, info)
    return metadata


def _checked_flat(metadata: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    _refuse_large(metadata, info)
    most = _limit(info, "max_name_chars")
    for name, value in metadata.items():
        if not name:
            raise invalid(name, "names that are not empty")
        if most is not None and len(name) > most:
            raise violation("TEXT_TOO_LONG", f"{len(name)} characters; allowed: at most {most}")
        if not isinstance(value, str | int | float):
            field = shown(redacted(name))
            raise invalid(value, "a text, a number, true or false", "WRONG_TYPE", field)
    return metadata


_SIZE_SETTING = WithJsonSchema(
    {"type": "object", "additionalProperties": True, SETTING: "max_metadata_bytes"}
)

Metadata = Annotated[dict[str, Any], AfterValidator(_checked_metadata), _SIZE_SETTING]
"""Any JSON object."""

FlatMetadata = Annotated[dict[str, Any], AfterValidator(_checked_flat), _SIZE_SETTING]
"""A text, a number or a truth value under each name."""
