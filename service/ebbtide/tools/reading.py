"""Lenient reading of the arguments that language models send to tools.

Models send JSON as text, numbers as words, one value for a list, other names for a field. All of this is accepted, and
everything that was changed or dropped is reported in `noticed`. Everything else is refused with what is allowed and
an example, so that a model can correct its call. Limits on the size come first; the time is linear in the size.

A tool that destroys data is strict: it refuses arguments that are unknown or cannot be read, instead of dropping them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic_core import from_json

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.privacy.spans import redacted
from ebbtide.tools.schema import MAX_ITEMS, Parameter, Tool

MAX_CHARS = 65_536
"""Most characters of arguments that are sent as text."""

MAX_DEPTH = 8
"""Most levels of nested objects and lists in the arguments."""

MAX_VALUES = 1_000
"""Most values in the arguments."""

MAX_ENCODINGS = 3
"""How often the arguments may be encoded as text."""

MAX_NAME_CHARS = 40
"""Most characters of an unknown field that a report shows."""

MAX_NOTICED = 20
"""Most reports; a call has few parameters, but may have many unknown fields."""

ABSENT = frozenset({"", "null", "none", "nil", "undefined", "n/a", "无", "空"})
YES = frozenset({"true", "yes", "y", "1", "on", "是", "真"})
NO = frozenset({"false", "no", "n", "0", "off", "否", "假"})
DIGITS = {digit: str(number) for number, digit in enumerate("零一二三四五六七八九十")} | {"两": "2"}
AMOUNTS = {
    **dict.fromkeys(("low", "unimportant", "minor", "低", "不重要"), 0.2),
    **dict.fromkeys(("medium", "normal", "moderate", "中", "一般", "中等"), 0.5),
    **dict.fromkeys(("high", "important", "高", "重要"), 0.8),
    **dict.fromkeys(("very high", "critical", "highest", "很高", "非常重要", "最高"), 1.0),
}
"""Words for an importance."""

MAX_ATTRIBUTES = 16
MAX_NAME, MAX_ATTRIBUTE = 64, 500
"""Most attributes, and most characters of their names and values."""

LIST_ENDS = re.compile(r"[,，、;；|/]")
ATTRIBUTE_ENDS = re.compile(r"[\n;；,，]")

ENVELOPES = ("arguments", "input", "parameters", "args", "kwargs")
"""Fields in which some models wrap the arguments."""

BESIDES = frozenset({"name", "tool", "type", "id", "function"})
"""Fields that may be next to wrapped arguments."""

BEGINS = ("begin", "start", "from", "after", "since")
ENDS = ("end", "to", "until", "before")

Interval = tuple[int | None, int | None]
"""A period in milliseconds; None leaves a side open."""

ReadTime = Callable[[str], Interval | None]
"""From words to a period in milliseconds, the end exclusive; None for words that name no time."""


@dataclass(slots=True)
class Reading:
    """The arguments of a call, and what was changed or dropped to read them."""

    tool: Tool
    read_time: ReadTime
    arguments: dict[str, Any] = field(default_factory=dict)
    noticed: list[str] = field(default_factory=list)

    def notice(self, report: str) -> None:
        """Report a change, up to a limit."""
        if len(self.noticed) < MAX_NOTICED:
            self.noticed.append(report)

    def refuse(self, name: str, fault: str, allowed: str, reason: str = "INVALID_VALUE") -> NoReturn:
        """Refuse the call with what is allowed and an example."""
        example = json.dumps(self.tool.example, ensure_ascii=False)
        place = name if name == "arguments" else f"arguments.{name}"
        raise InvalidRequest(
            f"{place}: {fault}; allowed: {allowed}. Example: {example}",
            reason=reason,
            metadata={"allowed": allowed, "example": example},
            violations=[FieldViolation(place, f"{fault}; allowed: {allowed}")],
        )


def read_arguments(tool: Tool, sent: Any, read_time: ReadTime) -> Reading:
    """Return the arguments of a call. Raise InvalidRequest with what is allowed if they cannot be read."""
    reading = Reading(tool, read_time)
    given = _fields(reading, sent)
    by_name = _by_parameter(reading, given)
    for parameter in tool.parameters:
        value = _present(by_name.get(parameter.name))
        if value is not None:
            value = READERS[parameter.kind](reading, parameter, value)
        if value is None:
            if parameter.is_required:
                reading.refuse(parameter.name, "required", _allowed(parameter), "MISSING_FIELD")
            value = parameter.default
        reading.arguments[parameter.name] = value
    if tool.one_of and not any(reading.arguments[name] for name in tool.one_of):
        reading.refuse(tool.one_of[0], "required", " or ".join(tool.one_of), "MISSING_FIELD")
    return reading


# --- the object ------------------------------------------------------------------------------------------


def _fields(reading: Reading, sent: Any) -> Mapping[str, Any]:
    """Return the object of arguments, also from text and from a wrapping object."""
    value = sent
    for _ in range(MAX_ENCODINGS):
        if not isinstance(value, str):
            break
        value = _decoded(reading, value)
        reading.notice("arguments: read from text")
    if value is None:
        value = {}
    _refuse_large(reading, value)
    if isinstance(value, list) and len(value) == 1:
        reading.notice("arguments: read from a list of one")
        value = value[0]
    if not isinstance(value, dict):
        reading.refuse("arguments", "not an object", "a JSON object", "WRONG_TYPE")
    for _ in range(MAX_ENCODINGS):
        name = next((one for one in ENVELOPES if one in value and value.keys() - {one} <= BESIDES), None)
        if name is None or not isinstance(value[name], str | dict):
            break
        inner = _decoded(reading, value[name]) if isinstance(value[name], str) else value[name]
        if not isinstance(inner, dict):
            break
        reading.notice(f"arguments: read from {name}")
        _refuse_large(reading, inner)
        value = inner
    return _messages(reading, _unwrapped(reading, value))


def _unwrapped(reading: Reading, value: dict[str, Any]) -> dict[str, Any]:
    """Return the object that is alone in a field of no meaning, such as `memories`. Refuse several of them."""
    if len(value) != 1 or reading.tool.is_strict:
        return value
    [(name, inner)] = value.items()
    if len(name) > MAX_NAME_CHARS or _meant_by(reading.tool, _folded(name)):
        return value
    inner = _from_json(reading, inner)
    several = inner if isinstance(inner, list) else [inner]
    if not several or not all(isinstance(one, dict) for one in several):
        return value
    if len(several) > 1:
        reading.refuse(_shown(name), f"{len(several)} items", "one call for each", "TOO_MANY_ITEMS")
    reading.notice(f"arguments: read from {_shown(name)}")
    inner_fields: dict[str, Any] = several[0]
    return inner_fields


def _messages(reading: Reading, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with messages sent as JSON text as a list, and with the role that all of them have."""
    if not any(one.name == "role" for one in reading.tool.parameters):
        return given
    for name, value in given.items():
        found = _from_json(reading, value)
        several = found if isinstance(found, list) else [found]
        if not several or not all(
            isinstance(one, dict) and {"role", "content"} <= one.keys() for one in several
        ):
            continue
        if found is not value:
            reading.notice(f"{_shown(name)}: read from text")
        roles = {one["role"] for one in several if isinstance(one["role"], str)}
        role = {"role": roles.pop()} if len(roles) == 1 and _present(given.get("role")) is None else {}
        return {**given, name: found, **role}
    return given


