"""The distributions `ebbtide` and `ebbtide-client` in one environment: each can be removed without the other.

Needs PyPI, or the package index that pip is configured for.
"""

from __future__ import annotations

import os
import subprocess
import venv
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
        self._run("-m", "pip", "--disable-pip-version-check", *arguments)

    def finds(self, module: str) -> str:
        """Return the file of a module, or nothing."""
        code = "import importlib.util as u, sys; s = u.find_spec(sys.argv[1]); print(s.origin if s else '')"
        return self._run("-c", code, module).strip()

    def _run(self, *arguments: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
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
