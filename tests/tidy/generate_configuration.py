"""Generate the tables of docs/configuration.md with `python -m tests.tidy.generate_configuration`.

The tables between `<!-- generated: NAME -->` and `<!-- end -->` come from settings.py and parameters.py. The rest of
the page is written by hand. A test compares the tables with the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ebbtide.parameters import MAX_DAYS, AgentParameters
from ebbtide.settings import Settings
from tests.tidy.pages import DOCS

PAGE = DOCS / "configuration.md"
BLOCK = re.compile(r"(<!-- generated: ([\w.]+) -->\n).*?(<!-- end -->)", re.DOTALL)

SPOKEN = {
    ("store", "data_dir"): "`$XDG_DATA_HOME/ebbtide`, else `~/.local/share/ebbtide`",
}
"""Defaults that depend on the machine, in words."""

CHOICES = {
    "upstreams": "`openai`, `ollama`: a table with `url`, `api_key_file`",
    "agent": "an agent id",
    "retention": f'`"keep"`, `"days:N"` with N from 1 to {MAX_DAYS}, `"none"`',
    "time_zone": "a name of the IANA database, such as `UTC` or `Europe/Berlin`",
}
"""The allowed values of settings with a syntax of their own."""

UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def tables() -> dict[str, str]:
    """Return the generated tables by name."""
    found = {
        section: _settings_table(section, field.annotation)
        for section, field in Settings.model_fields.items()
        if section != "memory"
    }
    return {**found, "parameters": _parameters_table()}


def render(page: str) -> str:
    """Return the page with its tables regenerated."""
    made = tables()
    return BLOCK.sub(lambda m: f"{m[1]}{made[m[2]]}{m[3]}", page)


def _settings_table(section: str, model: Any) -> str:
    assert issubclass(model, BaseModel)
    lines = ["| setting | environment | default | allowed | meaning |", "|---|---|---|---|---|"]
    for name, field in model.model_fields.items():
        variable = f"EBBTIDE_{section}__{name}".upper()
        default = SPOKEN.get((section, name)) or _default(name, field)
        lines.append(
            f"| `{section}.{name}` | `{variable}` | {default} | {_allowed(name, field)} | {field.description} |"
        )
    return "\n".join(lines) + "\n"


def _parameters_table() -> str:
    lines = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
    for name, field in AgentParameters.model_fields.items():
        lines.append(
            f"| `{name}` | {_default(name, field)} | {_allowed(name, field)} | {field.description} |"
        )
    return "\n".join(lines) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "`{}`"
    if isinstance(value, tuple):
        return "`[]`" if not value else f"`{list(value)}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value}`{_in_units(name, value)}"


def _allowed(name: str, field: FieldInfo) -> str:
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(annotation))
    if annotation is bool:
        return "`true`, `false`"
    if get_origin(annotation) is tuple:
        return "a list of texts"
    if name in CHOICES:
        return CHOICES[name]
    bounds = {type(b).__name__: vars_of(b) for b in field.metadata}
    if not bounds:
        return "a path" if annotation is Path else "a text"
    low = bounds.get("Ge", bounds.get("Gt"))
    high = bounds.get("Le", bounds.get("Lt"))
    opening = "more than " if "Gt" in bounds else ""
    return f"{opening}{_number(name, low)} to {_number(name, high)}"


def vars_of(bound: Any) -> Any:
    """Return the value of a bound of annotated_types; its only field has the name of its class."""
    return getattr(bound, type(bound).__name__.lower())


def _number(name: str, value: Any) -> str:
    if name.endswith("_bytes") and value >= 1 << 10:
        return _in_units(name, value).strip(" ()") or str(value)
    return str(value)


def _in_units(name: str, value: Any) -> str:
    if not name.endswith("_bytes"):
        return ""
    for size, unit in UNITS:
        if value >= size and value % size == 0:
            return f" ({value // size} {unit})"
    return ""


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
