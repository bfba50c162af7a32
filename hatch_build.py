"""The build hook of hatchling: a wheel and a source distribution contain the built web view.

Editable installations do not, because hatchling requests the dependencies of a hook for them too, and would download
Node. `make` builds the view for them. EBBTIDE_WITHOUT_VIEW=1 builds packages without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The folder of a build hook is not on the import path.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import build_view

IS_WITHOUT = os.environ.get("EBBTIDE_WITHOUT_VIEW", "") not in ("", "0")


class ViewHook(BuildHookInterface[Any]):
    """Builds the view before the files of a package are collected."""

    def dependencies(self) -> list[str]:
        """Return what the build of the view needs: Node, unless there is one or the files are current."""
        is_needed = not IS_WITHOUT and not build_view.is_current() and build_view.find_tools() is None
        return [build_view.NODE_PACKAGE] if is_needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the view if its files are not current. Raise build_view.Failed if it cannot be built."""
        if version != "editable" and not IS_WITHOUT and not build_view.is_current():
            build_view.build(build_view.find_tools())
