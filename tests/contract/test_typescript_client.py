"""The TypeScript client as its users get it: built, type-checked, and run in Node against a real daemon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.conformance import FOLDER
from tests.support.node import TSC, make_project, run_node
from tests.support.process import Daemon
from tests.tidy.pages import read

PAGES = ("clients/typescript/README.md", "docs/clients.md", "docs/integrations.md")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the built package is installed, with the package's tests."""
    return make_project(tmp_path_factory.mktemp("typescript"))


def snippets(page: str) -> list[str]:
    """Return the TypeScript programs of a page."""
    found: list[str] = re.findall(r"<!-- run: typescript -->\n```ts\n(.*?)```", read(page), re.DOTALL)
    return found


def test_the_tests_and_the_snippets_of_the_pages_compile(project: Path) -> None:
    """Under `strict` and `exactOptionalPropertyTypes`, with the types that the built package has."""
    count = 0
    for page in PAGES:
        for block in snippets(page):
            count += 1
            (project / "test" / f"snippet-{count}.ts").write_text(f"{block}\nexport {{}};\n")
    assert count >= 5
    run_node(project, TSC, "--project", "tsconfig.test.json")


def test_the_package_needs_nothing_of_node(project: Path) -> None:
    """The built files import only each other, so that they run in browsers."""
    files = list((project / "node_modules" / "ebbtide-client" / "dist").glob("*.js"))
    assert len(files) >= 6
    for file in files:
        imported = re.findall(r"""(?:from|import\(?|require\()\s*["']([^"']+)["']""", file.read_text())
        assert all(name.startswith("./") for name in imported), (file.name, imported)


def test_the_client_works(project: Path, daemon: Daemon) -> None:
    """Its own tests, the shared cases and the example of its README succeed against a real daemon."""
    environment = {"EBBTIDE_TEST_URL": daemon.url, "CONFORMANCE_CASES": str(FOLDER)}
    tests = sorted(str(path) for path in (project / "test").glob("*.test.ts"))
    printed = run_node(project, "--test", "--test-reporter", "tap", *tests, environment=environment)
    passed = re.search(r"# pass (\d+)\n# fail 0\n", printed)
    assert passed is not None and int(passed[1]) > 30, printed
    example = snippets(PAGES[0])[0].replace("http://127.0.0.1:8420", daemon.url)
    (project / "example.ts").write_text(example)
    assert "I moved to Lisbon in May." in run_node(project, "example.ts")
