"""Read the elements of a JSON array one at a time, from a file of any size.

The rule guarded here: **the largest element of a file bounds the memory that reading takes**. The file is read in
pieces, and the parser of the standard library reads an element as soon as it is complete.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from ebbtide.cli.files.conversation import bad_input

PIECE_BYTES = 1 << 20
MAX_ELEMENT_CHARS = 64 << 20
WHITE = " \t\r\n"
CUT_CHARS = 16
"""An error that is nearer to the end of the text than this may be one of a piece that was cut."""


def elements(file: BinaryIO, name: str, noun: str = "element") -> Iterator[Any]:
    """Yield the elements of a JSON array. Raise a Failure, with the number of the element, where it is no JSON."""
    window = _Window(file, name, noun)
    if window.mark() != "[":
        window.refuse("a list was expected")
    window.at += 1
    while True:
        mark = window.mark()
        if mark == "]" and window.index == 0:
            break
        yield window.element()
        mark = window.mark()
        if mark == "]":
            break
        if mark != ",":
            window.refuse(
                "the file ends before its list" if not mark else "expected a comma or the end of the list"
            )
        window.at += 1
    window.at += 1
    if window.mark():
        window.refuse("text after the end of the list")


class _Window:
    """The part of a file that is in memory, and a position in it."""

    def __init__(self, file: BinaryIO, name: str, noun: str) -> None:
        self.file = file
        self.name = name
        self.noun = noun
        self.text = ""
        self.at = 0
        self.index = 0
        self.is_over = False
        self._bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()

    def mark(self) -> str:
        """Return the next character that is no white space, without passing it; at the end of the file, none."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in WHITE:
                    return self.text[self.at]
                self.at += 1
            if self.is_over:
                return ""
            self._read()

    def element(self) -> Any:
        """Return the value that begins here, and pass it."""
        while True:
            try:
                value, end = self._json.raw_decode(self.text, self.at)
            except RecursionError:
                self.refuse("nested too deeply")
            except json.JSONDecodeError as error:
                if self.is_over:
                    self.refuse(f"the file ends within it, or it is not JSON ({error.msg.lower()})")
                if not self._is_cut(error):
                    self.refuse(f"not JSON ({error.msg.lower()})")
            except ValueError:
                self.refuse("a number has too many digits")
            else:
                # The next piece may continue a number: `1`, `1.` and `1e+` may become `1e+5`.
                if end + 2 < len(self.text) or self.is_over:
                    self.at = end
                    self.index += 1
                    return value
            if len(self.text) - self.at > MAX_ELEMENT_CHARS:
                self.refuse(f"more than {MAX_ELEMENT_CHARS >> 20} million characters")
            self._read()

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos > len(self.text) - CUT_CHARS

    def _read(self) -> None:
        """Read as much again as is left, so that a long element is parsed only a few times."""
        raw = self.file.read(max(PIECE_BYTES, len(self.text) - self.at))
        try:
            more = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            place = self._bytes + error.start
            self.refuse(f"byte 0x{error.object[error.start]:02x} at {place:,} is not UTF-8 text")
        self._bytes += len(raw)
        self.is_over = not raw
        self.text = self.text[self.at :] + more
        self.at = 0

    def refuse(self, why: str) -> NoReturn:
        """Raise the failure of the file at this element."""
        raise bad_input(f"{self.name}, {self.noun} {self.index + 1}: {why}.")
