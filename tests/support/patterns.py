"""Every compiled pattern of the package, and its uses in the code."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ebbtide
from ebbtide import normalisation
from ebbtide.retrieval import topic
from tests.tidy.pages import PACKAGE, modules

DEEPEST = 4
"""The depth of nested containers that are searched for patterns."""

LEAVES = (str, bytes, int, float)
"""Types of values in tables, which contain no patterns. There are hundreds of thousands of them."""

METHODS = frozenset({"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
ANCHORED = frozenset({"match", "fullmatch"})
"""Methods that match a pattern at one position only."""

USE = re.compile(rf"(?<![\w.])(\w+)\.({'|'.join(sorted(METHODS))})\b")
"""The use of a name. Every worker of the tests reads all modules, and a syntax tree takes ten times as long."""

READING = re.compile(rf"\.(?:{'|'.join(sorted(METHODS))}|normalize)\s*\(")
"""A call that may apply a pattern or normalise. Only modules with one are parsed."""

TOPICS = ("Ann", "小明", "Ann Lee", "a\u200bb c", "x.y (z)", "'ab'", "a a a a a a a a a a b")


@dataclass(frozen=True, slots=True)
class Found:
    """A compiled pattern, the name of its constant, and whether it is matched at one position only."""

    name: str
    pattern: re.Pattern[str]
    is_anchored: bool


def _reached(value: Any, depth: int = DEEPEST) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth == 0:
        return
    elif isinstance(value, dict):
        yield from _reached([*value.keys(), *value.values()], depth)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            if not isinstance(one, LEAVES):
                yield from _reached(one, depth - 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _reached(getattr(value, field.name, None), depth - 1)


@cache
def compiled() -> tuple[Found, ...]:
    """Return every pattern of the package's modules, each once, including those compiled at run time."""
    found: dict[tuple[str, int], Found] = {}
    for info in pkgutil.walk_packages(ebbtide.__path__, "ebbtide."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            for pattern in _reached(value):
                used = _uses(Path(module.__file__ or "")).get(name, frozenset())
                is_anchored = bool(used) and used <= ANCHORED
                known = found.get((pattern.pattern, pattern.flags))
                if known is None or (known.is_anchored and used and not is_anchored):
                    place = f"{info.name.removeprefix('ebbtide.')}.{name}"
                    found[pattern.pattern, pattern.flags] = Found(place, pattern, is_anchored)
    for words in TOPICS:
        pattern = topic.Topic(words)._pattern
        found[pattern.pattern, pattern.flags] = Found(f"retrieval.topic of {words!a}", pattern, False)
    pattern = normalisation._full_run()
    found[pattern.pattern, pattern.flags] = Found("normalisation._full_run()", pattern, False)
    return tuple(found.values())


@cache
def _uses(path: Path) -> dict[str, frozenset[str]]:
    """Return the methods that a module calls on each of its names."""
    uses: dict[str, set[str]] = {}
    for name, method in USE.findall(path.read_text(encoding="utf-8")):
        uses.setdefault(name, set()).add(method)
    return {name: frozenset(methods) for name, methods in uses.items()}


def made_elsewhere() -> list[str]:
    """Return `module:function` of each function that passes a pattern to `re`."""
    found = []
    called = {f"re.{name}" for name in (*METHODS, "compile")}
    for path in modules():
        source = path.read_text(encoding="utf-8")
        if "re." not in source:
            continue
        for function in _functions(ast.parse(source)):
            for node in ast.walk(function):
                is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                if is_call and ast.unparse(node.func) in called:
                    found.append(f"{path.relative_to(PACKAGE)}:{function.name}")
    return sorted(set(found))


def readers_by_pattern() -> set[tuple[str, str]]:
    """Return (module, function) of every function that applies a pattern or normalises."""
    found = set()
    for path in modules():
        source = path.read_text(encoding="utf-8")
        if not READING.search(source):
            continue
        tree = ast.parse(source)
        held = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_constant(n.id)}
        for function in _functions(tree):
            for node in ast.walk(function):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if node.func.attr not in {*METHODS, "normalize"}:
                    continue
                on, method = ast.unparse(node.func.value), node.func.attr
                applies = method in METHODS and (on in held or on == "re")
                if applies or (on, method) == ("unicodedata", "normalize"):
                    found.add((str(path.relative_to(PACKAGE)), function.name))
    return found


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _is_constant(name: str) -> bool:
    return name.lstrip("_").isupper()
