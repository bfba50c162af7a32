"""Tests of the code itself: imports, purity, size, docstrings, and forbidden words."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.pages import PACKAGE, ROOT, files, modules

LONGEST_FUNCTION = 70

PURE = ("memory", "store", "retrieval", "privacy")

Function = ast.FunctionDef | ast.AsyncFunctionDef

CACHED = {"_address", "_plain", "_read", "_request_kind", "_template", "_weight", "model"}
"""Functions with a cache whose arguments are no texts of users: addresses, names of nodes and files, characters."""


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[Function]:
    """Yield the functions of a module, including methods and nested functions."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def name_of(path: Path) -> str:
    """Return a module's path within the package."""
    return str(path.relative_to(PACKAGE))


def test_pure_packages_have_no_async() -> None:
    """The pure packages contain no `async def`, `await`, `async with` or `async for`."""
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncWith, ast.AsyncFor)
    found = [
        f"{name_of(path)}:{node.lineno}"
        for package in PURE
        if (PACKAGE / package).is_dir()
        for path in modules(PACKAGE / package)
        for node in ast.walk(tree_of(path))
        if isinstance(node, waiting)
    ]
    assert found == []


def test_imports_point_one_way() -> None:
    """The contracts of import-linter are kept: layers, and the importers of lmdb, fastapi and httpx."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout), done.stdout


def test_modules_open_with_what_they_are() -> None:
    """Every module with code has a docstring."""
    bare = [
        name_of(path)
        for path in modules()
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(tree_of(path))
    ]
    assert bare == []


def test_functions_stay_small() -> None:
    """No function is longer than 70 lines."""
    long = [
        f"{name_of(path)}: {function.name}"
        for path in modules()
        for function in functions(path)
        if (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_texts_are_cached_where_deletions_clear_them() -> None:
    """A function of texts has the cache of `text_caches`, which every deletion clears."""
    kept = [
        f"{name_of(path)}: {function.name}"
        for path in modules()
        for function in functions(path)
        if any(
            re.match(r"(?:functools\.)?(?:lru_)?cache\b", ast.unparse(one)) for one in function.decorator_list
        )
        and any(one.annotation and "str" in ast.unparse(one.annotation) for one in function.args.args)
        and function.name not in CACHED
        and path != PACKAGE / "text_caches.py"
    ]
    assert kept == []


def undocumented(path: Path) -> Iterator[str]:
    """Yield the public functions, classes and methods of a module without a docstring.

    A method that a port of the same module documents needs none.
    """
    tree = tree_of(path)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    promised = {
        method.name
        for port in classes
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in port.bases)
        for method in port.body
        if isinstance(method, Function)
    }
    for node in tree.body:
        if isinstance(node, (*Function.__args__, ast.ClassDef)) and not node.name.startswith("_"):  # type: ignore[attr-defined]
            if not ast.get_docstring(node):
                yield f"{name_of(path)}: {node.name}"
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    is_public = isinstance(method, Function) and not method.name.startswith("_")
                    if is_public and method.name not in promised and not ast.get_docstring(method):
                        yield f"{name_of(path)}: {node.name}.{method.name}"


def test_public_names_say_what_they_do() -> None:
    """Every public function, class and method of the package has a docstring."""
    assert [name for path in modules() for name in undocumented(path)] == []


def test_every_test_states_its_promise() -> None:
    """Every test has a docstring, and the docstring is a sentence."""
    silent = [
        f"{path.relative_to(ROOT)}: {function.name}"
        for path in modules(ROOT / "tests")
        if path.name.startswith("test_")
        for function in functions(path)
        if function.name.startswith("test_")
        and not re.search(r"[.。!?]$", (ast.get_docstring(function) or "").partition("\n\n")[0].strip())
    ]
    assert silent == []


def test_modules_have_specific_names() -> None:
    """No module has a name that says nothing about its content."""
    drawers = {"utils", "helpers", "common", "manager", "base", "misc", "handlers"}
    assert [name_of(path) for path in modules() if path.stem in drawers] == []


FORBIDDEN = {
    "a path of one machine": r"(?<![\w.)}>\]-])/(?:work|home/\w+|root|Users/\w+)/",
    "a folder of tools": r"(?<!\w)\." + "library" + r"\b",
    "a name of a machine": r"\b" + "farm" + "-",
    "talk of another place": "issue tracker" + " session",
    "a file of one machine": "/tmp/" + r"bash",
}
TEXT = {".py", ".md", ".toml", ".json", ".yml", ".yaml", ".txt", ".cfg", ".sh", ""}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_points_outside(what: str) -> None:
    """No file of the repository mentions the machine or the place where it was written."""
    pattern = re.compile(FORBIDDEN[what])
    found = [
        str(path.relative_to(ROOT))
        for path in files()
        if path.suffix in TEXT and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
