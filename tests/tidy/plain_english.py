"""A deny-list of phrases that confuse native readers, and the texts that it is applied to.

`python -m tests.tidy.plain_english [PATH ...]` prints every hit, or those in the named files. Add a phrase here only if
nearly all of its uses are wrong: a rule with many false hits teaches people to ignore it.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import typer.main

from ebbtide.cli.app import app
from ebbtide.rest.app import create_app
from ebbtide.telemetry import configure_log
from tests.support.in_process import service_in
from tests.tidy.pages import PACKAGE, ROOT, files, modules, pages

CLIENT = ROOT / "clients" / "python" / "src"

RULES: dict[str, str] = {
    # A clause with who or what as its subject.
    r"(?:\A|(?<=[.!:;] ))(?:Who|Whoever|What|Whatever)\b(?! to\b)(?!['’])(?=[^?]*(?:\.(?: |\Z)|;))": "name the subject",
    r"; (?:who|whoever|what|whatever)\b(?! to\b)": "name the subject",
    r"\bwho(?:ever)? else\b": "anyone else, another client",
    r"\bwhoever\b": "the caller, a client, anyone who",
    # Verbs of speech for programs.
    r"\b(?:tells|told)\b(?! apart| them apart| from)": "reports, returns, says, is notified",
    r"\b(?:is|are|was|were|been) asked\b(?! to\b)": "is requested, is queried",
    r"\bas asked\b": "as requested",
    r"\bmakes? known\b": "publish, report",
    # Archaisms and calques.
    r"\banew\b": "again, from scratch",
    r"\bbeside\b": "next to, with, in addition to",
    r"\bmend(?:s|ed|ing)?\b": "repair, fix",
    r"\b(?:nobody|somebody|everybody)\b": "no client, the caller, everyone",
    r"\bas (?:\w+ ){1,4}as may be\b": "the most that the limit allows",
    r"\binto being\b": "create",
    r"\b(?:is|are|was|were) begun\b": "has started",
    r"\bwhat is begun\b": "what has started",
    r"\bis none (?:that|of)\b": "is not a valid",
    r"\bof late\b": "recently",
    r"\bto be had\b": "available",
    r"\bhenceforth\b": "from then on",
    # Metaphors of a house.
    r"\bat the door\b": "on ingest, at the boundary",
    r"\bon (?:its|their) way (?:in|out|to)\b": "in transit, in progress",
    r"\b(?:look|looks|looked|looking) out for\b": "watch for, check",
    r"\bgive[sn]? way\b": "yield",
    r"\bgave way\b": "yield",
    r"\bshow(?:s|n|ing)? (?:a|its|their|your|no|the) keys?\b": "send, authenticate with",
    # Plain verbs in a sense of their own.
    r"\b(?:stands|stood)\b(?! (?:for|in for|out|by|alone)\b)": "is stored, is listed, is",
    r"\bstand(?= (?:in|on|at|here|there|beside|within|where|as|open|first|last|still)\b)": "is stored, is listed, is",
    r"\b(?:goes|went|going|gone) (?:for good|with it|with them|as well)\b": "is deleted",
    r"\bgoes(?=[.,;)]|\Z)": "is deleted",
    r"\b(?:is|are|was|were|been) gone\b": "is deleted, was removed, does not exist",
    r"\bgoes away\b": "disconnects, is removed",
    r"\b(?:lies|lie|lay) (?:in|on|beside|under|there|within|behind|at|around)\b": "is in, is stored",
    r"\b(?:is|are) through\b(?! (?:the|a|an|its)\b)": "is complete",
    r"\bholds(?= (?:a|an|the|its|no|every|each|all|some|one|two|three|many|more|what|only(?! under)|up to)\b)"
    r"(?! (?:a|an|the|its|no|every|each|all|some|one|two|only) (?:\w+ )?"
    r"(?:lock|locks|lease|snapshot|reference|slot|permit|connection|transaction|mutex|semaphore|handle)\b)": "contains",
    r"\b(?:hold|holds|held|holding) (?:\w+ ){1,4}against\b": "compare with",
    r"\bheld against\b": "compared with",
    r"\bin force\b": "current, in effect",
    r"\bin the midst of\b": "during",
    r"\bgo(?:es)? on\b(?! to\b)": "continue, proceed",
    r"\b(?:jobs?|requests?|calls?|work|batch(?:es)?|transfers?) in hand\b": "in progress, current",
    r"\bfor want of\b": "for lack of, because there is no",
    r"\btak(?:e|es|en) up (?:again|where)\b": "resume, continue",
    r"\bof ours\b": "a bug, our own",
    r"\bas ever\b": "as before, as usual",
    r"\bnot at hand\b": "not available, missing",
}
"""Patterns of denied phrases, with plainer words."""

_PATTERNS = {
    re.compile(pattern, re.IGNORECASE if pattern[0] != "(" else 0): plain for pattern, plain in RULES.items()
}

NOT_PROSE = ("language/builtin/", "retrieval/", "language/prompts/")
"""Folders of the package whose string literals are vocabulary, not messages."""

LOG_EVENTS = frozenset({"settings in force"})
"""Names of log events with a denied phrase. Operators search for them, so they are exempt."""

_CONFIGURATION_COMMENT = re.compile(r"(?:^|\s)##? ?(\w.*)$")

_STRING_OR_COMMENT = re.compile(
    r"""'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*"|(\#[^\n]*)""",
    re.DOTALL,
)
"""What a `#` may be in: a string, or a comment, which is the group. `tokenize` takes ten times as long."""

_CODE = re.compile(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"[*_>|]|\]\([^)\s]*\)")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prose, with its position."""

    place: str
    content: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A denied phrase in a text."""

    place: str
    phrase: str
    plain: str


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def _blank(found: re.Match[str]) -> str:
    """Return the replacement of code: as many empty lines, or a word within a sentence."""
    return "\n" * found[0].count("\n") or "code"


