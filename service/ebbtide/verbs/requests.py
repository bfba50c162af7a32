"""Requests and responses of verbs, and how a request is read, validated and refused, the same for every transport.

A request is a frozen pydantic model. It has every field of its operation, whether REST sends it in the path, the query
or the body. Validation is strict: no unknown fields, no text where a number belongs, no NaN, no lone surrogates. The
configured limits apply too (`verbs/limits.py`), so a verb gets only valid requests. A request that does not fit is
refused with one InvalidRequest: the first bad fields, their values (cut) and what is allowed.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, NoReturn, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError, from_json

from ebbtide.errors import REASONS, FieldViolation, InvalidRequest
from ebbtide.ids import MAX_AGENT_ID_LENGTH, AgentId, parse_agent_id
from ebbtide.privacy.spans import redacted
from ebbtide.settings import LimitSettings


class Fields(BaseModel):
    """Fields of a request, or of an object in one."""

    # Schemas are built at the first use: those of all models take a fifth of the start.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_surplus(cls, given: Any) -> Any:
        return without_surplus(given, cls)


class Request(Fields):
    """The request of an operation."""

    body_model: ClassVar[type[BaseModel] | None] = None
    """The model of the JSON body, if it is not the request without the fields of the path."""

    @classmethod
    def fields_in(cls, body: Any) -> Any:
        """Return the fields that a JSON body gives."""
        return body


def requiring(name: str) -> ConfigDict:
    """Return the configuration of a model whose list `name` is required, though its default is the empty list.

    protobuf cannot tell a missing list from an empty one, so over REST a missing one counts as empty too.
    """

    def require(schema: dict[str, Any]) -> None:
        del schema["properties"][name]["default"]
        schema["properties"][name]["minItems"] = 1
        schema.setdefault("required", []).append(name)

    return ConfigDict(json_schema_extra=require)


AgentName = Annotated[
    str,
    AfterValidator(parse_agent_id),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_AGENT_ID_LENGTH}),
]
"""The id of an agent."""


class AgentRequest(Request):
    """A request that names an agent."""

    agent_id: AgentName = Field(
        description="Id of the agent: 1-128 characters of any script.", examples=["ann"]
    )

    @property
    def owner(self) -> AgentId:
        """The agent's id, as validated."""
        return AgentId(self.agent_id)


class Response(BaseModel):
    """The response of an operation."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    def as_json(self) -> str:
        """Return the body of the REST response."""
        return self.model_dump_json()

    @property
    def column_bytes(self) -> int:
        """Size of columns of numbers, which are encoded outside the event loop if they are large."""
        return 0


M = TypeVar("M", bound=BaseModel)
Q = TypeVar("Q", bound=Request)
T = TypeVar("T")

MAX_SHOWN_CHARS = 40
"""Most characters of a refused value that an error echoes."""

MAX_VALUES = 50_000
VALUES_PER_MESSAGE = 20
"""Most values in a large request: this many, or this many per message that a batch may have."""

MAX_SHOWN_ITEMS = 8
"""Most items of a refused list or object that an error echoes."""

MAX_SEARCHED_CHARS = 4096
"""Characters of a refused value that are searched for personal data: many more than are echoed."""

MAX_EXACT = 1 << 53
"""Integers below this are exact as floating-point numbers."""

MAX_VIOLATIONS = 10
"""Most invalid fields in one error."""

REASON_OF_TYPE = {
    "extra_forbidden": "UNKNOWN_FIELD",
    "missing": "MISSING_FIELD",
    "model_type": "INVALID_JSON",
    "string_too_long": "TEXT_TOO_LONG",
}
"""Reasons by pydantic's error types; for other types see `_reason`."""


def without_surplus(given: Any, model: type[BaseModel]) -> Any:
    """Drop unknown fields of a JSON object beyond those that a refusal names; there may be a million of them."""
    if not isinstance(given, dict) or len(given) <= len(model.model_fields) + MAX_VIOLATIONS:
        return given
    unknown = islice((name for name in given if name not in model.model_fields), MAX_VIOLATIONS)
    return {name: given[name] for name in (*(given.keys() & model.model_fields.keys()), *unknown)}


# --- reading ---------------------------------------------------------------------------------------------


def read_request(model: type[Q], body: bytes, outside: Mapping[str, Any], limits: LimitSettings) -> Q:
    """Return the request in a JSON body and the fields `outside` it, those of the path.

    Raise InvalidRequest with everything that is wrong.
    """
    fields = model.fields_in(read_json(body))
    if isinstance(fields, dict):
        for name in outside:
            if name in fields:
                raise unknown_field(name)
        fields = {**outside, **fields}
    return validated(model, fields, limits)


def validated(model: type[M], fields: Any, limits: LimitSettings) -> M:
    """Return the request that the fields make, within the limits. Raise InvalidRequest with everything wrong."""
    try:
        return model.model_validate(fields, context=limits)
    except ValidationError as error:
        raise refusal(error, model) from None


