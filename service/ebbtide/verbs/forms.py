"""Forms: how commands are read and refused, the same for every transport.

A command is a frozen pydantic model; `read_form` takes JSON to it, strictly: no unknown fields, no text where
a number belongs, no NaN, no lone surrogates. Whatever does not fit becomes one InvalidRequest that names the
first bad fields, their values (cut) and what is allowed; no more faults are looked for than are told. Bounds
that can be configured are checked by the verbs, with `refuse`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Literal, NoReturn, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, FailFast, ValidationError, model_validator
from pydantic_core import ErrorDetails, from_json

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.privacy.spans import redacted
from ebbtide.settings import LimitSettings


class Form(BaseModel):
    """A command as it arrives."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def check(self, limits: LimitSettings) -> None:
        """Refuse values outside limits that can be configured. The verb does so too; here it is for large requests."""

    @model_validator(mode="before")
    @classmethod
    def _without_surplus(cls, given: Any) -> Any:
        return without_surplus(given, cls)


class Answer(BaseModel):
    """A result as it leaves."""

    model_config = ConfigDict(frozen=True)

    def as_json(self) -> str:
        """The result as REST answers with it."""
        return self.model_dump_json()


F = TypeVar("F", bound=BaseModel)
T = TypeVar("T")
Item = TypeVar("Item")

SHOWN_CHARS = 40
"""Characters of a refused value that are echoed."""

MAX_VALUES = 50_000
VALUES_PER_MESSAGE = 20
"""Values that a large request may contain: so many, or so many for each message that a batch may have."""

SHOWN_ITEMS = 8
"""Items of a refused list or object that are echoed."""

LOOKED_AT_CHARS = 4096
"""Characters of a refused value that are looked through for personal data: many more than are echoed."""

MOST_VIOLATIONS = 10
"""Bad fields named in one refusal."""

Several = Annotated[list[Item], FailFast()]
"""A list that is looked at up to its first bad item: there may be a million of them, and one is told."""

REASON_OF_TYPE = {
    "extra_forbidden": "UNKNOWN_FIELD",
    "missing": "MISSING_FIELD",
    "model_type": "INVALID_JSON",
    "string_too_long": "TEXT_TOO_LONG",
}
"""What pydantic calls a fault, and what we call it. Types not listed: see `_reason`."""


def without_surplus(given: Any, form: type[BaseModel]) -> Any:
    """A JSON object without unknown fields beyond those that a refusal names: there may be a million of them."""
    if not isinstance(given, dict) or len(given) <= len(form.model_fields) + MOST_VIOLATIONS:
        return given
    unknown = islice((name for name in given if name not in form.model_fields), MOST_VIOLATIONS)
    return {name: given[name] for name in (*(given.keys() & form.model_fields.keys()), *unknown)}


def read_bounded(limits: LimitSettings, read: Callable[..., T], *arguments: Any) -> T:
    """Read a large request in a worker process. TOO_MANY_ITEMS for more values than can be handed over quickly."""
    found = read(*arguments)
    max_values = max(MAX_VALUES, VALUES_PER_MESSAGE * limits.max_messages)
    if count_values(found, max_values) > max_values:
        if isinstance(found, Form):
            # It may say more precisely what is too large.
            found.check(limits)
        raise InvalidRequest(
            f"the body: more than {max_values} values; send fewer at a time", reason="TOO_MANY_ITEMS"
        )
    return found


def count_values(value: Any, most: int) -> int:
    """Count the values in a request, all the way down, until there are more than `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        one = waiting.pop()
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if isinstance(one, BaseModel):
            inside = one.__dict__.values()
        count += 1 + len(inside)
        waiting += [item for item in inside if isinstance(item, (dict, list, BaseModel))]
    return count


def read_form(form: type[F], body: bytes) -> F:
    """The command in a JSON body; InvalidRequest names everything that is wrong with it."""
    try:
        return form.model_validate(read_json(body))
    except ValidationError as error:
        raise refusal(error, form) from None


def read_json(body: bytes) -> Any:
    """The value in a JSON body in UTF-8; INVALID_JSON for anything else, NaN and lone surrogates included."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(
            f"the body: not JSON in UTF-8: {shown(str(error), 120)}", reason="INVALID_JSON"
        ) from None


def refusal(error: ValidationError, form: type[BaseModel] | None = None) -> InvalidRequest:
    """The refusal of a form that does not validate; ranges are told where `form` declares them."""
    faults = error.errors(include_url=False, include_context=False)
    violations = [FieldViolation(_path(fault), _describe(fault, form)) for fault in faults[:MOST_VIOLATIONS]]
    first = violations[0]
    reason = _reason(faults[0])
    where = "the body" if reason == "INVALID_JSON" else first.field
    return InvalidRequest(
        f"{where}: {first.description}",
        reason=reason,
        violations=[] if reason == "INVALID_JSON" else violations,
    )