def _from_json(reading: Reading, value: Any) -> Any:
    """Return the list or object of which a value is the JSON, else the value."""
    if not isinstance(value, str) or len(value) > MAX_CHARS or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        found = from_json(value, allow_inf_nan=False)
    except ValueError:
        return value
    _refuse_large(reading, found)
    return found


def _decoded(reading: Reading, text: str) -> Any:
    if len(text) > MAX_CHARS:
        reading.refuse("arguments", "too long", f"at most {MAX_CHARS} characters", "TEXT_TOO_LONG")
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.strip("`").strip().removeprefix("json")
    if text.lower() in ABSENT:
        return None
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        reading.refuse("arguments", "not valid JSON", "a JSON object", "INVALID_JSON")


def _refuse_large(reading: Reading, value: Any) -> None:
    """Refuse arguments with too many values or levels."""
    count, level = 0, [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for one in level:
            items = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            count += len(items)
            if count > MAX_VALUES:
                reading.refuse("arguments", "too many values", f"at most {MAX_VALUES}", "TOO_MANY_ITEMS")
            inner += [item for item in items if isinstance(item, dict | list)]
        level = inner
        if not level:
            return
    reading.refuse("arguments", "nested too deeply", f"at most {MAX_DEPTH} levels")


def _by_parameter(reading: Reading, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by the parameters that they mean. The name of a parameter wins over its aliases."""
    parameters = [one.name for one in reading.tool.parameters]
    found: dict[str, Any] = {name: value for name, value in given.items() if name in parameters}
    meanings = {
        name: _meant_by(reading.tool, _folded(name)) if len(name) <= MAX_NAME_CHARS else []
        for name, value in given.items()
        if name not in parameters and _present(value) is not None
    }
    # A name with one meaning takes its parameter before a name that can mean another one too.
    for name in sorted(meanings, key=lambda one: len(meanings[one])):
        free = [one for one in meanings[name] if _present(found.get(one)) is None]
        if free:
            found[free[0]] = given[name]
            reading.notice(f"{_shown(name)}: read as {free[0]}")
        elif reading.tool.is_strict:
            reading.refuse(_shown(name), "no such field", ", ".join(parameters), "UNKNOWN_FIELD")
        else:
            reading.notice(f"{_shown(name)}: unknown, dropped")
    return found


def _meant_by(tool: Tool, folded: str) -> list[str]:
    """Return the parameters that a folded name can mean: the one of this name, else each with this alias in order."""
    named = [one.name for one in tool.parameters if _folded(one.name) == folded]
    return named or [one.name for one in tool.parameters if folded in map(_folded, one.aliases)]


def _folded(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _shown(name: str) -> str:
    """Return a name that the caller chose, fit for a report: cut, printable, without personal data."""
    cut = redacted(name[:200])[:MAX_NAME_CHARS]
    return "".join(one if one.isprintable() else " " for one in cut) or "(empty)"


# --- values ----------------------------------------------------------------------------------------------


def _present(value: Any) -> Any:
    """Return a value, or None for the words that models send for an absent one."""
    if isinstance(value, str) and len(value) <= MAX_NAME_CHARS and value.strip().lower() in ABSENT:
        return None
    return None if value in ([], {}) or (isinstance(value, str) and not value.strip()) else value


def _allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(parameter.choices)
    if parameter.bounds:
        return f"{parameter.bounds[0]:g}-{parameter.bounds[1]:g}"
    return ALLOWED[parameter.kind]


ALLOWED = {
    "text": "a text",
    "texts": "a list of texts",
    "integer": "an integer",
    "number": "a number",
    "attributes": "an object of texts",
    "flag": "true or false",
    "time": "a time such as 2026-05-01 or yesterday",
    "time_range": "a time such as last week, or {begin, end}",
}


def _plain_text(value: Any) -> str | None:
    """Return the text of a value: of a number, of an object with one text in it, of a list of such."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return str(value) if abs(value) < 1e15 else None
    if isinstance(value, dict):
        texts = [value[name] for name in ("content", "text", "value", "name") if name in value]
        return texts[0].strip() if texts and isinstance(texts[0], str) else None
    return None


def _text(reading: Reading, parameter: Parameter, value: Any) -> str | None:
    if isinstance(value, list):
        parts = [_plain_text(one) for one in value[: MAX_ITEMS + 1]]
        if len(parts) > MAX_ITEMS or None in parts:
            reading.refuse(parameter.name, "not a text", _allowed(parameter), "WRONG_TYPE")
        reading.notice(f"{parameter.name}: a list joined to one text")
        text: str | None = parameter.separator.join(part for part in parts if part)
    else:
        text = _plain_text(value)
        if text is not None and not isinstance(value, str):
            reading.notice(f"{parameter.name}: read as a text")
    if text is None:
        reading.refuse(parameter.name, "not a text", _allowed(parameter), "WRONG_TYPE")
    if len(text) > parameter.max_chars:
        allowed = f"at most {parameter.max_chars} characters"
        reading.refuse(parameter.name, f"{len(text)} characters", allowed, "TEXT_TOO_LONG")
    return (_choice(reading, parameter, text) if parameter.choices else text) or None


def _choice(reading: Reading, parameter: Parameter, text: str) -> str:
    word = text.casefold()
    if word in parameter.choices:
        return word
    for choice, synonyms in parameter.choices.items():
        if word in synonyms:
            reading.notice(f"{parameter.name}: read as {choice}")
            return choice
    return reading.refuse(parameter.name, "not an allowed value", _allowed(parameter))


def _texts(reading: Reading, parameter: Parameter, value: Any) -> list[str] | None:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
            reading.notice(f"{parameter.name}: read from text")
        except ValueError:
            pass
    if not isinstance(value, list):
        reading.notice(f"{parameter.name}: one value read as a list")
        value = LIST_ENDS.split(value) if parameter.choices and isinstance(value, str) else [value]
    if len(value) > parameter.max_items:
        allowed = f"at most {parameter.max_items} items"
        reading.refuse(parameter.name, f"{len(value)} items", allowed, "TOO_MANY_ITEMS")
    present = [one for one in value if _present(one) is not None]
    if any(isinstance(one, list) for one in present):
        reading.refuse(parameter.name, "not texts", _allowed(parameter), "WRONG_TYPE")
    return [text for one in present if (text := _text(reading, parameter, one))] or None


def _unreadable(reading: Reading, parameter: Parameter) -> None:
    """Report an optional value that cannot be read; refuse it where the tool or the parameter is strict."""
    if reading.tool.is_strict or parameter.is_strict or parameter.is_required:
        reading.refuse(parameter.name, "cannot be read", _allowed(parameter))
    reading.notice(f"{parameter.name}: cannot be read, dropped; allowed: {_allowed(parameter)}")


def _integer(reading: Reading, parameter: Parameter, value: Any) -> int | None:
    number = _as_number(value)
    if number is None:
        _unreadable(reading, parameter)
        return None
    whole = int(number)
    if isinstance(value, str):
        reading.notice(f"{parameter.name}: read as {whole}")
    if parameter.bounds:
        least, most = map(int, parameter.bounds)
        if parameter.is_strict and whole < 1 <= least:
            reading.refuse(parameter.name, f"{whole} is below 1", _allowed(parameter))
        if not least <= whole <= most:
            whole = min(max(whole, least), most)
            reading.notice(f"{parameter.name}: out of range, changed to {whole}")
    return whole


def _number(reading: Reading, parameter: Parameter, value: Any) -> float | None:
    """Return a number, also from a percentage or from words such as high."""
    number = _as_number(value)
    if number is None and isinstance(value, str):
        word = value.strip().casefold()
        number = AMOUNTS.get(word)
        if number is None and word.endswith(("%", "％")):
            percent = _as_number(word[:-1])
            number = None if percent is None else percent / 100
    if number is None:
        _unreadable(reading, parameter)
        return None
    if isinstance(value, str):
        reading.notice(f"{parameter.name}: read as {number:g}")
    if parameter.bounds:
        least, most = parameter.bounds
        if not least <= number <= most:
            number = min(max(number, least), most)
            reading.notice(f"{parameter.name}: out of range, changed to {number:g}")
    return number


def _attributes(reading: Reading, parameter: Parameter, value: Any) -> dict[str, str] | None:
    """Return attributes from an object, its JSON as text, a list of pairs, or `name: value` lines."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in ("{", "["):
            with suppress(ValueError):
                value = from_json(text)
        else:
            pairs = [part.partition(":" if ":" in part else "=") for part in ATTRIBUTE_ENDS.split(text)]
            value = {name.strip(): said.strip() for name, _, said in pairs if name.strip() and said.strip()}
        reading.notice(f"{parameter.name}: read from text")
    if isinstance(value, list):
        named = [one for one in value[:MAX_ITEMS] if isinstance(one, dict)]
        found: dict[str, Any] = {}
        for one in named:
            name = next((one[key] for key in ("key", "name", "attribute") if key in one), None)
            said = next((one[key] for key in ("value", "content", "text") if key in one), None)
            found |= {str(name): said} if name is not None else one
        reading.notice(f"{parameter.name}: a list read as an object")
        value = found
    if not isinstance(value, dict):
        _unreadable(reading, parameter)
        return None
    texts = {str(name): _attribute_text(said) for name, said in value.items() if _present(said) is not None}
    if len(texts) > MAX_ATTRIBUTES:
        allowed = f"at most {MAX_ATTRIBUTES} attributes"
        reading.refuse(parameter.name, f"{len(texts)} attributes", allowed, "TOO_MANY_ITEMS")
    if any(len(name) > MAX_NAME or len(said) > MAX_ATTRIBUTE for name, said in texts.items()):
        allowed = f"names of at most {MAX_NAME} characters, values of at most {MAX_ATTRIBUTE}"
        reading.refuse(parameter.name, "an attribute is too long", allowed, "TEXT_TOO_LONG")
    return texts or None


def _attribute_text(value: Any) -> str:
    text = _plain_text(value)
    if text is None:
        text = (
            "true" if value is True else "false" if value is False else json.dumps(value, ensure_ascii=False)
        )
    return text


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e15 else math.copysign(1e15, value)
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARS:
        return None
    try:
        number = float(DIGITS.get(value.strip(), value.strip()))
    except ValueError:
        return None
    return _as_number(number) if math.isfinite(number) else None


def _flag(reading: Reading, parameter: Parameter, value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) and value not in (2,) else ""
    is_true = word in YES or word in parameter.yes
    if is_true or word in NO:
        reading.notice(f"{parameter.name}: read as {'true' if is_true else 'false'}")
        return is_true
    _unreadable(reading, parameter)
    return None


def _interval(reading: Reading, value: Any) -> Interval | None:
    """Return the period that words or milliseconds name."""
    if isinstance(value, int) and not isinstance(value, bool) and 10**11 < value < 10**14:
        return value, value + 1
    return reading.read_time(value) if isinstance(value, str) else None


def _time(reading: Reading, parameter: Parameter, value: Any) -> int | None:
    found = _interval(reading, value)
    if found is None or found[0] is None:
        _unreadable(reading, parameter)
        return None
    return found[0]


def _time_range(reading: Reading, parameter: Parameter, value: Any) -> Interval | None:
    if isinstance(value, list) and len(value) == 2:
        value = dict(zip(("begin", "end"), value, strict=True))
    if not isinstance(value, dict):
        found = _interval(reading, value)
        if found is None:
            _unreadable(reading, parameter)
        return found
    sides = []
    for names, side in ((BEGINS, 0), (ENDS, 1)):
        said = next((_present(value[name]) for name in names if name in value), None)
        found = None if said is None else _interval(reading, said)
        if said is not None and found is None:
            _unreadable(reading, parameter)
            return None
        sides.append(None if found is None else found[side])
    begin, end = sides
    if (begin is None and end is None) or (begin is not None and end is not None and begin >= end):
        _unreadable(reading, parameter)
        return None
    reading.notice(f"{parameter.name}: read from begin and end")
    return begin, end


READERS: Mapping[str, Callable[[Reading, Parameter, Any], Any]] = {
    "text": _text,
    "texts": _texts,
    "integer": _integer,
    "number": _number,
    "attributes": _attributes,
    "flag": _flag,
    "time": _time,
    "time_range": _time_range,
}
"""How each kind of parameter is read."""
