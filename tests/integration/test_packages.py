"""The distributions `ebbtide` and `ebbtide-client` in one environment: each can be removed without the other.

Needs PyPI, or the package index that pip is configured for.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.tidy.pages import ROOT

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not {"CI", "EBBTIDE_DEPLOY_TESTS"} & os.environ.keys(),
        reason="installs from PyPI; set EBBTIDE_DEPLOY_TESTS=1 to run it",
    ),
]

DAEMON, CLIENT = str(ROOT), str(ROOT / "clients" / "python")


class Environment:
    """A virtual environment without the dependencies of the distributions."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._python = root / "bin" / "python"
        venv.create(root, with_pip=True)

    def pip(self, *arguments: str) -> None:
        """Run pip."""
        self.run("-m", "pip", "--disable-pip-version-check", *arguments)

    def finds(self, module: str) -> str:
        """Return the file of a module, or nothing."""
        code = "import importlib.util as u, sys; s = u.find_spec(sys.argv[1]); print(s.origin if s else '')"
        return self.run("-c", code, module).strip()

    def run(self, *arguments: str, **variables: str) -> str:
        """Run Python with the variables of this process and these. Return what it printed."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        inherited |= variables
        command = [str(self._python), *arguments]
        done = subprocess.run(command, cwd=self._root, env=inherited, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.parametrize("order", [(DAEMON, CLIENT), (CLIENT, DAEMON)], ids=["daemon first", "client first"])
def test_removing_either_distribution_leaves_the_other_complete(
    order: tuple[str, str], tmp_path: Path
) -> None:
    """An environment with both has a working client after either of them is uninstalled."""
    environment = Environment(tmp_path / "env")
    for project in order:
        environment.pip("install", "--quiet", "--no-deps", project)
    assert "bundled" not in environment.finds("ebbtide_client.client")

    environment.pip("uninstall", "--yes", "ebbtide-client")
    assert environment.finds("ebbtide.cli.app")
    assert "ebbtide_bundled" in environment.finds("ebbtide_client.client")

    environment.pip("install", "--quiet", "--no-deps", CLIENT)
    environment.pip("uninstall", "--yes", "ebbtide")
    assert not environment.finds("ebbtide")
    assert "bundled" not in environment.finds("ebbtide_client.client")


def test_an_editable_installation_uses_the_sources_of_the_client(tmp_path: Path) -> None:
    """After `pip install -e .`, a change of the client's sources takes effect at once."""
    environment = Environment(tmp_path / "env")
    environment.pip("install", "--quiet", "--no-deps", "--editable", DAEMON)
    sources = ROOT / "clients" / "python" / "src"
    assert Path(environment.finds("ebbtide_client.client")).is_relative_to(sources)


def test_packages_contain_the_view(tmp_path: Path) -> None:
    """A source distribution has the built view, and a wheel made from it without Node has it too, with the licences."""
    environment = Environment(tmp_path / "env")
    environment.pip("install", "--quiet", "hatchling")
    code = "import os, sys; os.chdir(sys.argv.pop(1)); from hatchling.cli import hatchling; hatchling()"
    build = ("build", "--target", "sdist", "--directory", str(tmp_path / "dist"))
    environment.run("-c", code, str(ROOT), *build, EBBTIDE_WITHOUT_VIEW="")
    (source,) = map(str, (tmp_path / "dist").glob("*.tar.gz"))
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "build_view.py",
        "hatch_build.py",
        "web/package-lock.json",
        "clients/typescript/src/index.ts",
    } <= names
    assert not [name for name in names if "node_modules" in name]
    variables = {"EBBTIDE_WITHOUT_VIEW": "", "PATH": str(tmp_path)}
    environment.run(
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path / "dist"),
        source,
        **variables,
    )
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        files = {name for name in package.namelist() if name.startswith("ebbtide/web/files/")}
    assert {"ebbtide/web/files/index.html", "ebbtide/web/files/.vite/license.md"} <= files
    assert [name for name in files if name.endswith(".js")]
