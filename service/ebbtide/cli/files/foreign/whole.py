"""Read a file as one JSON document, or as lines, for the formats that are not read piece by piece."""

from __future__ import annotations

import json
from typing import Any

from ebbtide.cli.files.conversation import bad_input, read_whole
from ebbtide.cli.files.foreign.sources import Source


def text_of_file(source: Source) -> str:
    """Return the text of a file of at most 128 MiB. Raise a Failure if it is not UTF-8."""
    raw = read_whole(source.file, source.name)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise bad_input(
            f"{source.name}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8 text."
        ) from None


def parsed(text: str, name: str) -> Any:
    """Return the JSON document. Raise a Failure, with the place, if the text is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise bad_input(
            f"{name}, line {error.lineno}, column {error.colno}: not JSON ({error.msg.lower()})."
        ) from None
    except (ValueError, RecursionError):
        raise bad_input(f"{name}: nested too deeply, or a number has too many digits.") from None