def prose_of(content: str) -> Text:
    """Return a text that belongs to no file."""
    return Text("", content)


def page_texts(path: Path, content: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table rows of a page, without code, headings and comments."""
    body = _CODE.sub(_blank, content)
    paragraph: list[str] = []
    first = 1
    for number, line in enumerate([*body.splitlines(), ""], start=1):
        begins = re.match(r"\s*(?:[-*] |\d+\. |\|)", line)
        if paragraph and (begins or not line.strip() or line.startswith("#")):
            yield Text(_place(path, first), _MARKUP.sub("", " ".join(paragraph)))
            paragraph = []
        if line.strip() and not line.startswith("#"):
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"^\s*(?:[-*] |\d+\. )", "", line).strip())


def _docstrings(nodes: list[ast.AST]) -> set[ast.Constant]:
    """Return every string that is a statement: docstrings of modules, classes, functions and attributes."""
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def _literals(nodes: list[ast.AST], docstrings: set[ast.Constant]) -> Iterator[tuple[int, str]]:
    """Yield the other strings that are prose, and f-strings with each field replaced by a word."""
    parts: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts |= {inner for inner in ast.walk(node) if inner is not node}
    for node in nodes:
        if node in parts or node in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            said = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "code" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        if len(said.split()) > 1 and said not in LOG_EVENTS and not re.search(r"\\|\(\?|\[\^", said):
            yield node.lineno, said


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments, joined over consecutive lines."""
    lines, line, place = [], 1, 0
    for found in _STRING_OR_COMMENT.finditer(source):
        if found[1] is not None:
            line, place = line + source.count("\n", place, found.start()), found.start()
            lines.append((line, found[1].lstrip("# ")))
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1][0] - pair[0]):
        block = [line for _, line in group]
        yield block[0][0], " ".join(text for _, text in block)


def module_texts(path: Path) -> Iterator[Text]:
    """Yield the docstrings and comments of a module; for the package and the client also the messages."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = _docstrings(nodes)
    for node in docstrings:
        yield Text(_place(path, node.lineno), str(node.value))
    for line, said in _comments(source):
        yield Text(_place(path, line), said)
    is_shown = path.is_relative_to(CLIENT) or (
        path.is_relative_to(PACKAGE) and not path.relative_to(PACKAGE).as_posix().startswith(NOT_PROSE)
    )
    if is_shown:
        for line, said in _literals(nodes, docstrings):
            yield Text(_place(path, line), said)


def configuration_texts(path: Path) -> Iterator[Text]:
    """The comments of a Makefile or a TOML file; in a Makefile also the help of a target."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        found = _CONFIGURATION_COMMENT.search(line)
        if found is not None:
            yield Text(_place(path, number), found[1])


def schema_texts(path: Path) -> Iterator[Text]:
    """Yield the comments of a schema file, which document the gRPC interface."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        _, slashes, said = line.partition("//")
        if slashes:
            yield Text(_place(path, number), said.strip())


async def _openapi_document() -> Any:
    with tempfile.TemporaryDirectory() as directory:
        async with service_in(Path(directory)) as service:
            transport = httpx.ASGITransport(create_app(service))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await client.get("/openapi.json")).json()


def _described(node: Any, place: str) -> Iterator[Text]:
    """Yield the summaries and descriptions of an OpenAPI document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("summary", "description") and isinstance(value, str):
                yield Text(place, value)
            else:
                yield from _described(value, f"{place}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _described(value, f"{place}/{index}")


def _help(command: Any, place: str) -> Iterator[Text]:
    """Yield the help of a command, of its options and of its subcommands."""
    yield Text(place, command.help or "")
    for parameter in command.params:
        yield Text(f"{place} {parameter.name}", getattr(parameter, "help", None) or "")
    for name, inner in getattr(command, "commands", {}).items():
        yield from _help(inner, f"{place} {name}")


def interface_texts() -> Iterator[Text]:
    """Yield the descriptions of the OpenAPI document and the help of the command line."""
    yield from _described(asyncio.run(_openapi_document()), "openapi.json")
    yield from _help(typer.main.get_command(app), "ebbtide")


def texts() -> Iterator[Text]:
    """Yield every text of the repository that the deny-list applies to."""
    yield from interface_texts()
    for page in pages():
        yield from page_texts(page, page.read_text(encoding="utf-8"))
    for folder in (PACKAGE, CLIENT, ROOT / "tests", ROOT / "benchmarks"):
        for module in modules(folder):
            if module != Path(__file__):
                yield from module_texts(module)
    for name in ("Makefile", "pyproject.toml"):
        yield from configuration_texts(ROOT / name)
    for schema in files(ROOT / "proto"):
        if schema.suffix == ".proto":
            yield from schema_texts(schema)


def hits(text: Text) -> Iterator[Hit]:
    """Yield the denied phrases of a text."""
    said = " ".join(text.content.split())
    for pattern, plain in _PATTERNS.items():
        for found in pattern.finditer(said):
            yield Hit(text.place, said[max(0, found.start() - 30) : found.end() + 30], plain)


def all_hits() -> list[Hit]:
    """Return the denied phrases of the repository."""
    return [hit for text in texts() for hit in hits(text)]


def main() -> None:
    """Print the hits by file."""
    configure_log("error", "console")
    named = tuple(sys.argv[1:]) or ("",)
    for hit in sorted(all_hits(), key=lambda hit: hit.place):
        if hit.place.startswith(named):
            print(f"{hit.place}: …{hit.phrase}… → {hit.plain}")


if __name__ == "__main__":
    main()