def _reason(fault: ErrorDetails) -> str:
    kind = fault["type"]
    if kind in REASON_OF_TYPE:
        # A nested object of the wrong type is a field's fault, not the body's.
        nested = kind == "model_type" and fault["loc"]
        return "WRONG_TYPE" if nested else REASON_OF_TYPE[kind]
    if kind == "value_error" and not fault["loc"]:
        return "INVALID_PARAMETERS"
    return "WRONG_TYPE" if kind.endswith(("_type", "_parsing", "_unicode")) else "INVALID_VALUE"


def _path(fault: ErrorDetails) -> str:
    path = ""
    for part in fault["loc"]:
        name = part if isinstance(part, int) else redacted(part[:LOOKED_AT_CHARS])
        path += f"[{part}]" if isinstance(part, int) else f".{name}" if path else str(name)
    return shown(path, 80) if path else "parameters" if fault["type"] == "value_error" else ""


def _describe(fault: ErrorDetails, form: type[BaseModel] | None) -> str:
    kind = fault["type"]
    if kind == "extra_forbidden":
        return "no such field"
    if kind == "missing":
        return "required"
    if kind == "string_unicode":
        return "holds a lone surrogate; text must be valid Unicode"
    if kind == "model_type":
        return "not a JSON object"
    message = fault["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return message
    allowed = allowed_values(form, fault["loc"])
    if allowed:
        return f"{echo(fault['input'])} is not allowed; allowed: {allowed}"
    return f"{message[:1].lower()}{message[1:]}, got {echo(fault['input'])}"


def allowed_values(form: type[BaseModel] | None, path: tuple[int | str, ...]) -> str:
    """The range or the choices of a field of a form, as its declaration says; empty where it says none."""
    for part in path[:-1]:
        section = None if form is None else form.model_fields.get(str(part))
        kind = None if section is None else section.annotation
        form = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    field = None if form is None or not path else form.model_fields.get(str(path[-1]))
    if field is None:
        return ""
    if get_origin(field.annotation) is Literal:
        return ", ".join(map(str, get_args(field.annotation)))
    words = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}
    return " ".join(
        text.format(getattr(bound, name))
        for bound in field.metadata
        for name, text in words.items()
        if hasattr(bound, name)
    )


def echo(value: Any) -> str:
    """A refused value, cut and fit to be shown; what is personal in it is not."""
    try:
        return shown(reprlib.repr(unnamed(value)))
    except ValueError:
        # Python does not write integers of more than a few thousand digits.
        return "a very large number"


def unnamed(value: Any, depth: int = 3) -> Any:
    """A value without what is personal in it, as far as anything of it may be shown."""
    if isinstance(value, str):
        return redacted(value[:LOOKED_AT_CHARS])
    if isinstance(value, int) and not isinstance(value, bool):
        text = str(value)[:LOOKED_AT_CHARS]
        told = redacted(text)
        return value if told == text else told
    if isinstance(value, dict) and depth:
        first = islice(value.items(), SHOWN_ITEMS)
        return {unnamed(name): unnamed(item, depth - 1) for name, item in first}
    if isinstance(value, list) and depth:
        return [unnamed(item, depth - 1) for item in value[:SHOWN_ITEMS]]
    return "…" if isinstance(value, dict | list) else value


def shown(text: str, most: int = SHOWN_CHARS) -> str:
    """A text fit to be echoed: cut, on one line, nothing invisible."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


def refuse(field: str, value: Any, allowed: str, reason: str = "INVALID_VALUE") -> NoReturn:
    """Refuse a value with its field, the value (cut) and what is allowed."""
    got, field = echo(value), redacted(field)
    description = f"{got} is not allowed; allowed: {allowed}"
    raise InvalidRequest(
        f"{field}: {description}", reason=reason, violations=[FieldViolation(field, description)]
    )


def check_text(field: str, text: str, most: int) -> None:
    """Refuse a text of more than `most` characters."""
    if len(text) > most:
        description = f"{len(text)} characters; allowed: at most {most}"
        raise InvalidRequest(
            f"{field}: {description}",
            reason="TEXT_TOO_LONG",
            violations=[FieldViolation(field, description)],
        )


def check_count(field: str, count: int, most: int, reason: str = "TOO_MANY_ITEMS") -> None:
    """Refuse a list of more than `most` items."""
    if count > most:
        description = f"{count} items; allowed: at most {most}"
        raise InvalidRequest(
            f"{field}: {description}", reason=reason, violations=[FieldViolation(field, description)]
        )