def read_bounded(limits: LimitSettings, read: Callable[..., T], *arguments: Any) -> T:
    """Read a large request in a worker process. TOO_MANY_ITEMS for more values than can be returned quickly."""
    found = read(*arguments)
    max_values = max(MAX_VALUES, VALUES_PER_MESSAGE * limits.max_messages)
    if count_values(found, max_values) > max_values:
        raise InvalidRequest(
            f"the body: more than {max_values} values; send fewer at a time", reason="TOO_MANY_ITEMS"
        )
    return found


def count_values(value: Any, most: int) -> int:
    """Count the values in a request at every depth, until there are more than `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        one = waiting.pop()
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ()
        if isinstance(one, BaseModel):
            inside = one.__dict__.values()
        count += 1 + len(inside)
        waiting += [item for item in inside if isinstance(item, (dict, list, tuple, BaseModel))]
    return count


def read_json(body: bytes) -> Any:
    """Return the value of a JSON body in UTF-8. INVALID_JSON for anything else, also NaN and lone surrogates.

    Raise INVALID_VALUE for a field that an object in it has twice, since it is unclear which one is meant.
    """
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(
            f"the body: not JSON in UTF-8: {shown(str(error), 120)}", reason="INVALID_JSON"
        ) from None
    # The parser keeps the last of equal fields. A second one, which is slower, runs only if the text has more fields
    # than the value. White space is removed, since it may be in front of a colon.
    fields = _field_count(found)
    if body.count(b":") > fields and body.translate(None, b" \t\r\n").count(b'":') > fields:
        json.loads(body.decode(), object_pairs_hook=_without_repeats, parse_int=str, parse_float=str)
    return found


def _field_count(value: Any) -> int:
    """Count the fields of all objects in a JSON value, but for those in lists that begin with a plain value."""
    count, waiting = 0, [value]
    for one in waiting:
        if type(one) is dict:
            count += len(one)
            waiting += [inner for inner in one.values() if type(inner) in (dict, list)]
        elif type(one) is list and one and type(one[0]) in (dict, list):
            waiting += one
    return count


def _without_repeats(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object. Refuse one that is given twice."""
    found: dict[str, Any] = {}
    for name, value in fields:
        if name in found:
            field, description = _shown_name(name), "given more than once; give it once"
            raise InvalidRequest(
                f"{field}: {description}",
                reason="INVALID_VALUE",
                violations=[FieldViolation(field, description)],
            )
        found[name] = value
    return found


# --- refusing --------------------------------------------------------------------------------------------


def refusal(error: ValidationError, model: type[BaseModel]) -> InvalidRequest:
    """Return the refusal of fields that do not make a valid model."""
    faults = error.errors(include_url=False)
    violations = [FieldViolation(_path(fault), _describe(fault, model)) for fault in faults[:MAX_VIOLATIONS]]
    first = violations[0]
    reason = _reason(faults[0])
    where = "the body" if reason == "INVALID_JSON" else first.field
    return InvalidRequest(
        f"{where}: {first.description}",
        reason=reason,
        violations=[] if reason == "INVALID_JSON" else violations,
    )


def unknown_field(name: str, hint: str = "") -> InvalidRequest:
    """Return the refusal of a field that the operation does not have."""
    field = _shown_name(name)
    description = f"{NO_SUCH_FIELD}; {hint}" if hint else NO_SUCH_FIELD
    return InvalidRequest(
        f"{field}: {description}", reason="UNKNOWN_FIELD", violations=[FieldViolation(field, description)]
    )


def _shown_name(name: str) -> str:
    return shown(redacted(name[:MAX_SEARCHED_CHARS]), 80)


NO_SUCH_FIELD = "no such field"


def invalid(value: Any, allowed: str, reason: str = "INVALID_VALUE", field: str = "") -> PydanticCustomError:
    """Return the error of a validator for a value that is not allowed; `field` only if a whole model is checked."""
    return violation(reason, f"{echo(value)} is not allowed; allowed: {allowed}", field)


def violation(reason: str, description: str, field: str = "") -> PydanticCustomError:
    """Return the error of a validator: one of our reasons, with what is wrong."""
    context = {"description": description, "field": field}
    return PydanticCustomError(reason, "{description}", context)


def _reason(fault: ErrorDetails) -> str:
    kind = fault["type"]
    if kind in REASONS:
        return kind
    if fault["loc"][-1:] in (("page_size",), ("page_token",)):
        return "INVALID_PAGE"
    if kind in REASON_OF_TYPE:
        # A nested object of the wrong type is an error of its field, not of the body.
        nested = kind == "model_type" and fault["loc"]
        return "WRONG_TYPE" if nested else REASON_OF_TYPE[kind]
    if kind == "value_error" and not fault["loc"]:
        return "INVALID_PARAMETERS"
    return "WRONG_TYPE" if kind.endswith(("_type", "_parsing", "_unicode")) else "INVALID_VALUE"


