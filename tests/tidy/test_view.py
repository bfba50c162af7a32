"""The lock files of npm name no registry, libraries in the web view have permissive licences, and errors have Chinese
sentences."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ebbtide.errors import REASONS
from ebbtide.han import contains_han
from tests.tidy.pages import PACKAGE, ROOT

ALLOWED = {"MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "Unlicense"}
LICENCES = PACKAGE / "web" / "files" / ".vite" / "license.md"


def locked(folder: str) -> dict[str, dict[str, Any]]:
    """Return the packages of a lock file, without the project itself."""
    packages: dict[str, dict[str, Any]] = json.loads((ROOT / folder / "package-lock.json").read_text())[
        "packages"
    ]
    del packages[""]
    return packages


@pytest.mark.parametrize("folder", ["web", "clients/typescript"])
def test_lock_files_name_no_host(folder: str) -> None:
    """No address of a registry is committed: each installation uses its own. Every package has a checksum."""
    packages = locked(folder)
    assert len(packages) > 10
    for name, package in packages.items():
        assert "resolved" not in package, name
        assert package["integrity"].startswith("sha512-"), name
        assert re.fullmatch(r"\d+\.\d+\.\d+[\w.+-]*", package["version"]), name
    settings = (ROOT / folder / ".npmrc").read_text().splitlines()
    assert {"omit-lockfile-registry-resolved=true", "ignore-scripts=true"} <= set(settings)


def test_libraries_in_the_view_are_permissively_licensed() -> None:
    """The lock file has an allowed licence for every package that is not only a tool of the build."""
    bundled = {name: one["license"] for name, one in locked("web").items() if not one.get("dev")}
    assert "node_modules/preact" in bundled
    assert [name for name, licence in bundled.items() if licence not in ALLOWED] == []


def test_every_reason_of_an_error_has_a_chinese_sentence() -> None:
    """A new reason of the daemon or of the client needs a sentence, and the view names no others."""
    sources = (ROOT / "clients/typescript/src").glob("*.ts")
    client = {
        name
        for source in sources
        if source.stem != "schema"
        for name in re.findall(r'(?:reason: |, )"([A-Z]+(?:_[A-Z]+)+)"', source.read_text(encoding="utf-8"))
    }
    assert {"CONNECTION_LOST", "NO_ANSWER_IN_TIME", "TLS_NOT_SPOKEN"} <= client
    words = ROOT / "web/src/words"
    sentences = dict(
        re.findall(r'^  ([A-Z_]+): "(.+)",$', (words / "reasons_zh.ts").read_text("utf-8"), re.MULTILINE)
    )
    assert sentences.keys() == REASONS.keys() | client
    assert [name for name, sentence in sentences.items() if not contains_han(sentence)] == []
    for language in ("en", "zh"):
        named = re.findall(
            r"^    ([A-Z]+_[A-Z_]+):", (words / f"{language}.ts").read_text("utf-8"), re.MULTILINE
        )
        assert named and set(named) <= sentences.keys()


@pytest.mark.skipif(not LICENCES.is_file(), reason="the web view is not built; `make view` builds it")
def test_the_licences_in_the_view_are_allowed() -> None:
    """The list that the build wrote has an allowed licence for every library."""
    found = re.findall(r"^## (\S+) - \S+ \((.+)\)$", LICENCES.read_text(encoding="utf-8"), re.MULTILINE)
    assert "preact" in dict(found)
    assert [name for name, licence in found if licence not in ALLOWED] == []
