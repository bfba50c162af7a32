"""A command imports what it needs: the start of the command line stays cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ebbtide.cli.app import COMMANDS, make_app
from tests.tidy.pages import ROOT

HEAVY = (
    "rich",
    "pydantic",
    "pydantic_settings",
    "asyncio",
    "click",
    "pygments",
    "h2",
    "numpy",
    "ebbtide.settings",
)


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    script = (
        "import sys\nfrom ebbtide.cli.app import main\n"
        f"try: main({list(arguments)!r})\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_recall_imports_nothing_heavy() -> None:
    """`ebbtide recall` loads no settings, models, formatting or event loop, and no other command."""
    loaded = loaded_by("recall", "tea", "--url", "http://127.0.0.1:9")
    assert "httpx" in loaded, "it came as far as the request"
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("ebbtide.cli.commands.")} == {
        "ebbtide.cli.commands.recall"
    }


def test_the_blocked_modules_can_be_imported_afterwards() -> None:
    """Modules that a lean import skipped can be imported later."""
    script = (
        "import sys, ebbtide.cli.remote\n"
        "assert 'httpx._main' not in sys.modules and 'h2' not in sys.modules\n"
        "import h2, rich, gc\nassert gc.isenabled()"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True, cwd=ROOT)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists(name: str) -> None:
    """Each row names a command that can be built alone."""
    app = make_app([name])
    assert [one.name for one in (*app.registered_commands, *app.registered_groups)] == [name]