def _path(fault: ErrorDetails) -> str:
    path = ""
    for part in (*fault["loc"], *([fault["ctx"]["field"]] if fault.get("ctx", {}).get("field") else [])):
        name = part if isinstance(part, int) else redacted(part[:MAX_SEARCHED_CHARS])
        path += f"[{part}]" if isinstance(part, int) else f".{name}" if path else str(name)
    return shown(path, 80) if path else "parameters" if fault["type"] == "value_error" else ""


NAME_OF_TYPE = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "finite_number": "a finite number",
}
"""The allowed type of a value, by pydantic's error type."""

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
"""Words for the bounds of a number, by the names that annotations have for them."""

_CHOICE = re.compile(r"'([^']*+)'")


def _describe(fault: ErrorDetails, model: type[BaseModel]) -> str:
    kind = fault["type"]
    if kind in REASONS:
        return fault["msg"]
    if kind == "extra_forbidden":
        return NO_SUCH_FIELD
    if kind == "missing":
        return "required"
    if kind == "string_unicode":
        return "contains a lone surrogate; text must be valid Unicode"
    if kind == "model_type" and not fault["loc"]:
        return "not a JSON object"
    message = fault["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return message
    choices = _CHOICE.findall(fault["ctx"]["expected"]) if kind == "literal_error" else []
    if kind == "int_type" and isinstance(fault["input"], float):
        # `echo` writes 2.0 as 2.
        return f"{shown(repr(fault['input']))} is not allowed; allowed: an integer"
    allowed = ", ".join(choices) or allowed_values(model, fault["loc"])
    allowed = ", ".join(part for part in (NAME_OF_TYPE.get(kind, ""), allowed) if part)
    if allowed:
        return f"{echo(fault['input'])} is not allowed; allowed: {allowed}"
    return f"{echo(fault['input'])} is not allowed: {message[:1].lower()}{message[1:]}"


def allowed_values(model: type[BaseModel] | None, path: tuple[int | str, ...]) -> str:
    """Return the range or the choices of a field of a model, as declared; empty where it declares none."""
    for part in path[:-1]:
        section = None if model is None else model.model_fields.get(str(part))
        kind = None if section is None else section.annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    field = None if model is None or not path else model.model_fields.get(str(path[-1]))
    if field is None:
        return ""
    if get_origin(field.annotation) is Literal:
        return ", ".join(map(str, get_args(field.annotation)))
    bounds = {name: getattr(one, name) for one in field.metadata for name in BOUNDS if hasattr(one, name)}
    if bounds.keys() == {"ge", "le"}:
        return f"{bounds['ge']}-{bounds['le']}"
    return ", ".join(f"{BOUNDS[name]} {bound}" for name, bound in bounds.items())


class _JsonLike(reprlib.Repr):
    """Values as in JSON, but for the quotes of texts. 1.0 is written as 1: over gRPC they are the same."""

    def repr_NoneType(self, _: None, __: int) -> str:  # noqa: N802 - reprlib calls it by the name of the type
        return "null"

    def repr_bool(self, value: bool, _: int) -> str:
        return "true" if value else "false"

    def repr_float(self, value: float, _: int) -> str:
        return repr(int(value) if value.is_integer() and abs(value) < MAX_EXACT else value)


_JSON_LIKE = _JsonLike()


def echo(value: Any) -> str:
    """Return a refused value for an error: cut, printable, without personal data."""
    try:
        return shown(_JSON_LIKE.repr(unnamed(value)))
    except ValueError:
        # Python does not print integers of more than a few thousand digits.
        return "a very large number"


def unnamed(value: Any, depth: int = 3) -> Any:
    """Return a value without personal data, at least in the part that may be shown."""
    if isinstance(value, str):
        return redacted(value[:MAX_SEARCHED_CHARS])
    if isinstance(value, int) and not isinstance(value, bool):
        text = str(value)[:MAX_SEARCHED_CHARS]
        shown_text = redacted(text)
        return value if shown_text == text else shown_text
    if isinstance(value, dict) and depth:
        first = islice(value.items(), MAX_SHOWN_ITEMS)
        return {unnamed(name): unnamed(item, depth - 1) for name, item in first}
    if isinstance(value, list) and depth:
        return [unnamed(item, depth - 1) for item in value[:MAX_SHOWN_ITEMS]]
    return "…" if isinstance(value, dict | list) else value


def shown(text: str, most: int = MAX_SHOWN_CHARS) -> str:
    """Return a text fit for an error: cut, on one line, printable."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


def refuse(field: str, value: Any, allowed: str, reason: str = "INVALID_VALUE") -> NoReturn:
    """Refuse a value that only the verb can judge, with its field, the value (cut) and what is allowed."""
    got, field = echo(value), redacted(field)
    description = f"{got} is not allowed; allowed: {allowed}"
    raise InvalidRequest(
        f"{field}: {description}", reason=reason, violations=[FieldViolation(field, description)]
    )
